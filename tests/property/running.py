"""Random windows whose functions run from the partition's beginning to the row: what a sink of its own keeps.

Orders tie often, begin with values or with NULLs, and functions of several orders stand side by side.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property import kinds
from tests.property.expressions import predicates
from tests.property.groups import having_alone
from tests.property.kinds import BIGINT, FIXED, NUMERIC, Column, keys, order
from tests.property.relation import Relation, Scope, relations, select, where

_PLACES = (
    kinds.INT, kinds.BIGINT, kinds.SMALL, kinds.MONEY, kinds.FIXED, kinds.FLOAT, kinds.DATE, kinds.TIMESTAMP,
    kinds.TIMESTAMPTZ,
)  # fmt: skip
_ADDED = (kinds.INT, kinds.BIGINT, kinds.SMALL, kinds.MONEY, kinds.FIXED)
_WAYS = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
_PEERS = ("", "", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " GROUPS UNBOUNDED PRECEDING")


@st.composite
def running(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("r")
    scalar = keys(tuple(c.of(alias) for c in child.scalars))
    places = [c for c in scalar if c.kind in _PLACES]
    if not places:
        return draw(having_alone(scope))
    first = draw(st.sampled_from(places))
    partition = draw(st.lists(st.sampled_from(scalar), max_size=2, unique=True))
    by = f"PARTITION BY {order(partition)} " if partition else ""
    begun = f"{by}ORDER BY {first.name}{draw(st.sampled_from(_WAYS))}"
    # What follows the first column may differ from function to function. Where rows are told apart, all rows are.
    further = draw(st.sampled_from(("", "", *(f", {c.name} DESC" for c in scalar[:2]))))
    total, peers = f"{begun}, {order(scalar)}", f"{begun}{further}{draw(st.sampled_from(_PEERS))}"
    rows = f"{total} ROWS UNBOUNDED PRECEDING"
    added = draw(st.sampled_from([c for c in scalar if c.kind in _ADDED] or places))
    sums = [f"sum({added.name})"] if added.kind in _ADDED else []
    condition = draw(predicates(tuple(scalar), 0))
    calls = [
        f"row_number() OVER ({total})",
        f"rank() OVER ({peers})",
        f"dense_rank() OVER ({begun}{further})",
        f"count(*) OVER ({peers})",
        f"count({added.name}) FILTER (WHERE {condition}) OVER ({rows})",
        *(f"{call} OVER ({over})" for call in sums for over in (peers, peers, rows)),
        *(f"{call} FILTER (WHERE {condition}) OVER ({peers})" for call in sums),
        f"min({first.name}) OVER ({rows})",
        f"max({added.name}) OVER ({peers})",
        f"coalesce(rank() OVER ({begun}) * 2, 0)",
    ]
    made = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4, unique=True))
    chosen = draw(st.lists(st.sampled_from(scalar), max_size=4, unique=True))
    kinds_ = [_kind(call, first, added) for call in made]
    shown = [*chosen, *(Column(call, kind) for call, kind in zip(made, kinds_, strict=True))]
    return select(shown, f"FROM {child.aliased(alias)} {draw(where(scalar))}".rstrip())


def _kind(call: str, first: Column, added: Column) -> kinds.Kind:
    if call.startswith("sum("):
        return FIXED if added.kind is FIXED else NUMERIC
    if call.startswith("min("):
        return first.kind
    return added.kind if call.startswith("max(") else BIGINT
