"""The road of one changed row, as docs/architecture.md lists it, is what runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg

import airflow_provider_pgtrickle
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

_ENGINE = Path(airflow_provider_pgtrickle.__file__).parent / "engine"
_PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
_ROW = re.compile(r"^\| \d+ \|.*$", re.MULTILINE)


def test_a_differential_refresh_passes_the_modules_that_the_page_lists(dsn: str) -> None:
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.parent == _ENGINE / "refresh":
            ran.add(f"refresh/{path.name}")

    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        PgTrickle(dsn, executor=lambda: PostgresExecutor(Database(dsn))) as pt,
    ):
        pt.install()
        conn.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 100) i"
        )
        pt.create_stream_table("st", "SELECT v, count(*) AS n FROM t GROUP BY v")
        conn.execute("INSERT INTO t VALUES (101, 3)")
        sys.setprofile(note)
        try:
            result = pt.refresh_stream_table("st")
        finally:
            sys.setprofile(None)
    assert result.action == "DIFFERENTIAL"
    rows = "".join(_ROW.findall(_PAGE.read_text(encoding="utf-8")))
    assert ran == set(re.findall(r"`(refresh/\w+\.py)`", rows))
