"""What a newcomer sees first: `make demo`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.demo import spark
from airflow_provider_pgtrickle.demo.processes import Processes

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(600)
def test_the_demo_shows_every_table_equal_to_its_query_and_leaves_nothing_running(
    spark_alone: None, tmp_path: Path
) -> None:
    before = _servers()
    done = subprocess.run(
        [sys.executable, "-m", "airflow_provider_pgtrickle.demo", "--folder", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = _tables(done.stdout)
    assert "FULL" in first
    assert "DIFFERENTIAL" in second
    assert "NO:" not in first + second
    assert _servers() <= before


def test_the_live_demo_has_a_server_that_reads_with_the_password_it_has(
    spark_alone: None, dsn: str, tmp_path: Path
) -> None:
    # The class itself: PySpark's own builder would turn this whole process over to Connect.
    from pyspark.sql.connect.session import SparkSession

    before, processes = _servers(), Processes(tmp_path / "processes.json")
    try:
        spark.start(processes, tmp_path / "spark", dsn)
        # PySpark promises both kinds of session one face, and has no type for it.
        session: Any = SparkSession.builder.remote(spark.wait(processes, tmp_path / "spark")).create()
        with PgTrickle(dsn, session, spark_credentials="pgpass") as pt, psycopg.connect(dsn, autocommit=True) as conn:
            pt.install()
            conn.execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
            pt.create_stream_table("st", "SELECT v, count(*) AS n FROM t GROUP BY v")
            conn.execute("UPDATE t SET v = 'a'")
            assert pt.refresh_stream_table("st").way == "pushed"
            assert conn.execute("SELECT v, n FROM st").fetchall() == [("a", 2)]
        session.stop()
        assert _servers() > before
    finally:
        processes.stop()
    assert _servers() <= before
    assert (tmp_path / "spark" / "pgpass").stat().st_mode & 0o077 == 0


def _servers() -> set[int]:
    """Demo servers on this machine, PostgreSQL's and Spark's; `make up` may have some of its own running."""
    listed = psutil.process_iter(["pid", "cmdline"])
    names = re.compile("pgtrickle-demo-|pgtrickle-connect")
    return {process.info["pid"] for process in listed if names.search(" ".join(process.info["cmdline"] or []))}


def _tables(printed: str) -> list[str]:
    """The two reports, each a block of its own."""
    return [block for block in printed.split("\n\n") if block.startswith("stream table")]
