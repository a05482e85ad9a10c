"""A shop as Airflow DAGs: a chain, a diamond, the best customers, and a log without a key.

Its tables are those of `make demo`: customers, orders, items, visits.
"""

from __future__ import annotations

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph

order_totals = StreamTable(
    "order_totals",
    description="What each order is worth.",
    query="""
        SELECT o.id AS order_id, o.customer_id, o.status, sum(i.quantity * i.price) AS total, count(*) AS positions
        FROM orders o
        JOIN items i ON i.order_id = o.id
        GROUP BY o.id, o.customer_id, o.status
    """,
)

# The diamond: both read order_totals, and country_report reads both. One unit, one instant.
country_revenue = StreamTable(
    "country_revenue",
    query="""
        SELECT c.country, sum(t.total) AS revenue
        FROM order_totals t
        JOIN customers c ON c.id = t.customer_id
        WHERE t.status <> 'cancelled'
        GROUP BY c.country
    """,
)

country_orders = StreamTable(
    "country_orders",
    query="""
        SELECT c.country, count(*) AS orders, count(*) FILTER (WHERE t.status = 'cancelled') AS cancelled
        FROM order_totals t
        JOIN customers c ON c.id = t.customer_id
        GROUP BY c.country
    """,
)

country_report = StreamTable(
    "country_report",
    description="Revenue and orders of each country, always of the same instant.",
    schedule="5m",
    query="""
        SELECT o.country, o.orders, o.cancelled, r.revenue
        FROM country_orders o
        LEFT JOIN country_revenue r USING (country)
    """,
)

best_customers = StreamTable(
    "best_customers",
    schedule="15m",
    query="""
        SELECT c.id, c.name, sum(t.total) AS revenue
        FROM order_totals t
        JOIN customers c ON c.id = t.customer_id
        GROUP BY c.id, c.name
        ORDER BY revenue DESC, c.id
        LIMIT 10
    """,
)

page_views = StreamTable(
    "page_views",
    description="From a log without a key, in which two rows may be the same.",
    schedule="1m",
    query="SELECT page, count(*) AS views, max(visited_at) AS last_visit FROM visits GROUP BY page",
)

shop = StreamTableGraph(
    "shop",
    tables=[order_totals, country_revenue, country_orders, country_report, best_customers, page_views],
    postgres_conn_id="shop_pg",
    spark_conn_id="spark_default",
    tags=["example"],
)
shop.register(globals())
