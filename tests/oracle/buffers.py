"""Change buffers as the contract has them, filled by the plainest trigger there is.

The product's capture elides and pairs; this one writes down every row that a statement touched. The algebra must be
right on both, and a fault in one can't hide a fault in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from tests.answers import only


@dataclass(frozen=True)
class Buffer:
    schema: str
    name: str

    def changed(self, conn: psycopg.Connection, since: int) -> bool:
        """Whether the source changed after the transaction `since`."""
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE xid > %s::text::xid8)").format(self._table)
        return bool(only(conn.execute(query, (str(since),)))[0])

    def truncated(self, conn: psycopg.Connection, since: int) -> bool:
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE xid > %s::text::xid8 AND action = 'T')")
        return bool(only(conn.execute(query.format(self._table), (str(since),)))[0])

    @property
    def _table(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)


def track(conn: psycopg.Connection, key: str, schema: str, table: str) -> Buffer:
    """A buffer and its triggers for one table, every column captured."""
    buffer = Buffer(schema, f"changes_{key}")
    columns = conn.execute(
        "SELECT attname, format_type(atttypid, atttypmod), attcollation FROM pg_attribute"
        " WHERE attrelid = %s::text::oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (key,),
    ).fetchall()
    key_columns = [
        name
        for (name,) in conn.execute(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
            " AND a.attnum = ANY (i.indkey) WHERE i.indrelid = %s::text::oid AND i.indisprimary",
            (key,),
        )
    ]
    names = [name for name, _, _ in columns]
    conn.execute(
        sql.SQL(
            "CREATE TABLE {buffer} (change_id bigint GENERATED ALWAYS AS IDENTITY,"
            " xid xid8 NOT NULL DEFAULT current_setting('oracle.xid')::xid8,"
            ' lsn pg_lsn NOT NULL DEFAULT pg_current_wal_insert_lsn(), action "char" NOT NULL,'
            " changed_cols bigint{columns})"
        ).format(
            buffer=buffer._table,
            columns=sql.SQL("").join(
                sql.SQL(", {} {}{}").format(sql.Identifier(f"{image}_{name}"), sql.SQL(kind), _collate(conn, collation))
                for image in ("new", "old")
                for name, kind, collation in columns
            ),
        )
    )
    function = sql.Identifier(schema, f"capture_{key}")
    conn.execute(
        sql.SQL(
            "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN"
            " IF TG_OP = 'TRUNCATE' THEN INSERT INTO {buffer} (action) VALUES ('T');"
            " ELSIF TG_OP = 'UPDATE' AND {same_row} THEN"
            " INSERT INTO {buffer} (action, {old}, {new}) VALUES ('U', {old_values}, {new_values});"
            " ELSE"
            " IF TG_OP <> 'INSERT' THEN INSERT INTO {buffer} (action, {old}) VALUES ('D', {old_values}); END IF;"
            " IF TG_OP <> 'DELETE' THEN INSERT INTO {buffer} (action, {new}) VALUES ('I', {new_values}); END IF;"
            " END IF; RETURN NULL; END $body$"
        ).format(
            function=function,
            buffer=buffer._table,
            same_row=sql.SQL(" AND ").join(
                sql.SQL("OLD.{0} = NEW.{0}").format(sql.Identifier(name)) for name in key_columns
            )
            if key_columns
            else sql.SQL("false"),
            old=_list("old_", names),
            new=_list("new_", names),
            old_values=_fields("OLD", names),
            new_values=_fields("NEW", names),
        )
    )
    target = sql.Identifier(schema, table)
    conn.execute(
        sql.SQL(
            "CREATE TRIGGER capture AFTER INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW EXECUTE FUNCTION {}()"
        ).format(target, function)
    )
    conn.execute(
        sql.SQL("CREATE TRIGGER capture_truncate AFTER TRUNCATE ON {} EXECUTE FUNCTION {}()").format(target, function)
    )
    return buffer


def _list(prefix: str, names: list[str]) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(prefix + name) for name in names)


def _fields(row: str, names: list[str]) -> sql.Composable:
    return sql.SQL(", ").join(sql.SQL("{}.{}").format(sql.SQL(row), sql.Identifier(name)) for name in names)


def _collate(conn: psycopg.Connection, collation: int) -> sql.Composable:
    if not collation:
        return sql.SQL("")
    found = conn.execute(
        "SELECT n.nspname, c.collname FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace"
        " WHERE c.oid = %s AND c.collname <> 'default'",
        (collation,),
    ).fetchone()
    return sql.SQL(" COLLATE {}").format(sql.Identifier(*found)) if found else sql.SQL("")
