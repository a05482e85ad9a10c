"""Each refresh keeps these invariants, or it fails: no absent row is deleted, no identity is stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture import guard
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import identity_index
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.errors import InvariantViolated, TableAltered
from airflow_provider_pgtrickle.engine.refresh.consolidate import DUPLICATE, INSERT, OP, Difference, Target
from airflow_provider_pgtrickle.engine.refresh.sameness import agree
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier

# A row trigger that runs before a row is written may change that row, and so may a rule.
_BEFORE_ROW = """
    WITH RECURSIVE tree(oid) AS (
        SELECT pg_catalog.to_regclass(%(table)s)::oid
        UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT g.tgname FROM pg_catalog.pg_trigger g JOIN tree ON tree.oid = g.tgrelid
     WHERE NOT g.tgisinternal AND g.tgtype & 3 = 3 AND g.tgenabled <> 'D' AND g.tgname <> ALL(%(ours)s)
    UNION ALL
    SELECT r.rulename FROM pg_catalog.pg_rewrite r JOIN tree ON tree.oid = r.ev_class
    ORDER BY 1 LIMIT 1
"""

_REMEDY = (
    "Nothing was written. Refresh it with force_full=True; if its rows were not changed by hand, please report this."
)


def own_rows(conn: Connection, st: StreamTable) -> tuple[bool, tuple[str, ...]]:
    """Whether ALTER TABLE has rewritten the stored rows since the last refresh, and the columns' present digest."""
    row = conn.execute(
        "SELECT pgtrickle.pgt_was_rewritten(%s::text[], n.now), n.now"
        " FROM (SELECT pgtrickle.pgt_table_digest(%s) AS now) AS n",
        (list(Frontier.from_json(st.frontier).table), st.id),
    ).fetchone()
    assert row is not None  # a SELECT without FROM
    return bool(row[0]), tuple(row[1] or ())


def nothing_changes_what_is_written(conn: Connection, target: Target) -> None:
    """Raise if a user's own trigger or rule may change the rows that a refresh writes."""
    found = conn.execute(
        _BEFORE_ROW, {"table": target.table.quoted, "ours": [guard.TRIGGER, guard.ROW_TRIGGER]}
    ).fetchone()
    if found is not None:
        raise TableAltered(
            f"{found[0]!r} on the stream table may change rows before they are written",
            stream_table=str(target.table),
            remedy="Drop it, or make it an AFTER trigger: those see each change and leave it as it is.",
        )


@contextmanager
def refusals_named(target: Target) -> Iterator[None]:
    """If a user's own constraint refuses the rows that the query yields, raise an error that names the constraint."""
    try:
        yield
    except psycopg.errors.IntegrityError as error:
        name = error.diag.constraint_name or error.diag.column_name or "a constraint"
        raise TableAltered(
            f"{name!r} refuses what the query yields: {error.diag.message_primary}",
            stream_table=str(target.table),
            remedy="Drop it: a stream table takes no foreign keys, checks or unique indexes that its query may break.",
        ) from error


def every_row_was_there(target: Target, verb: str, wanted: int, found: int) -> None:
    """Raise unless each row that the difference deletes or replaces was stored as often as the difference says."""
    if wanted != found:
        raise InvariantViolated(
            f"The difference would have {verb} {wanted} stored rows, but {found} of that content are stored",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def no_identity_comes_twice(target: Target, difference: Difference) -> None:
    """Raise unless each identity comes at most once and goes at most once in the difference."""
    if difference.counts.get(DUPLICATE):
        raise InvariantViolated(
            f"The difference holds the same identity ({', '.join(target.identity)}) more than once",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def no_identity_is_there_already(conn: Connection, target: Target, difference: Difference) -> None:
    """Raise if the identity of a row to insert is stored already. The check runs after the deletions."""
    if not difference.counts.get(INSERT):
        return
    # The query counts all such rows, though one would do: with EXISTS PostgreSQL expects to find one soon, and scans
    # the whole table for it.
    met = conn.execute(
        sql.SQL("SELECT count(*) FROM {d} d JOIN {t} t ON t.{id} = d.{id} AND {same} WHERE d.{op} = {i}").format(
            d=difference.table,
            t=target.table.sql,
            id=sql.Identifier(ROW_ID),
            same=agree(target.key, "t", "d"),
            op=sql.Identifier(OP),
            i=INSERT,
        )
    ).fetchone()
    if met is not None and met[0]:
        raise InvariantViolated(
            f"The difference would insert an identity ({', '.join(target.identity)}) that is stored already",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def no_identity_stands_twice(conn: Connection, target: Target) -> None:
    """Raise if a whole content holds an identity twice. A unique index proves that it doesn't, or else a search."""
    try:
        with conn.transaction():
            proven = identity_index.ensure(conn, target.table, target.identity, keyed=target.keyed)
    except psycopg.errors.UniqueViolation:
        twice = True
    else:
        twice = target.keyed and not proven and _stands_twice(conn, target)
    if twice:
        raise InvariantViolated(
            f"The query yields the same identity ({', '.join(target.identity)}) more than once",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def _stands_twice(conn: Connection, target: Target) -> bool:
    """Whether an identity is stored twice. Equal row ids are searched first, because there are hardly any."""
    identity = sql.SQL(", ").join([sql.Identifier("s", ROW_ID), *(column.partition("s") for column in target.key)])
    found = conn.execute(
        sql.SQL(
            "SELECT EXISTS (SELECT FROM {table} s WHERE s.{id} IN"
            " (SELECT {id} FROM {table} GROUP BY 1 HAVING count(*) > 1) GROUP BY {identity} HAVING count(*) > 1)"
        ).format(table=target.table.sql, id=sql.Identifier(ROW_ID), identity=identity)
    ).fetchone()
    return found is not None and bool(found[0])
