"""Comparisons with the clock become columns of `Clocked` below the operator that makes them.

    Filter(ts > Reading, orders)  →  Filter(clock, Clocked(ts > Reading AS clock, orders))

Above `Clocked` nothing knows of the clock. What PostgreSQL evaluates as it is written reads it as a source. Any other
use of the clock is refused, because its value would change in every row at each refresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK, readings_of
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    has_subquery,
    plain_column,
    returns_set,
    rewrite,
    subqueries,
    unparen,
)
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

#: Below these a comparison may be there only for the rows whose value can be compared at all.
_GUARDS = (exp.Case, exp.Coalesce)


def follow_clock(root: Node, name: Callable[[str], str]) -> Node:
    """Return the tree in which `Clocked` alone, and what is left to PostgreSQL, reads the clock."""
    if not any(readings_of(expressions_of(node)) for node in descendants(root)):
        return root
    found = rewritten(root, lambda _, fresh: _followed(fresh, name))
    for node in descendants(found):
        if not isinstance(node, (Clocked, Native)) and (left := _read_by_itself(node)):
            raise Refused(
                Reason.COMPUTES_WITH_CLOCK,
                left,
                "It is computed anew at each refresh, as of its data timestamp. Compare a column with the clock, or ask"
                " for the clock when reading.",
            )
    return found


def _followed(node: Node, name: Callable[[str], str]) -> Node:
    if not readings_of(expressions_of(node)):
        return node
    if isinstance(node, Native):
        # A recursion is not followed by its steps, because what the clock does to one goes on in all.
        kept = {f.name: getattr(node, f.name) for f in fields(Native)}
        return Native(**{**kept, "tables": node.tables | {CLOCK}, "why": "it reads the clock"})
    if isinstance(node, Filter):
        (child,), (predicate,) = _apart(name, [node.child], [node.predicate])
        return _watching(replace(node, child=child, predicate=predicate))
    if isinstance(node, Project):
        (child,), items = _apart(name, [node.child], [x for _, x in node.items])
        return _watching(replace(node, child=child, items=_renamed(node.items, items)))
    if isinstance(node, Aggregate):
        (child,), calls = _apart(name, [node.child], [x for _, x in node.aggregates])
        return replace(node, child=child, aggregates=_renamed(node.aggregates, calls))
    if isinstance(node, Window):
        (child,), calls = _apart(name, [node.child], [x for _, x in node.functions])
        return replace(node, child=child, functions=_renamed(node.functions, calls))
    if isinstance(node, (OuterJoin, SemiJoin)):
        (left, right), (condition,) = _apart(name, [node.left, node.right], [node.condition])
        return replace(node, left=left, right=right, condition=condition)
    if isinstance(node, InnerJoin):
        return _joined(node, name)
    return _watching(node)


def _joined(node: InnerJoin, name: Callable[[str], str]) -> Node:
    """The join; a comparison that reads several inputs is made above it."""
    relations, terms = _apart(name, node.relations, node.terms)
    above = [t for t in terms if readings_of([t])]
    if not above:
        return replace(node, relations=tuple(relations), terms=tuple(terms))
    join = InnerJoin(tuple(relations), tuple(t for t in terms if not readings_of([t])))
    (over,), above = _apart(name, [join], above)
    return Filter(over, conjunction(above))


def _apart(
    name: Callable[[str], str], inputs: Sequence[Node], expressions: Sequence[exp.Expr]
) -> tuple[list[Node], list[exp.Expr]]:
    """Return the inputs with the comparisons that the expressions make of one input's rows, and what is left of them.

    A comparison that reads no column stands at the first input.
    """
    held = [set(node.names) for node in inputs]
    made: list[dict[exp.Expr, str]] = [{} for _ in inputs]

    def change(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, (exp.Select, exp.SetOperation)):
            return node.copy()
        if not _is_comparison(node):
            return None
        place = next((i for i, names in enumerate(held) if columns_of(node) <= names), None)
        if place is None:
            return None
        if node not in made[place]:
            made[place][node.copy()] = name("clock")
        return column(made[place][node])

    rest = [rewrite(x, change) for x in expressions]
    clocked = [
        Clocked(node, tuple((n, x) for x, n in items.items())) if items else node
        for node, items in zip(inputs, made, strict=True)
    ]
    return clocked, rest


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
