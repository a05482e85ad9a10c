"""The databases that the page is opened on: none, six and five hundred stream tables."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.demo import shop
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from airflow_provider_pgtrickle.engine.declare import owners
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

_EXAMPLE = Path(__file__).parents[3] / "dags" / "shop.py"
#: What the histories of the shop say of who refreshed: its DAG.
BY_DAG = "airflow shop.order_totals"
MANY = 500
_LAYERS = 5


@contextmanager
def client(dsn: str) -> Iterator[PgTrickle]:
    """A client that computes in PostgreSQL alone."""
    with PgTrickle(dsn) as plain:
        database = plain.database
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as computing:
        yield computing


def empty(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        install(conn)


def six(dsn: str) -> None:
    """The shop of the examples after a few refreshes: one table live, one gated, one in ERROR, changes pending.

    A file declares all but the live table, whose DAG is gone.
    """
    shop.load(dsn)
    with psycopg.connect(dsn) as conn:
        # A tenth of it, with its items.
        conn.execute("DELETE FROM orders WHERE id > 2000")
    declared = runpy.run_path(str(_EXAMPLE))["shop"].tables
    with client(dsn) as pt:
        pt.install()
        others: dict[str, dict[str, Any]] = {
            "page_views": {"refresh_mode": "IMMEDIATE", "schedule": None},
            "order_totals": {"timezone": "Europe/Oslo", "frozen_before": "orders.id: 0"},
        }
        for table in declared:
            pt.create_stream_table(table.name, table.query, **{**table.options, **others.get(table.name, {})})
        names = [table.name for table in declared]
        for _ in range(3):
            shop.change(dsn)
            pt.refresh(names)
        pt.refresh_stream_table("country_revenue", force_full=True)
        shop.change(dsn)
        pt.refresh(names)
        _truncate_once(dsn)
        pt.refresh(names)
        # Since half a day one table is held back, and the changes of the customers are kept for it.
        pt.gate("best_customers", "the price list is being mended")
        with psycopg.connect(dsn) as conn:
            for _ in range(4):
                conn.execute("UPDATE customers SET name = name || '.'")
        pt.refresh([name for name in names if name != "best_customers"])
        shop.change(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET initiated_by = %s"
            " WHERE pgt_id IN (SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name <> 'page_views')",
            [BY_DAG],
        )
        conn.execute("COMMENT ON TABLE country_report IS 'Revenue and orders of each country, always of one instant.'")
        _wait(conn, "country_report", "12 minutes")
        _wait(conn, "best_customers", "14 hours")
        _own(conn)
        error = "division by zero. Mend the rows, then resume it."
        conn.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET status = 'ERROR', consecutive_errors = 3, last_error = %s"
            " WHERE pgt_name = 'country_orders'",
            [error],
        )
        conn.execute(
            "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, initiated_by, start_time, end_time, status,"
            " duration_ms, error_message) SELECT pgt_id, %s, now(), now(), 'FAILED', 41, %s"
            " FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'country_orders'",
            [BY_DAG, error],
        )
        # A day of samples: one buffer is emptied again and again, the other's reader falls behind.
        conn.execute(
            """
            INSERT INTO pgtrickle.pgt_buffer_samples (at, buffer, rows, bytes)
            SELECT now() - n * interval '20 minutes', c.buffer,
                   CASE s.relname WHEN 'customers' THEN greatest(0, 42 - n) * 190 ELSE (n * 37) % 9 * 5 END,
                   8192 * (71 - n)
            FROM generate_series(1, 69) n, pgtrickle.pgt_change_tracking c
            JOIN pg_class s ON s.oid = c.source_relid AND s.relname IN ('orders', 'customers')
            """
        )
        # So that an explanation has something to recommend.
        conn.execute("DROP INDEX items_order_id_idx")
        conn.execute("ANALYZE")


def _truncate_once(dsn: str) -> None:
    """What makes the readers of the items, and only them, be computed in full."""
    with psycopg.connect(dsn) as conn:
        conn.execute("CREATE TEMP TABLE kept AS SELECT * FROM items")
        conn.execute("TRUNCATE items")
        conn.execute("INSERT INTO items OVERRIDING SYSTEM VALUE SELECT * FROM kept")


def _wait(conn: psycopg.Connection, name: str, long: str) -> None:
    """As if all that was done with the table had been done so much earlier."""
    asked = {"long": long, "name": name}
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = data_timestamp - %(long)s::interval,"
        " last_refresh_at = last_refresh_at - %(long)s::interval WHERE pgt_name = %(name)s",
        asked,
    )
    conn.execute(
        "UPDATE pgtrickle.pgt_refresh_history h SET start_time = start_time - %(long)s::interval,"
        " end_time = end_time - %(long)s::interval, data_timestamp = h.data_timestamp - %(long)s::interval"
        " FROM pgtrickle.pgt_stream_tables st WHERE st.pgt_id = h.pgt_id AND pgt_name = %(name)s",
        asked,
    )


def _own(conn: psycopg.Connection) -> None:
    """The owners, as the plans of their graphs write them: one declares a table no more, of another the DAG is gone."""
    tables = conn.execute("SELECT pgt_id, pgt_schema || '.' || pgt_name FROM pgtrickle.pgt_stream_tables").fetchall()
    ids = {name: pgt_id for pgt_id, name in tables}
    for name, pgt_id in ids.items():
        graph = "visits" if name == "public.page_views" else "shop"
        owners.take(conn, name, pgt_id, owners.Claim(owners.Owner("dags-folder", f"{graph}.py", graph)))
    owners.mark_removed(conn, [ids["public.best_customers"]])


def many(dsn: str) -> None:
    """Five hundred tables in the catalog alone: what the page shows of them is read from there."""
    with psycopg.connect(dsn) as conn:
        install(conn)
        conn.execute(
            """
            INSERT INTO pgtrickle.pgt_stream_tables (pgt_relid, pgt_schema, pgt_name, original_query, defining_query,
                schedule, effective_schedule, status, is_populated, data_timestamp, last_refresh_at, differentiable)
            SELECT 100000 + n, 'public', format('%%s_%%s', (ARRAY['orders', 'items', 'visits', 'stock', 'returns',
                       'prices', 'carts', 'routes'])[1 + n %% 8] || (ARRAY['_by_day', '_totals', '_report',
                       '_last_week'])[1 + n %% 4], lpad(n::text, 3, '0')),
                   'SELECT 1 AS n', 'SELECT 1 AS n', '5m', interval '5 minutes',
                   CASE WHEN n %% 83 = 0 THEN 'ERROR' ELSE 'ACTIVE' END, true,
                   now() - n %% 13 * interval '50 seconds', now() - n %% 13 * interval '50 seconds', true
            FROM generate_series(1, %(many)s) n
            """,
            {"many": MANY},
        )
        conn.execute(
            """
            WITH t AS (SELECT *, pgt_id %% %(layers)s AS layer, pgt_id / 100 AS part
                       FROM pgtrickle.pgt_stream_tables)
            INSERT INTO pgtrickle.pgt_dependencies
                (pgt_id, source_relid, source_type, source_schema, source_name, source_pgt_id, cdc_mode)
            SELECT DISTINCT ON (a.pgt_id, coalesce(b.pgt_relid, 1 + a.pgt_id %% 40))
                   a.pgt_id, coalesce(b.pgt_relid, 1 + a.pgt_id %% 40)::oid,
                   CASE WHEN b.pgt_id IS NULL THEN 'TABLE' ELSE 'STREAM_TABLE' END, 'public',
                   coalesce(b.pgt_name, 'source_' || a.pgt_id %% 40), b.pgt_id, 'TRIGGER'
            FROM t a LEFT JOIN t b ON b.layer = a.layer - 1 AND b.part = a.part
                 AND (b.pgt_id %% 20) / %(layers)s IN ((a.pgt_id %% 20) / %(layers)s, (a.pgt_id %% 7) / 2)
                 AND abs(b.pgt_id - a.pgt_id) < 12
            """,
            {"layers": _LAYERS},
        )
        conn.execute(
            """
            INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, initiated_by, data_timestamp, start_time, end_time,
                action, status, fallback_reason, rows_inserted, source_changes, rows_read, duration_ms)
            SELECT t.pgt_id, 'manual', at, at, at + interval '2 seconds', a.action, 'COMPLETED',
                   CASE a.action WHEN 'FULL' THEN 'change_ratio_exceeded' END, t.pgt_id, 10 * k, 1000,
                   100 * k + t.pgt_id
            FROM pgtrickle.pgt_stream_tables t, generate_series(1, 4) k,
                 LATERAL (SELECT now() - k * interval '5 minutes' AS at) x,
                 LATERAL (SELECT CASE WHEN (t.pgt_id + k) %% 17 = 0 THEN 'FULL' ELSE 'DIFFERENTIAL' END AS action) a
            ORDER BY at
            """.replace("%%", "%").encode()
        )
