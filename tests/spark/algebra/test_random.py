"""Random queries in their lowered form: Spark joins and aggregates all it can, PostgreSQL has the last word."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, note, settings
from hypothesis import strategies as st

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import QueryError, ValueFault
from tests.property.calls import learn
from tests.property.changes import histories
from tests.property.queries import queries
from tests.property.tables import World
from tests.property.worlds import worlds
from tests.ways import prefer

GROUPS = """
CREATE TABLE g (a int, b int, c numeric);
INSERT INTO g VALUES (1, 1, 1), (1, 1, 2.5), (1, 2, 7), (2, 1, 1.0), (2, 2, 3), (NULL, 1, 4), (3, NULL, 9.0);
"""


@pytest.fixture
def lowering(dsn: str, spark: object) -> Iterator[PgTrickle]:
    """A client that leaves to PostgreSQL only what it must, and what its server has to call."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        learn(conn)
    with PgTrickle(dsn, spark) as pt:  # type: ignore[arg-type]
        pt.install()
        yield pt


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, b, rank() OVER (PARTITION BY a ORDER BY count(*)) AS r, avg(b) AS m FROM g GROUP BY a, b",
        "SELECT x.a, y.c, avg(y.c) OVER (PARTITION BY x.a) AS m FROM g x JOIN g y ON y.b = x.b",
        "SELECT DISTINCT x.a, x.c, y.c AS d FROM g x LEFT JOIN g y ON y.b = x.b AND y.a = x.a",
    ],
)
def test_rows_told_apart_by_numbers_of_any_scale(lowering: PgTrickle, dsn: str, query: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(GROUPS)
        lowering.create_stream_table("st", query, initialize=False)
        prefer(conn, "st", "lowered")
        for change in (
            "SELECT 1",
            "UPDATE g SET b = b + 1, c = c + 1.50 WHERE a = 1",
            "DELETE FROM g WHERE b = 3",
            "UPDATE g SET b = 1, c = 2",
        ):
            conn.execute(change)
            assert lowering.refresh_stream_table("st", force_full=True).action == "FULL"
            expect_equal(conn, query)


@pytest.mark.timeout(900)
@settings(
    max_examples=int(os.environ.get("PGTRICKLE_LOWERED", "20")),
    derandomize=True,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(data=st.data())
def test_the_lowered_form_equals_the_query(lowering: PgTrickle, dsn: str, data: st.DataObject) -> None:
    world = data.draw(worlds())
    query = data.draw(queries(world, depths=(1, 2)))
    note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n-- {query}")
    with psycopg.connect(dsn, autocommit=True) as conn, _there(conn, world):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lowering.create_stream_table("st", query, refresh_mode="AUTO")
            prefer(conn, "st", "lowered")
        except (QueryError, ValueFault):  # the latter: its own answer is an error
            assume(False)
        try:
            expect_equal(conn, query)
            for transaction in data.draw(histories(world, query))[:2]:
                _change(conn, transaction)
                result = lowering.refresh_stream_table("st", force_full=True)
                event(f"{result.action} {result.way}")
                assert result.action in ("FULL", "TOPK"), result
                expect_equal(conn, query)
        finally:
            lowering.drop_stream_table("st")


@contextmanager
def _there(conn: psycopg.Connection, world: World) -> Iterator[None]:
    """The world's tables, for the block."""
    for statement in world.ddl:
        conn.execute(statement)
    _change(conn, list(world.rows))
    try:
        yield
    finally:
        for table in world.tables:
            conn.execute(f"DROP TABLE {table.name} CASCADE")
        conn.execute('DROP TYPE IF EXISTS "Mood", pair; DROP DOMAIN IF EXISTS positive, label')
        conn.execute("DROP FUNCTION IF EXISTS of_a_user")


def _change(conn: psycopg.Connection, statements: list[str]) -> None:
    for statement in statements:
        try:
            conn.execute(statement)
        except psycopg.Error as refused:
            event(type(refused).__name__)


def expect_equal(conn: psycopg.Connection, query: str) -> None:
    names = conn.execute(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
        " WHERE attrelid = 'st'::regclass AND attnum > 0 AND NOT attisdropped AND NOT starts_with(attname, '__pgt_')"
    ).fetchone()
    assert names is not None
    stored, wanted = f"SELECT x::text FROM (SELECT {names[0]} FROM st) x", f"SELECT x::text FROM ({query}) x"
    for words, left, right in (("too many", stored, wanted), ("missing", wanted, stored)):
        wrong = conn.execute(f"({left}) EXCEPT ALL ({right}) LIMIT 5").fetchall()
        assert not wrong, f"{words}: {wrong} of {query}"
