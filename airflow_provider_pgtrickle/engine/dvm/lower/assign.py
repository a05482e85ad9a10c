"""Each node of a plan is assigned to one side: PostgreSQL computes it in a leaf, or Spark over leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.emit import PostgresEmitter
from airflow_provider_pgtrickle.engine.dvm.emit import quote as pg_quote
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.lower.carriers import OPAQUE, Carrier, Kind, carrier_of, unify
from airflow_provider_pgtrickle.engine.dvm.lower.closed import NotClosed, close, close_predicate
from airflow_provider_pgtrickle.engine.dvm.lower.hoist import hoist
from airflow_provider_pgtrickle.engine.dvm.lower.plan import (
    Describe,
    LeafPlan,
    Slices,
    SparkPlan,
    is_single,
    row_wise_scan,
)
from airflow_provider_pgtrickle.engine.dvm.lower.spark_emit import SparkEmitter, quote
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.types import as_text, base_type


def lower(
    root: Node,
    storage: Sequence[str],
    key: Sequence[tuple[str, str]],
    emitter: Callable[[], PostgresEmitter],
    describe: Describe,
    slices: Slices,
    prefix: str,
    late: Sequence[tuple[str, str]] = (),
) -> SparkPlan | None:
    """Return the plan of a content whose columns are the storage's; None if Spark can't write its key.

    `key`: names and types of the columns that identify a stored row.
    """
    if any(base_type(type_name) == "citext" for _, type_name in key):
        return None  # the collation decides which values of citext are equal, and Spark doesn't know it
    assigned = _Assignment(emitter, describe, slices, prefix)
    root = hoist(root)
    carriers = assigned.assign(root)
    spark = SparkEmitter(assigned.names, assigned.closed, prefix)
    views, body = spark.views(root)
    written = _canonical([(n, carriers[n], t) for n, t in key])
    values = ", ".join(f"CAST(r.{quote(n)} AS STRING) AS {quote(n)}" for n in storage)
    columns = f"1 AS {quote(WEIGHT)}, {written} AS `__pgt_key`{', ' if values else ''}{values}"
    text = f"SELECT {columns} FROM ({body}) AS r"
    reads_twice = bool(views) or any(times > 1 for times in spark.reads.values())
    return SparkPlan(tuple(assigned.leaves), views, text, tuple(late), reads_twice)


def _canonical(columns: Sequence[tuple[str, Carrier, str]]) -> str:
    """Return the Spark expression of the canonical text in `dvm.identity`."""
    if not columns:
        return "''"
    return "concat(" + ", ".join(_canonical_value(*c) for c in columns) + ")"


def _canonical_value(name: str, carrier: Carrier, type_name: str) -> str:
    column = f"r.{quote(name)}"
    text = f"CAST({column} AS STRING)"
    base = base_type(type_name)
    if base in ("character", "bpchar"):
        text = f"rtrim({text})"
    if base in ("double precision", "real"):
        text = f"CASE {text} WHEN '-0' THEN '0' ELSE {text} END"
    if base == "numeric" and not (carrier.kind in (Kind.INT, Kind.DEC) and carrier.scale == 0):
        text = f"regexp_replace({text}, '(?:(\\\\.[0-9]*?[1-9])|\\\\.)0*$', '$1')"
    return f"CASE WHEN {column} IS NULL THEN 'N' ELSE concat('V', length({text}), ':', {text}) END"


class _Assignment:
    def __init__(self, emitter: Callable[[], PostgresEmitter], describe: Describe, slices: Slices, prefix: str) -> None:
        self._emitter = emitter
        self._describe = describe
        self._slices = slices
        self._prefix = prefix
        self._carriers: dict[int, dict[str, Carrier]] = {}
        self._alive: list[Node] = []
        self.names: dict[int, str] = {}
        self.leaves: list[LeafPlan] = []
        self.closed: dict[int, exp.Expr] = {}

    def assign(self, node: Node) -> dict[str, Carrier]:
        """Decide which side computes a subtree, and return the carriers of its columns."""
        if id(node) not in self._carriers:
            self._alive.append(node)
            carriers = self._assigned_to(node)
            self._carriers[id(node)] = carriers
        return self._carriers[id(node)]

    def _assigned_to(self, node: Node) -> dict[str, Carrier]:
        rule = _RULES.get(type(node))
        if rule is None or is_single(node):
            return self._leaf(node)
        leaves, names, carriers = list(self.leaves), dict(self.names), dict(self._carriers)
        try:
            return rule(self, node)
        except NotClosed:
            self.leaves, self.names, self._carriers = leaves, names, carriers
            return self._leaf(node)

    def _leaf(self, node: Node) -> dict[str, Carrier]:
        name = f"{self._prefix}_leaf_{len(self.leaves) + 1}"
        statement = self._emitter().statement(node)
        types = dict(self._describe(statement))
        carriers = {n: carrier_of(t) for n, t in types.items()}
        for column in node.columns:
            # The type of PostgreSQL's arithmetic lacks the digits that its operands' types promise; the node has them.
            if carriers[column.name] == OPAQUE and column.type is not None:
                carriers[column.name] = carrier_of(column.type)
        columns = [(n, carriers[n].spark) for n in node.names]
        items = ", ".join(f"{as_text(f'l.{pg_quote(n)}', types[n])} AS {pg_quote(n)}" for n, _ in columns)
        statements = tuple(f"SELECT {items} FROM ({s}) AS l" for s in self._statements(node, statement))
        self.leaves.append(LeafPlan(name, statements, tuple(columns)))
        self.names[id(node)] = name
        return carriers

    def _statements(self, node: Node, whole: str) -> list[str]:
        scan = row_wise_scan(node)
        slices = list(self._slices(scan.source)) if scan is not None else []
        if not slices:
            return [whole]
        sliced = []
        for slice_ in slices:
            emitter = self._emitter()
            emitter.slices[scan.source.key] = slice_  # type: ignore[union-attr]
            sliced.append(emitter.statement(node))
        return sliced

    def _close(self, expression: exp.Expr, env: dict[str, Carrier]) -> Carrier:
        self.closed[id(expression)], carrier = close(expression, env)
        return carrier

    def _predicate(self, expression: exp.Expr, env: dict[str, Carrier]) -> None:
        self.closed[id(expression)] = close_predicate(expression, env)

    def _inputs(self, node: Node) -> dict[str, Carrier]:
        found: dict[str, Carrier] = {}
        for child in node.inputs:
            found.update(self.assign(child))
        return found

    # -- one rule for each kind of node ----------------------------------------------------------

    def inner_join(self, node: InnerJoin) -> dict[str, Carrier]:
        env = self._inputs(node)
        for term in node.terms:
            self._predicate(term, env)
        return env

    def outer_join(self, node: OuterJoin) -> dict[str, Carrier]:
        env = self._inputs(node)
        self._predicate(node.condition, env)
        return env

    def filter(self, node: Filter) -> dict[str, Carrier]:
        if node.subqueries:
            raise NotClosed("a subquery")
        env = self._inputs(node)
        self._predicate(node.predicate, env)
        return env

    def project(self, node: Project) -> dict[str, Carrier]:
        if node.subqueries:
            raise NotClosed("a subquery")
        env = self._inputs(node)
        return {n: self._close(x, env) for n, x in node.items}

    def passing(self, node: Node) -> dict[str, Carrier]:
        return self._inputs(node)

    def union_all(self, node: UnionAll) -> dict[str, Carrier]:
        branches = [self.assign(b) for b in node.branches]
        found = {}
        for position, name in enumerate(node.out):
            carrier = unify([env[b.names[position]] for env, b in zip(branches, node.branches, strict=True)])
            if carrier is None:
                raise NotClosed(f"branches disagree on {name}")
            found[name] = carrier
        return found

    def set_operation(self, node: SetOperation) -> dict[str, Carrier]:
        left, right = self.assign(node.left), self.assign(node.right)
        found = {}
        for a, b in zip(node.left.names, node.right.names, strict=True):
            if left[a] != right[b] or not left[a].is_key:
                raise NotClosed(f"branches disagree on {a}")
            found[a] = left[a]
        return found

    def distinct(self, node: Distinct) -> dict[str, Carrier]:
        env = self._inputs(node)
        _require_keys(env, node.child.names)
        return {n: env[n] for n in node.names}

    def aggregate(self, node: Aggregate) -> dict[str, Carrier]:
        env = self._inputs(node)
        _require_keys(env, node.group)
        return {**{g: env[g] for g in node.group}, **{n: self._close(x, env) for n, x in node.aggregates}}


def _require_keys(env: dict[str, Carrier], names: Sequence[str]) -> None:
    for name in names:
        if not env[name].is_key:
            raise NotClosed(f"grouping by {name}")


#: The rules that say what Spark can compute of an operator. They aren't in the nodes, which know nothing of Spark.
#: An operator without a rule is left to PostgreSQL, which is always right, so a new operator needs no line here.
_RULES: dict[type[Node], Callable[..., dict[str, Carrier]]] = {
    InnerJoin: _Assignment.inner_join,
    OuterJoin: _Assignment.outer_join,
    Filter: _Assignment.filter,
    Project: _Assignment.project,
    Once: _Assignment.passing,
    UnionAll: _Assignment.union_all,
    SetOperation: _Assignment.set_operation,
    Distinct: _Assignment.distinct,
    Aggregate: _Assignment.aggregate,
}
