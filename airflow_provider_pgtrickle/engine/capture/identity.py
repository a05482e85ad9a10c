"""Whether the log tells what has to be captured of a table's changes.

old values   those of the replica identity: the key (DEFAULT, USING INDEX), or all (FULL)
new values   all, but for generated columns: stored ones since PostgreSQL 18, virtual ones never
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.engine.names import QualifiedName

# A primary key that is checked at the end of a transaction identifies no rows for PostgreSQL.
_IDENTITIES = """
    SELECT n.nspname, c.relname, c.relkind::text, c.relreplident::text, c.oid = %(relid)s,
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey::int2[])
                 WHERE i.indrelid = c.oid AND i.indimmediate AND i.indisvalid
                   AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'n' THEN false ELSE i.indisprimary END)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY(%(members)s::oid[]) ORDER BY c.oid
"""

_GENERATED = """
    SELECT a.attname, a.attgenerated::text FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = %s AND a.attname = ANY(%s) AND a.attgenerated <> '' AND NOT a.attisdropped
    ORDER BY a.attnum
"""


@dataclass(frozen=True)
class Untold:
    """What the log lacks, and what the table's owner can do about it."""

    reason: str
    remedy: str


def untold(conn: Connection, relid: int, members: Sequence[int], columns: Sequence[str]) -> Untold | None:
    """Why these columns of a table and its members can't be captured from the log; None if they can."""
    for name, kind in conn.execute(_GENERATED, (relid, list(columns))).fetchall():
        if kind == "v" or not Capabilities.of(conn).publishes_generated:
            return Untold(
                f"column {name} is generated, and the log doesn't tell its values", "Use cdc_mode 'auto' or 'trigger'."
            )
    lacking: list[str] = []
    reason = ""
    for schema, name, relkind, identity, is_root, known in conn.execute(
        _IDENTITIES, {"relid": relid, "members": list(members)}
    ).fetchall():
        table = QualifiedName(schema, name)
        if relkind == "p":
            if is_root and not known:
                # A partition to come would have no identity, and PostgreSQL would refuse to update it.
                return Untold(
                    f"{table} is partitioned and has no primary key",
                    "Give it one, or use cdc_mode 'auto' or 'trigger'.",
                )
            continue
        if identity == "f" or (known and set(columns) <= set(known)):
            continue
        lacking.append(f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL")
        if not known:
            reason = reason or f"{table} has no replica identity"
        else:
            more = next(column for column in columns if column not in known)
            reason = reason or (
                f"the replica identity of {table} keeps only {', '.join(known)} of an old row, and {more} is read, too"
            )
    return Untold(reason, "; ".join(lacking) + ".") if lacking else None
