"""Random subqueries: EXISTS, IN, ANY and ALL, scalars, arrays and LATERAL, reaching one or two levels outside."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.expressions import aggregates, comparable, predicates
from tests.property.groups import having_alone
from tests.property.joins import joins, reachable
from tests.property.kinds import ARRAY, BIGINT, INT, INTS, TEXT, Column, keys, order
from tests.property.relation import Columns, Relation, Scope, matching, others, outputs, pairs, relations, select, where


@st.composite
def sublinked(draw: st.DrawFn, scope: Scope) -> Relation:
    """EXISTS, IN, ANY, ALL and their negations; correlated, under OR, and as a value."""
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("o"), scope.alias("i")
    found = pairs(outer.of(a), inner.of(b))
    condition = draw(where(inner.of(b)))
    if found:
        x, y = draw(st.sampled_from(found))
        extra = f" AND {condition[6:]}" if condition else ""
        correlation = draw(matching(outer.of(a), inner.of(b)))
        plain = f"SELECT {y.name} FROM {inner.aliased(b)} {condition}".rstrip()
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
                    f"EXISTS (SELECT count(*) FROM {inner.aliased(b)} WHERE {correlation} HAVING count(*) > 1)",
                    f"EXISTS (SELECT FROM {inner.aliased(b)} WHERE {correlation} HAVING true)",
                )
            )
        )
        if draw(st.integers(0, 3)) == 3 and outer.scalars:
            condition = f"({draw(predicates(tuple(c.of(a) for c in outer.scalars), 0))} OR {condition})"
    else:
        condition = f"EXISTS (SELECT 1 FROM {inner.aliased(b)} {condition})"
    if draw(st.integers(0, 5)) == 5:
        return select([*draw(outputs(outer.of(a))), Column(f"({condition})::text", TEXT)], f"FROM {outer.aliased(a)}")
    return select(draw(outputs(outer.of(a))), f"FROM {outer.aliased(a)} WHERE {condition}")


@st.composite
def written_out(draw: st.DrawFn, scope: Scope) -> Relation:
    """VALUES as a query: with an order and a limit of its own behind IN, ANY and ALL, and under a WITH."""
    outer, a = draw(relations(scope.below)), scope.alias("o")
    plain = tuple(c.of(a) for c in outer.scalars if c.kind.literals)
    if not plain:
        return draw(having_alone(scope))
    column = draw(st.sampled_from(plain))
    rows = draw(st.lists(column.kind.literal(), min_size=1, max_size=4))
    listed = ", ".join(f"({row}::{column.kind.type})" for row in rows)
    clauses = draw(st.sampled_from(("", "ORDER BY 1", "LIMIT 2", "OFFSET 1", "ORDER BY 1 DESC LIMIT 1")))
    word = draw(st.sampled_from(("IN", "NOT IN", "= ANY", "<> ALL")))
    inner = draw(others(scope.below))
    counted = f"(SELECT count(*) FROM {inner.aliased(scope.alias('i'))})"
    value = draw(
        st.sampled_from(
            (
                f"(WITH v(x) AS (VALUES ({column.name})) VALUES ((SELECT x::text FROM v)))",
                f"(WITH v(x) AS (VALUES ({counted})) VALUES ((SELECT x::text FROM v)), ('x') ORDER BY 1 LIMIT 1)",
                f"(VALUES ({column.name}::text), ('x') LIMIT 1)",
                f"ARRAY(VALUES ({column.name}::text), ('x') ORDER BY 1)::text",
            )
        )
    )
    rest = f"FROM {outer.aliased(a)} WHERE {column.name} {word} (VALUES {listed} {clauses})"
    return select([*draw(outputs(outer.of(a))), Column(value, TEXT)], rest)


@st.composite
def sublinked_joins(draw: st.DrawFn, scope: Scope) -> Relation:
    """A subquery over outer joins whose ON and WHERE reach outside."""
    outer, alias = draw(relations(scope.below)), scope.alias("o")
    item = draw(joins(scope.below, first=draw(others(scope.below)), letters="lr"))
    inside, outside = tuple(c for c in reachable([item]) if comparable(c)), outer.of(alias)
    if not inside:
        return draw(having_alone(scope))
    tie = draw(matching(outside, inside)) or "true"
    other = draw(predicates(inside, 0))
    text = item.text
    if " ON " in text and " USING " not in text and not text.endswith(")") and draw(st.booleans()):
        # The condition of the join itself reaches outside.
        text = text.replace("FULL JOIN", "LEFT JOIN") + f" AND {tie}"
        tie = draw(st.sampled_from((tie, "true")))
    body = f"FROM {text} WHERE {draw(st.sampled_from((tie, f'{tie} AND {other}', f'({tie} OR {other})')))}"
    shown = draw(outputs(outside))
    form = draw(st.sampled_from(("EXISTS", "NOT EXISTS", "scalar", "IN")))
    if form == "scalar":
        value = draw(aggregates(inside))
        return select([*shown, Column(f"(SELECT {value.name} {body})", value.kind)], f"FROM {outer.aliased(alias)}")
    found = pairs(outside, inside)
    if form == "IN" and found:
        x, y = draw(st.sampled_from(found))
        return select(shown, f"FROM {outer.aliased(alias)} WHERE {x.name} IN (SELECT {y.name} {body})")
    word = form if form != "IN" else "EXISTS"
    return select(shown, f"FROM {outer.aliased(alias)} WHERE {word} (SELECT {body})")


@st.composite
def tied_by_subqueries(draw: st.DrawFn, scope: Scope) -> Relation:
    """A left join whose ON asks a third relation about both of its sides, or about either."""
    left, right = draw(relations(scope.below)), draw(others(scope.below))
    a, b, h = scope.alias("p"), scope.alias("q"), scope.alias("h")
    here, there = left.of(a), right.of(b)
    third = draw(others(scope.below))
    asked = third.of(h)
    ties = [draw(matching(side, asked)) for side in (here, there)]
    where = " AND ".join(tie for tie in ties if tie) or "true"
    found = pairs(here, asked)
    forms = [f"EXISTS (SELECT FROM {third.aliased(h)} WHERE {where})"]
    forms.append(f"(SELECT count(*) FROM {third.aliased(h)} WHERE {where}) > 1")
    if found:
        x, y = draw(st.sampled_from(found))
        forms.append(f"{x.name} IN (SELECT {y.name} FROM {third.aliased(h)} WHERE {ties[1] or 'true'})")
    terms = [draw(st.sampled_from(forms))]
    if draw(st.booleans()) and (tie := draw(matching(here, there))):
        terms.append(tie)
    source = f"FROM {left.aliased(a)} LEFT JOIN {right.aliased(b)} ON {' AND '.join(terms)}"
    return select(draw(outputs(here + there)), source)


@st.composite
def scalar_subquery(draw: st.DrawFn, scope: Scope) -> Relation:
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("o"), scope.alias("s")
    if not inner.scalars:
        return draw(having_alone(scope))
    aggregate = draw(aggregates(inner.of(b)))
    correlation = draw(matching(outer.of(a), inner.of(b))) if draw(st.integers(0, 3)) else None
    condition = f" WHERE {correlation}" if correlation else ""
    value = Column(f"(SELECT {aggregate.name} FROM {inner.aliased(b)}{condition})", aggregate.kind)
    chosen = draw(outputs(outer.of(a)))
    rest = f"FROM {outer.aliased(a)}"
    if draw(st.integers(0, 3)) == 3:
        value, is_grouping = draw(_nested(scope, outer.of(a), inner, value))
        if is_grouping:
            return select([value], rest)
    numbers = [c for c in outer.of(a) if c.kind.numeric]
    if value.kind.numeric and numbers and draw(st.integers(0, 2)) == 2:
        return select(chosen, f"{rest} WHERE {draw(st.sampled_from(numbers)).name} <= {value.name}")
    return select([*chosen, value], rest)


@st.composite
def _nested(draw: st.DrawFn, scope: Scope, outside: Columns, inner: Relation, value: Column) -> tuple[Column, bool]:
    """A scalar within a scalar: about the row of the one without, or of both; whether its aggregate is the outer's."""
    b, c = scope.alias("s"), scope.alias("v")
    deeper = draw(others(scope.below))
    if not deeper.scalars:
        return value, False
    about = draw(matching(outside, deeper.of(c))) or "true"
    between = draw(matching(inner.of(b), deeper.of(c))) or "true"
    call = draw(aggregates(deeper.of(c)))
    if not call.kind.extremes or not comparable(call):
        return value, False
    kind = call.kind.widened or call.kind
    within = f"(SELECT {call.name} FROM {deeper.aliased(c)} WHERE {about})"
    if draw(st.integers(0, 3)) == 0:
        return Column(f"(SELECT max({within}))", kind), about != "true"
    forms = (
        Column(f"(SELECT count(*) FROM {inner.aliased(b)} WHERE {within} IS NOT NULL)", BIGINT),
        Column(
            f"(SELECT count(*) FROM {inner.aliased(b)} WHERE EXISTS"
            f" (SELECT FROM {deeper.aliased(c)} WHERE {about} AND {between}))",
            BIGINT,
        ),
        Column(f"(SELECT max(x) FROM (SELECT {within} AS x FROM {inner.aliased(b)}) AS n)", kind),
    )
    return draw(st.sampled_from(forms)), False


@st.composite
def with_array(draw: st.DrawFn, scope: Scope) -> Relation:
    """ARRAY(SELECT …), whose order is part of its value."""
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b = scope.alias("o"), scope.alias("i")
    columns = keys(tuple(c.of(b) for c in inner.scalars))
    if not columns:
        return draw(having_alone(scope))
    element = draw(st.sampled_from(columns)).name
    correlation = draw(matching(outer.of(a), inner.of(b)))
    condition = f" WHERE {correlation}" if correlation else ""
    array = (
        f"ARRAY(SELECT {element}::text FROM {inner.aliased(b)}{condition} ORDER BY {element} DESC, {order(columns)})"
    )
    return select([*draw(outputs(outer.of(a))), Column(array, ARRAY)], f"FROM {outer.aliased(a)}")


@st.composite
def multiplied(draw: st.DrawFn, scope: Scope) -> Relation:
    """A function in the list that returns a set: none, one or several rows for each."""
    child, a = draw(relations(scope.below)), scope.alias("m")
    found = [c for c in child.of(a) if c.kind in (INT, BIGINT, TEXT, INTS)]
    if not found:
        return draw(having_alone(scope))
    column = draw(st.sampled_from(found))
    if column.kind is TEXT:
        made = Column(f"regexp_split_to_table({column.name}, 'a')", TEXT)
    elif column.kind is INTS:
        made = Column(f"unnest({column.name})", INT)
    else:
        made = Column(f"generate_series(1, least({column.name}, 3)::int)", INT)
    return select([*draw(outputs(child.of(a))), made], f"FROM {child.aliased(a)} {draw(where(child.of(a)))}".rstrip())


@st.composite
def lateral(draw: st.DrawFn, scope: Scope) -> Relation:
    outer, inner = draw(relations(scope.below)), draw(others(scope.below))
    a, b, s = scope.alias("o"), scope.alias("i"), scope.alias("t")
    integers = [c for c in outer.of(a) if c.kind in (INT, BIGINT)]
    if integers and draw(st.integers(0, 3)) == 0:
        bound = draw(st.sampled_from(integers)).name
        series = f"CROSS JOIN LATERAL generate_series(1, least({bound}, 3)::int) AS {s}(n)"
        return select([*draw(outputs(outer.of(a))), Column(f"{s}.n", INT)], f"FROM {outer.aliased(a)} {series}")
    correlation = draw(matching(outer.of(a), inner.of(b)))
    if correlation is None:
        return draw(having_alone(scope))
    columns = keys(tuple(c.of(b) for c in inner.scalars))
    shape = draw(st.sampled_from(("rows", "aggregate", "first")))
    source = f"FROM {inner.aliased(b)} WHERE {correlation}"
    if shape == "aggregate":
        made = select([draw(aggregates(columns))], source)
    elif shape == "first":
        made = select(columns, f"{source} ORDER BY {order(columns)} LIMIT 1")
    else:
        made = select(columns, source)
    how = draw(st.sampled_from(("CROSS JOIN LATERAL ({}) AS {}", "LEFT JOIN LATERAL ({}) AS {} ON true")))
    return select(draw(outputs(outer.of(a) + made.of(s))), f"FROM {outer.aliased(a)} {how.format(made.text, s)}")
