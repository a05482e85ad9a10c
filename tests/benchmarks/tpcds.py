"""TPC-DS: each of the 99 queries as a stream table, against the same query run plainly.

Rows and texts come at run time from the DuckDB extension of the same name; keys and the indexes of foreign keys are as
the benchmark's specification says. The ORDER BY and LIMIT at the end are left out, because a stream table has no order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path

import duckdb
import duckdb_extension_tpcds
import psycopg
import sqlglot
from psycopg import sql
from sqlglot import exp

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.benchmarks import place
from tests.benchmarks.measure import Goal, Measured, facts, refreshed, timed

NUMBERS = tuple(range(1, 100))
SCALE = 0.05
FRACTION = 0.005
#: Seconds after which a plain query is out of time, and not asked of a stream table either.
_PATIENCE = 60.0
_FACTS = {
    "catalog_returns": ("cr_item_sk", "cr_order_number"),
    "catalog_sales": ("cs_item_sk", "cs_order_number"),
    "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
    "store_returns": ("sr_item_sk", "sr_ticket_number"),
    "store_sales": ("ss_item_sk", "ss_ticket_number"),
    "web_returns": ("wr_item_sk", "wr_order_number"),
    "web_sales": ("ws_item_sk", "ws_order_number"),
}
# Of each a column that queries read and compare.
_UPDATED = {
    "catalog_returns": "cr_return_amount = cr_return_amount + 1",
    "catalog_sales": "cs_quantity = cs_quantity + 1, cs_ext_sales_price = cs_ext_sales_price + 1",
    "inventory": "inv_quantity_on_hand = inv_quantity_on_hand + 1",
    "store_returns": "sr_return_amt = sr_return_amt + 1",
    "store_sales": "ss_quantity = ss_quantity + 1, ss_ext_sales_price = ss_ext_sales_price + 1",
    "web_returns": "wr_return_amt = wr_return_amt + 1",
    "web_sales": "ws_quantity = ws_quantity + 1, ws_ext_sales_price = ws_ext_sales_price + 1",
    "customer": "c_birth_year = c_birth_year + 1",
    "customer_address": "ca_zip = reverse(ca_zip)",
    "item": "i_current_price = i_current_price + 0.01",
}
_TYPES = {"BIGINT": "bigint", "INTEGER": "integer", "VARCHAR": "text", "DATE": "date"}


@cache
def texts() -> dict[int, str]:
    """The queries by number."""
    with _generator() as source:
        return {number: _unordered(text) for number, text in source.execute("FROM tpcds_queries()").fetchall()}


def load(conn: psycopg.Connection, scale: float) -> None:
    """Create and fill the 24 tables in the connection's current schema."""
    with _generator() as source, tempfile.TemporaryDirectory() as folder:
        source.execute(f"CALL dsdgen(sf={scale})")
        for (table,) in source.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            columns = [(name, kind) for name, kind, *_ in source.execute(f"DESCRIBE {table}").fetchall()]
            _create(conn, table, columns)
            file = Path(folder) / table
            source.execute(f"COPY {table} TO '{file}' (FORMAT csv, HEADER false, NULLSTR '\\N')")
            with conn.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv, NULL '\\N')") as stream:
                stream.write(file.read_bytes())
            _index(conn, table, [name for name, _ in columns])
    conn.execute("VACUUM ANALYZE")


def change(conn: psycopg.Connection, cycle: int, fraction: float) -> None:
    """Update, delete and insert a share of the rows of the facts; update one of what people change."""
    share = f"(hashint8(%s) & 2147483647) %% 1000000 < {int(fraction * 1_000_000 / 3)}"
    for table, assignments in _UPDATED.items():
        keys = _FACTS.get(table)
        picked = share % f"{keys[-1] if keys else _key(conn, table)} + {cycle}"
        conn.execute(f"UPDATE {table} SET {assignments} WHERE {picked}")
    for table, keys in _FACTS.items():
        conn.execute(f"DELETE FROM {table} WHERE {share % f'{keys[-1]} * 7 + {cycle}'}")
        others = ", ".join(c for c in _columns(conn, table) if c != keys[-1])
        last = f"{keys[-1]} + {10_000_000 * (cycle + 1)}"
        conn.execute(
            f"INSERT INTO {table} ({others}, {keys[-1]}) SELECT {others}, {last} FROM {table}"
            f" WHERE {share % f'{keys[-1]} * 11 + {cycle}'} AND {keys[-1]} < 10000000"
        )


def run(dsn: str, numbers: Iterable[int] = NUMBERS, scale: float = SCALE, cycles: int = 3) -> Iterator[Measured]:
    with (
        place.database(dsn) as url,
        PgTrickle(url, placement="database") as pt,
        psycopg.connect(url, autocommit=True) as conn,
    ):
        pt.install()
        seconds, _ = timed(lambda: load(conn, scale))
        yield Measured("tpcds", "load", seconds, {"scale": scale})
        wanting = []
        for number in numbers:
            name = f"q{number:02}"
            if _plain(conn, number) is None:
                yield Measured("tpcds", name, _PATIENCE, {"how": "plain", "action": "OUT OF TIME"})
                continue
            try:
                seconds, _ = timed(partial(pt.create_stream_table, name, named(conn, texts()[number])))
            except PgTrickleError as error:
                yield Measured("tpcds", name, 0.0, {"how": "create", "action": "REFUSED", "fallback": str(error)})
                continue
            wanting.append((name, number))
            yield Measured("tpcds", name, seconds, {"how": "create"})
        for cycle in range(cycles):
            seconds, _ = timed(partial(change, conn, cycle, FRACTION))
            yield Measured("tpcds", "changes", seconds, {"cycle": cycle})
            for name, number in wanting:
                plain = [took for _ in range(2) if (took := _plain(conn, number)) is not None]
                seconds, done = refreshed(pt, name)
                least = round(min(plain, default=_PATIENCE), 4)
                yield Measured(
                    "tpcds", name, seconds, {"cycle": cycle, "how": "refresh", "plain": least, **facts(done)}
                )


def _plain(conn: psycopg.Connection, number: int) -> float | None:
    """Seconds of the query run plainly; None if it takes longer than anybody waits."""
    try:
        with conn.transaction():
            conn.execute(f"SET LOCAL statement_timeout = '{_PATIENCE:.0f}s'")
            return timed(partial(conn.execute, texts()[number]))[0]
    except psycopg.errors.QueryCanceled:
        return None


def goals(rows: list[Measured]) -> Iterator[Goal]:
    by_name: dict[str, list[Measured]] = {}
    for row in rows:
        if row.facts.get("how") == "refresh" and row.facts["cycle"] > 0:
            by_name.setdefault(row.name, []).append(row)
    faster = [name for name, found in by_name.items() if all(row.seconds <= row.facts["plain"] for row in found)]
    near = [
        name
        for name, found in by_name.items()
        if all(row.seconds <= max(row.facts["plain"] * 1.25, row.facts["plain"] + 0.1) for row in found)
    ]
    able = [
        name
        for name, found in by_name.items()
        if {row.facts["fallback"] for row in found} <= {None, "predicted_cheaper"}
    ]
    yield Goal("TPC-DS queries that run FULL for no other reason than cost", 99, len(able), at_most=False)
    yield Goal("TPC-DS queries faster than the plain query", 90, len(faster), at_most=False)
    yield Goal("TPC-DS queries within 1.25 times the plain query, or 100 ms", 99, len(near), at_most=False)


# -- what differs from DuckDB ------------------------------------------------------------------------


def _generator() -> duckdb.DuckDBPyConnection:
    (extension,) = Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension")
    source = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    source.execute(f"LOAD '{extension}'")
    return source


def _unordered(text: str) -> str:
    query = sqlglot.parse_one(text.rstrip().rstrip(";"), read="postgres")
    assert isinstance(query, exp.Query)
    for clause in ("order", "limit", "offset"):
        query.set(clause, None)
    return query.sql("postgres")


def named(conn: psycopg.Connection, text: str) -> str:
    """The query with a name of its own for each column: some have two of one name, or none."""
    described = conn.execute(f"SELECT * FROM ({text}) AS q LIMIT 0").description or ()
    names = [column.name for column in described]
    if len(set(names)) == len(names) and "?column?" not in names:
        return text
    listed = ", ".join(f"c{number}" for number in range(1, len(names) + 1))
    return f"SELECT * FROM ({text}) AS q({listed})"


def _create(conn: psycopg.Connection, table: str, columns: Iterable[tuple[str, str]]) -> None:
    typed = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_TYPES.get(kind, kind.lower()))) for name, kind in columns
    )
    conn.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(table), typed))


def _index(conn: psycopg.Connection, table: str, columns: list[str]) -> None:
    key = _FACTS.get(table, (columns[0],))
    conn.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(key)})")
    for column in columns:
        if column.endswith("_sk") and column != key[0]:
            conn.execute(f"CREATE INDEX ON {table} ({column})")


def _columns(conn: psycopg.Connection, table: str) -> list[str]:
    rows = conn.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum", [table]
    )
    return [name for (name,) in rows]


def _key(conn: psycopg.Connection, table: str) -> str:
    return _columns(conn, table)[0]
