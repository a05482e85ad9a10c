"""Parts: an inner aggregate that would otherwise be computed anew is kept as a hidden stream table.

    SELECT n, count(*) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS c GROUP BY n
    →   part:  SELECT customer AS k1, count(*) AS a1 FROM orders GROUP BY customer
        kept:  SELECT n, count(*) FROM (SELECT a1 AS n FROM part) AS c GROUP BY n

A part belongs to one stream table. It is named after that table and its own query, refreshed in the table's unit and
dropped with it. Nobody else may read it, because row-level security on the stream table would not apply to it.
`dvm.split` says which aggregates are worth a part. This module checks that PostgreSQL understands both halves as the
whole query, and that the part can be maintained by differences. Otherwise the query stays whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import psycopg

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.fingerprint import fingerprint
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StreamTable
from airflow_provider_pgtrickle.engine.declare import capturing
from airflow_provider_pgtrickle.engine.declare.definition import Definition, define, objection_to
from airflow_provider_pgtrickle.engine.declare.existence import erase, establish
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.declare.table import fitting, keep_private, oid
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings

#: The sinks that a part may have: its delta is added to it, or only its touched groups are computed anew.
_ADDED, _REPLACED = "merge by adding", "replace by key"


@dataclass(frozen=True)
class Owner:
    """The stream table that the parts belong to."""

    name: QualifiedName
    refresh_mode: str
    id: int | None = None
    """None before it exists; `belong` records it afterwards."""


def in_parts(conn: psycopg.Connection, settings: Settings, owner: Owner, whole: Definition) -> Definition:
    """The definition over parts, which are created if missing; `whole` itself if the query has no parts."""
    if not settings.keep_parts or owner.refresh_mode in ("FULL", "IMMEDIATE") or whole.refusal is not None:
        return whole
    try:
        with conn.transaction():
            current = _over_all(conn, owner, whole)
    except _NotSplit:
        return whole
    if current is whole:
        return whole
    return replace(
        current,
        whole=whole.probe,
        path=whole.path,
        # It covers both: `*` in the declared text may come to mean other columns, and parts may be made anew.
        fingerprint=fingerprint(conn, current.probe, whole.probe),
        notices=whole.notices,
    )


def belong(conn: psycopg.Connection, owner: StreamTable) -> None:
    """Record the stream table as the owner of the parts that it reads, which are computed where it is."""
    for pgt_id in records.with_parts(conn, [owner.id]):
        if pgt_id != owner.id:
            shared = {"placement": owner.placement, "unlogged_buffers": owner.unlogged_buffers}
            records.update(conn, pgt_id, part_of=owner.id, **shared)
    if owner.unlogged_buffers:
        capturing.settle(conn, records.with_parts(conn, [owner.id]))


def erase_unread(conn: psycopg.Connection, owner: int) -> None:
    """Drop the parts that their owner doesn't read any more, all of them if it is gone."""
    read = set(records.with_parts(conn, [owner]))
    for part in reversed(records.parts(conn, owner)):
        if part.id not in read:
            erase(conn, part)


def refuse_part(conn: psycopg.Connection, table: StreamTable) -> None:
    """Refuse a part: it is declared, altered and dropped with its owner."""
    if table.is_hidden:
        raise UsageError(f"It is a part of {_owner_of(conn, table)}", remedy="Change or drop that one.")


def refuse_reading(conn: psycopg.Connection, definition: Definition) -> None:
    """Refuse a query that reads a part, which is dropped as soon as its owner doesn't need it."""
    sources = [source.pgt_id for source in definition.probe.sources if source.pgt_id is not None]
    for source in records.by_ids(conn, sources).values():
        if source.is_hidden:
            raise UsageError(
                f"{source.qualified} is a part of {_owner_of(conn, source)}, and for it alone",
                remedy="Declare its query as a stream table of your own, and read that.",
            )


def without_parts(conn: psycopg.Connection, dependencies: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Those dependencies that are not on parts."""
    found = list(dependencies)
    sources = records.by_ids(conn, [d.source_pgt_id for d in found if d.source_pgt_id is not None])
    hidden = {pgt_id for pgt_id, source in sources.items() if source.is_hidden}
    return tuple(d for d in found if d.source_pgt_id not in hidden)


def _owner_of(conn: psycopg.Connection, part: StreamTable) -> str:
    owners = records.by_ids(conn, [part.part_of] if part.part_of is not None else [])
    return next((str(owner.qualified) for owner in owners.values()), "another stream table")


def _splits(definition: Definition) -> Iterable[dvm.Split]:
    return dvm.splits(definition.probe.text, definition.probe.schema)


def _over_all(conn: psycopg.Connection, owner: Owner, whole: Definition) -> Definition:
    """The definition over as many parts as there are. PostgreSQL plans the statements of the last one alone."""
    current = whole
    while True:
        found = next(filter(None, (_over(conn, owner, current, split) for split in _splits(current))), None)
        if found is None:
            break
        current = found
    if current is not whole and objection_to(conn, current.view):
        raise _NotSplit
    return current


def _over(conn: psycopg.Connection, owner: Owner, current: Definition, split: dvm.Split) -> Definition | None:
    """The definition over one more part. If that doesn't work, None, and nothing is changed."""
    try:
        with conn.transaction():
            part = define(conn, split.part, "AUTO")
            if not _is_worth_keeping(part) or (split.is_for_several and part.view.sink != _ADDED):
                raise _NotSplit
            name = _name(owner.name, part)
            _make(conn, name, part, owner.id)
            rest = define(conn, split.outer(name.schema, name.name), owner.refresh_mode, planned=False)
            if rest.refusal is not None or rest.probe.columns != current.probe.columns:
                raise _NotSplit
            return rest
    except _NotSplit:
        return None
    except PgTrickleError as error:
        if not error.permanent:
            raise
        return None


class _NotSplit(Exception):
    """The query can't be split here."""


def _is_worth_keeping(part: Definition) -> bool:
    if part.refusal is not None or not part.view.steady:
        return False
    return part.view.sink == _ADDED or (part.view.sink == _REPLACED and bool(part.view.identity))


def _make(conn: psycopg.Connection, name: QualifiedName, part: Definition, owner: int | None) -> None:
    there = records.find(conn, name)
    if there is not None and not (there.is_hidden and there.part_of in (None, owner)):
        # The relation belongs to an earlier table of the owner's name, or is a user's own.
        raise _NotSplit
    if there is not None and there.relid != oid(conn, name):
        erase(conn, there)  # Its table was dropped, or restored from a dump.
        there = None
    if there is None:
        establish(conn, name, part, Options(), is_hidden=True)
        keep_private(conn, name)
    elif there.defining_query != part.probe.canonical or there.storage != part.storage:
        raise _NotSplit
    elif there.foreign_code != part.probe.foreign_code:
        # The code behind the part is also behind the whole query, and was accepted with that.
        records.update(conn, there.id, foreign_code=part.probe.foreign_code)


def _name(owner: QualifiedName, part: Definition) -> QualifiedName:
    """The part's name depends on its query and columns, so the same part is found again, and another one differs."""
    digest = hashlib.sha256(repr((part.probe.canonical, part.columns)).encode()).hexdigest()[:8]
    return QualifiedName(owner.schema, fitting(f"{owner.name}__part_{digest}"))
