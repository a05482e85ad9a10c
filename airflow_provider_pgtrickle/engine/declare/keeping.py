"""What a changed query keeps: its content is computed from the stored rows if it follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import psycopg

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog.faults import about
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.declare import columns, copies, parts, table
from airflow_provider_pgtrickle.engine.declare.definition import Definition, analysed, define
from airflow_provider_pgtrickle.engine.declare.retention import Retention
from airflow_provider_pgtrickle.engine.dvm import Anew, Kept
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.settings import Settings

#: Why a table is reinitialized whose query was altered.
REASON = "query_altered"
_IN_PARTS = "it is kept in parts"
_APPROXIMATE = "it has approximate sums of floats"
_CHANGED = "something behind its query has changed as well"


@dataclass(frozen=True)
class Cost:
    """What an altered query will cost, as far as it is known before."""

    kept: str | None
    """What is kept, in words; None if the content is computed anew."""
    why: str | None
    """Why it is computed anew."""
    rows: int
    """The estimated number of rows that are read: stored ones, or those of its sources."""

    def __str__(self) -> str:
        if self.kept is not None:
            read = f"about {self.rows:,} stored rows are read" if self.rows else "no row is read"
            return f"{self.kept}: its content follows from what is stored, and {read}"
        return f"it is computed anew, because {self.why}: about {self.rows:,} rows of its sources are read"


def query_before(conn: psycopg.Connection, before: StreamTable) -> str | None:
    """The canonical text of the query whose content is stored; None if it isn't known to be one query's."""
    if before.needs_reinit:
        return before.kept_query if before.reinit_reason == REASON else None
    is_whole = before.split_query is None and table.exists(conn, before.qualified)
    return before.defining_query if before.is_populated and is_whole else None


def as_before(stored: StreamTable) -> StreamTable | None:
    """The table as its content is, while an altered query waits; None if that isn't known."""
    if stored.kept_query is None or stored.reinit_reason != REASON:
        return None
    return replace(stored, defining_query=stored.kept_query, split_query=None)


def keep(before: StreamTable, after: StreamTable, old: dvm.View, new: dvm.View) -> Kept:
    """How the content of `after` follows from that of `before`; raises `Anew` where it doesn't."""
    if "IMMEDIATE" in (before.refresh_mode, after.refresh_mode) or before.is_live:
        raise Anew("its sources' writers maintain it")
    if before.split_query or after.split_query:
        raise Anew(_IN_PARTS)
    if before.relid != after.relid or before.server_row_ids != after.server_row_ids:
        raise Anew("its table is made anew")
    if old.storage is not None and set(old.storage.names) != {column.name for column in before.storage}:
        raise Anew("it was stored in another way")
    if old.approximate or new.approximate:
        raise Anew(_APPROXIMATE)
    if not all(source.captured for source in old.sources.values()):
        raise Anew("not all that it reads is captured")
    return dvm.kept(old, new)


def cost(conn: psycopg.Connection, settings: Settings, before: StreamTable, query: str) -> Cost:
    """What it will cost to give the table this query."""
    try:
        # Nothing of it is to stay, not even what a copy would be.
        with conn.transaction(force_rollback=True), in_zone(conn, before.timezone):
            with about(before.qualified):
                definition = define(
                    conn,
                    query,
                    before.refresh_mode,
                    own_path(conn),
                    planned=False,
                    retention=Retention.of(before),
                    approximate_floats=before.may_approximate,
                )
                owner = parts.Owner(before.qualified, before.refresh_mode, before.id, before.timezone)
                definition = copies.over(conn, owner, definition, before, approximate_floats=before.may_approximate)
            if parts.may_have(settings, before.refresh_mode, definition):
                raise Anew(_IN_PARTS)
            kept = _kept(conn, before, definition)
    except Anew as anew:
        return Cost(None, str(anew), sum(int(max(s.estimated_rows, 0)) for s in definition.view.sources.values()))
    return Cost(kept.words, None, _estimated(conn, before) if kept.reads_stored else 0)


def follows(conn: psycopg.Connection, before: StreamTable, definition: Definition) -> bool:
    """Whether the content of a new query follows from what is stored."""
    try:
        _kept(conn, before, definition)
    except Anew:
        return False
    return True


def _kept(conn: psycopg.Connection, before: StreamTable, definition: Definition) -> Kept:
    text = query_before(conn, before)
    if text is None:
        raise Anew("its content is not that of one query")
    try:
        _, old = analysed(
            conn,
            text,
            accepted=before.foreign_code,
            planned=False,
            approximate_floats=before.may_approximate,
        )
    except PgTrickleError:
        raise Anew(_CHANGED) from None
    # What is stored was read from PostgreSQL's text of the query, whose own text may differ once more.
    if definition.view.approximate:
        raise Anew(_APPROXIMATE)
    _, new = analysed(conn, definition.probe.text, planned=False)
    change = table.compare(columns.of_relation(conn, before.relid), definition.columns)
    after = replace(
        before,
        split_query=None,
        relid=None if change is table.Change.REBUILD else before.relid,
    )
    return keep(before, after, old, new)


def _estimated(conn: psycopg.Connection, stored: StreamTable) -> int:
    row = conn.execute("SELECT reltuples FROM pg_catalog.pg_class WHERE oid = %s", (stored.relid,)).fetchone()
    return int(max(row[0], 0)) if row else 0
