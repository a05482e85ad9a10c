"""An executor computes a table's rows: the Protocol that Spark implements, and its twin without Spark.

PostgreSQL can't know what the terms of a difference have in common, so now and then it expects one row where
thousands come, and loops over them. A difference that takes too long is therefore stopped and computed again with hash
joins only: a hash join costs one reading of its table, however wrong the guess was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.database import PINNED, Database
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.dvm import SparkPlan
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.identity import row_id
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault, NoWorkers, OutOfTime, PgTrickleError
from airflow_provider_pgtrickle.engine.refresh import snapshot
from airflow_provider_pgtrickle.engine.refresh.stage import copy_arrow

Planner = tuple[tuple[str, str], ...]
"""PostgreSQL settings for one statement."""

T = TypeVar("T")
_log = logging.getLogger(__name__)

# A loop over fewer changed rows doesn't take long enough to matter.
_MANY = 2_000
# These limits are above the time that TPC-H's differences need at SF1 with 75,000 changes, except for the one that
# loops.
_LEAST_MS, _ROWS_A_MS = 4_000, 50


#: A content is planned as its query is. There the tables stand in one list, of which the planner tries all orders; as
#: we write it, the planner would keep to our order beyond our sessions' limit.
ANY_ORDER: Planner = (("join_collapse_limit", "64"), ("from_collapse_limit", "64"))
#: From so many joins on that matters: the limit that our sessions have.
MANY_JOINS = int(PINNED["join_collapse_limit"])


def patience_ms(changes: int) -> int | None:
    """How long the first try may take; None for no limit."""
    return _LEAST_MS + changes // _ROWS_A_MS if changes >= _MANY else None


def patiently(limit_ms: int | None, run: Callable[[Planner], T]) -> T:
    """Run with the settings of the first try and, if that exceeds its limit, with those of the second."""
    if limit_ms is None:
        return run(())
    started = perf_counter()
    try:
        return run((("statement_timeout", str(limit_ms)),))
    except (NoWorkers, OutOfTime):
        raise
    except (PgTrickleError, psycopg.Error):
        # The clock tells a timeout, because the server's message is in the server's language.
        seconds = perf_counter() - started
        if seconds * 1000 < limit_ms:
            raise
        _log.warning("The difference was not there after %.0f s; PostgreSQL computes it with hash joins only.", seconds)
    return run((("enable_nestloop", "off"),))


if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 20_000
_SET = "SELECT pg_catalog.set_config(%s, %s, true)"


class NoExecutor(EnvironmentFault):
    """Raised by a caller that gives no executor: the refresh is withdrawn as if nobody had asked for it."""


def more_to_do() -> NoExecutor:
    """What an idle refresh ends with, where a table is not idle."""
    return NoExecutor("There is more to do than to move data timestamps", remedy="Refresh each unit by itself.")


@dataclass(frozen=True)
class Meeting:
    """The statement is a content less the stored rows, which meet where PostgreSQL computes them."""

    prepare: tuple[str, ...]
    """What the session that reads runs before it enters the snapshot."""
    sizes: str
    """What it is asked after the rows: how many the content has, and how many are stored."""


@dataclass(frozen=True)
class Computation:
    """The work for one member, as data."""

    sql: str
    """A PostgreSQL SELECT that yields `__pgt_w`, `__pgt_key` and the storage columns.

    All but the weight are text, except in a computation that the coordinator's session stages itself.
    """
    columns: tuple[str, ...]
    """The storage columns' names, in order."""
    expected_rows: int
    identified: bool = False
    """`__pgt_key` is the row id itself; else it is the text of which the executor makes the row id."""
    large: bool = False
    """The executors write into the stage table instead of sending their rows to the driver."""
    slices: tuple[str, ...] = ()
    """Statements whose bag union is `sql`, one for each parallel read. If there are none, there is one read."""
    parallel: bool = False
    """The session that stages the rows itself computes them apart, so that PostgreSQL may use parallel workers."""
    planner: Planner = ()
    """What PostgreSQL's planner is told for `sql`."""
    patience_ms: int | None = None
    """How long PostgreSQL may take for `sql` before it is run with hash joins only; see `patience_ms`."""
    limit_ms: float | None = None
    """How long it may take in all, if it is a difference; see `cost.limit_ms`."""
    meeting: Meeting | None = None
    """None if the rows are the whole content, or the change."""
    timezone: str | None = None
    """The zone in which its statements are evaluated; None: UTC."""
    spark: SparkPlan | None = None
    """A plan by which Spark computes the same rows from smaller reads, if that pays; an executor may ignore it."""


@dataclass(frozen=True)
class StageTarget:
    """The unlogged table, made already, for a large result: it has `__pgt_w, __pgt_row_id` and the storage columns."""

    schema: str
    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Staged:
    """The result of a computation: its rows are in the driver or in the stage table."""

    rows: int
    arrow: pa.Table | None
    """`__pgt_w` int32, `__pgt_row_id` int64, then each storage column as string; None if the rows are in the table."""
    stage_table: tuple[str, str] | None = None
    rows_read: int = 0
    reads: int = 0
    jobs: int = 0
    identified: bool = True
    """The row ids are there; else they are still to be computed by the server."""
    sizes: tuple[int, int] | None = None
    """Of a computation with a meeting: how many rows the content has, and how many are stored."""
    late: tuple[tuple[str, str], ...] = ()
    """(storage column, PostgreSQL expression over the others): columns still to be computed for the rows that come."""


class Executor(Protocol):
    """An executor computes on an exported snapshot. `stage` is given if, and only if, the computation is large."""

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged: ...


class PostgresExecutor:
    """Runs computations in PostgreSQL, on the same snapshot: the last refresh before writers maintain a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        meeting, sizes = computation.meeting, None
        with self._database.connect(autocommit=True, application_name="pgtrickle reader") as reader:
            for statement in meeting.prepare if meeting is not None else ():
                reader.execute(statement.encode())
            snapshot.join(reader, snapshot_id)
            with in_zone(reader, computation.timezone):
                arrow = read_arrow(reader, computation)
            if meeting is not None:
                sizes = reader.execute(meeting.sizes.encode()).fetchone()
        if stage is None:
            return Staged(arrow.num_rows, arrow, rows_read=arrow.num_rows, reads=1)
        with self._database.connect(application_name="pgtrickle stage") as writer:
            copy_arrow(writer, sql.Identifier(stage.schema, stage.table), arrow)
        return Staged(arrow.num_rows, None, (stage.schema, stage.table), rows_read=arrow.num_rows, reads=1, sizes=sizes)


def read_arrow(conn: psycopg.Connection[tuple[Any, ...]], computation: Computation) -> pa.Table:
    """Run the computation's statement in `conn`'s transaction, and add the row ids."""
    return patiently(
        computation.patience_ms, lambda planner: _read_planned(conn, computation, (*computation.planner, *planner))
    )


def read_rows(conn: psycopg.Connection[tuple[Any, ...]], computation: Computation) -> list[tuple[Any, ...]]:
    """The columns of the statement's few rows, without their weights and row ids."""
    columns = sql.SQL(", ").join(sql.Identifier("c", name) for name in computation.columns)
    return conn.execute(sql.SQL("SELECT {} FROM ({}) AS c").format(columns, sql.SQL(computation.sql))).fetchall()


def _read_planned(conn: psycopg.Connection[tuple[Any, ...]], computation: Computation, planner: Planner) -> pa.Table:
    with planning(conn, planner):
        return _read(conn, computation)


@contextmanager
def planning(conn: psycopg.Connection[tuple[Any, ...]], planner: Planner) -> Iterator[None]:
    """In the block the session has the planner's settings; an error takes back what the block has done."""
    if not planner:
        yield
        return
    with conn.transaction():
        before = [
            conn.execute("SELECT %s, pg_catalog.current_setting(%s)", (name, name)).fetchone() for name, _ in planner
        ]
        for setting in planner:
            conn.execute(_SET, setting)
        yield
        for kept in before:
            conn.execute(_SET, kept)


def _read(conn: psycopg.Connection[tuple[Any, ...]], computation: Computation) -> pa.Table:
    import pyarrow as pa

    columns = sql.SQL(", ").join(map(sql.Identifier, computation.columns))
    statement = sql.SQL('SELECT "__pgt_w"::int, "__pgt_key" {} {} FROM ({}) c').format(
        sql.SQL("," if computation.columns else ""), columns, sql.SQL(computation.sql)
    )
    names = [WEIGHT, ROW_ID, *computation.columns]
    types = [pa.int32(), pa.int64(), *(pa.string() for _ in computation.columns)]
    schema = pa.schema(list(zip(names, types, strict=True)))
    batches = []
    with conn.cursor() as cursor:
        cursor.execute(statement)
        while rows := cursor.fetchmany(_BATCH):
            weights, keys, *values = zip(*rows, strict=True)
            arrays = [weights, keys if computation.identified else [row_id(key) for key in keys], *values]
            batches.append(pa.record_batch([pa.array(a, t) for a, t in zip(arrays, types, strict=True)], schema=schema))
    return pa.Table.from_batches(batches, schema)
