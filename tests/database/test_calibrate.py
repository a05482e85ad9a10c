"""`calibrate` measures, stores what it measured, and leaves nothing else."""

from __future__ import annotations

import psycopg

from airflow_provider_pgtrickle.cli.calibration import measure
from airflow_provider_pgtrickle.client import PgTrickle
from tests.answers import only


def test_calibrate_leaves_constants_and_nothing_else(dsn: str) -> None:
    with PgTrickle(dsn, placement="database") as pt, psycopg.connect(dsn, autocommit=True) as conn:
        pt.install()
        measured = measure(pt)
        assert sorted(measured) == ["change_us", "row_us"]
        assert all(0 < value < 10_000 for value in measured.values())
        again = measure(pt)
        kept = conn.execute("SELECT name, value FROM pgtrickle.pgt_calibration").fetchall()
        assert dict(kept) == again
        assert conn.execute("SELECT FROM pg_namespace WHERE nspname ~ 'calibration'").fetchall() == []
        assert pt.status() == []


def test_explain_tells_what_was_weighed_and_taken(dsn: str) -> None:
    with PgTrickle(dsn, placement="database") as pt, psycopg.connect(dsn, autocommit=True) as conn:
        pt.install()
        conn.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 9) i"
        )
        pt.create_stream_table("st", "SELECT id, v FROM t")
        conn.execute("UPDATE t SET v = 0 WHERE id = 1")
        assert pt.refresh_stream_table("st").way == "database"
        ways = pt.explain_st("st").ways
        assert sorted(way.partition(":")[0] for way in ways) == ["FULL database", "difference database"]
        assert all("predicted" in way and "taken" in way for way in ways)
        assert "\nways:\n" in str(pt.explain_st("st"))
        (plan,) = only(conn.execute("SELECT plan FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 1"))
        assert "compute the change in the coordinator's session" in plan
