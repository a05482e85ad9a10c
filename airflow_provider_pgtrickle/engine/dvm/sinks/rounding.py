"""PostgreSQL's own sums of floats beside the sums of their decimals, by group: γ(R) → key, Σ₁₀ and its bound

A sum has other last digits each time that the rows are read in another order. Two of PostgreSQL's sums of one group
are each within the bound of the decimals' sum, whatever the order was. So what is further from it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, columns_of, plain_column, substitute, unparen
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.proof import open_columns
from airflow_provider_pgtrickle.engine.dvm.sinks.floats import FLOATS, Floats
from airflow_provider_pgtrickle.engine.dvm.sinks.parts import Item, Parts
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, bound_name, kept_name


@dataclass(frozen=True)
class Rounding:
    """Columns of a query that are sums of floats, with what each is near to."""

    columns: tuple[str, ...]
    node: Node
    """For each group its key by the query's names, then each column's value in decimals and its bound."""


def rounding(query: Query, types: Mapping[str, str]) -> Rounding | None:
    """Return the columns whose rounding has a bound; None where none has. `types`: of the columns that are floats.

    A column has to be the aggregate's value itself, over values that aren't rounded below it, and its groups' keys have
    to be columns, too.
    """
    core = query.root
    held: dict[str, exp.Expr] = {name: column(name) for name in core.names}
    while isinstance(core, (Project, Filter)) and core.row_wise and not (isinstance(core, Project) and core.makes_sets):
        if isinstance(core, Project):
            items = dict(core.items)
            held = {name: substitute(value, items) for name, value in held.items()}
        core = core.child
    if not isinstance(core, Aggregate):
        return None
    shown = {o: plain_column(unparen(v)) for o, v in zip(query.outputs, held.values(), strict=False)}
    keys = {of: output for output, of in shown.items() if of in core.group}
    if set(keys) != set(core.group):
        return None
    parts, calls, rounded = Parts({c.name: c for c in core.child.columns}), dict(core.aggregates), None
    sums, found = Floats(parts), dict[str, tuple[exp.Expr, exp.Expr]]()
    for output, of in shown.items():
        if types.get(output) not in FLOATS or of not in calls:
            continue
        rounded = open_columns(core.child).rounded if rounded is None else rounded
        near = None if columns_of(calls[of]) & rounded else sums.value(calls[of], types[output])
        if near is not None:
            found[output] = near.value, near.bound
    if not found:
        return None
    state = tuple(item for part in parts.all for item in part.full) + tuple(sums.sizes.items())
    listed: list[Item] = [(keys[name], column(name)) for name in core.group]
    for number, (value, bound) in enumerate(found.values()):
        listed += [(kept_name(number), value), (bound_name(number), bound)]
    return Rounding(tuple(found), Project(Aggregate(core.child, core.group, state), tuple(listed)))
