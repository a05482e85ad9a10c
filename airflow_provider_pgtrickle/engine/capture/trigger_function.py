"""The function behind a table's capturing triggers.

One function serves every event. Called for a statement it reads the transition tables, called for a row (by logical
replication, which fires nothing else) it reads OLD and NEW; the statements it runs are otherwise the same.

    INSERT    +new
    DELETE    −old
    UPDATE    rows paired by key: U where their images differ; a changed key is D and I.
              No key: old EXCEPT ALL new as D, new EXCEPT ALL old as I, by the text of the row.
    TRUNCATE  T: what was there is unknown

By itself it never makes the user's statement fail; what maintains IMMEDIATE tables, which it calls, may. If the table
has other columns by now, or partitions or children that the function doesn't know, it writes a T: every
reader then runs FULL, and its refresh notices the new schema. Of a partition that is gone again by then, the T is the
only trace. Without its buffer the function writes nothing; the readers find the buffer missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.layout import Layout
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES

_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
{settings} AS {body}
"""

# Every statement pays for these checks. PostgreSQL finds the buffer's file in its cache, without a query.
_BODY = """
#variable_conflict use_column
<<capture>>
DECLARE
    xid CONSTANT xid8 := pg_current_xact_id();
    lsn CONSTANT pg_lsn := pg_current_wal_insert_lsn();
    is_known boolean;{made}
BEGIN
    {begin}IF pg_relation_filenode({buffer_oid}) IS NULL THEN
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' THEN
        is_known := false;
    {members_known}
    ELSE
        is_known := {columns_known};
    END IF;
    IF NOT is_known THEN
        {unknown};
    ELSIF TG_LEVEL = 'ROW' THEN
        {of_row}
    ELSE
        {of_statement}
    END IF;
    {end}RETURN NULL;
END
"""

_UNKNOWN = """
            INSERT INTO {buffer} (xid, lsn, action) VALUES (capture.xid, capture.lsn, 'T')
"""

# Where writers maintain stream tables, they hand on what they have captured.
_MADE = """
    made {buffer}[];"""
_BEGIN = """IF TG_NAME = {end} THEN
        PERFORM {immediate}(NULL, true);
        RETURN NULL;
    END IF;
    """
_END = """PERFORM {immediate}(capture.made, TG_LEVEL = 'STATEMENT');
    """
_KEPT = """
            WITH made AS ({insert} RETURNING {row} AS r) SELECT array_agg(made.r) INTO capture.made FROM made
"""

_COLUMNS_KNOWN = """(
            SELECT count(*) FROM pg_attribute a
            WHERE a.attrelid = TG_RELID AND NOT a.attisdropped AND (a.attname, a.atttypid) IN ({expected})
        ) = {count}"""

_NO_UNKNOWN_MEMBER = """
        AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent IN ({parents}) AND i.inhrelid NOT IN ({members}))"""

# An INSERT into an ordinary table reaches no children, so only the other statements check them.
_MEMBERS_KNOWN = """ELSIF TG_LEVEL = 'STATEMENT' AND {condition} THEN
        is_known := {columns_known}{no_unknown_member};"""
_PARTITION_KNOWN = """ELSIF TG_LEVEL = 'ROW' AND TG_RELID NOT IN ({members}) THEN
        is_known := false;
    """

_EVENTS = """
        IF TG_OP = 'INSERT' THEN
            {insert};
        ELSIF TG_OP = 'DELETE' THEN
            {delete};
        ELSE
            {update};
        END IF;
"""

# PostgreSQL adds the rows that a referential action changes to those of the statement that caused it. If a foreign key
# refers to its own table, or several actions change one row, a key occurs twice among the old or the new rows, and
# pairing by it would multiply them.
_UPDATE_CHECKED = """
            IF EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = TG_RELID AND f.contype = 'f'
                       AND (f.confupdtype IN ('c', 'n', 'd') OR f.confdeltype IN ('n', 'd')))
               AND ((SELECT count(*) FROM old_rows)
                    <> (SELECT count(*) FROM (SELECT DISTINCT {key} FROM old_rows) AS k)
                    OR (SELECT count(*) FROM new_rows)
                    <> (SELECT count(*) FROM (SELECT DISTINCT {key} FROM new_rows) AS k)) THEN
                {by_image};
            ELSE
                {by_key};
            END IF
"""

_ONE_SIDED = """
            INSERT INTO {buffer} (xid, lsn, action, {targets})
            SELECT capture.xid, capture.lsn, {action}, {values} FROM {rows}
"""

_BY_KEY = """
            INSERT INTO {buffer} (xid, lsn, action, {targets})
            SELECT capture.xid, capture.lsn,
                   -- IS NULL holds for ROW(NULL, NULL), too, which a key may be.
                   CASE WHEN o.{probe} IS NOT DISTINCT FROM NULL THEN 'I'
                        WHEN n.{probe} IS NOT DISTINCT FROM NULL THEN 'D' ELSE 'U' END, {values}
            FROM {old} FULL JOIN {new} ON {condition}
            WHERE ROW({old_values})::record *<> ROW({new_values})::record
"""

_BY_IMAGE = """
            WITH o AS (
                SELECT *, row_number() OVER (PARTITION BY __pgt_image) AS __pgt_twin
                FROM (SELECT o.*, ROW({old_values})::text AS __pgt_image FROM {old}) AS o
            ), n AS (
                SELECT *, row_number() OVER (PARTITION BY __pgt_image) AS __pgt_twin
                FROM (SELECT n.*, ROW({new_values})::text AS __pgt_image FROM {new}) AS n
            )
            INSERT INTO {buffer} (xid, lsn, action, {targets})
            SELECT capture.xid, capture.lsn, CASE WHEN n.__pgt_twin IS NULL THEN 'D' ELSE 'I' END, {values}
            FROM o FULL JOIN n ON o.__pgt_image = n.__pgt_image AND o.__pgt_twin = n.__pgt_twin
            WHERE o.__pgt_twin IS NULL OR n.__pgt_twin IS NULL
"""

# With these settings different values have different texts.
_EXACT_TEXT = (
    "SET extra_float_digits = 1 SET DateStyle = 'ISO, MDY' SET TimeZone = 'UTC' SET IntervalStyle = 'postgres'"
)


def create_function(layout: Layout, buffer: int) -> sql.Composed:
    """The statement that creates or replaces the function; `buffer` is the oid of the change buffer."""
    columns_known = sql.SQL(_COLUMNS_KNOWN).format(
        expected=_list(
            sql.SQL("({}::name, {}::oid)").format(sql.Literal(c.name), sql.Literal(c.type_oid)) for c in layout.columns
        )
        if layout.columns
        else sql.SQL("(NULL::name, NULL::oid)"),
        count=sql.Literal(len(layout.columns)),
    )
    immediate = sql.Identifier(CHANGES, f"immediate_{layout.relid}")
    end = sql.Literal(f"{layout.trigger}_end")
    nothing = sql.SQL("")
    body = sql.SQL(_BODY).format(
        made=sql.SQL(_MADE).format(buffer=layout.buffer.sql) if layout.is_live else nothing,
        begin=sql.SQL(_BEGIN).format(immediate=immediate, end=end) if layout.is_counted else nothing,
        end=sql.SQL(_END).format(immediate=immediate) if layout.is_live else nothing,
        unknown=_kept(layout, sql.SQL(_UNKNOWN).format(buffer=layout.buffer.sql)),
        members_known=_members_known(layout, columns_known),
        columns_known=columns_known,
        buffer_oid=sql.Literal(buffer),
        of_row=_events(layout, sql.SQL("(SELECT OLD.*)"), sql.SQL("(SELECT NEW.*)"), checked=False),
        of_statement=_events(layout, sql.SQL("old_rows"), sql.SQL("new_rows"), checked=True),
    )
    return sql.SQL(_FUNCTION).format(
        function=layout.function.sql,
        settings=sql.SQL(_EXACT_TEXT),
        body=sql.Literal(body.as_string(None)),
    )


def _members_known(layout: Layout, columns_known: sql.Composed) -> sql.Composable:
    """SQL that checks whether the table has got partitions or children that the layout doesn't know."""
    members = _list(sql.Literal(member.relid) for member in layout.members)
    parents = [member.relid for member in layout.members if member.may_have_members]
    if not parents:
        return sql.SQL("")
    routes = any(member.routes for member in layout.members)
    condition = (
        sql.SQL("TG_RELID IN ({})").format(_list(map(sql.Literal, parents))) if routes else sql.SQL("TG_OP <> 'INSERT'")
    )
    by_statement = sql.SQL(_MEMBERS_KNOWN).format(
        condition=condition,
        columns_known=columns_known,
        no_unknown_member=sql.SQL(_NO_UNKNOWN_MEMBER).format(parents=_list(map(sql.Literal, parents)), members=members),
    )
    return sql.SQL(_PARTITION_KNOWN).format(members=members) + by_statement if routes else by_statement


def _events(layout: Layout, old: sql.SQL, new: sql.SQL, checked: bool) -> sql.Composed:
    before, after = _rows(layout, old, "o"), _rows(layout, new, "n")
    if not layout.columns:
        # Only the number of rows matters (`count(*)` of a table without a key), which an UPDATE can't change.
        update: sql.Composable = sql.SQL("NULL")
    elif not layout.pairing:
        update = _by_image(layout, before, after)
    elif checked:
        update = sql.SQL(_UPDATE_CHECKED).format(
            key=_list(sql.Identifier(k) for k in layout.pairing),
            by_image=_by_image(layout, before, after),
            by_key=_by_key(layout, before, after),
        )
    else:
        update = _by_key(layout, before, after)
    return sql.SQL(_EVENTS).format(
        insert=_one_sided(layout, "I", "new", "n", after),
        delete=_one_sided(layout, "D", "old", "o", before),
        update=update,
    )


def _rows(layout: Layout, rows: sql.SQL, alias: str) -> sql.Composed:
    """`rows` with its captured columns, virtual ones computed."""
    columns = [
        sql.SQL("({}) AS {}").format(sql.SQL(c.expression), sql.Identifier(c.name))
        if c.expression
        else sql.Identifier(c.name)
        for c in layout.columns
    ]
    return sql.SQL("(SELECT {} FROM {} AS r) AS {}").format(_list(columns), rows, sql.SQL(alias))


def _kept(layout: Layout, insert: sql.Composed) -> sql.Composed:
    """An INSERT into the buffer that also keeps its rows for the stream tables that the writer maintains."""
    if not layout.is_live:
        return insert
    return sql.SQL(_KEPT).format(insert=insert, row=sql.Identifier(layout.buffer.name))


def _one_sided(layout: Layout, action: str, side: str, alias: str, rows: sql.Composed) -> sql.Composed:
    insert = sql.SQL(
        _ONE_SIDED if layout.columns else _ONE_SIDED.replace(", {targets}", "").replace(", {values}", "")
    ).format(
        buffer=layout.buffer.sql,
        targets=_list(sql.Identifier(getattr(c, side)) for c in layout.columns),
        action=sql.Literal(action),
        values=_values(layout, alias),
        rows=rows,
    )
    return _kept(layout, insert)


def _by_key(layout: Layout, old: sql.Composed, new: sql.Composed) -> sql.Composed:
    condition = sql.SQL(" AND ").join(
        sql.SQL("o.{0} = n.{0}").format(sql.Identifier(column)) for column in layout.pairing
    )
    insert = sql.SQL(_BY_KEY).format(
        probe=sql.Identifier(layout.pairing[0]), condition=condition, **_both(layout, old, new)
    )
    return _kept(layout, insert)


def _by_image(layout: Layout, old: sql.Composed, new: sql.Composed) -> sql.Composed:
    return _kept(layout, sql.SQL(_BY_IMAGE).format(**_both(layout, old, new)))


def _both(layout: Layout, old: sql.Composed, new: sql.Composed) -> dict[str, sql.Composable]:
    return {
        "buffer": layout.buffer.sql,
        "targets": _list(
            [sql.Identifier(c.new) for c in layout.columns] + [sql.Identifier(c.old) for c in layout.columns]
        ),
        "values": _list([_values(layout, "n"), _values(layout, "o")]),
        "old_values": _values(layout, "o"),
        "new_values": _values(layout, "n"),
        "old": old,
        "new": new,
    }


def _values(layout: Layout, alias: str) -> sql.Composed:
    return _list(sql.SQL("{}.{}").format(sql.SQL(alias), sql.Identifier(c.name)) for c in layout.columns)


def _list(items: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(items)
