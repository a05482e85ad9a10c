"""Placement `database` on random schemas, queries and histories, by refreshes that commit, against the query."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import psycopg
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault, PgTrickleError
from airflow_provider_pgtrickle.engine.refresh import plan
from tests.oracle.arena import tolerated
from tests.property.tables import World
from tests.property.test_properties import BY_CHANGE, FEWER, SOAK, Example, examples

_MOST_ROWS = 500
_numbers = itertools.count(1)


def _no_executor() -> NoReturn:
    raise EnvironmentFault("Placement database asked for an executor")


def _defined(conn: psycopg.Connection, query: str) -> bool:
    """Whether PostgreSQL answers the query on the present data, in few rows."""
    found = None
    with tolerated(conn):
        found = conn.execute(f"SELECT count(x::text) <= {_MOST_ROWS} FROM ({query}) AS x").fetchone()
    return found == (True,)


def _differ(conn: psycopg.Connection, query: str) -> list[tuple[object, ...]]:
    """What the table's visible rows are, and the query's are not, and the reverse, as they look."""
    columns = conn.execute(f"SELECT * FROM ({query}) AS x LIMIT 0").description or []
    names = ", ".join(f"x.{sql.Identifier(column.name).as_string(conn)}" for column in columns)
    rows = [f"SELECT ROW({names})::text FROM {place} AS x" for place in ("kept", f"({query})")]
    return [
        row for one, other in (rows, rows[::-1]) for row in conn.execute(f"({one}) EXCEPT ALL ({other})").fetchall()
    ]


@contextmanager
def inhabited(dsn: str, world: World, *tables: str) -> Iterator[tuple[psycopg.Connection, PgTrickle]]:
    """A schema of its own with the world's tables and rows; `tables` are the stream tables to drop in the end."""
    schema = f"world_{next(_numbers)}"
    home = psycopg.conninfo.make_conninfo(dsn, options=f"-csearch_path={schema},public")
    with (
        psycopg.connect(home, autocommit=True) as conn,
        PgTrickle(
            home, executor=_no_executor, placement="database", differential_max_change_ratio=0.0, retry_attempts=1
        ) as pt,
    ):
        conn.prepare_threshold = None
        pt.install()
        conn.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        try:
            for statement in (*world.ddl, *world.rows):
                with tolerated(conn):
                    conn.execute(statement)
            yield conn, pt
        finally:
            for name in tables:
                with tolerated(conn):
                    pt.drop_stream_table(name, if_exists=True)
            conn.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def change(conn: psycopg.Connection, transaction: list[str]) -> None:
    """Statements of one transaction; what PostgreSQL refuses of it is left out."""
    with conn.transaction():
        for statement in transaction:
            with tolerated(conn):
                conn.execute(statement)


def _follows(dsn: str, example: Example, apart: bool) -> None:
    """`apart`: all rows are computed as those of large sources are, in a statement of their own; and FULL, too."""
    world, query, history = example
    note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n-- {query};\n-- {history}")
    with inhabited(dsn, world, "kept") as (conn, pt), pytest.MonkeyPatch.context() as patch:
        if apart:
            patch.setattr(plan, "_PARALLEL_FROM", 0)
            patch.setattr(plan, "_FEW", math.inf)
        if not _defined(conn, query):
            return
        try:
            pt.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL")
        except PgTrickleError as refused:
            event(type(refused).__name__)
            return
        event("followed")
        for transaction in history:
            change(conn, transaction)
            if _defined(conn, query):
                result = pt.refresh_stream_table("kept")
                assert result.action in (*BY_CHANGE, "NO_DATA") or result.fallback_reason
                assert _differ(conn, query) == []
                assert pt.verify("kept", refresh=False).differences == 0
                if apart:
                    pt.refresh_stream_table("kept", force_full=True)
                    assert _differ(conn, query) == []


@pytest.mark.timeout(900)
@FEWER
@given(example=examples(), apart=st.booleans())
def test_content_equals_the_query_without_spark(dsn: str, example: Example, apart: bool) -> None:
    _follows(dsn, example, apart)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=examples(), apart=st.booleans())
def test_ten_thousand_cases_without_spark(dsn: str, example: Example, apart: bool) -> None:
    _follows(dsn, example, apart)
