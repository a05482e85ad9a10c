"""Random queries: every operator of the promise, composed at least three deep, as SQL text.

Their answer is a function of the data: an order is total wherever it can be seen.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.expressions import comparable, predicates
from tests.property.groups import distinct, grouped, having_alone, windowed
from tests.property.joins import joined, joined_trees
from tests.property.kinds import INT, TEXT, Column, key
from tests.property.relation import (
    Operator,
    Relation,
    Scope,
    matching,
    others,
    outputs,
    pairs,
    relations,
    select,
    where,
)
from tests.property.running import running
from tests.property.subqueries import (
    lateral,
    multiplied,
    scalar_subquery,
    sublinked,
    sublinked_joins,
    tied_by_subqueries,
    with_array,
    written_out,
)
from tests.property.tables import World


@st.composite
def filtered(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("f")
    columns = child.of(alias)
    return select(draw(outputs(columns)), f"FROM {child.aliased(alias)} {draw(where(columns))}".rstrip())


@st.composite
def set_operation(draw: st.DrawFn, scope: Scope) -> Relation:
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("u"), scope.alias("v")
    found = [
        (key(x), key(y))
        for x, y in pairs(left.of(a), right.of(b))
        if x.kind.type == y.kind.type and key(x).kind is key(y).kind
    ]
    if not found:
        constant = Column("1", INT)
        found = [(constant, constant)]
    chosen = draw(st.lists(st.sampled_from(found), min_size=1, max_size=2, unique=True))
    word = draw(st.sampled_from(("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")))
    one = select([x for x, _ in chosen], f"FROM {left.aliased(a)}")
    two = select([y for _, y in chosen], f"FROM {right.aliased(b)} {draw(where(right.of(b)))}".rstrip())
    return Relation(f"{one.text} {word} {two.text}", one.columns)


@st.composite
def with_cte(draw: st.DrawFn, scope: Scope) -> Relation:
    child = draw(relations(scope.below))
    # It may have the name of a table, too.
    name = draw(st.sampled_from((scope.alias("q"), scope.world.tables[0].name)))
    a, b = scope.alias("x"), scope.alias("y")
    body = f"SELECT * FROM {child.text}" if child.is_table else child.text
    left, right = child.of(a), child.of(b)
    condition = draw(matching(left, right)) or "true"
    if draw(st.booleans()):
        return _prefixed(
            name, body, select(draw(outputs(left + right)), f"FROM {name} {a} LEFT JOIN {name} {b} ON {condition}")
        )
    found = pairs(left, right) if draw(st.booleans()) else []
    if found:
        x, y = draw(st.sampled_from(found))
        tied = f"FROM {name} {b} WHERE {draw(matching(left, right)) or 'true'}"
        inside = draw(
            st.sampled_from(
                (
                    f"{x.name} IN (SELECT {y.name} FROM {name} {b} {draw(where(right))})",
                    f"{x.name} IN (SELECT {y.name} {tied})",
                    f"NOT EXISTS (SELECT {tied})",
                    f"(SELECT count(*) {tied}) > 1",
                )
            )
        )
        return _prefixed(name, body, select(draw(outputs(left)), f"FROM {name} {a} WHERE {inside}"))
    one = select(left, f"FROM {name} {a} {draw(where(left))}".rstrip())
    two = select(right, f"FROM {name} {b}")
    return _prefixed(name, body, Relation(f"{one.text} UNION ALL {two.text}", one.columns))


@st.composite
def joined_under_or(draw: st.DrawFn, scope: Scope) -> Relation:
    """A join whose condition stands in every branch of an OR, or in all but one."""
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("m"), scope.alias("n")
    tie = draw(matching(left.of(a), right.of(b)))
    inside = tuple(column for column in left.of(a) + right.of(b) if comparable(column))
    if tie is None or not inside:
        return draw(filtered(scope))
    branches = [f"({tie} AND {draw(predicates(inside, 0))})" for _ in range(draw(st.integers(2, 3)))]
    if draw(st.integers(0, 3)) == 3:
        branches[-1] = draw(predicates(inside, 0))
    source = f"FROM {left.aliased(a)}, {right.aliased(b)} WHERE {' OR '.join(branches)}"
    return select(draw(outputs(left.of(a) + right.of(b))), source)


def _prefixed(name: str, body: str, relation: Relation) -> Relation:
    return Relation(f"WITH {name} AS ({body}) {relation.text}", relation.columns)


@st.composite
def with_values(draw: st.DrawFn, scope: Scope) -> Relation:
    child, a, v = draw(relations(scope.below)), scope.alias("o"), scope.alias("v")
    value = Relation("", (Column("n", INT), Column("label", TEXT)))
    condition = draw(matching(child.of(a), value.of(v))) or "true"
    source = f"{child.aliased(a)} LEFT JOIN (VALUES (1, 'a'), (2, 'b'), (2, NULL)) AS {v}(n, label) ON {condition}"
    return select(draw(outputs(child.of(a) + value.of(v))), f"FROM {source}")


@st.composite
def recursive(draw: st.DrawFn, scope: Scope) -> Relation:
    """A walk that counts its steps, so that it ends whatever it walks on."""
    child = draw(relations(scope.below))
    name, a, b = scope.alias("w"), scope.alias("x"), scope.alias("y")
    found = [(x, y) for x in child.scalars for y in child.scalars if x.kind is y.kind and key(x) is x and key(y) is y]
    if not found:
        return draw(filtered(scope))
    here, there = draw(st.sampled_from(found))
    word = draw(st.sampled_from(("UNION ALL", "UNION")))
    begin = f"SELECT {here.of(a).name}, 0 FROM {child.aliased(a)} {draw(where(child.of(a)))}".rstrip()
    step = (
        f"SELECT {here.of(b).name}, {name}.depth + 1 FROM {name} JOIN {child.aliased(b)}"
        f" ON {there.of(b).name} = {name}.at WHERE {name}.depth < 2"
    )
    shown = select([Column(f"{name}.at", here.kind), Column(f"{name}.depth", INT)], f"FROM {name}")
    return Relation(f"WITH RECURSIVE {name}(at, depth) AS ({begin} {word} {step}) {shown.text}", shown.columns)


OPERATORS: tuple[Operator, ...] = (
    filtered,
    joined,
    grouped,
    sublinked,
    distinct,
    set_operation,
    windowed,
    joined_trees,
    grouped,
    scalar_subquery,
    with_cte,
    lateral,
    with_values,
    with_array,
    multiplied,
    sublinked_joins,
    having_alone,
    recursive,
    joined_under_or,
    tied_by_subqueries,
    written_out,
    running,
)
"""Simplest first: what a failure shrinks to. A new operator is one function and one line."""


@st.composite
def queries(draw: st.DrawFn, world: World, depths: tuple[int, ...] = (3, 2, 1, 2, 3)) -> str:
    depth = draw(st.sampled_from(depths))
    return draw(relations(Scope(world, depth, OPERATORS, draw(st.booleans())))).text
