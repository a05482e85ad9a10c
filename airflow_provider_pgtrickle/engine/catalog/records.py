"""The catalog's rows as frozen values, and the few statements that read and write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from typing import Any, LiteralString

from psycopg import Connection, errors, sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine.errors import StreamTableExists, UnknownStreamTable, spoken
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: A condition on stream tables; its values are those of `spelled`.
SPELLED = sql.SQL("(pgt_schema, pgt_name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))")

#: A stream table in one of these statuses is refreshed by no schedule until somebody acts.
HALTED_STATUSES = ("SUSPENDED", "ERROR")

IMMEDIATE = "IMMEDIATE"
#: Changes of frozen rows are not followed.
IGNORE = "ignore"
#: Sums over floats that are off by rounding.
APPROXIMATE = "approximate"
_NOT_YET_LIVE = sql.SQL(
    "SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE {} AND refresh_mode = %s AND NOT is_live"
    " AND status = 'ACTIVE' AND NOT is_gated AND NOT needs_reinit AND is_populated AND frontier IS NOT NULL"
).format(SPELLED)


@dataclass(frozen=True)
class StorageColumn:
    name: str
    type: str
    role: str = "visible"
    """`visible` or `hidden`."""


@dataclass(frozen=True)
class StreamTable:
    """A row of `pgt_stream_tables`."""

    id: int
    relid: int | None
    schema: str
    name: str
    original_query: str
    search_path: str | None
    """Along which names in `original_query` are looked up; None if an older version declared the table.
    """
    defining_query: str
    schedule: str | None
    refresh_mode: str
    status: str
    is_populated: bool
    needs_reinit: bool
    reinit_reason: str | None
    data_timestamp: datetime | None
    last_refresh_at: datetime | None
    frontier: dict[str, Any] | None
    consecutive_errors: int
    last_error: str | None
    requested_cdc_mode: str | None
    append_only: bool
    append_only_breach: str
    """What an UPDATE, DELETE or TRUNCATE of a source does: `end` the declaration, or be `refuse`d."""
    append_only_ended: str | None
    """What ended the declaration `append_only`, in words; None while it holds."""
    frozen_before: str | None
    frozen_breach: str
    """What becomes of a change of such a row: it is to be `refuse`d to the writer, or the stream table `ignore`s it."""
    frozen_rows: str | None
    """Of a copy that keeps the frozen rows of a source: SQL of which rows are frozen; None for anything else."""
    diamond_consistency: str
    diamond_schedule_policy: str
    partition_by: str | None
    partition_every: str | None
    keep: str | None
    tier: str
    differential_max_change_ratio: float | None
    verify_every: str | None
    placement: str | None
    timezone: str | None
    """The zone by which its query casts times and reads the clock; None: UTC."""
    unlogged_buffers: bool
    """The change buffers that it reads may be UNLOGGED."""
    float_sums: str
    """`approximate`: sums over floats are kept by adding, if the query's form allows it; otherwise `exact`."""
    unit: str | None
    """The unit by declaration: tables that name the same one are refreshed together."""
    together: tuple[int, ...]
    """The ids of all that is refreshed with it by declaration, its own included; empty if it stands alone."""
    is_gated: bool
    gated_reason: str | None
    is_hidden: bool
    """It is a part of the stream table `part_of`, and users can't declare, alter or drop it."""
    part_of: int | None
    split_query: str | None
    """The canonical text over its parts, where it has any."""
    topk_limit: int | None
    topk_offset: int | None
    topk_order_by: str | None
    storage: tuple[StorageColumn, ...]
    identity: tuple[str, ...]
    keyed: bool
    fingerprint: str | None
    differentiable: bool
    refusal: str | None
    declared_by: str
    foreign_code: dict[str, str] | None
    """Digests by oid of the accepted functions and views of others behind the query; None if none was recorded."""
    is_live: bool
    """Its sources' writers maintain it now; refresh mode IMMEDIATE says that they should."""
    server_row_ids: bool
    """The server computes its row ids."""
    steady: bool
    """Its content depends on its sources alone, and not on the clock, the session or chance."""
    kept_query: str | None
    """While an altered query waits for its first refresh: the canonical text of the query whose content is stored."""
    has_lacked: bool = False
    """Memory was once too short for a way to refresh it. It is told here, so that nobody asks where it wasn't."""

    @property
    def qualified(self) -> QualifiedName:
        return QualifiedName(self.schema, self.name)

    @property
    def key(self) -> str:
        """Its key in other tables' frontiers."""
        return f"pgt_{self.id}"

    @property
    def maintained_query(self) -> str:
        """The query that a refresh computes: the defining one, or the one over its parts that means the same."""
        return self.split_query or self.defining_query

    @property
    def may_approximate(self) -> bool:
        """Whether its sums over floats may differ from PostgreSQL's by rounding."""
        return self.float_sums == APPROXIMATE

    @property
    def approximates(self) -> bool:
        """Whether such sums are kept by adding. What a part has rounded is no value to hold a bound against."""
        return self.may_approximate and self.split_query is None

    @property
    def refuses_breaches(self) -> bool:
        """Whether rows of its sources may be inserted only."""
        return self.append_only and self.append_only_breach == "refuse"

    @property
    def ignores_breaches(self) -> bool:
        """Whether it reads copies of sources, which keep frozen rows."""
        return self.frozen_before is not None and self.frozen_breach == IGNORE

    @property
    def is_copy(self) -> bool:
        """Whether it is such a copy."""
        return self.frozen_rows is not None

    @property
    def is_halted(self) -> bool:
        return self.status in HALTED_STATUSES

    @property
    def identity_columns(self) -> list[tuple[str, str]]:
        """Names and types of the columns that identify a stored row."""
        types = {column.name: column.type for column in self.storage}
        return [(name, types[name]) for name in self.identity]

    @property
    def visible(self) -> tuple[StorageColumn, ...]:
        return tuple(c for c in self.storage if c.role == "visible")


@dataclass(frozen=True)
class Dependency:
    """A row of `pgt_dependencies`: one relation that a stream table reads."""

    pgt_id: int
    source_relid: int
    source_type: str
    source_schema: str
    source_name: str
    source_pgt_id: int | None = None
    columns_used: tuple[str, ...] | None = None
    cdc_mode: str = "NONE"
    fingerprint: str | None = None

    @property
    def key(self) -> str:
        """The source's key in a frontier."""
        return f"pgt_{self.source_pgt_id}" if self.source_pgt_id is not None else str(self.source_relid)

    @property
    def qualified(self) -> QualifiedName:
        return QualifiedName(self.source_schema, self.source_name)


@dataclass(frozen=True)
class RefreshRecord:
    """A row of `pgt_refresh_history`."""

    refresh_id: int
    pgt_id: int
    run_token: str | None
    unit: tuple[str, ...]
    initiated_by: str | None
    data_timestamp: datetime | None
    start_time: datetime
    end_time: datetime | None
    action: str | None
    status: str
    fallback_reason: str | None
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    source_changes: int
    rows_read: int
    reads: int
    spark_jobs: int
    duration_ms: float | None
    phases: dict[str, Any] | None
    plan: str | None
    way: str | None
    candidates: dict[str, float] | None
    actual_ms: float | None
    source_rows: float | None
    given_up_ms: float | None
    given_up_way: str | None
    doubt: float | None
    lacked: dict[str, float] | None
    error_message: str | None


#: Columns of `pgt_stream_tables` that a refresh writes. A role that may only refresh can write no others, because the
#: others become SQL or say which SQL is trusted.
STATE = (
    "status",
    "is_populated",
    "needs_reinit",
    "reinit_reason",
    "data_timestamp",
    "last_refresh_at",
    "frontier",
    "consecutive_errors",
    "last_error",
    "append_only_ended",
    "lease_token",
    "lease_expires",
    "lease_pid",
    "updated_at",
)

#: Attributes whose column carries a prefix.
_PREFIXED = {"id": "pgt_id", "relid": "pgt_relid", "schema": "pgt_schema", "name": "pgt_name"}

_TABLE = sql.Identifier("pgtrickle", "pgt_stream_tables")
_HISTORY = sql.Identifier("pgtrickle", "pgt_refresh_history")
_HAS_LACKED = sql.SQL(
    "EXISTS (SELECT FROM pgtrickle.pgt_refresh_history h WHERE h.pgt_id = pgt_stream_tables.pgt_id"
    " AND h.lacked IS NOT NULL)"
)
_TABLE_COLUMNS = sql.SQL(", ").join(
    sql.SQL("{} AS {}").format(
        _HAS_LACKED if f.name == "has_lacked" else sql.Identifier(_PREFIXED.get(f.name, f.name)),
        sql.Identifier(f.name),
    )
    for f in fields(StreamTable)
)
_HISTORY_COLUMNS = sql.SQL(", ").join(sql.Identifier(f.name) for f in fields(RefreshRecord))
_DEPENDENCY_COLUMNS = sql.SQL(", ").join(sql.Identifier(f.name) for f in fields(Dependency))

_CONNECTED = """
    WHERE pgt_id = ANY(ARRAY(
        WITH RECURSIVE component (pgt_id) AS (
            SELECT unnest(%s::bigint[])
            UNION
            SELECT beside.pgt_id FROM component c CROSS JOIN LATERAL (
                SELECT d.source_pgt_id AS pgt_id FROM pgtrickle.pgt_dependencies d WHERE d.pgt_id = c.pgt_id
                UNION ALL
                SELECT d.pgt_id FROM pgtrickle.pgt_dependencies d WHERE d.source_pgt_id = c.pgt_id
                UNION ALL
                SELECT o.pgt_id FROM pgtrickle.pgt_stream_tables t JOIN pgtrickle.pgt_stream_tables o USING (unit)
                WHERE t.pgt_id = c.pgt_id
            ) AS beside
        )
        SELECT pgt_id FROM component
    ))
    ORDER BY pgt_schema, pgt_name
"""


def get(conn: Connection, name: QualifiedName) -> StreamTable:
    found = _select(conn, "WHERE (pgt_schema, pgt_name) = (%s, %s)", [name.schema, name.name])
    if not found:
        raise UnknownStreamTable(f"There is no stream table {name}", remedy=_meant(conn, name))
    return found[0]


def named(conn: Connection, names: Sequence[QualifiedName]) -> list[StreamTable]:
    """Like `get`, for several names at once and in their order."""
    condition = "WHERE (pgt_schema, pgt_name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
    tables = _select(conn, condition, [[name.schema for name in names], [name.name for name in names]])
    found = {table.qualified: table for table in tables}
    return [found.get(name) or get(conn, name) for name in names]


def ids(conn: Connection, names: Iterable[str]) -> list[int]:
    """The ids of those of the stream tables `schema.name` that there are. A dot may also be part of either word."""
    statement = sql.SQL("SELECT pgt_id FROM {} WHERE {}").format(_TABLE, SPELLED)
    return [pgt_id for (pgt_id,) in conn.execute(statement, spelled(names)).fetchall()]


def not_yet_live(conn: Connection, names: Iterable[str]) -> list[int]:
    """Those of these tables whose writers should maintain them and don't, though they have content."""
    return sorted(pgt_id for (pgt_id,) in conn.execute(_NOT_YET_LIVE, (*spelled(names), IMMEDIATE)))


def spelled(names: Iterable[str]) -> list[list[str]]:
    """Schemas and names for `schema.name`, so that an index finds them. A dot may also be part of either word.

    >>> spelled(["a.b", "c.d.e"])
    [['a', 'c', 'c.d'], ['b', 'd.e', 'e']]
    """
    parted = [(name[:at], name[at + 1 :]) for name in names for at, letter in enumerate(name) if letter == "."]
    return [[schema for schema, _ in parted], [name for _, name in parted]]


def _meant(conn: Connection, name: QualifiedName) -> str:
    """The name that was probably meant, or where all of them are."""
    rows = conn.execute("SELECT pgt_schema, pgt_name FROM pgtrickle.pgt_stream_tables WHERE NOT is_hidden").fetchall()
    close = get_close_matches(str(name), [str(QualifiedName(*row)) for row in rows], n=1, cutoff=0.75)
    listing = spoken(cli="pgtrickle status lists those there are.", python="PgTrickle.status() lists those there are.")
    return f"Did you mean {close[0]}?" if close else listing


def find(conn: Connection, name: QualifiedName) -> StreamTable | None:
    """Like `get`, None where there is none."""
    found = _select(conn, "WHERE (pgt_schema, pgt_name) = (%s, %s)", [name.schema, name.name])
    return found[0] if found else None


def get_all(conn: Connection) -> list[StreamTable]:
    return _select(conn, "ORDER BY pgt_schema, pgt_name", [])


def by_ids(conn: Connection, ids: Iterable[int]) -> dict[int, StreamTable]:
    return {table.id: table for table in _select(conn, "WHERE pgt_id = ANY(%s)", [list(ids)])}


def connected(conn: Connection, ids: Iterable[int]) -> list[StreamTable]:
    """These, and all stream tables and parts that are connected with them: by reading, either way, or by a unit."""
    return _select(conn, _CONNECTED, [list(ids)])


def with_parts(conn: Connection, ids: Iterable[int]) -> list[int]:
    """The ids of these stream tables and of the parts that they are computed from."""
    rows = conn.execute(
        "WITH RECURSIVE unit (pgt_id) AS (SELECT unnest(%s::bigint[]) UNION"
        " SELECT h.pgt_id FROM unit JOIN pgtrickle.pgt_dependencies d USING (pgt_id)"
        " JOIN pgtrickle.pgt_stream_tables h ON h.pgt_id = d.source_pgt_id AND h.is_hidden)"
        " SELECT pgt_id FROM unit ORDER BY 1",
        [list(ids)],
    ).fetchall()
    return [pgt_id for (pgt_id,) in rows]


def parts(conn: Connection, pgt_id: int) -> list[StreamTable]:
    """The parts of a stream table, each after the parts that it reads."""
    return _select(conn, "WHERE part_of = %s ORDER BY pgt_id", [pgt_id])


def insert(conn: Connection, **columns: Any) -> StreamTable:
    """A new row; columns not given take their default."""
    names, values = _assignments(columns)
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING pgt_id").format(
        _TABLE, sql.SQL(", ").join(names), sql.SQL(", ").join(sql.Placeholder() * len(values))
    )
    try:
        row = conn.execute(statement, values).fetchone()
    except errors.UniqueViolation:
        name = f"{columns.get('schema')}.{columns.get('name')}"
        raise StreamTableExists(
            f"There is a stream table {name} already",
            remedy="Choose another name, or change it: "
            + spoken(cli="--or-replace.", python="create_or_replace_stream_table.", dag="replace=True."),
        ) from None
    assert row is not None
    return by_ids(conn, [row[0]])[row[0]]


def update(conn: Connection, pgt_id: int, **columns: Any) -> None:
    names, values = _assignments(columns)
    changes = sql.SQL(", ").join(sql.SQL("{} = %s").format(name) for name in names)
    statement = sql.SQL("UPDATE {} SET {}, updated_at = now() WHERE pgt_id = %s").format(_TABLE, changes)
    if conn.execute(statement, [*values, pgt_id]).rowcount == 0:
        raise UnknownStreamTable(f"There is no stream table with id {pgt_id}", remedy="It was dropped meanwhile.")


def delete(conn: Connection, pgt_id: int) -> None:
    """Forget a stream table and what it reads. Its history stays until it is `refresh_history_days` old."""
    conn.execute("DELETE FROM pgtrickle.pgt_stream_tables WHERE pgt_id = %s", [pgt_id])


def dependencies(conn: Connection, pgt_id: int | None = None) -> list[Dependency]:
    """What one stream table reads, or what all of them do."""
    statement = sql.SQL(
        "SELECT {} FROM pgtrickle.pgt_dependencies"
        " WHERE %s::bigint IS NULL OR pgt_id = %s ORDER BY pgt_id, source_relid"
    ).format(_DEPENDENCY_COLUMNS)
    with conn.cursor(row_factory=dict_row) as cursor:
        return [Dependency(**_tuples(row)) for row in cursor.execute(statement, [pgt_id, pgt_id])]


def replace_dependencies(conn: Connection, pgt_id: int, new: Iterable[Dependency]) -> None:
    conn.execute("DELETE FROM pgtrickle.pgt_dependencies WHERE pgt_id = %s", [pgt_id])
    names = [f.name for f in fields(Dependency)]
    statement = sql.SQL("INSERT INTO pgtrickle.pgt_dependencies ({}) VALUES ({})").format(
        _DEPENDENCY_COLUMNS, sql.SQL(", ").join(sql.Placeholder() * len(names))
    )
    rows = [{name: getattr(dependency, name) for name in names} | {"pgt_id": pgt_id} for dependency in new]
    with conn.cursor() as cursor:
        cursor.executemany(statement, [[_plain(value) for value in row.values()] for row in rows])


def history(conn: Connection, pgt_id: int, n: int = 20) -> list[RefreshRecord]:
    """The last `n` refreshes, newest first."""
    statement = sql.SQL("SELECT {} FROM {} WHERE pgt_id = %s ORDER BY refresh_id DESC LIMIT %s")
    return _records(conn, statement.format(_HISTORY_COLUMNS, _HISTORY), [pgt_id, n])


def history_of_run(conn: Connection, run_token: str) -> list[RefreshRecord]:
    """The refreshes of one run, in order."""
    statement = sql.SQL("SELECT {} FROM {} WHERE run_token = %s ORDER BY refresh_id")
    return _records(conn, statement.format(_HISTORY_COLUMNS, _HISTORY), [run_token])


def insert_history(conn: Connection, **columns: Any) -> int:
    """A new row of the history; its `refresh_id`."""
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING refresh_id").format(
        _HISTORY,
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(sql.Placeholder() * len(columns)),
    )
    row = conn.execute(statement, [_plain(value) for value in columns.values()]).fetchone()
    assert row is not None
    return int(row[0])


def update_history(conn: Connection, refresh_id: int, **columns: Any) -> None:
    changes = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns)
    statement = sql.SQL("UPDATE {} SET {} WHERE refresh_id = %s").format(_HISTORY, changes)
    conn.execute(statement, [*(_plain(value) for value in columns.values()), refresh_id])


def _select(conn: Connection, condition: LiteralString, values: list[Any]) -> list[StreamTable]:
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_selection(condition), values).fetchall()
    return [
        StreamTable(**_tuples(row) | {"storage": tuple(StorageColumn(**column) for column in row["storage"])})
        for row in rows
    ]


@cache
def _selection(condition: LiteralString) -> bytes:
    """The statement that reads stream tables. To write it anew for each of three readings took long in a refresh."""
    return sql.SQL("SELECT {} FROM {} {}").format(_TABLE_COLUMNS, _TABLE, sql.SQL(condition)).as_bytes(None)


def _records(conn: Connection, statement: sql.Composed, values: list[Any]) -> list[RefreshRecord]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return [RefreshRecord(**_tuples(row)) for row in cursor.execute(statement, values)]


def _assignments(columns: dict[str, Any]) -> tuple[list[sql.Identifier], list[Any]]:
    names = [sql.Identifier(_PREFIXED.get(name, name)) for name in columns]
    return names, [_stored(value) if name == "storage" else _plain(value) for name, value in columns.items()]


def _stored(columns: Iterable[StorageColumn]) -> Jsonb:
    return Jsonb([{"name": c.name, "type": c.type, "role": c.role} for c in columns])


def _plain(value: Any) -> Any:
    """A value as psycopg sends it."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return Jsonb(value)
    return value


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
