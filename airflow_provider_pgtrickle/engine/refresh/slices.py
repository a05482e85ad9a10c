"""A large table is cut into ranges of its pages, so that several readers share it."""

from __future__ import annotations

import math

from psycopg import sql

from airflow_provider_pgtrickle.engine.settings import Settings


def slice_count(rows: float, settings: Settings) -> int:
    """How many readers share so many rows.

    >>> slice_count(600_000, Settings(read_partition_rows=250_000))
    3
    """
    wanted = math.ceil(max(rows, 0) / max(settings.read_partition_rows, 1))
    return min(wanted, settings.max_read_partitions)


def ctid_slices(schema: str, table: str, relpages: int, rows: float, settings: Settings) -> tuple[str, ...]:
    """WHERE fragments that divide `schema.table` into ranges of `ctid`: each row satisfies exactly one.

    PostgreSQL reads a range by a TID range scan, without an index and without touching the other pages. The first
    range has no lower bound and the last has no upper bound, so rows on pages added since `relpages` was taken are
    not lost. The partitions of a partitioned table have pages of their own, which are cut at the same numbers. The
    result is empty if the table is too small to be worth it.

    >>> ctid_slices("public", "t", 100, 500_000, Settings(read_partition_rows=250_000))
    ('"public"."t"."ctid" < \\'(50,0)\\'::tid', '"public"."t"."ctid" >= \\'(50,0)\\'::tid')
    """
    count = min(slice_count(rows, settings), relpages)
    if count < 2:
        return ()
    ctid = sql.Identifier(schema, table, "ctid")
    # A double-quoted, qualified "ctid" is still the system column.
    edges = [sql.SQL("{}::tid").format(sql.Literal(f"({relpages * n // count},0)")) for n in range(1, count)]
    above = [None, *edges]
    below = [*edges, None]
    return tuple(_range(ctid, low, high).as_string(None) for low, high in zip(above, below, strict=True))


def _range(ctid: sql.Identifier, low: sql.Composable | None, high: sql.Composable | None) -> sql.Composable:
    conditions = []
    if low is not None:
        conditions.append(sql.SQL("{} >= {}").format(ctid, low))
    if high is not None:
        conditions.append(sql.SQL("{} < {}").format(ctid, high))
    return sql.SQL(" AND ").join(conditions)
