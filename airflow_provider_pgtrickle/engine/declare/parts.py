"""Parts: an inner aggregate or recursion that would otherwise be computed anew is kept as a hidden stream table.

    SELECT n, count(*) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS c GROUP BY n
    →   part:  SELECT customer AS k1, count(*) AS a1 FROM orders GROUP BY customer
        kept:  SELECT n, count(*) FROM (SELECT a1 AS n FROM part) AS c GROUP BY n

A part belongs to one stream table. It is named after that table and its own query, refreshed in the table's unit and
dropped with it. Nobody else may read it, because row-level security on the stream table would not apply to it.
`dvm.split` says what may be worth a part. This module checks that PostgreSQL understands both halves as the
whole query, and that the part can be maintained by differences. Otherwise the query stays whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.fingerprint import fingerprint
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StreamTable
from airflow_provider_pgtrickle.engine.declare import capturing
from airflow_provider_pgtrickle.engine.declare.definition import Definition, define, objection_to
from airflow_provider_pgtrickle.engine.declare.existence import erase, establish
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.declare.table import fitting, keep_private, oid
from airflow_provider_pgtrickle.engine.dvm.split import Split, splits
from airflow_provider_pgtrickle.engine.dvm.types import is_its_image
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings

#: The sinks that a part may have: its delta is added to it, only its touched groups are computed anew, or it is a
#: recursion whose lost rows are found and derived again.
_ADDED, _REPLACED, _REDERIVED = "merge by adding", "replace by key", "delete and rederive"
#: With fewer rows a group it takes less time to read the groups than to keep them (measured with 1,000 changed rows).
#: Where there are few groups yet, more of the same may come; but hardly to groups of a single row.
_MANY_GROUPS, _ROWS_OF_MANY, _ROWS_OF_FEW = 1000, 100, 2
#: In so many rows a value has to be, for its group's values to be read in less time than its rows.
_OFTEN = 10


@dataclass(frozen=True)
class Owner:
    """The stream table that the parts belong to."""

    name: QualifiedName
    refresh_mode: str
    id: int | None = None
    """None before it exists; `belong` records it afterwards."""
    timezone: str | None = None
    """The zone of its query, and so of theirs."""
    over_groups: bool | None = None
    """Whether there are parts where the groups would be read otherwise. None: where PostgreSQL expects large ones."""


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
        fingerprint=fingerprint(conn, current.probe, whole.probe, *([whole.copied] if whole.copied else ())),
        copied=whole.copied,
        # Where it reads copies, the views behind it stand in no text any more.
        dependencies=(
            *current.dependencies,
            *(d for d in whole.dependencies if whole.copied is not None and d.source_type == "VIEW"),
        ),
        notices=whole.notices,
    )


def may_have(settings: Settings, refresh_mode: str, whole: Definition, *, over_groups: bool = False) -> bool:
    """Whether the query's form has parts; nothing is made to find it out. `over_groups`: those that depend on its
    groups count, too."""
    is_kept = settings.keep_parts and refresh_mode not in ("FULL", "IMMEDIATE") and whole.refusal is None
    return is_kept and any(over_groups or split.grouped is None for split in _splits(whole))


def belong(conn: psycopg.Connection, owner: StreamTable) -> None:
    """Record the stream table as the owner of the parts that it reads, which are computed where it is.

    What a part reads belongs to the part's owner, too.
    """
    if owner.is_hidden:
        return
    for pgt_id in records.with_parts(conn, [owner.id]):
        if pgt_id != owner.id:
            records.update(conn, pgt_id, part_of=owner.id, **shared_with(owner))
    if owner.unlogged_buffers or owner.refuses_breaches:
        capturing.settle(conn, records.with_parts(conn, [owner.id]))


def shared_with(owner: StreamTable) -> dict[str, Any]:
    """The options of a stream table that its parts have, too."""
    names = ("placement", "unlogged_buffers", "append_only", "append_only_breach")
    return {name: getattr(owner, name) for name in names}


def captured_as(owner: StreamTable) -> tuple[bool, bool]:
    """What its options say of the capture of its sources."""
    return owner.unlogged_buffers, owner.refuses_breaches


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


def _splits(definition: Definition) -> Iterable[Split]:
    if definition.view.sink == _REDERIVED:
        return ()
    return splits(definition.probe.text, definition.probe.schema)


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


def _over(conn: psycopg.Connection, owner: Owner, current: Definition, split: Split) -> Definition | None:
    """The definition over one more part. If that doesn't work, None, and nothing is changed."""
    if split.grouped is not None and owner.over_groups is False:
        return None
    try:
        with conn.transaction():
            # PostgreSQL's guess is asked for first, because reading the parts takes fifty times as long.
            if split.grouped is not None and owner.over_groups is None and not _is_large(conn, split):
                raise _NotSplit
            parts = [define(conn, text, "AUTO") for text in split.parts]
            if not all(map(_is_worth_keeping, parts)) or not _pays(conn, split, parts):
                raise _NotSplit
            names = [_name(owner, part) for part in parts]
            for name, part in zip(names, parts, strict=True):
                _make(conn, name, part, owner)
            text = split.outer(*((name.schema, name.name) for name in names))
            rest = define(conn, text, owner.refresh_mode, planned=False)
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
    return part.view.sink in (_ADDED, _REDERIVED) or (part.view.sink == _REPLACED and bool(part.view.identity))


def _pays(conn: psycopg.Connection, split: Split, parts: Sequence[Definition]) -> bool:
    """Whether what must be merged by adding is, and each value that a part keeps stands for all equal ones."""
    columns = {column.name: column for part in parts for column in part.columns}
    known = {column.name: column for part in parts if part.view.storage for column in part.view.storage.columns}
    for name in split.alike:
        typed = columns[name]
        if not known[name].is_image and (typed.collation is not None or not is_its_image(typed.type)):
            return False
    if split.added is None:
        return True
    kept = next((part for part, text in zip(parts, split.parts, strict=True) if text == split.added), None)
    return (kept or define(conn, split.added, "AUTO", planned=False)).view.sink == _ADDED


def _is_large(conn: psycopg.Connection, split: Split) -> bool:
    """Whether PostgreSQL expects that to read the groups costs more than to keep them, or the values in them."""
    assert split.grouped is not None
    rows, groups = _expected(conn, split.grouped)
    if split.repeated:
        _, values = _expected(conn, split.parts[0])
        return rows >= values * _OFTEN
    return groups <= 1 or rows >= groups * (_ROWS_OF_MANY if groups >= _MANY_GROUPS else _ROWS_OF_FEW)


def _expected(conn: psycopg.Connection, grouped: str) -> tuple[float, float]:
    """How many rows and how many groups of them PostgreSQL expects."""
    try:
        with conn.transaction(force_rollback=True):
            # A worker's part of the rows is not all of them.
            conn.execute("SET LOCAL max_parallel_workers_per_gather = 0")
            row = conn.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(sql.SQL(grouped))).fetchone()
    except (psycopg.DataError, psycopg.NotSupportedError, psycopg.ProgrammingError) as error:
        # What it can't plan is no part either.
        raise _NotSplit from error
    assert row is not None
    node = row[0][0]["Plan"]
    while node["Node Type"] not in ("Aggregate", "Group", "Unique") and node.get("Plans"):
        node = node["Plans"][0]
    return max((below["Plan Rows"] for below in node.get("Plans", ())), default=0), node["Plan Rows"]


def _make(conn: psycopg.Connection, name: QualifiedName, part: Definition, owner: Owner) -> None:
    there = records.find(conn, name)
    if there is not None and not (there.is_hidden and there.part_of in (None, owner.id)):
        # The relation belongs to an earlier table of the owner's name, or is a user's own.
        raise _NotSplit
    if there is not None and there.relid != oid(conn, name):
        erase(conn, there)  # Its table was dropped, or restored from a dump.
        there = None
    if there is None:
        establish(conn, name, part, Options(timezone=owner.timezone), is_hidden=True)
        keep_private(conn, name)
    elif there.defining_query != part.probe.canonical or there.storage != part.storage:
        raise _NotSplit
    elif there.foreign_code != part.probe.foreign_code:
        # The code behind the part is also behind the whole query, and was accepted with that.
        records.update(conn, there.id, foreign_code=part.probe.foreign_code)


def _name(owner: Owner, part: Definition) -> QualifiedName:
    """The part's name depends on its query, columns and zone: the same part is found again, and another one differs."""
    said = (part.probe.canonical, part.columns, *([owner.timezone] if owner.timezone else ()))
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:8]
    return QualifiedName(owner.name.schema, fitting(f"{owner.name.name}__part_{digest}"))
