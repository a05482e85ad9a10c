"""What a refresh doesn't need it doesn't load, and what doesn't change it doesn't read. No milliseconds are held."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle

_SCRIPT = """
import sys
from airflow_provider_pgtrickle.cli import main
code = main(["refresh", "st", "--json"])
print(*sys.modules, sep="\\n", file=sys.stderr)
sys.exit(code)
"""
#: What others have made, and a refresh in the database of a table that reads no other has no use for.
_FOREIGN = (
    "airflow", "pyspark", "py4j", "pandas", "numpy", "pyarrow", "networkx", "rich", "argcomplete", "yaml", "croniter",
    "sqlglot.dialects.spark", "sqlglot.dialects.hive",
)  # fmt: skip
#: What declares, verifies, watches and maintains otherwise.
_OURS = (
    "health", "engine.declare.create", "engine.declare.alter", "engine.declare.drop",
    "engine.declare.uninstall", "engine.declare.owners", "engine.declare.keeping", "engine.declare.parts",
    "engine.declare.storage", "engine.dvm.split", "engine.graph", "engine.immediate.live", "engine.immediate.maintain",
    "engine.refresh.verify", "engine.refresh.compare", "engine.refresh.decoded", "engine.catalog.requests",
    "engine.spark.session", "engine.spark.execute",
)  # fmt: skip


def test_a_refresh_from_the_shell_imports_no_more_than_it_needs(dsn: str) -> None:
    with PgTrickle(dsn, placement="database") as pt, psycopg.connect(dsn, autocommit=True) as conn:
        pt.install()
        conn.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 9) i"
        )
        pt.create_stream_table("st", "SELECT v, count(*) AS n FROM t GROUP BY v", differential_max_change_ratio=0.0)
        conn.execute("UPDATE t SET v = 3 WHERE id = 4")
    environment = {**os.environ, "PGTRICKLE_DSN": dsn, "PGTRICKLE_PLACEMENT": "database"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environment, check=True, capture_output=True, text=True, timeout=120
    )
    assert '"action": "DIFFERENTIAL"' in done.stdout
    loaded = set(done.stderr.split())
    unwanted = {*_FOREIGN, *(f"airflow_provider_pgtrickle.{name}" for name in _OURS)}
    assert "airflow_provider_pgtrickle.engine.refresh.unit" in loaded
    assert not loaded & unwanted


@pytest.mark.parametrize("changed", [1, 150])
def test_a_small_difference_finds_its_rows_by_index(dsn: str, changed: int) -> None:
    queries = {
        "scanned": "SELECT id, g, v FROM t WHERE v >= 0",
        "added": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
        "joined": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
        "bag": "SELECT v % 5000 AS w FROM t",
    }
    with PgTrickle(dsn, placement="database", differential_max_change_ratio=0.0) as pt:
        pt.install()
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(
                "CREATE TABLE t (id int PRIMARY KEY, g int, v int); CREATE TABLE u (g int PRIMARY KEY, name text)"
            )
            conn.execute("INSERT INTO t SELECT i, i / 2, i FROM generate_series(1, 20000) i")
            conn.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(0, 10000) i; ANALYZE t, u")
            conn.execute("CREATE INDEX ON t (g)")
        for name, query in queries.items():
            pt.create_stream_table(name, query)
    for number in range(2):
        with psycopg.connect(dsn, autocommit=True) as conn:
            before = _read_whole(conn)
            conn.execute("UPDATE t SET v = v + 1 WHERE id %% 3 <> 0 AND id <= %s", (changed,))
            conn.execute(
                "DELETE FROM t WHERE id > %s AND id <= %s + %s",
                (19000 + 99 * number, 19000 + 99 * number, changed // 20),
            )
            conn.execute(
                "INSERT INTO t SELECT %s + i, i, i FROM generate_series(1, %s) i", (30000 * (number + 1), changed // 10)
            )
        with PgTrickle(dsn, placement="database", differential_max_change_ratio=0.0) as pt:
            actions = {name: pt.refresh_stream_table(name).action for name in queries}
        with psycopg.connect(dsn, autocommit=True) as conn:
            assert actions == dict.fromkeys(queries, "DIFFERENTIAL")
            assert _read_whole(conn) == before
            for name, query in queries.items():
                columns = conn.execute(f"SELECT * FROM ({query}) AS q LIMIT 0").description or ()
                listed = ", ".join(column.name for column in columns)
                rows = f"SELECT {listed} FROM {name}"
                assert (
                    conn.execute(f"({rows} EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL {rows})").fetchall() == []
                )


def _read_whole(conn: psycopg.Connection) -> list[tuple[str, int]]:
    """Rows of the stream tables that were read by scans of the whole table, which sessions tell when they end."""
    others = (
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    while conn.execute(others).fetchall():
        conn.execute("SELECT pg_stat_clear_snapshot()")
    return conn.execute(
        "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE relname IN ('scanned', 'added', 'joined', 'bag')"
        " ORDER BY 1"
    ).fetchall()
