"""Random groupings: plain keys, constants and equal ones, GROUPING SETS, HAVING alone, and what stands above them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.expressions import aggregates, comparable, expressions, predicates, windows
from tests.property.kinds import BIGINT, INT, TEXT, Column, key, keys, order
from tests.property.relation import Columns, Relation, Scope, others, relations, select, where

_CONSTANTS = (Column("1", INT), Column("'x'::text", TEXT), Column("NULL::int", INT), Column("2 + 1", INT))
_ABOVE = ("", "", "windows", "distinct on", "distinct", "limit", "expression")


@st.composite
def as_written(draw: st.DrawFn, scope: Scope) -> Relation:
    """Groups by a constant and a subquery: PostgreSQL evaluates the whole block as it is written."""
    return draw(grouped(scope, as_written=True))


@st.composite
def grouped(draw: st.DrawFn, scope: Scope, as_written: bool = False) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("g")
    columns = child.of(alias)
    scalar = tuple(c.of(alias) for c in child.scalars)
    if not scalar:
        return draw(having_alone(scope))
    by = list(keys(tuple(draw(st.lists(st.sampled_from(scalar), max_size=3, unique=True)))))
    found = draw(st.lists(aggregates(scalar), min_size=0 if by else 1, max_size=3))
    found += draw(_about_the_group(scope, scalar))
    found += draw(_guarded(scope, scalar))
    if as_written or draw(st.integers(0, 3)) == 3:
        by.append(draw(_looked_up(scope, scalar)))
    if as_written:
        shape = "constants"
    elif by and child.is_table and child.key and draw(st.booleans()):
        # What else the table has follows from its key.
        by = [c for c in scalar if c.name.split(".", 1)[1] in child.key and key(c) is c]
        found += [c for c in scalar if c not in by][:1] if len(by) == len(child.key) else []
        shape = "plain"
    else:
        shape = draw(st.sampled_from(("plain", "plain", "sets", "constants")))
    if shape == "constants":
        by = draw(st.permutations([*by, draw(st.sampled_from(_CONSTANTS))]))
    rest = f"FROM {child.aliased(alias)} {draw(where(columns))}".rstrip()
    made = [*by, *found]
    asked: list[Column] = []
    if not by:
        rest += draw(st.sampled_from(("", "", " GROUP BY ()")))
    elif shape == "plain":
        # Twice the same key is one.
        repeated = [by[0].name] if draw(st.integers(0, 5)) == 5 else []
        rest += f" GROUP BY {', '.join([*(c.name for c in by), *repeated])}"
    elif shape == "constants" and not as_written and draw(st.booleans()):
        rest += f" GROUP BY {', '.join(str(n) for n in range(1, len(by) + 1))}"
    else:
        numbers = [str(n) if c in _CONSTANTS or draw(st.booleans()) else c.name for n, c in enumerate(by, 1)]
        rest += f" GROUP BY {draw(_groupings(numbers))}"
        told = [c.name for c in by if c not in _CONSTANTS]
        if bool(told) and draw(st.booleans()):
            asked = [Column(f"GROUPING({', '.join(told)})", INT)]
    if draw(st.integers(0, 2)) == 2:
        rest += f" HAVING {draw(_having(scope, scalar, by if shape != 'constants' else [], found, asked))}"
    return draw(_above_the_groups([*made, *asked], rest, ("windows", "windows", "limit") if as_written else _ABOVE))


@st.composite
def _groupings(draw: st.DrawFn, names: list[str]) -> str:
    """`GROUP BY` of several groupings."""
    listed, first, last = ", ".join(names), names[0], names[-1]
    rest = ", ".join(names[1:] or names)
    forms = [
        f"ROLLUP ({listed})",
        f"CUBE ({listed})",
        f"GROUPING SETS (({listed}), ({first}), ())",
        f"GROUPING SETS ({listed})",
        f"GROUPING SETS (({listed}), ({last}), ({last}))",
        f"DISTINCT ROLLUP ({listed}), ROLLUP ({first})",
        f"{first}, ROLLUP ({rest})",
        f"GROUPING SETS (ROLLUP ({listed}), CUBE ({last}))",
        f"ROLLUP (({listed}), {first})",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def _about_the_group(draw: st.DrawFn, scope: Scope, scalar: Columns) -> list[Column]:
    """A subquery in the list whose aggregate is about the group that it stands in."""
    if draw(st.integers(0, 5)) < 5:
        return []
    call = draw(aggregates(scalar))
    if not comparable(key(call)) or not call.kind.extremes:
        return []
    other = draw(st.sampled_from(scope.world.tables)).name
    forms = [
        (f"(SELECT max(n) FROM (SELECT {call.name} AS n) AS q)", call.kind.widened or call.kind),
        (f"(SELECT {call.name} FROM (SELECT 1) AS q)", call.kind),
        (f"(SELECT count(*) FROM {other} AS h WHERE {call.name} IS NOT NULL)", BIGINT),
        (
            f"(SELECT count(*) FROM {other} AS h HAVING count(*) > count({scalar[0].name}))",
            BIGINT,
        ),
    ]
    return [Column(*draw(st.sampled_from(forms)))]


@st.composite
def _looked_up(draw: st.DrawFn, scope: Scope, scalar: Columns) -> Column:
    """A key that a subquery gives, whose text PostgreSQL prints once in the list and once as the key."""
    column, other, h = draw(st.sampled_from(scalar)).name, draw(st.sampled_from(scope.world.tables)), scope.alias("h")
    value = f"{h}.{draw(st.sampled_from(other.columns)).name}::text"
    forms = [
        (f"(SELECT count(*) FROM {other.name} AS {h} WHERE {column} IS NOT NULL)", BIGINT),
        (f"(SELECT count(*) FROM {other.name} AS {h} WHERE {value} = {column}::text)", BIGINT),
        (f"(SELECT {value} FROM {other.name} AS {h} WHERE {value} >= {column}::text ORDER BY 1 LIMIT 1)", TEXT),
        (f"array_length(ARRAY(SELECT {value} FROM {other.name} AS {h} WHERE {value} <> {column}::text), 1)", INT),
        (f"(CASE WHEN EXISTS (SELECT 1 FROM {other.name} AS {h} WHERE {value} = {column}::text) THEN 1 END)", INT),
    ]
    return Column(*draw(st.sampled_from(forms)))


@st.composite
def _guarded(draw: st.DrawFn, scope: Scope, scalar: Columns) -> list[Column]:
    """An aggregate of a subquery that has no value for the rows that FILTER or CASE keep from it."""
    if draw(st.integers(0, 7)) < 7:
        return []
    column, other, h = (
        draw(st.sampled_from(scalar)).name,
        draw(st.sampled_from(scope.world.tables)).name,
        scope.alias("h"),
    )
    found = f"(SELECT count(*) / (CASE WHEN {column} IS NULL THEN 0 ELSE 1 END) FROM {other} AS {h})"
    forms = [
        f"max({found}) FILTER (WHERE {column} IS NOT NULL)",
        f"sum(CASE WHEN {column} IS NOT NULL THEN {found} END)::bigint",
        f"count(DISTINCT {found}) FILTER (WHERE {column} IS NOT NULL)",
    ]
    return [Column(draw(st.sampled_from(forms)), BIGINT)]


@st.composite
def _having(
    draw: st.DrawFn, scope: Scope, scalar: Columns, by: list[Column], found: list[Column], asked: list[Column]
) -> str:
    other, h = draw(st.sampled_from(scope.world.tables)).name, scope.alias("h")
    forms = [
        "count(*) > 1",
        f"count({scalar[0].name}) <= 2",
        f"count(*) <= (SELECT count(*) FROM {other} AS {h})",
        f"EXISTS (SELECT 1 FROM {other} AS {h} HAVING count(*) > count({scalar[0].name}))",
        "true",
        "count(*) BETWEEN 1 AND 100 AND max(1) > 0",
    ]
    forms += [f"{c.name} IS NOT NULL" for c in found[:1]]
    forms += [f"{c.name} IS NULL" for c in by] + [f"{c.name} < 2" for c in asked]
    if by:
        forms.append(draw(predicates(tuple(by), 0)))
    return draw(st.sampled_from(forms))


@st.composite
def _above_the_groups(draw: st.DrawFn, made: list[Column], rest: str, forms: tuple[str, ...] = _ABOVE) -> Relation:
    """Windows, DISTINCT and LIMIT in the same block see the groups, whatever sets they come from."""
    shown = [key(c) for c in made if comparable(key(c))]
    above = draw(st.sampled_from(forms))
    if not above or not shown:
        return select(made, rest)
    if above == "windows":
        added, clause = draw(windows(tuple(shown)))
        return select([*shown, *added], f"{rest} {clause}".rstrip())
    if above == "distinct on":
        first = draw(st.sampled_from(shown))
        return select(shown, f"{rest} ORDER BY {_by(first)}, {_order(shown)}", distinct=f"DISTINCT ON ({_by(first)}) ")
    if above == "limit":
        return select(shown, f"{rest} ORDER BY {_order(shown)} LIMIT {draw(st.integers(0, 3))}")
    if above == "expression":
        plain = tuple(c for c in shown if c not in _CONSTANTS)
        return select([*shown, draw(expressions(plain))], rest) if plain else select(made, rest)
    return select(shown, rest, distinct="DISTINCT ")


def _by(column: Column) -> str:
    """A constant in an ORDER BY would be the number of a column."""
    return f"({column.name})::{column.kind.type}" if column in _CONSTANTS else column.name


def _order(columns: list[Column]) -> str:
    """By number, or by expression where that is one."""
    return ", ".join(str(number) for number in range(1, len(columns) + 1))


@st.composite
def having_alone(draw: st.DrawFn, scope: Scope) -> Relation:
    """HAVING without any aggregate makes one group."""
    child, alias = draw(relations(scope.below)), scope.alias("g")
    condition = draw(st.sampled_from(("true", "1 < 2", "count(*) > 2", "2 < 1", "NULL")))
    other = draw(others(scope.below))
    if draw(st.booleans()):
        condition = f"EXISTS (SELECT FROM {other.aliased(scope.alias('h'))})"
    rest = f"FROM {child.aliased(alias)} {draw(where(child.of(alias)))}".rstrip()
    return select([draw(st.sampled_from(_CONSTANTS))], f"{rest} HAVING {condition}")


@st.composite
def distinct(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("d")
    columns = keys(tuple(c.of(alias) for c in child.scalars))
    if not columns:
        return draw(having_alone(scope))
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
def windowed(draw: st.DrawFn, scope: Scope) -> Relation:
    child, alias = draw(relations(scope.below)), scope.alias("w")
    scalar = keys(tuple(c.of(alias) for c in child.scalars))
    if not scalar:
        return draw(having_alone(scope))
    # All that the order can see is shown or nothing is told apart by it: rows that tie are alike.
    made, clause = draw(windows(scalar))
    if draw(st.integers(0, 5)) == 5:
        # A frame that ends where another relation says.
        end = f"(SELECT count(*) FROM {draw(others(scope.below)).aliased(scope.alias('f'))})"
        made.append(Column(f"count(*) OVER (ORDER BY {order(scalar)} ROWS {end} PRECEDING)", BIGINT))
    chosen = draw(st.lists(st.sampled_from(scalar), min_size=1, max_size=5, unique=True))
    return select([*chosen, *made], f"FROM {child.aliased(alias)} {draw(where(scalar))} {clause}".rstrip())
