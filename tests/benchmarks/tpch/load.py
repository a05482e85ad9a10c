"""Generated rows into PostgreSQL: COPY first, keys and statistics afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql

from tests.benchmarks.tpch import generate

_HERE = Path(__file__).parent
TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")


def load(conn: psycopg.Connection, scale: float, *, seed: int = 1) -> None:
    """Create and fill the eight tables in the connection's current schema."""
    _run(conn, "schema.sql")
    copy(conn, generate.everything(scale, seed))
    _run(conn, "keys.sql")
    for table in TABLES:
        conn.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))


def copy(conn: psycopg.Connection, batches: Iterable[tuple[str, pa.Table]]) -> int:
    """COPY each batch into its table; how many rows that were."""
    written = 0
    with conn.cursor() as cursor:
        for table, batch in batches:
            buffer = BytesIO()
            pa_csv.write_csv(batch, buffer, pa_csv.WriteOptions(include_header=False))
            statement = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(table))
            with cursor.copy(statement) as stream:
                stream.write(buffer.getbuffer())
            written += batch.num_rows
    return written


def _run(conn: psycopg.Connection, name: str) -> None:
    # Several statements in one text: the simple protocol takes them, and nothing in them comes from outside.
    conn.execute((_HERE / name).read_bytes())
