"""Random queries: every operator of the promise, composed at least three deep, as SQL text.

Their answer is a function of the data: an order is total wherever it can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.property.expressions import aggregates, comparable, expressions, predicates, windows
from tests.property.kinds import ARRAY, BIGINT, INT, TEXT, Column, key, keys, order
from tests.property.tables import World

Columns = tuple[Column, ...]


@dataclass(frozen=True)
class Relation:
    """Something to select from: a table's name or a SELECT."""

    text: str
    columns: Columns
    is_table: bool = False

    def aliased(self, alias: str) -> str:
        return f"{self.text} AS {alias}" if self.is_table else f"({self.text}) AS {alias}"

    def of(self, alias: str) -> Columns:
        return tuple(column.of(alias) for column in self.columns)

    @property
    def scalars(self) -> Columns:
        return tuple(column for column in self.columns if comparable(column))


def select(columns: list[Column] | Columns, rest: str, distinct: str = "") -> Relation:
    """`SELECT columns rest`, its columns renamed c0, c1, …"""
    listed = ", ".join(f"{column.name} AS c{number}" for number, column in enumerate(columns))
    return Relation(
        f"SELECT {distinct}{listed} {rest}",
        tuple(Column(f"c{number}", column.kind) for number, column in enumerate(columns)),
    )


@dataclass(frozen=True)
class Scope:
    """What a sub-query may be made of. The level is in every alias, so that no name shadows another."""

    world: World
    level: int

    def alias(self, letter: str) -> str:
        return f"{letter}{self.level}"

    @property
    def below(self) -> Scope:
        return replace(self, level=self.level - 1)


@st.composite
def relations(draw: st.DrawFn, scope: Scope) -> Relation:
    if scope.level == 0:
        table = draw(st.sampled_from(scope.world.tables))
        return Relation(table.name, table.columns, is_table=True)
    return draw(draw(st.sampled_from(OPERATORS))(scope))


@st.composite
def others(draw: st.DrawFn, scope: Scope) -> Relation:
    """The second operand: as a rule a shallow one, or queries would grow without limit."""
    return draw(relations(replace(scope, level=draw(st.sampled_from((0, 0, 0, min(1, scope.level)))))))


def queries(world: World, depth: int = 3) -> st.SearchStrategy[str]:
    return relations(Scope(world, depth)).map(lambda relation: relation.text)


@st.composite
def _outputs(draw: st.DrawFn, columns: Columns) -> list[Column]:
    """Some columns and expressions over them, no more than six."""
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=5, unique=True))
    scalar = tuple(column for column in columns if comparable(column))
    if scalar and draw(st.booleans()):
        chosen.append(draw(expressions(scalar)))
    return chosen


@st.composite
def _where(draw: st.DrawFn, columns: Columns) -> str:
    scalar = tuple(column for column in columns if comparable(column))
    return f"WHERE {draw(predicates(scalar))}" if scalar and draw(st.booleans()) else ""


def _pairs(left: Columns, right: Columns) -> list[tuple[Column, Column]]:
    """Columns that can be compared for equality, most telling first."""
    found = [(a, b) for a in left for b in right if comparable(a) and a.kind.type == b.kind.type]
    return found or [(a, b) for a in left for b in right if a.kind.numeric and b.kind.numeric]


@st.composite
def _matching(draw: st.DrawFn, left: Columns, right: Columns) -> str | None:
    pairs = _pairs(left, right)
    if not pairs:
        return None
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True))
    return " AND ".join(f"{a.name} = {b.name}" for a, b in chosen)


@st.composite
def filtered(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("f")
    columns = child.of(alias)
    return select(draw(_outputs(columns)), f"FROM {child.aliased(alias)} {draw(_where(columns))}".rstrip())


@st.composite
def joined(draw: st.DrawFn, scope: Scope) -> Relation:
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("l"), scope.alias("r")
    condition = draw(_matching(left.of(a), right.of(b)))
    how = draw(st.sampled_from(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")))
    if condition is None or draw(st.integers(0, 9)) == 9:
        how, condition = "JOIN", "true"
    elif how != "FULL JOIN" and draw(st.integers(0, 3)) == 3:
        condition += f" AND {draw(predicates(tuple(c.of(b) for c in right.scalars), 0))}" if right.scalars else ""
    both = left.of(a) + right.of(b)
    source = f"FROM {left.aliased(a)} {how} {right.aliased(b)} ON {condition}"
    return select(draw(_outputs(both)), f"{source} {draw(_where(both))}".rstrip())


@st.composite
def sublinked(draw: st.DrawFn, scope: Scope) -> Relation:
    """EXISTS, IN, ANY, ALL and their negations; correlated, and under OR."""
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("o"), scope.alias("i")
    pairs = _pairs(outer.of(a), inner.of(b))
    where = draw(_where(inner.of(b)))
    if pairs:
        x, y = draw(st.sampled_from(pairs))
        extra = f" AND {where[6:]}" if where else ""
        correlation = draw(_matching(outer.of(a), inner.of(b)))
        plain = f"SELECT {y.name} FROM {inner.aliased(b)} {where}".rstrip()
        correlated = f"SELECT {y.name} FROM {inner.aliased(b)} WHERE {correlation}"
        condition = draw(
            st.sampled_from(
                (
                    f"EXISTS (SELECT 1 FROM {inner.aliased(b)} WHERE {correlation}{extra})",
                    f"NOT EXISTS (SELECT 1 FROM {inner.aliased(b)} WHERE {correlation}{extra})",
                    f"{x.name} IN ({plain})",
                    f"{x.name} NOT IN ({plain})",
                    f"{x.name} >= ALL ({plain})",
                    f"{x.name} < ANY ({plain})",
                    f"{x.name} <> ALL ({plain})",
                    f"{x.name} NOT IN ({correlated})",
                )
            )
        )
        if draw(st.integers(0, 3)) == 3 and outer.scalars:
            condition = f"({draw(predicates(tuple(c.of(a) for c in outer.scalars), 0))} OR {condition})"
    else:
        condition = f"EXISTS (SELECT 1 FROM {inner.aliased(b)} {where})"
    return select(draw(_outputs(outer.of(a))), f"FROM {outer.aliased(a)} WHERE {condition}")


@st.composite
def scalar_subquery(draw: st.DrawFn, scope: Scope) -> Relation:
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("o"), scope.alias("s")
    if not inner.scalars:
        return draw(filtered(scope))
    aggregate = draw(aggregates(inner.of(b)))
    correlation = draw(_matching(outer.of(a), inner.of(b))) if draw(st.integers(0, 3)) else None
    where = f" WHERE {correlation}" if correlation else ""
    value = Column(f"(SELECT {aggregate.name} FROM {inner.aliased(b)}{where})", aggregate.kind)
    outputs = draw(_outputs(outer.of(a)))
    rest = f"FROM {outer.aliased(a)}"
    comparable_outer = [c for c in outer.of(a) if c.kind.numeric]
    if value.kind.numeric and comparable_outer and draw(st.integers(0, 2)) == 2:
        return select(outputs, f"{rest} WHERE {draw(st.sampled_from(comparable_outer)).name} <= {value.name}")
    return select([*outputs, value], rest)


@st.composite
def with_array(draw: st.DrawFn, scope: Scope) -> Relation:
    """ARRAY(SELECT …), whose order is part of its value."""
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("o"), scope.alias("i")
    columns = keys(tuple(c.of(b) for c in inner.scalars))
    if not columns:
        return draw(filtered(scope))
    element = draw(st.sampled_from(columns)).name
    correlation = draw(_matching(outer.of(a), inner.of(b)))
    where = f" WHERE {correlation}" if correlation else ""
    array = f"ARRAY(SELECT {element}::text FROM {inner.aliased(b)}{where} ORDER BY {element} DESC, {order(columns)})"
    return select([*draw(_outputs(outer.of(a))), Column(array, ARRAY)], f"FROM {outer.aliased(a)}")


@st.composite
def multiplied(draw: st.DrawFn, scope: Scope) -> Relation:
    """A function in the list that returns a set: none, one or several rows for each."""
    child, a = draw(relations(scope.below)), scope.alias("m")
    found = [c for c in child.of(a) if c.kind in (INT, BIGINT, TEXT)]
    if not found:
        return draw(filtered(scope))
    column = draw(st.sampled_from(found))
    if column.kind is TEXT:
        made = Column(f"regexp_split_to_table({column.name}, 'a')", TEXT)
    else:
        made = Column(f"generate_series(1, least({column.name}, 3)::int)", INT)
    return select([*draw(_outputs(child.of(a))), made], f"FROM {child.aliased(a)} {draw(_where(child.of(a)))}".rstrip())


@st.composite
def joined_using(draw: st.DrawFn, scope: Scope) -> Relation:
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("l"), scope.alias("r")
    both = [x for x in left.scalars for y in right.scalars if x.name == y.name and x.kind is y.kind and key(x) is x]
    if not both:
        return draw(joined(scope))
    shared = draw(st.sampled_from(both))
    rest = [c for c in left.of(a) + right.of(b) if c.name.split(".", 1)[1] != shared.name]
    how = draw(st.sampled_from(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")))
    outputs = [shared, *draw(st.lists(st.sampled_from(rest), max_size=4, unique=True))] if rest else [shared]
    return select(outputs, f"FROM {left.aliased(a)} {how} {right.aliased(b)} USING ({shared.name})")


@st.composite
def grouped(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("g")
    columns = child.of(alias)
    scalar = tuple(c.of(alias) for c in child.scalars)
    if not scalar:
        return draw(filtered(scope))
    by = list(keys(tuple(draw(st.lists(st.sampled_from(scalar), max_size=2, unique=True)))))
    found = draw(st.lists(aggregates(scalar), min_size=1, max_size=3))
    rest = f"FROM {child.aliased(alias)} {draw(_where(columns))}".rstrip()
    outputs = [*by, *found]
    if by:
        names = ", ".join(column.name for column in by)
        shape = draw(st.integers(0, 7))
        if shape == 6:
            names = f"ROLLUP ({names})"
            outputs.append(Column(f"GROUPING({by[0].name})", INT))
        elif shape == 7:
            names = f"GROUPING SETS (({names}), ({by[0].name}), ())"
        rest += f" GROUP BY {names}"
    if draw(st.integers(0, 2)) == 2:
        other = draw(st.sampled_from(scope.world.tables)).name
        having = draw(
            st.sampled_from(
                (
                    "count(*) > 1",
                    f"count({scalar[0].name}) <= 2",
                    f"{found[0].name} IS NOT NULL",
                    f"count(*) <= (SELECT count(*) FROM {other} AS h{scope.level})",
                    f"EXISTS (SELECT 1 FROM {other} AS h{scope.level} HAVING count(*) > count({scalar[0].name}))",
                )
            )
        )
        rest += f" HAVING {having}"
    return select(outputs, rest)


@st.composite
def distinct(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("d")
    columns = keys(tuple(c.of(alias) for c in child.scalars))
    if not columns:
        return draw(filtered(scope))
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3, unique=True))
        return select(chosen, f"FROM {child.aliased(alias)}", distinct="DISTINCT ")
    first = draw(st.sampled_from(columns))
    return select(
        columns,
        f"FROM {child.aliased(alias)} ORDER BY {first.name}, {order(columns)}",
        distinct=f"DISTINCT ON ({first.name}) ",
    )


@st.composite
def set_operation(draw: st.DrawFn, scope: Scope) -> Relation:
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("u"), scope.alias("v")
    pairs = [
        (key(x), key(y))
        for x, y in _pairs(left.of(a), right.of(b))
        if x.kind.type == y.kind.type and key(x).kind is key(y).kind
    ]
    if not pairs:
        constant = Column("1", INT)
        pairs = [(constant, constant)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True))
    word = draw(st.sampled_from(("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")))
    one = select([x for x, _ in chosen], f"FROM {left.aliased(a)}")
    two = select([y for _, y in chosen], f"FROM {right.aliased(b)} {draw(_where(right.of(b)))}".rstrip())
    return Relation(f"{one.text} {word} {two.text}", one.columns)


@st.composite
def windowed(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("w")
    scalar = tuple(c.of(alias) for c in child.scalars)
    if not scalar:
        return draw(filtered(scope))
    # All that the order can see is shown or nothing is told apart by it: rows that tie are alike.
    made = draw(windows(scalar))
    return select([*draw(_outputs(scalar)), *made], f"FROM {child.aliased(alias)} {draw(_where(scalar))}".rstrip())


@st.composite
def with_cte(draw: st.DrawFn, scope: Scope) -> Relation:
    child = draw(relations(scope.below))
    name, a, b = scope.alias("q"), scope.alias("x"), scope.alias("y")
    body = f"SELECT * FROM {child.text}" if child.is_table else child.text
    left, right = child.of(a), child.of(b)
    condition = draw(_matching(left, right)) or "true"
    if draw(st.booleans()):
        return _prefixed(
            name, body, select(draw(_outputs(left + right)), f"FROM {name} {a} LEFT JOIN {name} {b} ON {condition}")
        )
    one = select(left, f"FROM {name} {a} {draw(_where(left))}".rstrip())
    two = select(right, f"FROM {name} {b}")
    return _prefixed(name, body, Relation(f"{one.text} UNION ALL {two.text}", one.columns))


def _prefixed(name: str, body: str, relation: Relation) -> Relation:
    return Relation(f"WITH {name} AS ({body}) {relation.text}", relation.columns)


@st.composite
def lateral(draw: st.DrawFn, scope: Scope) -> Relation:
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b, s = scope.alias("o"), scope.alias("i"), scope.alias("t")
    integers = [c for c in outer.of(a) if c.kind in (INT, BIGINT)]
    if integers and draw(st.integers(0, 3)) == 0:
        bound = draw(st.sampled_from(integers)).name
        series = f"CROSS JOIN LATERAL generate_series(1, least({bound}, 3)::int) AS {s}(n)"
        return select([*draw(_outputs(outer.of(a))), Column(f"{s}.n", INT)], f"FROM {outer.aliased(a)} {series}")
    correlation = draw(_matching(outer.of(a), inner.of(b)))
    if correlation is None:
        return draw(joined(scope))
    columns = keys(tuple(c.of(b) for c in inner.scalars))
    shape = draw(st.sampled_from(("rows", "aggregate", "first")))
    where = f"FROM {inner.aliased(b)} WHERE {correlation}"
    if shape == "aggregate":
        made = select([draw(aggregates(columns))], where)
    elif shape == "first":
        made = select(columns, f"{where} ORDER BY {order(columns)} LIMIT 1")
    else:
        made = select(columns, where)
    how = draw(st.sampled_from(("CROSS JOIN LATERAL ({}) AS {}", "LEFT JOIN LATERAL ({}) AS {} ON true")))
    return select(draw(_outputs(outer.of(a) + made.of(s))), f"FROM {outer.aliased(a)} {how.format(made.text, s)}")


@st.composite
def with_values(draw: st.DrawFn, scope: Scope) -> Relation:
    child, a, v = draw(relations(scope.below)), scope.alias("o"), scope.alias("v")
    value = Relation("", (Column("n", INT), Column("label", TEXT)))
    condition = draw(_matching(child.of(a), value.of(v))) or "true"
    source = f"{child.aliased(a)} LEFT JOIN (VALUES (1, 'a'), (2, 'b'), (2, NULL)) AS {v}(n, label) ON {condition}"
    return select(draw(_outputs(child.of(a) + value.of(v))), f"FROM {source}")


@st.composite
def recursive(draw: st.DrawFn, scope: Scope) -> Relation:
    """A walk that counts its steps, so that it ends whatever it walks on."""
    child = draw(relations(scope.below))
    name, a, b = scope.alias("w"), scope.alias("x"), scope.alias("y")
    pairs = [(x, y) for x in child.scalars for y in child.scalars if x.kind is y.kind and key(x) is x and key(y) is y]
    if not pairs:
        return draw(filtered(scope))
    here, there = draw(st.sampled_from(pairs))
    word = draw(st.sampled_from(("UNION ALL", "UNION")))
    begin = f"SELECT {here.of(a).name}, 0 FROM {child.aliased(a)} {draw(_where(child.of(a)))}".rstrip()
    step = (
        f"SELECT {here.of(b).name}, {name}.depth + 1 FROM {name} JOIN {child.aliased(b)}"
        f" ON {there.of(b).name} = {name}.at WHERE {name}.depth < 2"
    )
    shown = select([Column(f"{name}.at", here.kind), Column(f"{name}.depth", INT)], f"FROM {name}")
    return Relation(f"WITH RECURSIVE {name}(at, depth) AS ({begin} {word} {step}) {shown.text}", shown.columns)


OPERATORS: tuple[Callable[[Scope], st.SearchStrategy[Relation]], ...] = (
    filtered,
    joined,
    grouped,
    sublinked,
    distinct,
    set_operation,
    windowed,
    scalar_subquery,
    with_cte,
    lateral,
    with_values,
    with_array,
    multiplied,
    joined_using,
    recursive,
)
"""Simplest first: what a failure shrinks to. A new operator is one function and one line."""
