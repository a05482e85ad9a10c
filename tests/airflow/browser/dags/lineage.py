"""A DAG file: a graph whose sources start it, so that Airflow draws them. Nothing runs it here."""

from __future__ import annotations

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph

totals = StreamTable(
    "lineage_totals",
    query="SELECT o.customer_id, sum(i.price) AS total FROM orders o JOIN items i ON i.order_id = o.id GROUP BY 1",
)
best = StreamTable(
    "lineage_best",
    schedule="5m",
    query="SELECT c.name, t.total FROM lineage_totals t JOIN customers c ON c.id = t.customer_id WHERE t.total > 100",
)
graph = StreamTableGraph("lineage", [totals, best], postgres_conn_id="shop_pg", follows=["orders", "items"])
graph.register(globals())
