"""Copies: with `frozen_breach='ignore'` a stream table reads a copy of each source that `frozen_before` names.

    SELECT day, sum(v) FROM orders GROUP BY day
    →   copy:  SELECT id, day, v FROM orders        its frozen rows stay as they are stored
        kept:  SELECT day, sum(v) FROM copy AS orders GROUP BY day

A copy is a hidden part: it belongs to one stream table, is refreshed in its unit and dropped with it. The query that
is analysed reads copies from the beginning. So whatever is made of it, parts, differences, FULL, `verify`, needs to
know nothing of them. `dvm.sinks.frozen` has the rule by which a copy changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.probe import Probe, fingerprint
from airflow_provider_pgtrickle.engine.catalog.records import IGNORE, Dependency, StreamTable
from airflow_provider_pgtrickle.engine.declare import capturing, frozen, table
from airflow_provider_pgtrickle.engine.declare.definition import Definition, define, survives_parsing
from airflow_provider_pgtrickle.engine.declare.existence import establish
from airflow_provider_pgtrickle.engine.declare.options import Freezing, Options
from airflow_provider_pgtrickle.engine.declare.parts import Owner
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: Why a copy is computed as a whole.
REASON = "frozen_before_altered"
_REFUSE = "let changes of frozen rows be refused instead (frozen_breach 'refuse')."
_BEGIN_ANEW = "alter it with frozen_before 'none' and then as you want it: frozen rows are then taken as they are now."


def ignored(declared: Freezing) -> str | None:
    """The bounds below which changes are ignored; None where they are not."""
    return declared.frozen_before if declared.frozen_breach == IGNORE else None


def over(
    conn: psycopg.Connection,
    owner: Owner,
    whole: Definition,
    declared: Freezing,
    *,
    accepted: Mapping[str, str] | None = None,
    approximate_floats: bool = False,
    is_declared: bool = True,
) -> Definition:
    """The definition over copies, which are created if missing; `whole` itself if nothing is ignored.

    Only who declares it may come to read other tables, and let copies go.
    """
    bounds = ignored(declared)
    if bounds is None:
        return whole
    tables = {s.relid: s for s in whole.probe.sources if s.kind == "TABLE"}
    frozen_rows = frozen.conditions(conn, {relid: _name_of(s) for relid, s in tables.items()}, bounds)
    there = {d.source_relid: part for part, d in _copies(conn, owner.id)} if owner.id is not None else {}
    if not is_declared and (lost := [there[relid] for relid in there if relid not in frozen_rows]):
        raise UsageError(
            f"{lost[0].qualified} keeps frozen rows of a table that its query doesn't mean any more",
            remedy="Take that change back, or alter the query.",
        )
    copies = {
        tables[relid].key: _kept(
            conn, owner, tables[relid], whole.probe.columns_used[relid], condition, there.get(relid)
        )
        for relid, condition in frozen_rows.items()
    }
    text = dvm.instead(whole.probe.text, whole.probe.schema, copies) if survives_parsing(conn, whole.probe) else None
    if text is None:
        raise _unreadable("it reads ONLY a table, a sample of it, or what this version can't take apart")
    try:
        made = define(
            conn,
            text,
            owner.refresh_mode,
            accepted=accepted,
            approximate_floats=approximate_floats,
        )
    except PgTrickleError as error:
        if not error.permanent:
            raise
        raise _unreadable(error.message) from error
    if made.probe.columns != whole.probe.columns:
        raise _unreadable("its columns would have other types; if a column has just got another one, refresh it first")
    probed = replace(made.probe, original=whole.probe.original, foreign=whole.probe.foreign)
    return replace(
        made,
        probe=probed,
        copied=whole.probe,
        # The views are in the text no more.
        dependencies=(*made.dependencies, *(d for d in whole.dependencies if d.source_type == "VIEW")),
        path=whole.path,
        # `*` in the declared text may come to mean other columns.
        fingerprint=fingerprint(conn, probed, whole.probe),
        notices=(*whole.notices, *(_notice(tables[relid]) for relid in frozen_rows if relid not in there)),
    )


def read_by(conn: psycopg.Connection, owner: StreamTable, probed: Probe) -> str | None:
    """The text of a query over the copies that a stream table has; None where it can't read them."""
    tables = {source.relid: source.key for source in probed.sources}
    copies = {
        tables[d.source_relid]: dvm.Copy(part.schema, part.name, frozenset(c.name for c in part.storage))
        for part, d in _copies(conn, owner.id)
        if d.source_relid in tables
    }
    return dvm.instead(probed.text, probed.schema, copies)


def hold(conn: psycopg.Connection, owner: StreamTable) -> None:
    """Let the copies keep what is frozen by the option as it stands."""
    bounds = ignored(owner)
    copies = {d.source_relid: (part, d.qualified) for part, d in _copies(conn, owner.id)} if bounds else {}
    if not bounds or not copies:
        return
    for relid, condition in frozen.conditions(conn, {r: name for r, (_, name) in copies.items()}, bounds).items():
        copy = copies[relid][0]
        if copy.frozen_rows != condition:
            # Rows that are not frozen any more follow the source again.
            again = {"needs_reinit": True, "reinit_reason": REASON} if copy.is_populated else {}
            records.update(conn, copy.id, frozen_rows=condition, **again)


def refuse_other_rows(conn: psycopg.Connection, copy: StreamTable, wanted: Definition) -> None:
    """Raise if what is kept can't become rows of the copy as its source is now."""
    if copy.identity != tuple(wanted.view.identity):
        raise _other(copy, f"its primary key was ({', '.join(copy.identity)}) when they were taken")
    types = {column.name: column.type for column in copy.storage}
    casts = [
        sql.SQL("{}::{}").format(sql.Identifier(column.name), sql.SQL(column.type))
        for column in wanted.columns
        if types.get(column.name, column.type) != column.type
    ]
    if not casts or not table.exists(conn, copy.qualified):
        return
    try:
        with conn.transaction():
            conn.execute(sql.SQL("SELECT count(ROW({})) FROM {}").format(sql.SQL(", ").join(casts), copy.qualified.sql))
    except (psycopg.DataError, psycopg.ProgrammingError) as error:
        raise _other(copy, f"a column has another type: {error.diag.message_primary}") from error


def _other(copy: StreamTable, why: str) -> UsageError:
    return UsageError(
        f"{copy.qualified} keeps frozen rows of a table that is another one now: {why}",
        remedy=f"Take that change back, or {_BEGIN_ANEW}",
    )


def _unreadable(why: str) -> UsageError:
    return UsageError(
        f"frozen_breach 'ignore' lets the query read a copy in a table's place, and it can't: {why}",
        remedy=f"Write it otherwise, or {_REFUSE}",
    )


def _notice(source: Source) -> str:
    return f"{_name_of(source)} is copied, as far as the query reads it: the copy keeps its frozen rows"


def _name_of(source: Source) -> QualifiedName:
    return QualifiedName(source.schema, source.name)


def _copies(conn: psycopg.Connection, owner: int) -> Iterable[tuple[StreamTable, Dependency]]:
    """The copies that belong to a stream table, each with what it copies; after a restore that is another relation."""
    found = [
        (part, d) for part in records.parts(conn, owner) if part.is_copy for d in records.dependencies(conn, part.id)
    ]
    relids = [d.source_relid for _, d in found]
    rows = conn.execute("SELECT oid::bigint FROM pg_catalog.pg_class WHERE oid = ANY(%s::oid[])", (relids,))
    there = {relid for (relid,) in rows}
    return [(part, d) for part, d in found if d.source_relid in there]


def _kept(
    conn: psycopg.Connection,
    owner: Owner,
    source: Source,
    named: tuple[str, ...],
    condition: str,
    there: StreamTable | None,
) -> dvm.Copy:
    """The copy of a table, with the columns that are named in the query, its key and what freezes its rows."""
    if not source.primary_key:
        raise UsageError(
            f"frozen_breach 'ignore' finds the rows of {_name_of(source)} again by its primary key, and it has none",
            remedy=f"Give it one, or {_REFUSE}",
        )
    wanted = {*named, *source.primary_key, *dvm.columns_in(condition)}
    if there is not None:
        held = {column.name for column in there.storage}
        if lacking := sorted(wanted - held):
            raise UsageError(
                f"{there.qualified} keeps frozen rows of {_name_of(source)} as they were, and not what they had in"
                f" {', '.join(lacking)}",
                remedy=f"Leave that out, or {_BEGIN_ANEW}",
            )
        wanted = held
    names = [column.name for column in source.columns if column.name in wanted]
    text = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(map(sql.Identifier, names)), _name_of(source).sql)
    wanted_copy = define(conn, text.as_string(conn), "DIFFERENTIAL", frozen_rows=condition)
    if there is None:
        name = _name(owner, source)
        if table.exists(conn, name):
            raise UsageError(f"There is a relation {name} where a copy is to be", remedy="Rename or drop it.")
        establish(conn, name, wanted_copy, Options(), is_hidden=True, frozen_rows=condition)
        table.keep_private(conn, name)
    else:
        name = there.qualified
        if there.defining_query != wanted_copy.probe.canonical:
            _redefine(conn, there, wanted_copy)
    return dvm.Copy(name.schema, name.name, frozenset(names))


def _redefine(conn: psycopg.Connection, copy: StreamTable, wanted: Definition) -> None:
    """The table has another name, or lost a column that the query doesn't name any more."""
    refuse_other_rows(conn, copy, wanted)
    capturing.start(conn, copy.id, wanted.view)
    records.replace_dependencies(conn, copy.id, wanted.dependencies)
    records.update(conn, copy.id, **wanted.query_columns(), needs_reinit=True, reinit_reason=REASON)


def _name(owner: Owner, source: Source) -> QualifiedName:
    digest = hashlib.sha256(str(_name_of(source)).encode()).hexdigest()[:8]
    return QualifiedName(owner.name.schema, table.fitting(f"{owner.name.name}__copy_{digest}"))
