"""Placement `database` needs nothing of Spark, for whatever a table needs to be created, filled and refreshed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from tests.answers import only

WITHOUT_SPARK = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "grpc"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from airflow_provider_pgtrickle.cli import main
sys.exit(main(sys.argv[1:]))
"""
SPREAD = "SELECT n, count(*) AS c FROM (SELECT v % 7 AS g, count(*) AS n FROM t GROUP BY 1) AS x GROUP BY n"


def _no_executor() -> NoReturn:
    raise EnvironmentFault("An executor was asked for")


@pytest.fixture
def shell(any_dsn: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    with PgTrickle(any_dsn) as pt, psycopg.connect(any_dsn, autocommit=True) as conn:
        pt.install()
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        conn.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 100) i")

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_SPARK, *arguments],
            env={"PGTRICKLE_DSN": any_dsn, "PATH": "/nowhere", "PYTHONPATH": ":".join(sys.path), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_command_line_needs_no_spark_no_java_and_no_arrow(shell: Callable[..., Any], any_dsn: str) -> None:
    create = (
        "create",
        "st",
        "--query",
        "SELECT v % 7 AS g, count(*) AS n FROM t GROUP BY 1",
        "--placement",
        "database",
    )
    for arguments, words in (
        (create, "populated"),
        (("refresh", "st"), "NO_DATA"),
        (("refresh", "st", "--full"), "FULL"),
        (("alter", "st", "--query", "SELECT v % 5 AS g, count(*) AS n, sum(v) AS s FROM t GROUP BY 1"), "Altered"),
        (("verify", "st"), "EQUAL"),
    ):
        done = shell(*arguments)
        assert (done.returncode, words in done.stdout) == (0, True), (arguments, done.stdout, done.stderr)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        assert "DIFFERENTIAL" in shell("refresh", "st").stdout
        assert only(conn.execute("SELECT sum(s) = (SELECT sum(v) FROM t) FROM st")) == (True,)


def test_a_placement_that_can_not_be_is_one_sentence(shell: Callable[..., Any]) -> None:
    done = shell("create", "st", "--query", "SELECT id, v FROM t")
    assert (done.returncode, done.stderr.splitlines()) == (
        1,
        [
            "pgtrickle: Something is to be computed on Spark, and there is no pyspark."
            " Install it, or let PostgreSQL compute: placement 'database'."
        ],
    )
    assert "can't be 'moon'" in shell("refresh", "st", PGTRICKLE_PLACEMENT="moon").stderr


def test_health_asks_for_spark_only_where_it_may_be_needed(shell: Callable[..., Any]) -> None:
    without = shell("health", "--json", PGTRICKLE_PLACEMENT="database")
    assert without.stdout.count("not needed: all is computed in the database") == 3
    assert "Java is not installed" in shell("health").stdout
    query = ("--query", "SELECT id, v FROM t", "--no-initialize", "--placement", "spark")
    assert shell("create", "st", *query).returncode == 0
    assert "Java is not installed" in shell("health", PGTRICKLE_PLACEMENT="database").stdout


def test_a_part_is_computed_where_its_owner_is(dsn: str) -> None:
    with PgTrickle(dsn, executor=_no_executor) as pt, psycopg.connect(dsn, autocommit=True) as conn:
        pt.install()
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        conn.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 100) i")
        pt.create_stream_table("st", SPREAD, placement="database", differential_max_change_ratio=0.0)
        placements = (
            "SELECT count(*) FILTER (WHERE is_hidden), array_agg(DISTINCT placement) FROM pgtrickle.pgt_stream_tables"
        )
        assert conn.execute(placements).fetchone() == (1, ["database"])
        conn.execute("DELETE FROM t WHERE id < 30")
        assert pt.refresh_stream_table("st").way == "database"
        assert conn.execute(f"(SELECT n, c FROM st) EXCEPT ALL ({SPREAD})").fetchall() == []
        pt.alter_stream_table("st", placement="auto")
        assert conn.execute(placements).fetchone() == (1, ["auto"])
        pt.alter_stream_table("st", placement="spark")
        conn.execute("DELETE FROM t WHERE id < 40")
        with pytest.raises(EnvironmentFault):
            pt.refresh_stream_table("st")


def test_a_table_of_an_earlier_release_keeps_its_row_ids(dsn: str) -> None:
    with (
        PgTrickle(dsn, executor=_no_executor, placement="database") as pt,
        psycopg.connect(dsn, autocommit=True) as conn,
    ):
        pt.install()
        conn.execute("CREATE TABLE t AS SELECT i AS id, i AS v FROM generate_series(1, 100) i")
        pt.create_stream_table("st", "SELECT v % 7 AS g, count(*) AS n FROM t GROUP BY 1", initialize=False)
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET server_row_ids = false")
        assert pt.refresh_stream_table("st").action == "FULL"
        ids = "SELECT g, __pgt_row_id FROM st ORDER BY g"
        before = conn.execute(ids).fetchall()
        conn.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
        assert conn.execute(ids).fetchall() == before
        assert pt.verify("st").differences == 0
        hashed = "SELECT count(*) FROM st WHERE __pgt_row_id = hashtextextended('V' || length(g::text) || ':' || g, 42)"
        assert only(conn.execute(hashed)) == (0,)
