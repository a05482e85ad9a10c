"""A type whose `=` stands outside pg_catalog, where our sessions don't look."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import QueryError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor


@pytest.fixture
def pt(dsn15: str, admin_dsn15: str) -> PgTrickle:
    with psycopg.connect(admin_dsn15) as conn:
        conn.execute("CREATE EXTENSION citext SCHEMA public")
    with psycopg.connect(dsn15) as conn:
        conn.execute(
            "CREATE TABLE public.t (id int PRIMARY KEY, c citext, d citext);"
            "INSERT INTO public.t VALUES (1, 'A', 'a'), (2, 'a', 'b'), (3, 'B', 'B')"
        )
    database = Database(dsn15)
    client = PgTrickle(dsn15, executor=lambda: PostgresExecutor(database))
    client.install()
    return client


def _differ(pt: PgTrickle, query: str, columns: str) -> list[tuple[object, ...]]:
    """By what each row looks like: to citext itself, A is a."""
    shown = f"SELECT {columns} FROM ({query}) q", f"SELECT {columns} FROM public.st"
    with psycopg.connect(pt.database.dsn) as conn:
        return conn.execute("({0} EXCEPT ALL {1}) UNION ALL ({1} EXCEPT ALL {0})".format(*shown)).fetchall()


@pytest.mark.parametrize(
    ("query", "columns", "action"),
    [
        ("SELECT c, count(*) AS n FROM t GROUP BY c", "lower(c::text), n", "FULL"),
        ("SELECT a.id, b.id AS other FROM t a JOIN t b ON a.c = b.d", "id, other", "DIFFERENTIAL"),
        ("SELECT DISTINCT c FROM t", "lower(c::text)", "FULL"),
        ("SELECT id, c, d FROM t WHERE c = 'A'", "id, c::text, d::text", "DIFFERENTIAL"),
    ],
)
def test_it_is_compared_as_its_type_says(pt: PgTrickle, query: str, columns: str, action: str) -> None:
    pt.create_stream_table("public.st", query, differential_max_change_ratio=0.0)
    assert _differ(pt, query, columns) == []
    with psycopg.connect(pt.database.dsn) as conn:
        conn.execute(
            "INSERT INTO public.t VALUES (4, 'b', 'A'), (5, 'a', 'A'); UPDATE public.t SET c = 'a' WHERE id = 1"
        )
    result = pt.refresh_stream_table("public.st")
    assert _differ(pt, query, columns) == []
    assert result.action == action, result.fallback_reason


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE c IS DISTINCT FROM d",
        "SELECT id, NULLIF(c, d) AS n FROM t",
        "SELECT a.id FROM t a JOIN (SELECT d AS c FROM t) b USING (c)",
        "SELECT id, CASE c WHEN d THEN 1 END AS n FROM t",
    ],
)
def test_a_comparison_that_postgresql_prints_without_its_operator_is_refused(pt: PgTrickle, query: str) -> None:
    with pytest.raises(QueryError, match="an operator outside pg_catalog"):
        pt.create_stream_table("public.st", query)
