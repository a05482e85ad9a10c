"""ALTER: options and status at once; a new query as a definition that the next refresh carries out.

A new query is written to the catalog with its capture, and the table keeps its old rows and columns until
the refresh that follows reshapes it and fills it in one transaction (`storage.rebuild`). So readers see
the old content or the new, and a process that is killed in between leaves a stream table that its next
refresh completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import psycopg

from airflow_provider_pgtrickle.engine.capture import mode as capture_mode
from airflow_provider_pgtrickle.engine.catalog import alerts, records, zone
from airflow_provider_pgtrickle.engine.catalog.database import scalar
from airflow_provider_pgtrickle.engine.catalog.faults import about
from airflow_provider_pgtrickle.engine.catalog.locks import lock_declarations, lock_rows
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StreamTable
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path
from airflow_provider_pgtrickle.engine.declare import (
    capturing,
    columns,
    copies,
    dependencies,
    frozen,
    keeping,
    partitions,
    parts,
    table,
)
from airflow_provider_pgtrickle.engine.declare.definition import Definition, define, explanation, float_notice
from airflow_provider_pgtrickle.engine.declare.options import (
    Options,
    check,
    refuse_by_wal,
    refuse_frozen_by_wal,
    refuse_ignored,
    refuse_partitions,
    refuse_schedule,
    refuse_unchecked,
    refuse_unit,
)
from airflow_provider_pgtrickle.engine.declare.retention import Retention
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings


@dataclass(frozen=True)
class Altered:
    """The stream table after the change, and how to take the change back."""

    stream_table: StreamTable
    notices: tuple[str, ...]
    before: StreamTable
    dependencies_before: tuple[Dependency, ...]
    needs_refresh: bool
    """Its query changed, and a refresh has to follow now: the table is active and was populated before."""


def alter(conn: psycopg.Connection, settings: Settings, name: QualifiedName, changes: Mapping[str, Any]) -> Altered:
    """Apply the changes, all of them or none."""
    with about(name):
        lock_declarations(conn)
        lock_rows(conn, [records.get(conn, name).id])
        before = records.get(conn, name)
        parts.refuse_part(conn, before)
        read_before = tuple(records.dependencies(conn, before.id))
        beside = [st.id for st in records.connected(conn, [before.id])]
        wanted = dict(changes)
        query, status = wanted.pop("query", None), wanted.pop("status", None)
        path: str | None = own_path(conn)
        if wanted.pop("accept", False) and query is None:
            # The same query is declared once more.
            query, path = before.original_query, before.search_path or path
            status = status or ("ACTIVE" if before.status == "ERROR" else None)
        if "partition_by" in wanted:
            raise UsageError("partition_by can't be altered", remedy="Drop the stream table and create it again.")
        update = check(settings, wanted)
        partitioned = replace(before, **{n: update[n] for n in ("partition_every", "keep") if n in update})
        retention = Retention.of(partitioned)
        timezone = update.get("timezone", before.timezone)
        if timezone != before.timezone:
            zone.require(conn, timezone)
        float_sums = update.get("float_sums", before.float_sums)
        declared = replace(before, **{n: update[n] for n in ("frozen_before", "frozen_breach") if n in update})
        meant = (Retention.of(before), before.timezone, before.float_sums, copies.ignored(before))
        is_otherwise = (retention, timezone, float_sums, copies.ignored(declared)) != meant
        if query is None and is_otherwise:
            # The same query means other rows, or other hidden columns.
            query, path = before.original_query, before.search_path or path
        if "cdc_mode" in update:
            update["requested_cdc_mode"] = update.pop("cdc_mode")
        mode = update.get("refresh_mode", before.refresh_mode)
        refuse_by_wal(mode, update.get("requested_cdc_mode", before.requested_cdc_mode))
        refuse_frozen_by_wal(declared, update.get("requested_cdc_mode", before.requested_cdc_mode))
        refuse_ignored(mode, declared)
        refuse_unit(mode, update.get("unit", before.unit))
        refuse_partitions(mode, before.partition_by, partitioned.partition_every, partitioned.keep)
        partitions.refuse(partitioned, columns.of_relation(conn, before.relid))
        notices: tuple[str, ...] = ()
        leaving: set[int] = set()
        if query is not None:
            is_approximate = float_sums == records.APPROXIMATE
            with zone.in_zone(conn, timezone):
                definition = define(conn, query, mode, path, retention=retention, approximate_floats=is_approximate)
                partitions.refuse(partitioned, definition.columns)
                parts.refuse_reading(conn, definition)
                owner = parts.Owner(name, mode, before.id, timezone)
                definition = copies.over(conn, owner, definition, declared, approximate_floats=is_approximate)
                # A content that follows from what is stored stays in one piece, as it is.
                may_follow = timezone == before.timezone
                may_follow = may_follow and parts.may_have(settings, mode, definition, over_groups=True)
                over_groups = False if may_follow and keeping.follows(conn, before, definition) else None
                definition = parts.in_parts(conn, settings, replace(owner, over_groups=over_groups), definition)
                notices = definition.notices + (float_notice(definition.view) if is_approximate else ())
                update |= _redefine(conn, before, definition)
            leaving = {d.source_relid for d in read_before} - {d.source_relid for d in definition.dependencies}
            if timezone != before.timezone:
                update["kept_query"] = None
            if before.status == "ERROR" and status is None:
                # A table in ERROR waits for another definition, and this is one.
                update |= _status(conn, before, "ACTIVE")
            notices += _rebuild_notice(conn, before, definition)
        elif mode != before.refresh_mode:
            with zone.in_zone(conn, before.timezone):
                notices = define(conn, before.defining_query, mode, accepted=before.foreign_code).notices
        if mode == "IMMEDIATE" and not before.server_row_ids:
            # Whatever refreshes it next replaces the row ids, and who computed with the old ones can't commit.
            update |= {"server_row_ids": True, "frontier": None, "lease_token": None}  # nosec B105: a column's name
        if mode == "IMMEDIATE":
            refuse_schedule(mode, update.get("schedule"))
            update["schedule"] = None
        refuse_unchecked(
            mode,
            update.get("append_only", before.append_only),
            update.get("append_only_breach", before.append_only_breach),
        )
        if "append_only" in update:
            # Whoever says it again means from now on.
            update["append_only_ended"] = None
        if status is not None:
            update |= _status(conn, before, status)
        if update:
            records.update(conn, before.id, **update)
        dependencies.settle_schedules(conn, settings, beside)
        after = records.get(conn, name)
        if parts.shared_with(after) != parts.shared_with(before):
            parts.belong(conn, after)
        if parts.captured_as(after) != parts.captured_as(before):
            capturing.settle(conn, records.with_parts(conn, [after.id]))
        if query is not None or "frozen_before" in update:
            frozen.hold(conn, after, leaving)
            copies.hold(conn, after)
        if query is not None or {"requested_cdc_mode", "refresh_mode"} & set(update):
            notices += capture_mode.examine(conn, settings, after)
        is_new = query is not None or after.server_row_ids != before.server_row_ids
        due = is_new and before.is_populated and after.status == "ACTIVE"
        return Altered(after, notices, before, read_before, due)


def revert(conn: psycopg.Connection, altered: Altered) -> None:
    """Take an altered query back, unless a refresh has carried it out meanwhile."""
    lock_declarations(conn)
    now = records.get(conn, altered.before.qualified)
    if not now.needs_reinit or now.defining_query != altered.stream_table.defining_query:
        return
    added = {d.source_relid for d in records.dependencies(conn, now.id)}
    added -= {d.source_relid for d in altered.dependencies_before}
    released = [d for d in records.dependencies(conn, now.id) if d.source_relid in added]
    # `together` is settled by what is declared, and the last one is told by the history, and no column.
    others = {"id", "relid", "schema", "name", "frontier", "data_timestamp", "last_refresh_at", "is_populated"}
    others |= {"together", "has_lacked"}
    names = [f.name for f in fields(StreamTable) if f.name not in others]
    records.update(conn, now.id, **{name: getattr(altered.before, name) for name in names})
    records.replace_dependencies(conn, now.id, altered.dependencies_before)
    capturing.stop(conn, now.id, released)
    parts.erase_unread(conn, now.id)
    frozen.hold(conn, altered.before)
    copies.hold(conn, altered.before)


def _redefine(conn: psycopg.Connection, before: StreamTable, definition: Definition) -> dict[str, Any]:
    """Start the capture for the new query. That for the old one ends when the new content is there."""
    dependencies.refuse_circle(conn, before, definition.dependencies)
    capturing.start(conn, before.id, definition.view)
    kept = [
        d
        # Old parts are no longer refreshed, but kept until then in case the change is taken back.
        for d in parts.without_parts(conn, records.dependencies(conn, before.id))
        if d.source_relid not in {new.source_relid for new in definition.dependencies}
    ]
    records.replace_dependencies(conn, before.id, (*definition.dependencies, *kept))
    parts.belong(conn, before)
    return {
        **definition.query_columns(),
        **explanation(conn, definition.view),
        "declared_by": scalar(conn, "SELECT current_user::pg_catalog.text"),
        # A refresh that still computes the old query must not commit it as the new one.
        "lease_token": None,  # nosec B105: a column's name
        "needs_reinit": True,
        "reinit_reason": keeping.REASON,
        "kept_query": keeping.query_before(conn, before),
    }


def _rebuild_notice(conn: psycopg.Connection, before: StreamTable, definition: Definition) -> tuple[str, ...]:
    current = columns.of_relation(conn, before.relid)
    if not current or table.compare(current, definition.columns) is not table.Change.REBUILD:
        return ()
    return (
        f"{before.qualified} is dropped and made again because the type of a column changes: "
        "its oid changes, and indexes and policies of your own on it go",
    )


def _status(conn: psycopg.Connection, before: StreamTable, wanted: str) -> dict[str, Any]:
    status = wanted.strip().upper() if isinstance(wanted, str) else wanted
    if status == "SUSPENDED":
        return {"status": "SUSPENDED"}
    if status != "ACTIVE":
        raise UsageError(f"status can't be {wanted!r}", remedy="Use ACTIVE to resume or SUSPENDED to suspend.")
    if before.is_halted:
        alerts.send(conn, alerts.Event.RESUMED, str(before.qualified), was=before.status)
    return {
        "status": "ACTIVE" if before.is_populated else "INITIALIZING",
        "consecutive_errors": 0,
        "last_error": None,
    }


def difference(conn: psycopg.Connection, there: StreamTable, query: str, options: Options) -> dict[str, Any]:
    """The changes that `alter` has to make; empty when the declaration says what is there.

    Queries are compared as PostgreSQL understands them, so white space, comments and the spelling of
    names make no difference, and a `*` that means other columns by now does.
    """
    with about(there.qualified):
        stored = {
            name: there.requested_cdc_mode if name == "cdc_mode" else getattr(there, name) for name in asdict(options)
        }
        changes = {name: value for name, value in asdict(options).items() if value != stored[name]}
        if "partition_by" in changes:
            raise UsageError("partition_by can't be altered", remedy="Drop the stream table and create it again.")
        if "timezone" in changes:
            zone.require(conn, options.timezone)
        with zone.in_zone(conn, options.timezone):
            # Where changes are ignored otherwise, the query is declared anew in any case.
            ignored = copies.ignored(options)
            if ignored == copies.ignored(there) and _canonical(conn, query, options, there) != there.defining_query:
                changes["query"] = query
        return changes


def _canonical(conn: psycopg.Connection, query: str, options: Options, there: StreamTable) -> str:
    """PostgreSQL's text of what the declaration says."""
    retention, probed = Retention.of(options), probe(conn, query, own_path(conn))
    if retention is not None:
        probed = probe(conn, retention.applied(conn, probed))
    text = copies.read_by(conn, there, probed) if there.ignores_breaches else None
    return probed.canonical if text is None else probe(conn, text).canonical
