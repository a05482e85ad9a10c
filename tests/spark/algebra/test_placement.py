"""Placements compute the same: each of the oracle's fixtures by real refreshes, on Spark and without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from tests.sql_fixtures.test_sql_fixtures import FILES, Fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _no_executor() -> NoReturn:
    raise EnvironmentFault("Placement database asked for an executor")


def _differ(conn: psycopg.Connection, left: str, right: str) -> list[tuple[object, ...]]:
    rows = f"SELECT x::text FROM ({left}) AS x", f"SELECT x::text FROM ({right}) AS x"
    return [
        row for one, other in (rows, rows[::-1]) for row in conn.execute(f"({one}) EXCEPT ALL ({other})").fetchall()
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_database_writes_what_spark_writes(spark: SparkSession, dsn: str, path: Path) -> None:
    """Visible and hidden columns and row ids, after the first content, each difference and a FULL."""
    fixture = Fixture.read(path)
    always: dict[str, Any] = {"differential_max_change_ratio": 0.0, "refresh_mode": "DIFFERENTIAL"}
    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        PgTrickle(dsn, spark, placement="spark") as there,
        PgTrickle(dsn, executor=_no_executor, placement="database") as here,
    ):
        here.install()
        for statement in fixture.tables:
            conn.execute(statement)
        there.create_stream_table("there", fixture.query, **always)
        here.create_stream_table("here", fixture.query, **always)
        taken: set[str] = set()
        for cycle in [*fixture.cycles, []]:
            for statement in cycle:
                conn.execute(statement)
            full = not cycle
            actions = [
                client.refresh_stream_table(name, force_full=full).action
                for client, name in ((there, "there"), (here, "here"))
            ]
            # A cycle may change only what the query doesn't read.
            assert actions in ([["FULL"] * 2] if full else [["DIFFERENTIAL"] * 2, ["NO_DATA"] * 2])
            taken |= set(actions)
            assert _differ(conn, "SELECT * FROM there", "SELECT * FROM here") == []
            (columns,) = conn.execute(
                "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
                " WHERE attrelid = 'here'::regclass AND attnum > 0 AND attname NOT LIKE '\\_\\_pgt%'"
            ).fetchone() or ("",)
            assert _differ(conn, f"SELECT {columns} FROM here", f"SELECT {columns} FROM ({fixture.query}) AS q") == []
        assert "DIFFERENTIAL" in taken
        ways = conn.execute(
            "SELECT DISTINCT plan LIKE '%in the coordinator''s session%' FROM pgtrickle.pgt_refresh_history h"
            " JOIN pgtrickle.pgt_stream_tables t USING (pgt_id) WHERE coalesce(t.part_of, t.pgt_id) ="
            " (SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'here') AND h.action <> 'NO_DATA'"
        ).fetchall()
        assert ways == [(True,)]
