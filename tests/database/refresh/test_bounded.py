"""What a change is joined with, and the groups that it touches, are looked for from the least frozen column on."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from tests.answers import only
from tests.database.declare.conftest import difference

#: A year of 50,000 orders, in partitions of a month, and what is known of each day.
YEAR = """
    CREATE TABLE orders (id int, region int, amount int, placed date, PRIMARY KEY (id, placed))
      PARTITION BY RANGE (placed);
    CREATE TABLE days (day timestamp, region int, rate int, PRIMARY KEY (day, region)) PARTITION BY RANGE (day);
    SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%3$L) TO (%4$L)', t, n, m, m + '1 month')
      FROM unnest(ARRAY['orders', 'days']) t, generate_series(1, 12) n,
           LATERAL (SELECT timestamp '2024-12-01' + n * interval '1 month') AS x (m);
"""
ROWS = """
    INSERT INTO orders SELECT i, i % 20, i, date '2025-01-01' + i % 365 FROM generate_series(1, 50000) i;
    INSERT INTO days SELECT date '2025-01-01' + i, r, i FROM generate_series(0, 364) i, generate_series(0, 19) r;
    ANALYZE;
"""
QUERIES = {
    "joined": "SELECT o.id, o.amount, d.rate FROM orders o JOIN days d ON d.day = o.placed AND d.region = o.region",
    "grouped": "SELECT placed, string_agg(amount::text, ',' ORDER BY id) AS amounts FROM orders GROUP BY placed",
    "least": "SELECT placed, min(amount) AS least FROM orders GROUP BY placed",
}
#: Of frozen rows none is changed: these are of 2025-12-20 and later.
CHANGE = "UPDATE orders SET amount = amount + 1 WHERE placed >= '2025-12-20'"


@pytest.fixture
def conn(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    *tables, partitions = YEAR.strip().rstrip(";").split(";\n")
    for table in tables:
        conn.execute(table)
    for (statement,) in conn.execute(partitions.encode()).fetchall():
        conn.execute(statement)
    conn.execute(ROWS)
    conn.execute("SET max_parallel_workers_per_gather = 0")
    return conn


def read(conn: psycopg.Connection[Any]) -> tuple[dict[str, int], int]:
    """Rows that the last difference read of each table, and pages in all: it is executed once more.

    Another table has yet to read the changes, so that they are still there.
    """
    action, plan = only(
        conn.execute("SELECT action, plan FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 1")
    )
    assert action == "DIFFERENTIAL"
    statement = plan[plan.index("\nSELECT ") :].split("\n\n")[0]
    ((root,),) = only(conn.execute(b"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + statement.encode()))
    found: dict[str, int] = {}
    nodes = [root["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", [])
        if "Relation Name" in node and node["Actual Loops"]:
            rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            found[node["Relation Name"]] = found.get(node["Relation Name"], 0) + round(rows)
    return found, root["Plan"]["Shared Hit Blocks"] + root["Plan"]["Shared Read Blocks"]


@pytest.mark.parametrize("name", QUERIES)
def test_partitions_before_the_least_change_are_not_read(
    pt: PgTrickle, conn: psycopg.Connection[Any], name: str
) -> None:
    of_source = "days" if name == "joined" else "orders"
    pages, rows, parts = [], [], []
    pt.create_stream_table("later", "SELECT id, amount, placed FROM orders", initialize=True)
    for frozen in ("none", "orders.placed: 2025-12-01"):
        pt.create_stream_table(
            name,
            QUERIES[name],
            refresh_mode="DIFFERENTIAL",
            differential_max_change_ratio=0.0,
            frozen_before=frozen,
            placement="spark",
        )
        conn.execute(CHANGE)
        pt.refresh_stream_table(name)
        assert difference(conn, name, QUERIES[name]) == 0
        found, touched = read(conn)
        of = {table: n for table, n in found.items() if table.startswith(of_source)}
        pages.append(touched)
        rows.append(sum(of.values()))
        parts.append(sorted(of))
        if frozen == "none":
            pt.drop_stream_table(name)
    print(f"{name}: {rows[0]} and {rows[1]} rows, {pages[0]} and {pages[1]} pages")
    assert len(parts[0]) == 12
    assert parts[1] == [f"{of_source}_12"]
    assert rows[1] * 10 < rows[0]
    assert pages[1] < pages[0]


def test_a_change_before_the_bound_is_followed_all_the_same(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """What is declared is never believed: capture may have been told to look away."""
    for name, query in QUERIES.items():
        pt.create_stream_table(
            name,
            query,
            refresh_mode="DIFFERENTIAL",
            differential_max_change_ratio=0.0,
            frozen_before="orders.placed: 1 day",
        )
    for statement in (
        "INSERT INTO orders VALUES (60001, 1, 1, '2025-12-31'), (60002, 1, 1, '2025-03-03')",
        "UPDATE orders SET placed = '2025-02-02' WHERE id = 700",
        "UPDATE orders SET placed = '2025-11-11' WHERE id = 700",
        "DELETE FROM orders WHERE id BETWEEN 300 AND 1100",
    ):
        for name in QUERIES:
            pt.alter_stream_table(name, frozen_before="none")
        conn.execute(statement)
        for name, query in QUERIES.items():
            pt.alter_stream_table(name, frozen_before="orders.placed: 1 day")
            assert pt.refresh_stream_table(name).action == "DIFFERENTIAL"
            assert difference(conn, name, query) == 0
