"""Random joins: ON, USING and NATURAL, inner and outer, nested, aliased, and beside other items of FROM."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.property.expressions import comparable, predicates
from tests.property.kinds import Column, key
from tests.property.relation import (
    Columns,
    Relation,
    Scope,
    matching,
    others,
    outputs,
    relations,
    select,
    where,
)

_KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass(frozen=True)
class Item:
    """An item of FROM."""

    text: str
    names: Columns
    """What `*` yields: bare names, in order, one twice where a join of ON has it twice."""
    reach: Columns
    """What aliases reach."""
    merged: Columns = ()
    """Columns that a join merged: their bare names mean something else than those of either side."""

    @property
    def once(self) -> dict[str, Column]:
        """Names that are not ambiguous."""
        names = [c.name for c in self.names]
        return {c.name: c for c in self.names if names.count(c.name) == 1}


@st.composite
def joined(draw: st.DrawFn, scope: Scope) -> Relation:
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("l"), scope.alias("r")
    condition = draw(matching(left.of(a), right.of(b)))
    how = draw(st.sampled_from(_KINDS))
    if condition is None or draw(st.integers(0, 9)) == 9:
        how, condition = "JOIN", "true"
    elif how != "FULL JOIN" and draw(st.integers(0, 3)) == 3:
        condition += f" AND {draw(predicates(tuple(c.of(b) for c in right.scalars), 0))}" if right.scalars else ""
    both = left.of(a) + right.of(b)
    source = f"FROM {left.aliased(a)} {how} {right.aliased(b)} ON {condition}"
    return select(draw(outputs(both)), f"{source} {draw(where(both))}".rstrip())


@st.composite
def joined_trees(draw: st.DrawFn, scope: Scope) -> Relation:
    """Several items, some of them joins of joins, in which names meet and shadow one another."""
    items = [draw(joins(scope, first=draw(relations(scope.below)), letters="lmnk"))]
    if draw(st.integers(0, 2)):
        other = draw(others(scope.below))
        before = draw(st.booleans())
        alone = leaf(other, scope.alias("z"))
        items = [alone, *items] if before else [*items, alone]
    columns = reachable(items)
    conditions = [draw(where(columns))[6:]]
    if len(items) > 1 and draw(st.booleans()):
        conditions.append(draw(matching(items[0].reach, items[1].reach)) or "")
    condition = " AND ".join(c for c in conditions if c)
    text = ", ".join(item.text for item in items)
    return select(draw(outputs(columns)), f"FROM {text}" + (f" WHERE {condition}" if condition else ""))


def leaf(relation: Relation, alias: str) -> Item:
    return Item(relation.aliased(alias), relation.columns, relation.of(alias))


def reachable(items: list[Item]) -> Columns:
    """What a list over the items may name."""
    names = [c.name for item in items for c in item.names]
    merged = tuple(c for item in items for c in item.merged if names.count(c.name) == 1)
    # First, so that what is told apart by it is drawn often.
    return (*merged, *(c for item in items for c in item.reach))


@st.composite
def joins(draw: st.DrawFn, scope: Scope, first: Relation, letters: str) -> Item:
    """A join of as many relations as there are letters, or fewer."""
    size = draw(st.integers(2, len(letters)))
    parts = [leaf(first, scope.alias(letters[0]))]
    parts += [leaf(draw(others(scope.below)), scope.alias(letter)) for letter in letters[1:size]]
    while len(parts) > 1:
        position = draw(st.integers(0, len(parts) - 2))
        alias = scope.alias(f"j{letters[len(parts) - 2]}")
        parts[position : position + 2] = [draw(_join(parts[position], parts[position + 1], alias))]
    return parts[0]


@st.composite
def _join(draw: st.DrawFn, left: Item, right: Item, alias: str) -> Item:
    how = draw(st.sampled_from(_KINDS))
    bare = right.text if " JOIN " not in right.text or right.text.startswith("(") else f"({right.text})"
    shared = [c for n, c in left.once.items() if key(c) is c and comparable(c) and right.once.get(n) == c]
    common = {c.name for c in left.names} & {c.name for c in right.names}
    form = draw(st.sampled_from(("USING", "ON", "USING", "NATURAL", "AS")))
    if not shared or form == "ON":
        condition = draw(matching(left.reach, right.reach))
        if condition is None:
            how, condition = "JOIN", "true"
        elif how != "FULL JOIN" and draw(st.integers(0, 3)) == 3:
            scalar = tuple(c for c in (*left.reach, *right.reach) if comparable(c))
            condition += f" AND {draw(predicates(scalar, 0))}"
        made = Item(
            f"{left.text} {how} {bare} ON {condition}",
            left.names + right.names,
            left.reach + right.reach,
            left.merged + right.merged,
        )
    else:
        natural = form == "NATURAL" and len(common) == len(shared)
        by = shared if natural else draw(st.lists(st.sampled_from(shared), min_size=1, max_size=2, unique=True))
        names = {c.name for c in by}
        rest = [c for c in (*left.names, *right.names) if c.name not in names]
        listed = ", ".join(c.name for c in by)
        reach = left.reach + right.reach
        text = f"{left.text} NATURAL {how} {bare}" if natural else f"{left.text} {how} {bare} USING ({listed})"
        if form == "AS":
            text += f" AS {alias}"
            reach += tuple(c.of(alias) for c in by)
        # NATURAL merges in the order of the left side.
        merged = [c for c in left.names if c.name in names] if natural else by
        inner = [c for c in (*left.merged, *right.merged) if c.name not in names]
        made = Item(text, (*merged, *rest), reach, (*merged, *inner))
    if draw(st.integers(0, 3)) != 3 or form == "AS":
        return made
    names_once = made.once
    if len(names_once) == len(made.names) and draw(st.booleans()):
        listed, columns = "", made.names
    else:
        columns = tuple(Column(f"p{n}", c.kind) for n, c in enumerate(made.names))
        listed = f" ({', '.join(c.name for c in columns)})"
    return Item(f"({made.text}) AS {alias}{listed}", columns, tuple(c.of(alias) for c in columns))
