"""A star, NATURAL and USING over stream tables mean the columns that their queries give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import QueryError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers

PLAIN = "(SELECT i, j FROM plain)"
GROUPED = "(SELECT j, n, m FROM grouped)"


@pytest.fixture
def pt(any_dsn: str) -> Iterator[PgTrickle]:
    client = PgTrickle(any_dsn, executor=lambda: PostgresExecutor(client.database), differential_max_change_ratio=0.0)
    with client, psycopg.connect(any_dsn, autocommit=True) as conn:
        client.install()
        conn.execute(
            "CREATE TABLE a (i int PRIMARY KEY, j int); INSERT INTO a SELECT n, n % 4 FROM generate_series(1, 20) n;"
            "CREATE TABLE b (i int, t text); INSERT INTO b VALUES (1, 'x'), (2, 'y')"
        )
        client.create_stream_table("plain", "SELECT i, j FROM a")
        client.create_stream_table("grouped", "SELECT j, count(*) AS n, avg(i) AS m FROM a GROUP BY j")
        conn.execute("CREATE VIEW over AS SELECT * FROM grouped")
        yield client


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("SELECT * FROM plain", f"SELECT * FROM {PLAIN} x"),
        ("SELECT * FROM plain NATURAL JOIN grouped", f"SELECT * FROM {PLAIN} x NATURAL JOIN {GROUPED} y"),
        ("SELECT * FROM public.plain x JOIN grouped USING (j)", f"SELECT * FROM {PLAIN} x JOIN {GROUPED} y USING (j)"),
        ("SELECT s.* FROM grouped s", f"SELECT * FROM {GROUPED} x"),
        ("SELECT plain.*, b.t FROM plain JOIN b USING (i)", f"SELECT x.*, b.t FROM {PLAIN} x JOIN b USING (i)"),
        ("SELECT * FROM over", f"SELECT * FROM {GROUPED} x"),
        ("WITH plain AS (SELECT 1 AS q) SELECT * FROM plain", "SELECT 1 AS q"),
        ("SELECT row_to_json(s)::text AS j FROM grouped s", f"SELECT row_to_json(s)::text AS j FROM {GROUPED} s"),
        ("SELECT count(s.*) AS c FROM grouped s", f"SELECT count(s.*) AS c FROM {GROUPED} s"),
    ],
)
def test_a_star_means_the_visible_columns(pt: PgTrickle, query: str, meant: str) -> None:
    pt.create_stream_table("st", query)
    with servers.user_session(pt.database.dsn) as conn:
        conn.execute("UPDATE a SET j = j + 1 WHERE i < 5")
    pt.refresh_stream_table("st")
    with servers.user_session(pt.database.dsn) as conn:
        names: list[Any] = [c.name for c in conn.execute(f"SELECT * FROM ({meant}) m LIMIT 0").description or ()]
        columns = ", ".join(f'"{name}"' for name in names)
        assert conn.execute(f"SELECT {columns} FROM st EXCEPT ALL ({meant})").fetchall() == []
        assert conn.execute(f"({meant}) EXCEPT ALL SELECT {columns} FROM st").fetchall() == []


def test_an_internal_column_is_no_column_of_a_query(pt: PgTrickle) -> None:
    with pytest.raises(QueryError, match="__pgt_row_id"):
        pt.create_stream_table("st", "SELECT __pgt_row_id AS x, i FROM plain")
