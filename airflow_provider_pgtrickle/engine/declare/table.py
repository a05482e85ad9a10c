"""The table behind a stream table: made, reshaped and dropped by DDL inside the caller's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.guard import guard, let_through
from airflow_provider_pgtrickle.engine.catalog.database import scalar
from airflow_provider_pgtrickle.engine.declare import columns, identity_index, lookup_index, row_id_index
from airflow_provider_pgtrickle.engine.declare.columns import Column
from airflow_provider_pgtrickle.engine.declare.options import partition_key
from airflow_provider_pgtrickle.engine.declare.retention import Declared
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.errors import UsageError, spoken
from airflow_provider_pgtrickle.engine.names import QualifiedName

HASH_PARTITIONS = 4
#: With these settings PostgreSQL's notices name everything that a DROP takes along, with its schema.
_FULL_NAMES = (("search_path", "pg_catalog"), ("client_min_messages", "notice"))
DEFAULT_PARTITION = (
    "Rows that no other partition takes. PostgreSQL adds a partition for rows that are here only once they have left:"
    " pgtrickle.add_partition(stream table, new partition, bounds) moves them."
)


#: The files `c` of a table, itself or its partitions, that a crash of the server would empty silently.
# One lookup for each file: with OR, all of pg_class would be read.
UNLOGGED = sql.SQL(
    "(SELECT {relid}::oid UNION SELECT p.relid FROM pg_catalog.pg_partition_tree({relid}) AS p) AS m (relid)"
    " CROSS JOIN LATERAL (SELECT * FROM pg_catalog.pg_class f WHERE f.oid = m.relid OFFSET 0) AS c"
    " WHERE c.relpersistence = 'u' AND c.relkind = 'r'"
)


class Change(Enum):
    """What a new definition does to the existing table."""

    SAME = "same"
    COMPATIBLE = "compatible"
    """Columns come or go; the table, its grants, indexes and oid stay."""
    REBUILD = "rebuild"
    """A column changes its type: the table is dropped and made again."""


@dataclass(frozen=True)
class Reshaped:
    """The table after a change."""

    change: Change
    relid: int
    lost: tuple[str, ...] = ()
    """Indexes and policies of the user's own that a rebuild could not carry over."""


def create(conn: psycopg.Connection, name: QualifiedName, wanted: tuple[Column, ...], declared: Declared) -> int:
    """Create the table with the row id, its index and the guards; the table's oid."""
    partition_by = declared.partition_by
    body = sql.SQL(", ").join(
        [sql.SQL("{} bigint NOT NULL").format(sql.Identifier(ROW_ID)), *(column.ddl for column in wanted)]
    )
    statement = sql.SQL("CREATE TABLE {} ({})").format(name.sql, body)
    if partition_by:
        statement += _partition_clause(partition_by, wanted)
    conn.execute(statement)
    if partition_by and declared.partition_every is None:
        _create_partitions(conn, name, partition_by)
    row_id_index.create(conn, name)
    relid = scalar(conn, "SELECT %s::pg_catalog.regclass::oid", (name.quoted,))
    guard(conn, relid)
    return relid


def drop(conn: psycopg.Connection, name: QualifiedName, *, cascade: bool = False) -> tuple[str, ...]:
    """Drop the table if it is still there. Dependents prevent that; with `cascade` they go too, and are named."""
    dependents = () if cascade else views_on(conn, name)
    if dependents:
        raise _depended_on(name, f"{', '.join(dependents)} reads it")
    told: list[str] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        lines = notice.message_detail or notice.message_primary or ""
        told.extend(
            line.partition("drop cascades to ")[2] for line in lines.splitlines() if "drop cascades to " in line
        )

    conn.add_notice_handler(hear)
    try:
        with conn.transaction():
            before = [(setting, scalar(conn, "SELECT current_setting(%s)", (setting,))) for setting, _ in _FULL_NAMES]
            _set_locally(conn, _FULL_NAMES)
            conn.execute(sql.SQL("DROP TABLE IF EXISTS {}" + (" CASCADE" if cascade else "")).format(name.sql))
            _set_locally(conn, before)
    except psycopg.errors.DependentObjectsStillExist as error:
        raise _depended_on(name, (error.diag.message_detail or "").replace("\n", ", ")) from error
    finally:
        conn.remove_notice_handler(hear)
    return tuple(told)


def _set_locally(conn: psycopg.Connection, settings: Iterable[tuple[str, str]]) -> None:
    for setting in settings:
        conn.execute("SELECT pg_catalog.set_config(%s, %s, true)", setting)


def _depended_on(name: QualifiedName, why: str) -> UsageError:
    return UsageError(
        f"The table can't be dropped because {why}",
        stream_table=str(name),
        remedy="Drop that first, or let it go too: "
        + spoken(cli="--cascade.", python="cascade=True.", dag="cascade=True."),
    )


def keep_private(conn: psycopg.Connection, name: QualifiedName) -> None:
    """Take away the rights that default privileges gave to others."""
    _, grants = _access(conn, oid(conn, name))
    for grantee in {grantee for grantee, _, _ in grants}:
        conn.execute(
            sql.SQL("REVOKE ALL ON {} FROM {}").format(
                name.sql, sql.Identifier(grantee) if grantee else sql.SQL("PUBLIC")
            )
        )


def empty(conn: psycopg.Connection, name: QualifiedName) -> None:
    """Delete every row. Unlike TRUNCATE this leaves them visible to older snapshots."""
    let_through(conn)
    conn.execute(sql.SQL("DELETE FROM {}").format(name.sql))


def exists(conn: psycopg.Connection, name: QualifiedName) -> bool:
    """Whether any relation has that name."""
    return oid(conn, name) is not None


def existing(conn: psycopg.Connection, names: Iterable[QualifiedName]) -> set[QualifiedName]:
    """Those of the names that a relation has."""
    wanted = list(names)
    rows = conn.execute(
        "SELECT n.s, n.t FROM unnest(%s::text[], %s::text[]) AS n(s, t)"
        " WHERE pg_catalog.to_regclass(pg_catalog.format('%%I.%%I', n.s, n.t)) IS NOT NULL",
        ([name.schema for name in wanted], [name.name for name in wanted]),
    ).fetchall()
    return {QualifiedName(schema, name) for schema, name in rows}


def compare(current: Iterable[Column], wanted: Iterable[Column]) -> Change:
    """What has to be done to make the stored columns the wanted ones; their order doesn't matter."""
    now = {c.name: c for c in current if c.name != ROW_ID}
    then = {c.name: c for c in wanted}
    shared = now.keys() & then.keys()
    if (now or then) and not shared:
        return Change.REBUILD
    if any((now[n].type, now[n].collation) != (then[n].type, then[n].collation) for n in shared):
        return Change.REBUILD
    if now.keys() != then.keys() or any(now[n].not_null != then[n].not_null for n in shared):
        return Change.COMPATIBLE
    return Change.SAME


def reshape(conn: psycopg.Connection, name: QualifiedName, wanted: tuple[Column, ...], declared: Declared) -> Reshaped:
    """Give the table the wanted columns. It is kept if possible, and made if it is gone."""
    partition_by = declared.partition_by
    relid = oid(conn, name)
    if relid is None:
        return Reshaped(Change.REBUILD, create(conn, name, wanted, declared))
    for member in _unlogged(conn, relid):
        conn.execute(sql.SQL("ALTER TABLE {} SET LOGGED").format(member.sql))
    current = columns.of_relation(conn, relid)
    change = compare(current, wanted)
    kept = {c.name for c in wanted}
    if partition_by and not set(_keys(partition_by, current)) <= kept:
        change = Change.REBUILD
    if change is Change.COMPATIBLE:
        gone = [
            sql.SQL("DROP COLUMN {}").format(sql.Identifier(c.name))
            for c in current
            if c.name not in kept and c.name != ROW_ID
        ]
        have = {c.name: c for c in current}
        # New columns come without NOT NULL, because in the old rows, which are replaced later, they are empty.
        new = [sql.SQL("ADD COLUMN {}").format(replace(c, not_null=False).ddl) for c in wanted if c.name not in have]
        loosened = [
            sql.SQL("ALTER COLUMN {} DROP NOT NULL").format(sql.Identifier(c.name))
            for c in wanted
            if c.name in have and have[c.name].not_null and not c.not_null
        ]
        try:
            if gone or loosened:
                identity_index.drop(conn, name)
            if changes := gone + new + loosened:
                conn.execute(sql.SQL("ALTER TABLE {} {}").format(name.sql, sql.SQL(", ").join(changes)))
        except psycopg.errors.DependentObjectsStillExist as error:
            raise UsageError(
                f"A column that goes is still read: {(error.diag.message_detail or '').splitlines()[0]}",
                stream_table=str(name),
                remedy="Drop what reads it, alter the stream table, and create it again.",
            ) from error
    if change is not Change.REBUILD:
        return Reshaped(change, relid)
    return _rebuild(conn, name, relid, wanted, declared)


def _unlogged(conn: psycopg.Connection, relid: int) -> list[QualifiedName]:
    rows = conn.execute(
        sql.SQL(
            "SELECT n.nspname, u.relname FROM (SELECT c.relname, c.relnamespace FROM {}) AS u"
            " JOIN pg_catalog.pg_namespace n ON n.oid = u.relnamespace"
        ).format(UNLOGGED.format(relid=sql.Literal(relid)))
    )
    return [QualifiedName(*row) for row in rows]


def views_on(conn: psycopg.Connection, name: QualifiedName) -> tuple[str, ...]:
    """Views of the user's own that read the table, or such a view."""
    rows = conn.execute(
        """
        WITH RECURSIVE reader(relid) AS (
            SELECT pg_catalog.to_regclass(%s)::oid
            UNION
            SELECT r.ev_class
              FROM reader
              JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = relid
              JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
        )
        SELECT n.nspname, c.relname
          FROM reader
          JOIN pg_catalog.pg_class c ON c.oid = relid
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('v', 'm')
         ORDER BY 1, 2
        """,
        (name.quoted,),
    ).fetchall()
    return tuple(f"{schema}.{view}" for schema, view in rows)


def _rebuild(
    conn: psycopg.Connection, name: QualifiedName, relid: int, wanted: tuple[Column, ...], declared: Declared
) -> Reshaped:
    _refuse_if_read(conn, name)
    owner, grants = _access(conn, relid)
    lost = _own_objects(conn, relid)
    drop(conn, name)
    new = create(conn, name, wanted, declared)
    for grantee, privilege, grantable in grants:
        conn.execute(
            sql.SQL("GRANT {} ON {} TO {}{}").format(
                sql.SQL(privilege),
                name.sql,
                sql.Identifier(grantee) if grantee else sql.SQL("PUBLIC"),
                sql.SQL(" WITH GRANT OPTION" if grantable else ""),
            )
        )
    if owner != scalar(conn, "SELECT current_user"):
        conn.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(name.sql, sql.Identifier(owner)))
    return Reshaped(Change.REBUILD, new, lost)


def _refuse_if_read(conn: psycopg.Connection, name: QualifiedName) -> None:
    views = views_on(conn, name)
    if views:
        raise UsageError(
            f"Its columns can't change while {', '.join(views)} reads it",
            stream_table=str(name),
            remedy="Drop that view, alter the stream table, and create the view again.",
        )


def _access(conn: psycopg.Connection, relid: int | None) -> tuple[str, list[tuple[str | None, str, bool]]]:
    """The owner, and the grants to everyone else."""
    owner = scalar(
        conn, "SELECT pg_catalog.pg_get_userbyid(relowner) FROM pg_catalog.pg_class WHERE oid = %s", (relid,)
    )
    grants = conn.execute(
        """
        SELECT CASE WHEN a.grantee <> 0 THEN pg_catalog.pg_get_userbyid(a.grantee) END, a.privilege_type, a.is_grantable
          FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
         WHERE c.oid = %s AND a.grantee <> c.relowner
         ORDER BY 1, 2
        """,
        (relid,),
    ).fetchall()
    return owner, grants


def _own_objects(conn: psycopg.Connection, relid: int) -> tuple[str, ...]:
    """Indexes of the user's own (none of ours) and policies, which go with the table."""
    rows = conn.execute(
        """
        SELECT 'index ' || c.relname
          FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
         WHERE i.indrelid = %(relid)s
           AND i.indkey::text <> (SELECT a.attnum::text FROM pg_catalog.pg_attribute a
                                   WHERE a.attrelid = i.indrelid AND a.attname = %(row_id)s)
           AND coalesce(pg_catalog.obj_description(i.indexrelid, 'pg_class'), '') <> ALL (%(marks)s)
        UNION ALL
        SELECT 'policy ' || polname FROM pg_catalog.pg_policy WHERE polrelid = %(relid)s
        ORDER BY 1
        """,
        {"relid": relid, "row_id": ROW_ID, "marks": [identity_index.MARK, lookup_index.MARK]},
    ).fetchall()
    return tuple(row[0] for row in rows)


def _keys(partition_by: str, available: Iterable[Column]) -> tuple[str, ...]:
    """The partition key's columns, each a visible column of the query."""
    return key_of(partition_by, (c.name for c in available))


def key_of(partition_by: str, available: Iterable[str]) -> tuple[str, ...]:
    """The same among the names of columns."""
    visible = [name for name in available if not name.startswith("__pgt_")]
    keys = []
    for written in partition_key(partition_by)[1]:
        name = written.strip('"')
        if name not in visible and name.lower() not in visible:
            raise UsageError(
                f"partition_by names {name!r}, which is no column of the query",
                remedy=f"Its columns are {', '.join(visible)}.",
            )
        keys.append(name if name in visible else name.lower())
    return tuple(keys)


def _partition_clause(partition_by: str, wanted: tuple[Column, ...]) -> sql.Composed:
    return sql.SQL(" PARTITION BY {} ({})").format(
        sql.SQL(partition_key(partition_by)[0]),
        sql.SQL(", ").join(sql.Identifier(key) for key in _keys(partition_by, wanted)),
    )


def _create_partitions(conn: psycopg.Connection, name: QualifiedName, partition_by: str) -> None:
    """Create a DEFAULT partition, so that every row has one. HASH allows no default and gets a fixed number."""
    if partition_key(partition_by)[0] == "HASH":
        bounds: dict[str, sql.Composable] = {
            f"p{i}": sql.SQL("FOR VALUES WITH (MODULUS {}, REMAINDER {})").format(HASH_PARTITIONS, i)
            for i in range(HASH_PARTITIONS)
        }
    else:
        bounds = {"default": sql.SQL("DEFAULT")}
    for suffix, bound in bounds.items():
        partition = QualifiedName(name.schema, fitting(f"{name.name}_{suffix}"))
        conn.execute(sql.SQL("CREATE TABLE {} PARTITION OF {} {}").format(partition.sql, name.sql, bound))
        if suffix == "default":
            conn.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(partition.sql, sql.Literal(DEFAULT_PARTITION)))


def fitting(name: str) -> str:
    """A name of at most 63 bytes; where it had to be cut, a digest keeps it unique."""
    if len(name.encode()) <= 63:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name.encode()[:54].decode(errors='ignore')}_{digest}"


def oid(conn: psycopg.Connection, name: QualifiedName) -> int | None:
    """None where no relation has that name."""
    return scalar(conn, "SELECT pg_catalog.to_regclass(%s)::oid", (name.quoted,))
