"""Parts: what a query can't be kept without computing anew is kept by itself, as hidden stream tables.

    SELECT n, count(*) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS c GROUP BY n
    →   part:  SELECT customer AS k1, count(*) AS a1 FROM orders GROUP BY customer
        kept:  SELECT n, count(*) FROM (SELECT a1 AS n FROM part) AS c GROUP BY n

A part belongs to one stream table, is named after it and its own query, refreshed in its unit and gone with it. Nobody
else may read it: row-level security on the stream table would not hold for it.
`dvm.split` says which aggregates are worth it; here it is seen whether PostgreSQL takes both halves for what the
whole was, and whether the part follows its changes. Where not, the query stays in one piece.
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
from airflow_provider_pgtrickle.engine.declare.definition import Definition, define
from airflow_provider_pgtrickle.engine.declare.existence import erase, establish
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.declare.table import fitting, keep_private, oid
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings

#: How a part may be kept: its change is added to it, or its touched groups alone are computed anew.
_ADDED, _REPLACED = "merge by adding", "replace by key"


@dataclass(frozen=True)
class Owner:
    """Whose parts they are, or will be."""

    name: QualifiedName
    refresh_mode: str
    id: int | None = None
    """None before it is there; `belong` says it then."""


def in_parts(conn: psycopg.Connection, settings: Settings, owner: Owner, whole: Definition) -> Definition:
    """The definition over parts, which are made where they are not there; the same one where there is none to make."""
    if not settings.keep_parts or owner.refresh_mode == "FULL" or whole.refusal is not None:
        return whole
    current = whole
    while True:
        found = next(filter(None, (_over(conn, owner, current, split) for split in _splits(current))), None)
        if found is None:
            break
        current = found
    if current is whole:
        return whole
    return replace(
        current,
        whole=whole.probe,
        path=whole.path,
        # Of both: `*` in what was declared may mean other columns by now, and the parts may be made anew.
        fingerprint=fingerprint(conn, current.probe, whole.probe),
        notices=whole.notices,
    )


def belong(conn: psycopg.Connection, owner: StreamTable) -> None:
    """The parts that a stream table reads are its own."""
    for pgt_id in records.with_parts(conn, [owner.id]):
        if pgt_id != owner.id:
            records.update(conn, pgt_id, part_of=owner.id)


def erase_unread(conn: psycopg.Connection, owner: int) -> None:
    """Drop the parts that a stream table doesn't read, or not any more; all of one that is gone."""
    read = set(records.with_parts(conn, [owner]))
    for part in reversed(records.parts(conn, owner)):
        if part.id not in read:
            erase(conn, part)


def refuse_part(conn: psycopg.Connection, table: StreamTable) -> None:
    """A part is declared, altered and dropped with what it is a part of."""
    if table.is_hidden:
        raise UsageError(f"It is a part of {_owner_of(conn, table)}", remedy="Change or drop that one.")


def refuse_reading(conn: psycopg.Connection, definition: Definition) -> None:
    """A part goes when its owner has no more use for it."""
    sources = [source.pgt_id for source in definition.probe.sources if source.pgt_id is not None]
    for source in records.by_ids(conn, sources).values():
        if source.is_hidden:
            raise UsageError(
                f"{source.qualified} is a part of {_owner_of(conn, source)}, and for it alone",
                remedy="Declare its query as a stream table of your own, and read that.",
            )


def without_parts(conn: psycopg.Connection, dependencies: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """What of these is not a part."""
    found = list(dependencies)
    sources = records.by_ids(conn, [d.source_pgt_id for d in found if d.source_pgt_id is not None])
    hidden = {pgt_id for pgt_id, source in sources.items() if source.is_hidden}
    return tuple(d for d in found if d.source_pgt_id not in hidden)


def _owner_of(conn: psycopg.Connection, part: StreamTable) -> str:
    owners = records.by_ids(conn, [part.part_of] if part.part_of is not None else [])
    return next((str(owner.qualified) for owner in owners.values()), "another stream table")


def _splits(definition: Definition) -> Iterable[dvm.Split]:
    return dvm.splits(definition.probe.text, definition.probe.schema)


def _over(conn: psycopg.Connection, owner: Owner, current: Definition, split: dvm.Split) -> Definition | None:
    """The definition over one more part; None, and nothing done, where that doesn't work."""
    try:
        with conn.transaction():
            part = define(conn, split.part, "AUTO")
            if not _is_worth_keeping(part):
                raise _InOnePiece
            name = _name(owner.name, part)
            _make(conn, name, part, owner.id)
            rest = define(conn, split.outer(name.schema, name.name), owner.refresh_mode)
            if rest.refusal is not None or rest.probe.columns != current.probe.columns:
                raise _InOnePiece
            return rest
    except _InOnePiece:
        return None
    except PgTrickleError as error:
        if not error.permanent:
            raise
        return None


class _InOnePiece(Exception):
    """This split is none."""


def _is_worth_keeping(part: Definition) -> bool:
    if part.refusal is not None or any(volatility != "i" for volatility in part.probe.schema.functions.values()):
        return False
    return part.view.sink == _ADDED or (part.view.sink == _REPLACED and bool(part.view.identity))


def _make(conn: psycopg.Connection, name: QualifiedName, part: Definition, owner: int | None) -> None:
    there = records.find(conn, name)
    if there is not None and not (there.is_hidden and there.part_of in (None, owner)):
        # Some other one had the owner's name before, or has taken the part's.
        raise _InOnePiece
    if there is not None and there.relid != oid(conn, name):
        erase(conn, there)  # Its table was dropped, or came out of a dump.
        there = None
    if there is None:
        establish(conn, name, part, Options(), is_hidden=True)
        keep_private(conn, name)
    elif there.defining_query != part.probe.canonical or there.storage != part.storage:
        raise _InOnePiece
    elif there.foreign_code != part.probe.foreign_code:
        # What is behind the part is behind the whole, of which it was accepted.
        records.update(conn, there.id, foreign_code=part.probe.foreign_code)


def _name(owner: QualifiedName, part: Definition) -> QualifiedName:
    """Named by what it says and holds, so that the same part is found again, and one of other types is another."""
    digest = hashlib.sha256(repr((part.probe.canonical, part.columns)).encode()).hexdigest()[:8]
    return QualifiedName(owner.schema, fitting(f"{owner.name}__part_{digest}"))
