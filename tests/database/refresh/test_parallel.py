"""What a few rows are computed from, PostgreSQL reads with its parallel workers, though the rows are staged."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh import plan

# `reader` tells the process that read a row.
TABLES = """
CREATE TABLE t (id int PRIMARY KEY, g text COLLATE blind, v numeric(10,2), code char(3), bits bit(4));
INSERT INTO t SELECT i, 'G' || i % 20, i / 100.0, 'c' || i % 7, (i % 16)::bit(4) FROM generate_series(1, 20000) i;
ANALYZE;
CREATE FUNCTION reader(numeric) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS
    $$ BEGIN RETURN pg_backend_pid(); END $$;
"""
BY_GROUP = "SELECT g, max(v) AS v, min(code) AS code, bit_or(bits) AS bits, count(*) AS n FROM t GROUP BY g"
"""Of each type whose values forget their length in an expression; the key has a collation of its own."""


# Workers are good for thousands of rows, and the leader leaves all reading to them.
_EAGER = (
    "-c parallel_setup_cost=100 -c parallel_tuple_cost=0 -c min_parallel_table_scan_size=0"
    " -c parallel_leader_participation=off"
)
_BLIND = {
    15: "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    18: 'CREATE COLLATION blind FROM "C"',  # the server for tests has no ICU
}


@pytest.fixture
def pt(any_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PgTrickle]:
    monkeypatch.setattr(plan, "_PARALLEL_FROM", 1_000)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute(_BLIND[conn.info.server_version // 10_000])
        conn.execute(TABLES)
    with PgTrickle(make_conninfo(any_dsn, options=_EAGER), placement="database") as made:
        made.install()
        yield made


@pytest.fixture
def conn(any_dsn: str, pt: PgTrickle) -> Iterator[psycopg.Connection]:
    with psycopg.connect(any_dsn, autocommit=True) as made:
        yield made


def _readers(conn: psycopg.Connection, table: str) -> tuple[bool, bool]:
    """Whether the rows were read by processes that have ended, as workers do; and by sessions that go on."""
    found = conn.execute(f"SELECT least, most FROM {table}").fetchall()
    (live,) = conn.execute("SELECT array_agg(pid) FROM pg_stat_activity").fetchone()
    pids = {pid for row in found for pid in row}
    return bool(pids - {*live}), bool(pids & {*live})


@pytest.mark.parametrize("group", ["g", ""], ids=["keyed", "a bag"])
def test_a_content_is_read_by_workers(pt: PgTrickle, conn: psycopg.Connection, group: str) -> None:
    query = "SELECT min(reader(v)) AS least, max(reader(v)) AS most, count(*) AS n FROM t"
    pt.create_stream_table("whose", f"{query} GROUP BY g" if group else f"{query} HAVING true", refresh_mode="FULL")
    assert _readers(conn, "whose") == (False, True)
    conn.execute("UPDATE t SET v = v + 1 WHERE id = 5")
    assert pt.refresh_stream_table("whose").action == "FULL"
    assert _readers(conn, "whose") == (True, False)


@pytest.mark.parametrize("mode", ["FULL", "DIFFERENTIAL"])
def test_types_and_collations_survive(pt: PgTrickle, conn: psycopg.Connection, mode: str) -> None:
    pt.create_stream_table("by_group", BY_GROUP, refresh_mode=mode)
    pt.create_stream_table("rows", "SELECT id, g, v, code, bits FROM t WHERE id % 500 = 5", refresh_mode=mode)
    pt.create_stream_table("kinds", "SELECT DISTINCT lower(g) AS g, code::char(2) AS c FROM t", refresh_mode=mode)
    for change in (
        "UPDATE t SET v = v + 100, code = code || '!', bits = B'1111' WHERE id % 200 = 5",
        "UPDATE t SET g = lower(g) WHERE id % 500 = 5",
        "DELETE FROM t WHERE g = 'g5'; INSERT INTO t VALUES (0, 'new', 1, 'a', B'0001'), (-1, NULL, NULL, NULL, NULL)",
    ):
        conn.execute(change)
        for name in ("by_group", "rows", "kinds"):
            assert pt.refresh_stream_table(name).action == mode
            assert pt.verify(name).differences == 0
