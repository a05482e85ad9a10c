"""A whole content meets the stored rows: only rows that one side has are written, and no identity twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.identity import server_row_id_sql
from airflow_provider_pgtrickle.engine.errors import InvariantViolated
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import stage
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from airflow_provider_pgtrickle.engine.refresh.stage import DUPLICATE, Target
from tests.database.refresh.test_refresh_sink import fill, table
from tests.database.refresh.workshop import Workshop

TYPES = {"a": "int", "b": "text", "n": "numeric", "p": "numeric(6,2)", "f": "float8", "j": "json", "l": "bpchar"}
#: Equal values that look different, values without equality, and NULLs.
VALUES = {
    "a": ["1", "2", None],
    "b": ["", "x", None],
    "n": ["1.0", "1.00", "NaN", None],
    "p": ["1.00", "2.50", None],
    "f": ["0", "-0", None],
    "j": ['{"a": 1}', '{"a":1}', None],
    "l": ["x", "x  ", None],
}
KEYS = {"one exact": ("a",), "two exact": ("a", "b"), "loose": ("a", "n")}
CONTENT = st.lists(st.tuples(*map(st.sampled_from, VALUES.values())), max_size=6)
#: The column whose value becomes the next one: mostly an equal value that looks different.
EDITS = st.lists(st.sampled_from([None, *VALUES]), min_size=6, max_size=6)


@pytest.fixture
def conn(any_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(any_dsn) as conn:
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        conn.execute(f"CREATE TABLE public.st (__pgt_row_id bigint NOT NULL, {columns})")
        conn.execute(f"CREATE TABLE public.came (__pgt_w int, __pgt_row_id bigint NOT NULL, {columns})")
        conn.commit()
        yield conn


def _by_identity(rows: list[Any], key: tuple[str, ...]) -> dict[tuple[str | None, ...], Any]:
    """The last row of each identity, as the types' equality tells identities apart."""
    places = [list(TYPES).index(name) for name in key]
    return {tuple({"1.00": "1.0"}.get(row[place], row[place]) for place in places): row for row in rows}


def _edited(row: tuple[str | None, ...], column: str | None) -> tuple[str | None, ...]:
    if column is None:
        return row
    place, values = list(TYPES).index(column), VALUES[column]
    following = values[(values.index(row[place]) + 1) % len(values)]
    return (*row[:place], following, *row[place + 1 :])


def _stored(conn: psycopg.Connection[Any], target: Target, rows: list[Any], into: str) -> None:
    weight = "1, " if into == "came" else ""
    row_id, values = target.server_row_id, ", ".join(f"%s::{type_}" for type_ in TYPES.values())
    for row in rows:
        conn.execute(
            f"INSERT INTO public.{into} SELECT {weight}{row_id}, r.* FROM (SELECT {values}) AS r({', '.join(TYPES)})",
            row,
        )


def _made(conn: psycopg.Connection[Any], table: sql.Identifier) -> Counter[Any]:
    columns = ", ".join(f"{name}::text" for name in TYPES)
    return Counter(
        conn.execute(
            sql.SQL("SELECT __pgt_op::text, __pgt_w, __pgt_row_id, {} FROM {}").format(sql.SQL(columns), table)
        )
    )


@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_content_that_meets_the_stored_rows_leaves_what_grouping_both_would(
    conn: psycopg.Connection[Any], key: tuple[str, ...], repairs: bool
) -> None:
    columns = describe(conn, sql.Identifier("public", "st"), TYPES)
    row_id = server_row_id_sql([(name, TYPES[name]) for name in key], "r")
    target = Target(QualifiedName("public", "st"), columns, key, keyed=True, server_row_id=row_id)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(CONTENT, CONTENT, EDITS)
    def holds(old: list[Any], more: list[Any], edits: list[Any]) -> None:
        conn.rollback()
        there = list(_by_identity(old, key).values())
        # Most rows of the content are stored rows in which one value differs, or only looks different.
        edited = [_edited(row, column) for row, column in zip(there, edits, strict=False)]
        here = list(_by_identity([*more, *edited], key).values())
        _stored(conn, target, there, "st")
        _stored(conn, target, here, "came")
        content = sql.Identifier("public", "came")
        made = stage.consolidate(conn, target, 1, content, whole=True, repairs=repairs)
        both = sql.SQL("SELECT * FROM {} UNION ALL SELECT -1, * FROM {}").format(content, target.table.sql)
        conn.execute(
            sql.SQL("CREATE TEMPORARY TABLE grouped AS SELECT c.*, {} AS __pgt_op FROM ({}) AS c").format(
                stage.operation(target), stage.net(both, columns)
            )
        )
        assert _made(conn, made.table) == _made(conn, sql.Identifier("pg_temp", "grouped"))
        assert DUPLICATE not in made.counts

    holds()


@pytest.mark.parametrize("value", ["1", "NULL"])
def test_equal_rows_of_one_identity_in_a_content_are_found_though_such_a_row_is_stored(
    any_workshop: Workshop, value: str
) -> None:
    query = table(any_workshop, "a int, b text", key=["a"])
    fill(any_workshop, query, f"SELECT {value}::int AS a, 'x' AS b UNION ALL SELECT 2, 'y'")
    twice = f"SELECT {value}::int AS a, 'x' AS b FROM generate_series(1, 2) UNION ALL SELECT 3, 'z'"
    with pytest.raises(InvariantViolated, match=r"more than once|stored already"):
        fill(any_workshop, query, twice)
    assert any_workshop.rows("SELECT count(*) FROM st") == [(2,)]


def test_a_whole_content_that_nobody_forced_trusts_row_ids_and_a_forced_one_mends_them(
    any_workshop: Workshop,
) -> None:
    query = table(any_workshop, "a int, n numeric", key=["a"], mode="FULL")
    content = "SELECT a, a / 10.0 AS n FROM generate_series(1, 9) AS a"
    fill(any_workshop, query, content)
    right = any_workshop.rows("SELECT __pgt_row_id FROM st WHERE a = 3")
    any_workshop.run("BEGIN; SET LOCAL pgtrickle.refreshing = 'on';"
                     " UPDATE st SET __pgt_row_id = 7 WHERE a = 3; COMMIT")  # fmt: skip
    any_workshop.run("UPDATE orders SET note = note || '!' WHERE id = 1")
    result = any_workshop.refresh_one("st")
    assert (result.action, result.rows_inserted, result.rows_updated, result.rows_deleted) == ("FULL", 0, 0, 0)
    fill(any_workshop, query, content)
    assert any_workshop.rows("SELECT __pgt_row_id FROM st WHERE a = 3") == right
    query.full_sql = lambda b: f"{content} WHERE a <> 4"
    any_workshop.run("UPDATE orders SET note = note || '!' WHERE id = 1")
    result = any_workshop.refresh_one("st")
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (0, 0, 1)
