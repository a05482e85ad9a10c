"""Refreshed when something changed, not by the clock: a watcher asks PostgreSQL, an asset event starts the DAG."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger

open_orders = StreamTable(
    "open_orders",
    schedule="1d",
    query="""
        SELECT c.country, count(*) AS open_orders
        FROM orders o
        JOIN customers c ON c.id = o.customer_id
        WHERE o.status = 'open'
        GROUP BY c.country
    """,
)

orders_changed = Asset(
    "open_orders_changed",
    watchers=[
        AssetWatcher(
            name="open_orders_pending",
            trigger=ChangesPendingTrigger(stream_table="open_orders", postgres_conn_id="shop_pg"),
        )
    ],
)

StreamTableGraph(
    "event_driven",
    tables=[open_orders],
    postgres_conn_id="shop_pg",
    spark_conn_id="spark_default",
    tags=["example"],
    dag_args={"schedule": [orders_changed]},
).register(globals())
