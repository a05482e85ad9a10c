"""What the capture of one table consists of: its relations, the captured columns, how rows are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.identity import untold
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, buffer_column, buffer_name
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName


@dataclass(frozen=True)
class NamedColumn:
    """A column that the capturing function names."""

    name: str
    type_oid: int
    """The column's own type."""
    base_oid: int
    """Of a domain the type that it is of, else the same."""


@dataclass(frozen=True)
class CapturedColumn(NamedColumn):
    buffer_type: str
    """Quoted, without a length; of a domain the base type, whose checks don't refuse the NULL of an absent value.
    """
    collation: str | None
    expression: str | None
    """The expression of a virtual generated column, whose value triggers don't see."""
    reads: tuple[NamedColumn, ...]
    """The columns in that expression, which need not be captured themselves."""

    @property
    def new(self) -> str:
        return buffer_column("new", self.name)

    @property
    def old(self) -> str:
        return buffer_column("old", self.name)


@dataclass(frozen=True)
class Frozen:
    """Rows of the captured table that don't change any more: those whose column is below a bound."""

    column: CapturedColumn
    number: int
    """The column's `attnum`."""
    bound: str
    """SQL of the bound."""


@dataclass(frozen=True)
class Member:
    """The table itself, a partition of it or a table that inherits from it."""

    relid: int
    name: QualifiedName
    gets_row_trigger: bool
    """False for a partition whose row trigger PostgreSQL copies from its partitioned table."""
    routes: bool
    """It is the captured table, and partitioned: it finds a partition for each row inserted."""
    may_have_members: bool
    """False for a partition that is not itself partitioned: it can have neither partitions nor children."""


@dataclass(frozen=True)
class Layout:
    relid: int
    name: QualifiedName
    members: tuple[Member, ...]
    columns: tuple[CapturedColumn, ...]
    key: tuple[str, ...]
    pairing: tuple[str, ...]
    """The key, if old and new rows of one statement can be paired by it: `=` compares it, it isn't deferrable.
    """
    is_live: bool
    """A stream table is maintained from it in the writer's transaction."""
    is_counted: bool
    """The beginnings and ends of its statements are counted, because changes of several sources meet."""
    row_wise: bool
    """Statements may reach the rows through a relation that isn't a member, and then fire no statement trigger here."""
    by_wal: bool
    """Changes are taken from the log; only TRUNCATE fires a trigger."""
    is_append_only: bool = False
    """A reader wants rows to be inserted only."""
    frozen: tuple[Frozen, ...] = ()
    """Readers want these rows to stay as they are."""

    @property
    def refuses_in_partitions(self) -> bool:
        """Whether changes are refused in its partitions, also in those that are still to come."""
        refuses = self.is_append_only or bool(self.frozen)
        return refuses and not self.row_wise and any(member.routes for member in self.members)

    @property
    def named(self) -> tuple[NamedColumn, ...]:
        """The columns that the capturing function names, each once."""
        found = {c.name: c for column in self.columns for c in column.reads}
        return tuple({**found, **{c.name: c for c in self.columns}}.values())

    @property
    def buffer(self) -> QualifiedName:
        return QualifiedName(CHANGES, buffer_name(str(self.relid)))

    @property
    def function(self) -> QualifiedName:
        return QualifiedName(CHANGES, f"capture_{self.relid}")

    @property
    def begin_function(self) -> QualifiedName:
        return QualifiedName(CHANGES, f"begin_{self.relid}")

    @property
    def trigger(self) -> str:
        return f"pgtrickle_capture_{self.relid}"

    @property
    def fingerprint(self) -> str:
        return hashlib.md5(repr(self).encode(), usedforsecurity=False).hexdigest()


_MEMBERS = """
    WITH RECURSIVE tree(oid) AS (
        SELECT %(relid)s::oid
        UNION
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT c.oid::bigint, n.nspname, c.relname, c.oid = %(relid)s OR NOT c.relispartition,
           EXISTS (SELECT FROM pg_catalog.pg_inherits i
                   WHERE i.inhrelid = c.oid AND i.inhparent NOT IN (SELECT oid FROM tree)),
           c.relkind = 'p' AND c.oid = %(relid)s, c.relkind = 'p' OR NOT c.relispartition
    FROM tree
    JOIN pg_catalog.pg_class c ON c.oid = tree.oid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    ORDER BY c.oid
"""

_COLUMNS = """
    SELECT a.attname, a.atttypid::bigint, base.oid::bigint, pg_catalog.format('%%I.%%I', tn.nspname, base.typname),
           CASE WHEN a.attcollation <> base.typcollation
                THEN pg_catalog.format('%%I.%%I', cn.nspname, c.collname) END,
           CASE WHEN a.attgenerated = 'v' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END,
           CASE WHEN a.attgenerated = 'v' THEN ARRAY(
               SELECT p.refobjsubid FROM pg_catalog.pg_depend p
               WHERE p.classid = 'pg_catalog.pg_attrdef'::regclass AND p.objid = d.oid
                 AND p.refclassid = 'pg_catalog.pg_class'::regclass AND p.refobjid = a.attrelid
                 AND p.refobjsubid NOT IN (0, a.attnum)) END
    FROM pg_catalog.pg_attribute a
    CROSS JOIN LATERAL (
        WITH RECURSIVE step(oid) AS (
            SELECT a.atttypid
            UNION ALL
            SELECT t.typbasetype FROM pg_catalog.pg_type t JOIN step ON t.oid = step.oid WHERE t.typtype = 'd'
        )
        SELECT t.* FROM step JOIN pg_catalog.pg_type t ON t.oid = step.oid WHERE t.typtype <> 'd'
    ) AS base
    JOIN pg_catalog.pg_namespace tn ON tn.oid = base.typnamespace
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = c.collnamespace
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %(relid)s AND a.attnum > 0 AND NOT a.attisdropped
      AND (a.attname = ANY(%(names)s) OR a.attnum = ANY(%(numbers)s))
    ORDER BY a.attnum
"""

# A bound is compared with a column of the type that it was declared for, and with no other one.
_FROZEN = """
    SELECT DISTINCT a.attname, f.attnum, f.base_type::bigint, f.bound
    FROM pgtrickle.pgt_frozen f
    JOIN pg_catalog.pg_attribute a ON a.attrelid = f.source_relid AND a.attnum = f.attnum AND NOT a.attisdropped
    WHERE f.source_relid = %s ORDER BY f.attnum, f.bound
"""

# The capturing function compares under `search_path = pg_catalog`, and finds no operator of another schema.
_PAIRS_BY_KEY = """
    SELECT i.indimmediate AND bool_and(o.oprname = '=' AND o.oprnamespace = 'pg_catalog'::regnamespace)
    FROM pg_catalog.pg_index i
    CROSS JOIN LATERAL unnest(i.indclass::oid[]) AS k(opclass)
    JOIN pg_catalog.pg_opclass oc ON oc.oid = k.opclass
    LEFT JOIN pg_catalog.pg_amop m ON m.amopfamily = oc.opcfamily AND m.amopstrategy = 3
        AND m.amoplefttype = oc.opcintype AND m.amoprighttype = oc.opcintype
    LEFT JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr
    WHERE i.indrelid = %s AND i.indisprimary
    GROUP BY i.indexrelid, i.indimmediate
"""


def layout(conn: Connection, source: Source, columns: Iterable[str], reader: int | None = None) -> Layout:
    """How to capture `columns` (and the key) of `source`, as the table stands now. `reader`: one that is to come."""
    fresh = read_sources(conn, [source.relid]).get(source.relid)
    if fresh is None or fresh.kind != "TABLE":
        kind = source.kind if fresh is None else fresh.kind
        raise UsageError(
            f"Changes of {source.schema}.{source.name} can't be captured by triggers ({kind})",
            remedy="Use refresh mode FULL for what reads it.",
        )
    members = conn.execute(_MEMBERS, {"relid": fresh.relid}).fetchall()
    frozen = _frozen(conn, fresh.relid)
    # What freezes rows is captured, so that nobody alters it unnoticed.
    names = list({*columns, *fresh.primary_key, *(f.column.name for f in frozen)})
    captured = captured_columns(conn, fresh.relid, names)
    pairs = conn.execute(_PAIRS_BY_KEY, [fresh.relid]).fetchone() if fresh.primary_key else None
    maintaining = functions_there(conn, [f"immediate_{fresh.relid}", f"begin_{fresh.relid}"])
    is_append_only = _is_append_only(conn, fresh.relid, reader)
    by_wal = not maintaining and not is_append_only and not frozen and is_by_wal(conn, fresh.relid)
    if by_wal:
        by_wal = untold(conn, fresh.relid, [relid for relid, *_ in members], [c.name for c in captured]) is None
    return Layout(
        relid=fresh.relid,
        name=QualifiedName(fresh.schema, fresh.name),
        members=tuple(
            Member(relid, QualifiedName(schema, name), own, routes, may_have_members)
            for relid, schema, name, own, _, routes, may_have_members in members
        ),
        columns=captured,
        key=fresh.primary_key,
        pairing=fresh.primary_key if pairs and pairs[0] else (),
        is_live=f"immediate_{fresh.relid}" in maintaining,
        is_counted=f"begin_{fresh.relid}" in maintaining,
        row_wise=any(outside for *_, outside, _, _ in members),
        by_wal=by_wal,
        is_append_only=is_append_only,
        frozen=frozen,
    )


def _frozen(conn: Connection, relid: int) -> tuple[Frozen, ...]:
    """What readers want to stay as it is. A column that is gone or has another type is theirs to find."""
    found = conn.execute(_FROZEN, [relid]).fetchall()
    columns = {c.name: c for c in captured_columns(conn, relid, {name for name, *_ in found})} if found else {}
    return tuple(
        Frozen(columns[name], number, bound) for name, number, base, bound in found if columns[name].base_oid == base
    )


def _is_append_only(conn: Connection, relid: int, reader: int | None) -> bool:
    """Whether a reader refuses that rows of the table are updated or deleted."""
    row = conn.execute(
        "SELECT coalesce(bool_or(t.append_only AND t.append_only_breach = 'refuse'), false)"
        " FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = ANY(ARRAY("
        "SELECT unnest(c.tracked_by_pgt_ids || %s::bigint)"
        " FROM (SELECT %s::oid) AS s(relid) LEFT JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = s.relid))",
        (reader, relid),
    ).fetchone()
    return row is not None and bool(row[0])


def is_by_wal(conn: Connection, relid: int) -> bool:
    """Whether the catalog says that the table is captured from the log."""
    row = conn.execute(
        "SELECT mode = 'WAL' FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s", [relid]
    ).fetchone()
    return row is not None and bool(row[0])


def functions_there(conn: Connection, names: Iterable[str]) -> set[str]:
    """Those of our functions that are there; by some, writers of a table maintain IMMEDIATE stream tables."""
    found = conn.execute(
        "SELECT proname FROM pg_catalog.pg_proc WHERE proname = ANY(%s) AND pronamespace = to_regnamespace(%s)",
        [list(names), CHANGES],
    )
    return {name for (name,) in found}


def keep_to_owner(conn: Connection, function: sql.Composable) -> None:
    """Let nobody else call a function: who may could attach it to a table of his own, and write what never was.

    Triggers fire all the same.
    """
    conn.execute(sql.SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC").format(function))


def captured_columns(conn: Connection, relid: int, names: Iterable[str]) -> tuple[CapturedColumn, ...]:
    """The named columns of the relation, in its order."""
    columns = []
    for name, own, base, buffer_type, collation, expression, numbers in conn.execute(
        _COLUMNS, {"relid": relid, "names": list(names), "numbers": []}
    ).fetchall():
        found = conn.execute(_COLUMNS, {"relid": relid, "names": [], "numbers": numbers}) if numbers else ()
        reads = tuple(NamedColumn(*read[:3]) for read in found)
        columns.append(CapturedColumn(name, own, base, buffer_type, collation, expression, reads))
    return tuple(columns)


def lock_members(conn: Connection, relation: QualifiedName, mode: str = "SHARE ROW EXCLUSIVE") -> None:
    """Wait for writers of the table and all its members, and keep new ones out until the transaction ends."""
    conn.execute(sql.SQL("LOCK TABLE {} IN {} MODE").format(relation.sql, sql.SQL(mode)))
