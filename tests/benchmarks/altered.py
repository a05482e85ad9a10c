"""`python -m tests.benchmarks.altered`: a query is altered, and its content is kept, or computed anew as before."""

from __future__ import annotations

import sys
import time

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import place

_TABLES = """
    CREATE TABLE customers (id int PRIMARY KEY, name text, region text, level int);
    CREATE TABLE products (id int PRIMARY KEY, title text, price numeric(10,2));
    CREATE TABLE sales (id bigint PRIMARY KEY, customer int, product int, amount int, at date);
    INSERT INTO customers SELECT i, 'customer ' || i, 'region ' || i % 20, i % 5 FROM generate_series(1, {size} / 20) i;
    INSERT INTO products SELECT i, 'product ' || i, i % 100 + 0.5 FROM generate_series(1, {size} / 50) i;
    INSERT INTO sales SELECT i, i % ({size} / 20) + 1, i % ({size} / 50) + 1, i % 1000, date '2026-01-01' + i % 365
      FROM generate_series(1, {size}) i;
    ANALYZE customers; ANALYZE products; ANALYZE sales;
"""
_JOIN = (
    "SELECT s.id, s.amount, s.at, c.id AS customer, c.name, p.title FROM sales s"
    " JOIN customers c ON c.id = s.customer JOIN products p ON p.id = s.product WHERE s.amount > 10"
)
_SUMS = "SELECT customer, product, sum(amount) AS total, count(*) AS n FROM sales GROUP BY customer, product"
#: What it is called, the query before, the query after.
_CASES = (
    ("a column less", _JOIN, _JOIN.replace(", p.title", "")),
    ("one row in ten goes", _JOIN, f"{_JOIN} AND s.amount < 900"),
    ("a column computed from others", _JOIN, _JOIN.replace("p.title", "p.title, s.amount * 2 AS twice")),
    ("a column of a joined table, by its key", _JOIN, _JOIN.replace("p.title", "p.title, c.region")),
    ("a mean, from a sum and a count", _SUMS, _SUMS.replace("AS n", "AS n, avg(amount) AS mean")),
    ("HAVING, three groups in four go", _SUMS, f"{_SUMS} HAVING sum(amount) > 750"),
)


def main(size: int) -> None:
    with (
        place.server(None) as dsn,
        place.database(dsn) as url,
        psycopg.connect(url, autocommit=True) as conn,
        PgTrickle(url, placement="database", differential_max_change_ratio=0.0) as pt,
    ):
        pt.install()
        conn.execute(_TABLES.format(size=size))
        for what, before, after in _CASES:
            found = [_altered(pt, conn, before, after, anew=anew) for anew in (True, False, True, False)]
            assert all(reason.startswith("query_altered: kept") for reason, _ in found[1::2])
            seconds = [f"{s:.2f}" for _, s in found]
            print(f"{what}: anew {', '.join(seconds[::2])} s, kept {', '.join(seconds[1::2])} s", flush=True)


def _altered(pt: PgTrickle, conn: psycopg.Connection, before: str, after: str, *, anew: bool) -> tuple[str, float]:
    pt.create_stream_table("st", before, schedule="1h")
    conn.execute("UPDATE sales SET amount = amount + 1 WHERE id % 10000 = 7")
    conn.execute("VACUUM ANALYZE st")
    conn.execute("CHECKPOINT")
    pt.create_or_replace_stream_table("st", after, schedule="1h", initialize=False)
    begun = time.perf_counter()
    result = pt.refresh_stream_table("st", force_full=anew)
    seconds = time.perf_counter() - begun
    pt.drop_stream_table("st")
    return str(result.fallback_reason), seconds


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["500_000"])[0]))
