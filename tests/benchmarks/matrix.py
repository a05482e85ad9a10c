"""The matrix: shapes of queries × sizes of tables × shares of changed rows; who wins, and where it turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks.measure import Goal, Measured, facts, median, refreshed, timed
from tests.benchmarks.place import installed

QUERIES = {
    "scan": "SELECT id, customer, amount, label FROM sale",
    "filter": "SELECT id, amount FROM sale WHERE amount > 500 AND label LIKE 'a%'",
    "join": "SELECT s.id, s.amount, c.name FROM sale s JOIN customer c ON c.id = s.customer",
    "aggregate": (
        "SELECT customer, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM sale GROUP BY customer"
    ),
    "join_aggregate": (
        "SELECT c.region, count(*) AS n, sum(s.amount) AS total FROM sale s JOIN customer c ON c.id = s.customer"
        " GROUP BY c.region"
    ),
}
#: A refresh of a few rows takes a tenth of a second, so one alone says little.
_FEW_REPEATS = 5
SHARES = {"100 rows": None, "0.1%": 0.001, "1%": 0.01, "10%": 0.1, "50%": 0.5}


def run(dsn: str, spark: object, sizes: Iterable[int], shares: Iterable[str]) -> Iterator[Measured]:
    for size in sizes:
        with installed(dsn, spark) as (pt, conn):
            fill(conn, size)
            for name, query in QUERIES.items():
                yield from _one(pt, conn, size, name, query, tuple(shares))


def _one(
    pt: PgTrickle, conn: psycopg.Connection, size: int, name: str, query: str, shares: tuple[str, ...]
) -> Iterator[Measured]:
    """All shares of one query: differential, FULL on Spark, and PostgreSQL's own refresh, on the same changes."""
    pt.create_stream_table("st", query, schedule="1h", refresh_mode="AUTO")
    conn.execute(sql.SQL("CREATE MATERIALIZED VIEW mv AS {}").format(sql.SQL(query)))
    for cycle, share in enumerate(shares):
        fraction = SHARES[share]
        changes = 100 if fraction is None else max(int(size * fraction), 1)
        label = {"rows": size, "share": share}
        for repeat in range(_FEW_REPEATS if fraction is None else 1):
            change(conn, size, changes, cycle + len(shares) * repeat)
            seconds, result = refreshed(pt, "st")
            yield Measured("matrix", name, seconds, {**label, "how": "refresh", **facts(result)})
        seconds, result = refreshed(pt, "st", full=True)
        yield Measured("matrix", name, seconds, {**label, "how": "spark full", **facts(result)})
        seconds, _ = timed(lambda: conn.execute("REFRESH MATERIALIZED VIEW mv"))
        yield Measured("matrix", name, seconds, {**label, "how": "matview"})
    pt.drop_stream_table("st")
    conn.execute("DROP MATERIALIZED VIEW mv")


def fill(conn: psycopg.Connection, size: int) -> None:
    customers = max(size // 20, 10)
    conn.execute("CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, region text NOT NULL)")
    conn.execute(
        "CREATE TABLE sale (id int PRIMARY KEY, customer int NOT NULL, amount numeric(10,2) NOT NULL, label text)"
    )
    conn.execute(
        "INSERT INTO customer SELECT i, 'customer ' || i, 'region ' || i %% 50 FROM generate_series(1, %s) AS i",
        (customers,),
    )
    _insert(conn, 1, size, customers)
    conn.execute("CREATE INDEX ON sale (customer)")
    conn.execute("VACUUM ANALYZE customer, sale")


def _insert(conn: psycopg.Connection, first: int, last: int, customers: int) -> None:
    conn.execute(
        "INSERT INTO sale SELECT i, (hashint4(i) & 2147483647) %% %s::int + 1, (hashint4(i + 7) & 65535) / 64.0,"
        " md5(i::text) FROM generate_series(%s::int, %s::int) AS i",
        (customers, first, last),
    )


def change(conn: psycopg.Connection, size: int, changes: int, cycle: int) -> None:
    """A third inserted, a third updated, a third deleted, spread over the table."""
    third = max(changes // 3, 1)
    customers = max(size // 20, 10)
    top = conn.execute("SELECT max(id) FROM sale").fetchone()[0]  # type: ignore[index]
    _insert(conn, top + 1, top + third, customers)
    # Picked by position in the key space: no sort over the table, the measured part must not start with a warm cache.
    step = max(size // third, 2)
    conn.execute(
        "UPDATE sale SET amount = amount + 1 WHERE id IN (SELECT generate_series(%s::int, %s::int, %s::int))",
        (1 + cycle, size, step),
    )
    conn.execute(
        "DELETE FROM sale WHERE id IN (SELECT generate_series(%s::int, %s::int, %s::int))",
        (2 + cycle + step // 2, size, step),
    )


def goals(rows: list[Measured]) -> Iterator[Goal]:
    """Few changes in a big table: far faster than FULL, and no slower than in a small table."""
    few = [row for row in rows if row.facts["share"] == "100 rows"]
    sizes = sorted({row.facts["rows"] for row in few})
    if not few:
        return
    for name in QUERIES:
        by = _medians([row for row in few if row.name == name], "rows", "how")
        largest = sizes[-1]
        yield Goal(
            f"{name}: 100 changes in {largest:,} rows against Spark FULL",
            100,
            by[largest, "spark full"] / by[largest, "refresh"],
            at_most=False,
        )
        yield Goal(
            f"{name}: time for 100 changes, {largest:,} rows against {sizes[0]:,}",
            1.3,
            by[largest, "refresh"] / by[sizes[0], "refresh"],
        )


def break_even(rows: list[Measured]) -> list[dict[str, object]]:
    """The smallest share at which FULL was faster, by query and size."""
    found = []
    for name in QUERIES:
        for size in sorted({row.facts["rows"] for row in rows}):
            lost = None
            for share in SHARES:
                same = [row for row in rows if (row.name, row.facts["rows"], row.facts["share"]) == (name, size, share)]
                by = _medians(same, "how")
                if by and by["spark full",] < by["refresh",]:
                    lost = share
                    break
            found.append({"query": name, "rows": size, "FULL wins from": lost or "never"})
    return found


def _medians(rows: Iterable[Measured], *facts_named: str) -> dict[tuple[object, ...], float]:
    """The median time of rows that agree in these facts."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row.facts[name] for name in facts_named), []).append(row.seconds)
    return {key: median(seconds) for key, seconds in groups.items()}
