"""A refresh lets PostgreSQL compute as it would by itself: with its workers, in any order, knowing what has changed."""

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
INSERT INTO t SELECT i, 'G' || i % 20, i / 100.0, 'c' || i % 7, (i % 16)::bit(4) FROM generate_series(1, 40000) i;
ANALYZE;
CREATE FUNCTION reader(numeric) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
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
    live = {pid for (pid,) in conn.execute("SELECT pid FROM pg_stat_activity")}
    pids = {pid for row in found for pid in row}
    return bool(pids - live), bool(pids & live)


@pytest.mark.parametrize(
    ("shown", "rest"),
    [("g, ", "GROUP BY g"), ("", "GROUP BY g"), ("", "HAVING true")],
    ids=["keyed", "a bag", "one row"],
)
def test_a_content_is_read_by_workers(pt: PgTrickle, conn: psycopg.Connection, shown: str, rest: str) -> None:
    query = f"SELECT {shown}min(reader(v)) AS least, max(reader(v)) AS most, count(*) AS n FROM t {rest}"
    pt.create_stream_table("whose", query, refresh_mode="FULL")
    assert _readers(conn, "whose") == (False, True)
    conn.execute("UPDATE t SET v = v + 1 WHERE id = 5")
    assert pt.refresh_stream_table("whose").action == "FULL"
    assert _readers(conn, "whose") == (True, False)


@pytest.mark.parametrize("value", ["stddev(v::float8)", "array_agg(id)"])
def test_what_depends_on_the_order_of_rows_is_read_in_one_process(
    pt: PgTrickle, conn: psycopg.Connection, value: str
) -> None:
    query = f"SELECT g, min(reader(v)) AS least, max(reader(v)) AS most, {value} AS x FROM t GROUP BY g"
    pt.create_stream_table("whose", query, refresh_mode="FULL")
    conn.execute("UPDATE t SET v = v + 1 WHERE id = 5")
    assert pt.refresh_stream_table("whose").action == "FULL"
    assert _readers(conn, "whose") == (False, True)


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


@pytest.mark.parametrize(("joins", "limit"), [(15, "16"), (16, "64")])
def test_a_content_of_many_tables_is_planned_in_any_order(
    pt: PgTrickle, conn: psycopg.Connection, joins: int, limit: str
) -> None:
    conn.execute("CREATE TABLE few AS SELECT i AS id FROM generate_series(1, 5) i")
    joined = " ".join(f"JOIN few AS f{n} ON f{n}.id = f0.id" for n in range(1, joins + 1))
    query = f"SELECT f0.id, current_setting('join_collapse_limit') AS held FROM few AS f0 {joined}"
    pt.create_stream_table("joined", query, refresh_mode="FULL")
    assert conn.execute("SELECT DISTINCT held FROM joined").fetchall() == [(limit,)]


def test_of_a_buffer_what_is_read_is_analyzed(pt: PgTrickle, conn: psycopg.Connection) -> None:
    pt.create_stream_table("sums", "SELECT g, sum(v) AS s FROM t GROUP BY g", refresh_mode="DIFFERENTIAL")
    pt.create_stream_table("bits", "SELECT id, bits FROM t", refresh_mode="DIFFERENTIAL")
    pt.create_stream_table("kinds", "SELECT bits, count(*) AS n FROM bits GROUP BY bits", refresh_mode="DIFFERENTIAL")
    conn.execute("UPDATE t SET v = v + 1, bits = ~bits WHERE id <= 2000")
    analyzed = (
        "SELECT array_agg(attname::text ORDER BY attname) FROM pg_stats"
        " WHERE schemaname = 'pgtrickle_changes' AND tablename = 'changes_' || 't'::regclass::oid"
    )
    assert pt.refresh_stream_table("sums").action == "DIFFERENTIAL"
    own = ["action", "xid"]
    read = ["new_g", "new_id", "new_v", "old_g", "old_id", "old_v"]
    assert conn.execute(analyzed).fetchone() == (sorted(own + read),)
    assert pt.refresh_stream_table("bits").action == "DIFFERENTIAL"
    assert conn.execute(analyzed).fetchone() == (sorted([*own, *read, "new_bits", "old_bits"]),)
    assert pt.refresh_stream_table("kinds").action == "DIFFERENTIAL"
    assert conn.execute(
        "SELECT array_agg(attname::text ORDER BY attname) FROM pg_stats"
        " WHERE schemaname = 'pgtrickle_changes' AND tablename LIKE 'changes\\_pgt\\_%'"
    ).fetchone() == (["action", "new_bits", "pk_hash", "xid"],)
    assert [pt.verify(name).differences for name in ("sums", "bits", "kinds")] == [0, 0, 0]
