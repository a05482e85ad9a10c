"""Comparisons with the clock become columns of `Clocked` below the operator that makes them.

    Filter(ts > Reading, orders)  →  Filter(clock, Clocked(ts > Reading AS clock, orders))

Lists, ranges and OVERLAPS are spelled out as comparisons first: day = ANY (ARRAY[a, b]) as day = a OR day = b, and
span @> a by the span's bounds.

Above `Clocked` nothing knows of the clock. What PostgreSQL evaluates as it is written reads it as a source. Any other
use of the clock is refused, because its value would change in every row at each refresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK, readings_of
from airflow_provider_pgtrickle.engine.dvm.dialect import Infix, Reading
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    has_subquery,
    plain_column,
    render,
    returns_set,
    rewrite,
    subqueries,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_unwatched import expressions_of
from airflow_provider_pgtrickle.engine.dvm.node import Item, Node, descendants, rewritten
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.clocked import COMPARISONS, Clocked
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Subquery
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.types import base_type

#: Below these a comparison may be there only for the rows whose value can be compared at all.
_GUARDS = (exp.Case, exp.Coalesce)
_SPANS = ("daterange", "tsrange", "tstzrange")
_TIMES = ("date", "timestamp with time zone", "timestamp without time zone", "time without time zone")


def follow_clock(root: Node, builder: Builder) -> Node:
    """Return the tree in which `Clocked` alone, and what is left to PostgreSQL, reads the clock."""
    if not any(readings_of(expressions_of(node)) for node in descendants(root)):
        return root
    found = rewritten(root, lambda _, fresh: _followed(fresh, builder))
    for node in descendants(found):
        if not isinstance(node, (Clocked, Native)) and (left := _read_by_itself(node)):
            raise Refused(
                Reason.COMPUTES_WITH_CLOCK,
                left,
                "It is computed anew at each refresh, as of its data timestamp. Compare a column with the clock, or ask"
                " for the clock when reading.",
            )
    return found


def _followed(node: Node, builder: Builder) -> Node:
    if not readings_of(expressions_of(node)):
        return node
    if isinstance(node, Native):
        # A recursion is not followed by its steps, because what the clock does to one goes on in all.
        kept = {f.name: getattr(node, f.name) for f in fields(Native)}
        return Native(**{**kept, "tables": node.tables | {CLOCK}, "why": "it reads the clock"})
    if isinstance(node, Filter):
        (child,), (predicate,) = _apart(builder, [node.child], [node.predicate])
        return _watching(replace(node, child=child, predicate=predicate))
    if isinstance(node, Project):
        (child,), items = _apart(builder, [node.child], [x for _, x in node.items])
        return _watching(replace(node, child=child, items=_renamed(node.items, items)))
    if isinstance(node, Aggregate):
        (child,), calls = _apart(builder, [node.child], [x for _, x in node.aggregates])
        return replace(node, child=child, aggregates=_renamed(node.aggregates, calls))
    if isinstance(node, Window):
        (child,), calls = _apart(builder, [node.child], [x for _, x in node.functions])
        return replace(node, child=child, functions=_renamed(node.functions, calls))
    if isinstance(node, (OuterJoin, SemiJoin)):
        (left, right), (condition,) = _apart(builder, [node.left, node.right], [node.condition])
        return replace(node, left=left, right=right, condition=condition)
    if isinstance(node, InnerJoin):
        return _joined(node, builder)
    return _watching(node)


def _joined(node: InnerJoin, builder: Builder) -> Node:
    """The join; a comparison that reads several inputs is made above it."""
    relations, terms = _apart(builder, node.relations, node.terms)
    above = [t for t in terms if readings_of([t])]
    if not above:
        return replace(node, relations=tuple(relations), terms=tuple(terms))
    join = InnerJoin(tuple(relations), tuple(t for t in terms if not readings_of([t])))
    (over,), above = _apart(builder, [join], above)
    return Filter(over, conjunction(above))


def _apart(
    builder: Builder, inputs: Sequence[Node], expressions: Sequence[exp.Expr]
) -> tuple[list[Node], list[exp.Expr]]:
    """Return the inputs with the comparisons that the expressions make of one input's rows, and what is left of them.

    A comparison that reads no column stands at the first input.
    """
    held = [set(node.names) for node in inputs]
    types = {c.name: base_type(c.type) for node in inputs for c in node.columns if c.type is not None}
    made: list[dict[exp.Expr, str]] = [{} for _ in inputs]

    def change(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, (exp.Select, exp.SetOperation)):
            return node.copy()
        if not _is_comparison(node):
            spelled = _spelled_out(node, types)
            return rewrite(spelled, change) if spelled is not None else None
        place = next((i for i, names in enumerate(held) if columns_of(node) <= names), None)
        if place is None:
            return None
        if node not in made[place]:
            made[place][node.copy()] = builder.name("clock")
        return column(made[place][node])

    rest = [rewrite(x, change) for x in expressions]
    clocked = [
        Clocked(node, tuple((n, x) for x, n in items.items()), is_local=builder.schema.is_local) if items else node
        for node, items in zip(inputs, made, strict=True)
    ]
    return clocked, rest


def _spelled_out(node: exp.Expr, types: Mapping[str, str]) -> exp.Expr | None:
    """Return comparisons that mean the same as a list or a range that reads the clock; None for anything else."""
    is_guarded = node.find_ancestor(*_GUARDS) is not None
    if isinstance(node, (exp.EQ, exp.NEQ)):
        listed = _listed(node)
        if listed is None or not readings_of(listed) or (is_guarded and plain_column(node.this) is None):
            return None
        each = [exp.Paren(this=type(node)(this=node.this.copy(), expression=x.copy())) for x in listed]
        joined = exp.or_(*each, copy=False) if isinstance(node, exp.EQ) else exp.and_(*each, copy=False)
        return exp.Paren(this=joined)
    if isinstance(node, Infix) and node.args["operator"] in ("@>", "<@") and not is_guarded:
        sides = node.this, node.expression
        span, instant = sides if node.args["operator"] == "@>" else sides[::-1]
        if isinstance(unparen(instant), Reading) and types.get(plain_column(span) or "") in _SPANS:
            return _within(span, instant)
    if isinstance(node, exp.Overlaps) and not is_guarded:
        one, other = (_ends(side, types) for side in (node.this, node.expression))
        if one is None or other is None or bool(readings_of(one)) is bool(readings_of(other)):
            return None
        row, fixed = (other, one) if readings_of(one) else (one, other)
        return None if any(columns_of(x) for x in fixed) else _overlapping(row, fixed)
    return None


def _listed(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the elements of x = ANY (ARRAY[…]) or x <> ALL (ARRAY[…])."""
    array: exp.Expr | None = None
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        array = unparen(node.expression.this)
    elif isinstance(node, exp.NEQ) and _is_all(node.expression):
        (array,) = node.expression.expressions
    return list(array.expressions) if isinstance(array, exp.Array) and array.expressions else None


def _is_all(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "ALL" and len(node.expressions) == 1


def _within(span: exp.Expr, instant: exp.Expr) -> exp.Expr:
    """Return that a range holds an instant; NULL where the range is NULL, and false where it is empty."""

    def ask(name: str) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=[span.copy()])

    def bound(side: str, closed: type[exp.Binary], opened: type[exp.Binary]) -> exp.Expr:
        meets = [
            exp.And(
                this=ask(f"{side}_inc") if kind is closed else exp.Not(this=ask(f"{side}_inc")),
                expression=exp.Paren(this=kind(this=ask(side), expression=instant.copy())),
            )
            for kind in (closed, opened)
        ]
        return exp.Paren(this=exp.or_(ask(f"{side}_inf"), *meets, copy=False))

    bounds = bound("lower", exp.LTE, exp.LT), bound("upper", exp.GTE, exp.GT)
    return exp.Paren(this=exp.and_(exp.Not(this=ask("isempty")), *bounds, copy=False))


def _ends(pair: exp.Expr, types: Mapping[str, str]) -> tuple[exp.Expr, exp.Expr] | None:
    """Return both ends of one side of OVERLAPS; None if it isn't known whether the second is a time or a distance."""
    if not isinstance(pair, exp.Tuple) or len(pair.expressions) != 2:
        return None
    first, second = (unparen(x) for x in pair.expressions)
    if has_subquery(pair) or returns_set(first) or returns_set(second):
        return None
    kind = "timestamp with time zone" if isinstance(second, Reading) else _type_of(second, types)
    if kind == "interval":
        return first, exp.Add(this=exp.Paren(this=first.copy()), expression=exp.Paren(this=second.copy()))
    return (first, second) if kind in _TIMES else None


def _type_of(value: exp.Expr, types: Mapping[str, str]) -> str | None:
    if isinstance(value, exp.Cast):
        return base_type(render(value.to).replace('"', ""))
    if isinstance(value, (exp.Add, exp.Sub)):
        # A date and a number, or a time and an interval.
        distance = unparen(value.expression)
        is_fixed = isinstance(distance, exp.Literal) or _type_of(distance, types) == "interval"
        return _type_of(unparen(value.this), types) if is_fixed else None
    return types.get(plain_column(value) or "")


def _overlapping(row: Sequence[exp.Expr], fixed: Sequence[exp.Expr]) -> exp.Expr:
    """(a, b) OVERLAPS (c, d), of which c and d are never NULL.

    With f and t the first and the last of a and b: f > c AND f < d, or both are known and (f < c AND t > c OR f = c);
    else NULL if one is unknown, for it may be anywhere.
    """

    def clock(function: str) -> exp.Expr:
        bare = [rewrite(x, lambda n: n.this.copy() if isinstance(n, Reading) else None) for x in fixed]
        return Reading(this=exp.Anonymous(this=function, expressions=bare))

    def end(function: str) -> exp.Expr:
        return exp.Anonymous(this=function, expressions=[x.copy() for x in row])

    def compared(kind: type[exp.Binary], value: str, limit: str) -> exp.Expr:
        return exp.Paren(this=kind(this=end(value), expression=clock(limit)))

    def is_null(value: exp.Expr) -> exp.Expr:
        return exp.Paren(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.null()))

    unknown = exp.Paren(this=exp.or_(*(is_null(x) for x in row), copy=False))
    inside = exp.and_(compared(exp.GT, "LEAST", "LEAST"), compared(exp.LT, "LEAST", "GREATEST"), copy=False)
    across = exp.and_(compared(exp.LT, "LEAST", "LEAST"), compared(exp.GT, "GREATEST", "LEAST"), copy=False)
    meets = exp.or_(exp.Paren(this=across), compared(exp.EQ, "LEAST", "LEAST"), copy=False)
    known = exp.and_(exp.Not(this=unknown.copy()), exp.Paren(this=meets), copy=False)
    missing = exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=exp.false())
    return exp.Paren(this=exp.or_(exp.Paren(this=inside), exp.Paren(this=known), exp.Paren(this=missing), copy=False))


def _is_comparison(node: exp.Expr) -> bool:
    """Whether a value that can be computed for each row is compared with a reading."""
    if not isinstance(node, COMPARISONS):
        return False
    sides = unparen(node.this), unparen(node.expression)
    value = next((s for s, other in (sides, sides[::-1]) if isinstance(other, Reading)), None)
    if value is None or value.find(Reading) or has_subquery(value) or returns_set(value):
        return False
    if isinstance(value, (exp.Tuple, exp.Any, exp.All)):
        return False
    return plain_column(value) is not None or node.find_ancestor(*_GUARDS) is None


def _watching(node: Node) -> Node:
    """The node, which a move of the clock touches in every row if a subquery in its expressions reads the clock."""
    if not isinstance(node, Dependent) or not any(
        readings_of([query]) for x in expressions_of(node) for query in subqueries(x)
    ):
        return node
    return replace(node, subqueries=(*node.subqueries, Subquery(frozenset((CLOCK,)), None)))  # type: ignore[call-arg]


def _read_by_itself(node: Node) -> str | None:
    """What the node reads of the clock in expressions of its own, and not in a subquery that it watches."""
    for expression in expressions_of(node):
        bare = expression
        if isinstance(node, Dependent):
            bare = rewrite(expression, lambda n: exp.null() if isinstance(n, (exp.Select, exp.SetOperation)) else None)
        if found := readings_of([bare]):
            return next(iter(found))
    return None


def _renamed(items: Iterable[Item], values: Iterable[exp.Expr]) -> tuple[Item, ...]:
    return tuple((n, x) for (n, _), x in zip(items, values, strict=True))
