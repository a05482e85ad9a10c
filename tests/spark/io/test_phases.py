"""Where the time of a refresh goes: Spark's start is a phase, and the phases are all of it."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from psycopg.rows import dict_row

_MAIN = "import sys; from airflow_provider_pgtrickle.cli import main; sys.exit(main())"

pytestmark = pytest.mark.spark


def pgtrickle(dsn: str, *arguments: str) -> None:
    """A process of its own, whose Spark nobody has started before."""
    environment = os.environ | {"PGTRICKLE_DSN": dsn, "PGTRICKLE_PLACEMENT": "spark"}
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("spark_alone")
def test_sparks_start_is_a_phase_of_the_refresh_that_waits_for_it(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
    conn.execute("INSERT INTO orders SELECT i, i FROM generate_series(1, 100) i")
    conn.commit()
    pgtrickle(dsn, "install")
    for name in ("first", "second"):
        pgtrickle(dsn, "create", name, "--query", "SELECT sum(amount) AS total FROM orders", "--no-initialize")
    pgtrickle(dsn, "refresh", "first", "second")
    with conn.cursor(row_factory=dict_row) as cursor:
        done = cursor.execute(
            "SELECT h.action, h.way, h.phases, h.duration_ms FROM pgtrickle.pgt_refresh_history h ORDER BY h.refresh_id"
        ).fetchall()
    assert [(row["action"], row["way"]) for row in done] == [("FULL", "pushed"), ("FULL", "pushed")]
    first, second = done
    # The second finds it there.
    assert first["phases"]["spark"] > 10 * second["phases"]["spark"] > 0
    assert sum(first["phases"].values()) >= 0.9 * first["duration_ms"]
    assert sum(first["phases"].values()) <= 1.01 * first["duration_ms"]
