"""What happens to a TPC-H database over time: orders come and go, everybody else is corrected.

Each takes the connection, the number of the cycle (which picks other rows each time) and the fraction of rows to touch,
and returns the number of rows touched.
"""

from __future__ import annotations

import math

import numpy as np
import psycopg
from psycopg import sql

from tests.benchmarks.tpch import generate
from tests.benchmarks.tpch.load import copy

_UPDATES = {
    "customer": (
        "c_custkey",
        "c_acctbal = c_acctbal - 1000 + {k} % 3000, c_nationkey = (c_nationkey + {k} % 2) % 25,"
        " c_mktsegment = CASE WHEN {k} % 3 = 0 THEN 'BUILDING' ELSE c_mktsegment END,"
        " c_phone = overlay(c_phone PLACING ((c_nationkey + {k} % 2) % 25 + 10)::text FROM 1 FOR 2)",
    ),
    "part": (
        "p_partkey",
        "p_size = (p_size + {k} % 7) % 50 + 1, p_container = CASE WHEN {k} % 2 = 0 THEN 'MED BOX' ELSE p_container END,"
        " p_brand = CASE WHEN {k} % 2 = 0 THEN 'Brand#23' ELSE p_brand END,"
        " p_type = CASE WHEN {k} % 3 = 0 THEN 'PROMO POLISHED BRASS' ELSE 'ECONOMY ANODIZED STEEL' END,"
        " p_name = CASE WHEN {k} % 4 = 0 THEN 'forest green' ELSE p_name END",
    ),
    "supplier": (
        "s_suppkey",
        "s_acctbal = s_acctbal + 10, s_nationkey = (s_nationkey + 1 + {k} % 3) % 25,"
        " s_comment = CASE WHEN {k} % 3 = 0 THEN 'Customer deep Complaints' ELSE 'none' END",
    ),
    "partsupp": (
        "ps_partkey",
        "ps_availqty = (ps_availqty + {k} * 31) % 9999 + 1, ps_supplycost = ps_supplycost * 0.9",
    ),
}


def change(conn: psycopg.Connection, cycle: int, fraction: float) -> int:
    """Everything at once: rows of both sides of each join change together."""
    return (
        insert_orders(conn, cycle, fraction)
        + delete_orders(conn, cycle, fraction)
        + update_dimensions(conn, cycle, fraction)
    )


def insert_orders(conn: psycopg.Connection, cycle: int, fraction: float) -> int:
    """New orders with their lines, in the gaps of the key space."""
    customers, orders = _count(conn, "customer"), _count(conn, "orders")
    scale = customers / 150_000
    index = np.arange(_share(orders, fraction))
    first = conn.execute("SELECT coalesce(max(o_orderkey), 0) FROM orders").fetchone()[0] // 32 * 32 + 32  # type: ignore[index]
    rng = np.random.default_rng((99, cycle, first))
    return copy(conn, generate.orders(rng, first + index // 8 * 32 + index % 8 + 9, scale))


def delete_orders(conn: psycopg.Connection, cycle: int, fraction: float) -> int:
    """Orders and their lines, gone together."""
    wanted = _share(_count(conn, "orders"), fraction)
    conn.execute(
        "CREATE TEMP TABLE doomed AS SELECT o_orderkey FROM orders ORDER BY hashint8extended(o_orderkey, %s) LIMIT %s",
        (cycle, wanted),
    )
    touched = conn.execute("DELETE FROM lineitem USING doomed WHERE l_orderkey = doomed.o_orderkey").rowcount
    touched += conn.execute("DELETE FROM orders USING doomed WHERE orders.o_orderkey = doomed.o_orderkey").rowcount
    conn.execute("DROP TABLE doomed")
    return touched


def update_dimensions(conn: psycopg.Connection, cycle: int, fraction: float) -> int:
    """Customers, parts, suppliers and partsupps, in columns that queries filter, join and add up."""
    touched = 0
    for table, (key, assignments) in _UPDATES.items():
        wanted = _share(_count(conn, table), fraction)
        picked = sql.SQL(
            "UPDATE {table} SET {assignments} WHERE ctid IN"
            " (SELECT ctid FROM {table} ORDER BY hashint8extended({key}, {cycle}), ctid LIMIT {wanted})"
        ).format(
            table=sql.Identifier(table),
            assignments=sql.SQL(assignments.format(k=f"({key} + {int(cycle)})")),
            key=sql.Identifier(key),
            cycle=sql.Literal(cycle),
            wanted=sql.Literal(wanted),
        )
        touched += conn.execute(picked).rowcount
    return touched


def _count(conn: psycopg.Connection, table: str) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    return conn.execute(query).fetchone()[0]  # type: ignore[index]


def _share(rows: int, fraction: float) -> int:
    return max(math.ceil(rows * fraction), 1)
