"""The rules agree with the definitions, and the SQL that the engine emits with both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle import zset
from tests.oracle.arena import Case, case
from tests.oracle.harness import Maintained
from tests.oracle.zset import Row, ZSet

_VALUES = st.sampled_from((None, 0, 1, 2))
_TABLES = st.lists(st.tuples(_VALUES, _VALUES), max_size=6).map(zset.bag)
_SOME = settings(max_examples=60, deadline=None, derandomize=True, database=None)
_FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _first(row: Row) -> Row:
    return row[:1]


def _equal(a: Row, b: Row) -> bool:
    return a[0] is not None and a[0] == b[0]


def _sum(values: list[Any]) -> int | None:
    present = [v for v in values if v is not None]
    return sum(present) if present else None


def _summary(rows: list[Row]) -> Row:
    values: list[Any] = [row[1] for row in rows]
    present = [v for v in values if v is not None]
    return len(rows), _sum(values), min(present, default=None)


def _with_totals(rows: list[Row]) -> list[Row]:
    return [(*row, _sum([r[1] for r in rows])) for row in rows]


Binary = Callable[[ZSet, ZSet], ZSet]
KEYED: dict[str, Binary] = {
    "left join": lambda a, b: zset.left_join(a, b, _equal, 2),
    "full join": lambda a, b: zset.full_join(a, b, _equal, (2, 2)),
    "semi join": lambda a, b: zset.semi_join(a, b, _equal),
    "anti join": lambda a, b: zset.anti_join(a, b, _equal),
    "intersect all": zset.intersect_all,
    "except all": zset.except_all,
    "except": lambda a, b: zset.filtered(zset.distinct(a), lambda row: row not in b),
}
GROUPED: dict[str, Callable[[ZSet], ZSet]] = {
    "aggregate": lambda z: zset.grouped(z, _first, _summary),
    "window": lambda z: zset.windowed(z, _first, _with_totals),
    "distinct": zset.distinct,
}
QUERIES: dict[str, tuple[str, Binary]] = {
    "project": (
        "SELECT coalesce(k, 9) AS k FROM l",
        lambda a, b: zset.project(a, lambda r: (9 if r[0] is None else r[0],)),
    ),
    "filter": ("SELECT k, v FROM l WHERE v > 0", lambda a, b: zset.filtered(a, lambda r: int(str(r[1] or 0)) > 0)),
    "join": (
        "SELECT l.k, l.v, r.k AS rk, r.w FROM l JOIN r ON l.k = r.k",
        lambda a, b: zset.join(a, b, _equal),
    ),
    "left join": ("SELECT l.k, l.v, r.k AS rk, r.w FROM l LEFT JOIN r ON l.k = r.k", KEYED["left join"]),
    "full join": ("SELECT l.k, l.v, r.k AS rk, r.w FROM l FULL JOIN r ON l.k = r.k", KEYED["full join"]),
    "semi join": ("SELECT k, v FROM l WHERE EXISTS (SELECT FROM r WHERE r.k = l.k)", KEYED["semi join"]),
    "anti join": ("SELECT k, v FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k)", KEYED["anti join"]),
    "not in": (
        "SELECT k, v FROM l WHERE k NOT IN (SELECT k FROM r)",
        lambda a, b: zset.filtered(
            a, lambda x: not b or (x[0] is not None and all(y[0] is not None and y[0] != x[0] for y in b))
        ),
    ),
    "aggregate": (
        "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS m FROM l GROUP BY k",
        lambda a, b: GROUPED["aggregate"](a),
    ),
    "global aggregate": (
        "SELECT count(*) AS n, sum(v) AS s, min(v) AS m FROM l",
        lambda a, b: zset.bag([_summary(zset.rows_of(a))]),
    ),
    "window": ("SELECT k, v, sum(v) OVER (PARTITION BY k) AS s FROM l", lambda a, b: GROUPED["window"](a)),
    "distinct": ("SELECT DISTINCT k, v FROM l", lambda a, b: zset.distinct(a)),
    "union all": ("SELECT k, v FROM l UNION ALL SELECT k, w FROM r", lambda a, b: zset.total((a, b))),
    "union": ("SELECT k, v FROM l UNION SELECT k, w FROM r", lambda a, b: zset.distinct(zset.total((a, b)))),
    "intersect": (
        "SELECT k, v FROM l INTERSECT SELECT k, w FROM r",
        lambda a, b: zset.distinct(zset.intersect_all(a, b)),
    ),
    "intersect all": ("SELECT k, v FROM l INTERSECT ALL SELECT k, w FROM r", zset.intersect_all),
    "except": ("SELECT k, v FROM l EXCEPT SELECT k, w FROM r", KEYED["except"]),
    "except all": ("SELECT k, v FROM l EXCEPT ALL SELECT k, w FROM r", zset.except_all),
    "aggregate over join": (
        "SELECT l.v, count(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY l.v",
        lambda a, b: zset.grouped(zset.join(a, b, _equal), lambda r: r[1:2], lambda rows: (len(rows),)),
    ),
}


@_SOME
@given(old=st.tuples(_TABLES, _TABLES), new=st.tuples(_TABLES, _TABLES))
def test_the_rule_of_a_join_is_its_difference(old: tuple[ZSet, ZSet], new: tuple[ZSet, ZSet]) -> None:
    left, right = (zset.minus(n, o) for n, o in zip(new, old, strict=True))
    difference = zset.minus(zset.join(*new, _equal), zset.join(*old, _equal))
    assert zset.join_change(*new, left, right, _equal) == difference


@pytest.mark.parametrize("name", KEYED)
@_SOME
@given(old=st.tuples(_TABLES, _TABLES), new=st.tuples(_TABLES, _TABLES))
def test_the_rule_of_touched_keys_is_the_difference(name: str, old: tuple[ZSet, ZSet], new: tuple[ZSet, ZSet]) -> None:
    operator = KEYED[name]
    change = (zset.minus(new[0], old[0]), zset.minus(new[1], old[1]))
    difference = zset.minus(operator(*new), operator(*old))
    assert zset.both_touched_change(operator, new, change, (_first, _first)) == difference


@pytest.mark.parametrize("name", GROUPED)
@_SOME
@given(old=_TABLES, new=_TABLES)
def test_the_rule_of_touched_groups_is_the_difference(name: str, old: ZSet, new: ZSet) -> None:
    operator = GROUPED[name]
    difference = zset.minus(operator(new), operator(old))
    assert zset.touched_change(operator, new, zset.minus(new, old), _first) == difference


@_SOME
@given(old=_TABLES, new=_TABLES)
def test_projections_and_filters_are_linear(old: ZSet, new: ZSet) -> None:
    def narrowed(z: ZSet) -> ZSet:
        return zset.project(zset.filtered(z, lambda r: r[1] is not None), _first)

    assert zset.linear(narrowed, zset.minus(new, old)) == zset.minus(narrowed(new), narrowed(old))


def _fill(opened: Case, table: str, rows: ZSet) -> None:
    opened.execute(f"DELETE FROM {table}")
    for row in zset.rows_of(rows):
        opened.conn.execute(f"INSERT INTO {table} VALUES (%s, %s)", row)


@pytest.mark.parametrize("name", QUERIES)
@_FEW
@given(old=st.tuples(_TABLES, _TABLES), new=st.tuples(_TABLES, _TABLES))
def test_the_emitted_sql_is_the_difference(
    oracle_connection: psycopg.Connection, name: str, old: tuple[ZSet, ZSet], new: tuple[ZSet, ZSet]
) -> None:
    query, operator = QUERIES[name]
    with case(oracle_connection, ["CREATE TABLE l (k int, v int)", "CREATE TABLE r (k int, w int)"]) as opened:
        for table, rows in zip("lr", old, strict=True):
            _fill(opened, table, rows)
        made = Maintained.create(opened, query)
        opened.change()
        for table, rows in zip("lr", new, strict=True):
            _fill(opened, table, rows)
        delta = made.view.delta(made.binding())
        width = len(made.declared.columns)
        emitted = zset.total({row[1 : width + 1]: int(row[0])} for row in (opened.rows(delta) if delta else []))
    assert emitted == zset.minus(operator(*new), operator(*old))
