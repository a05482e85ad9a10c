"""The function behind a table's capturing triggers.

One function serves every event. Called for a statement it reads the transition tables, called for a row (by logical
replication, which fires nothing else) it reads OLD and NEW; the statements it runs are otherwise the same.

    INSERT    +new
    DELETE    −old
    UPDATE    rows paired by key: U where their images differ; a changed key is D and I.
              No key: old EXCEPT ALL new as D, new EXCEPT ALL old as I, by the text of the row.
    TRUNCATE  T: what was there is unknown

By itself it never makes the user's statement fail, unless a reader declares the table append-only and refuses all but
INSERT, or declares rows frozen; what maintains IMMEDIATE tables, which it calls, may. If the table
has other columns by now, or partitions or children that the function doesn't know, it writes a T: every
reader then runs FULL, and its refresh notices the new schema. Of a partition that is gone again by then, the T is the
only trace. Without its buffer the function writes nothing; the readers find the buffer missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import LiteralString

from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.layout import Frozen, Layout, Member, NamedColumn
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES

#: To be raised with each change of what is written here, or of what a function of this text does.
FORM = 2

_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
{settings} AS {body}
"""

# Every statement pays for these checks, and for each condition on the way to what it has to do. PostgreSQL finds the
# buffer's file in its cache, without a query.
_BODY = """
#variable_conflict use_column
<<capture>>
DECLARE
    xid CONSTANT xid8 := pg_current_xact_id();
    lsn CONSTANT pg_lsn := pg_current_wal_insert_lsn();
    is_known boolean := false;
    is_twice boolean := false;{made}{refusing}
BEGIN
    {begin}{refuse}{frozen}{refused}IF pg_relation_filenode({buffer_oid}) IS NULL THEN
        RETURN NULL;
    ELSIF TG_LEVEL = 'ROW' THEN
        is_known := {row_known};
        IF is_known THEN
            {of_row}
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        is_known := {insert_known};
        IF is_known THEN
            {insert};
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        is_known := {update_known};
        IF is_known THEN
            {update};
        END IF;
    ELSIF TG_OP = 'DELETE' THEN
        is_known := {delete_known};
        IF is_known THEN
            {delete};
        END IF;
    END IF;
    IF NOT is_known THEN
        {unknown};
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
# Who refuses is asked only when a row is touched: a reader that was dropped refuses nothing any more.
_REFUSING = """
    refusing text;"""
_REFUSE = """IF TG_OP = 'TRUNCATE' OR TG_LEVEL = 'ROW' AND TG_OP <> 'INSERT' THEN
        refusing := {readers};
    ELSIF TG_OP <> 'INSERT' THEN
        refusing := CASE WHEN EXISTS (SELECT FROM old_rows) THEN {readers} END;
    END IF;
    IF refusing IS NOT NULL THEN
        RAISE EXCEPTION 'table % is append-only, as stream table % says: % is refused',
            TG_RELID::regclass, refusing, TG_OP
            USING ERRCODE = 'restrict_violation', HINT = 'Declare it otherwise: pgtrickle alter '
                || split_part(refusing, ', ', 1) || ' --append-only-breach end';
    END IF;
    """
# Rows are frozen by a column of which the table may have been altered meanwhile. Then nothing is refused, and the
# refresh that finds the table altered looks for the column again.
_FROZEN_ROWS = """
    IF TG_OP = 'TRUNCATE' THEN
        IF TG_WHEN = 'BEFORE' AND {row_known} THEN
            EXECUTE format({stored}, {relid}::regclass) INTO is_frozen USING TG_RELID;
        END IF;
    ELSIF TG_LEVEL = 'ROW' THEN
        IF NOT {row_known} THEN
            NULL;
        ELSIF TG_OP = 'INSERT' THEN
            is_frozen := {new_row};
        ELSIF TG_OP = 'DELETE' THEN
            is_frozen := {old_row};
        ELSE
            is_frozen := {old_row} OR {new_row};
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        IF {new_known} THEN
            is_frozen := {new};
        END IF;
    ELSIF TG_OP = 'DELETE' THEN
        IF {old_known} THEN
            is_frozen := {old};
        END IF;
    ELSIF {old_known} THEN
        is_frozen := {old} OR {new};
    END IF;
    IF is_frozen THEN
        refusing := {readers};
        IF refusing IS NOT NULL THEN
            RAISE EXCEPTION 'rows of table % are frozen where % is below %, as stream table % says: % is refused',
                TG_RELID::regclass, {column}, {bound}, refusing, TG_OP
                USING ERRCODE = 'restrict_violation', HINT = 'Declare it otherwise: pgtrickle alter '
                    || split_part(refusing, ', ', 1) || ' --frozen-before none';
        END IF;
        is_frozen := false;
    END IF;"""
_FROZEN = """{rows}
    IF TG_WHEN = 'BEFORE' THEN
        RETURN NULL;
    END IF;
    """
_REFUSED = """IF TG_NAME IN ({names}) THEN
        RETURN NULL;
    END IF;
    """
_IS_FROZEN = """
    is_frozen boolean := false;"""
_ANY = "EXISTS (SELECT FROM {rows} AS r WHERE {is_below})"
# All rows are looked for through the captured table, because it is the one that its readers may read.
_STORED = """SELECT EXISTS (SELECT FROM %s AS r WHERE {is_below}
    AND (r.tableoid = $1 OR r.tableoid IN (SELECT p.relid FROM pg_partition_tree($1) AS p)))"""
_FREEZING = """(
            SELECT string_agg(format('%I.%I', t.pgt_schema, t.pgt_name), ', ' ORDER BY t.pgt_schema, t.pgt_name)
            FROM pgtrickle.pgt_frozen f JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
            WHERE f.source_relid = {relid} AND f.attnum = {number} AND f.bound = {bound}
        )"""
_READERS = """(
            SELECT string_agg(DISTINCT format('%I.%I', o.pgt_schema, o.pgt_name), ', ')
            FROM pgtrickle.pgt_change_tracking c
            JOIN pgtrickle.pgt_stream_tables t ON t.pgt_id = ANY(c.tracked_by_pgt_ids)
            JOIN pgtrickle.pgt_stream_tables o ON o.pgt_id = coalesce(t.part_of, t.pgt_id)
            WHERE c.source_relid = {relid} AND t.append_only AND t.append_only_breach = 'refuse'
        )"""
_KEPT = """
            WITH made AS ({insert} RETURNING {row} AS r) SELECT array_agg(made.r) INTO capture.made FROM made
"""

# PostgreSQL analyzes a statement on a transition table anew whenever the table has changed, under the lock that the
# writer holds: what it finds is so, whatever an old snapshot shows. A column that is gone is looked up one level
# further out, where it has no type that a column could have. A constant for each type is left to be looked at.
_COLUMNS_KNOWN = """NOT EXISTS (
            SELECT FROM (SELECT {absent}) AS absent,
                LATERAL (SELECT {names} FROM (SELECT) AS nothing LEFT JOIN {rows} AS r ON false) AS c
            WHERE NOT ({as_captured})
        )"""

# Nothing of the kind depends on the table of OLD and NEW.
_COLUMNS_KNOWN_OF_ROW = """(
            SELECT count(*) FROM pg_attribute a
            WHERE a.attrelid = TG_RELID AND NOT a.attisdropped AND (a.attname, a.atttypid) IN ({expected})
        ) = {count}"""

# An INSERT into an ordinary table reaches no children, so only the other statements check them.
_MEMBERS_KNOWN = """NOT EXISTS (
            SELECT FROM pg_inherits i WHERE i.inhparent IN ({parents}) AND i.inhrelid NOT IN ({members}))"""

_OF_ROW = """
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
# pairing by it would multiply them. So they aren't paired: what cancels out does so wherever changes are summed.
_UPDATE_CHECKED = """
            IF EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = TG_RELID AND f.contype = 'f'
                       AND (f.confupdtype IN ('c', 'n', 'd') OR f.confdeltype IN ('n', 'd'))) THEN
                -- By itself, because the preparation of these four queries costs as much as all the rest.
                is_twice := (SELECT count(*) FROM old_rows)
                    <> (SELECT count(*) FROM (SELECT DISTINCT {key} FROM old_rows) AS k)
                    OR (SELECT count(*) FROM new_rows)
                    <> (SELECT count(*) FROM (SELECT DISTINCT {key} FROM new_rows) AS k);
            END IF;
            IF is_twice THEN
                {unpaired};
            ELSE
                {by_key};
            END IF
"""

_ONE_SIDED = """
            INSERT INTO {buffer} (xid, lsn, action, {targets})
            SELECT capture.xid, capture.lsn, {action}, {values} FROM {rows}
"""

_UNPAIRED = """
            INSERT INTO {buffer} (xid, lsn, action, {targets})
            SELECT capture.xid, capture.lsn, 'D', {absent}, {old_values} FROM {old}
            UNION ALL
            SELECT capture.xid, capture.lsn, 'I', {new_values}, {absent} FROM {new}
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
    immediate = sql.Identifier(CHANGES, f"immediate_{layout.relid}")
    end = sql.Literal(f"{layout.trigger}_end")
    nothing = sql.SQL("")
    readers = sql.SQL(_READERS).format(relid=sql.Literal(layout.relid))
    body = sql.SQL(_BODY).format(
        made=sql.SQL(_MADE).format(buffer=layout.buffer.sql) if layout.is_live else nothing,
        refusing=sql.SQL(
            (_REFUSING if layout.is_append_only or layout.frozen else "") + (_IS_FROZEN if layout.frozen else "")
        ),
        refuse=sql.SQL(_REFUSE).format(readers=readers) if layout.is_append_only else nothing,
        frozen=_frozen(layout) if layout.frozen else nothing,
        refused=_refused(layout) if layout.refuses_in_partitions else nothing,
        begin=sql.SQL(_BEGIN).format(immediate=immediate, end=end) if layout.is_counted else nothing,
        end=sql.SQL(_END).format(immediate=immediate) if layout.is_live else nothing,
        unknown=_kept(layout, sql.SQL(_UNKNOWN).format(buffer=layout.buffer.sql)),
        row_known=_row_known(layout),
        insert_known=_statement_known(layout, sql.SQL("new_rows"), reaches_children=False),
        update_known=_statement_known(layout, sql.SQL("new_rows")),
        delete_known=_statement_known(layout, sql.SQL("old_rows")),
        buffer_oid=sql.Literal(buffer),
        of_row=sql.SQL(_OF_ROW).format(**_events(layout, "(SELECT OLD.*)", "(SELECT NEW.*)", checked=False)),
        **_events(layout, "old_rows", "new_rows", checked=True),
    )
    return sql.SQL(_FUNCTION).format(
        function=layout.function.sql,
        settings=sql.SQL("" if layout.pairing else _EXACT_TEXT),
        body=sql.Literal(body.as_string(None)),
    )


def _refused(layout: Layout) -> sql.Composable:
    """The end for triggers that only refuse."""
    return sql.SQL(_REFUSED).format(names=_list(sql.Literal(f"{layout.trigger}_{end}") for end in ("came", "left")))


def _frozen(layout: Layout) -> sql.Composable:
    """The statements that refuse changes of frozen rows."""
    rows = sql.SQL("").join(_frozen_rows(layout, frozen) for frozen in layout.frozen)
    return sql.SQL(_FROZEN).format(rows=rows)


def _frozen_rows(layout: Layout, frozen: Frozen) -> sql.Composed:
    column = frozen.column
    named = column.reads if column.expression else (column,)
    value = sql.SQL("({})").format(sql.SQL(column.expression)) if column.expression else sql.Identifier(column.name)
    bound = sql.SQL(frozen.bound)

    is_below = sql.SQL("{} < {}").format(value, bound)

    def any_of(rows: LiteralString) -> sql.Composed:
        return sql.SQL(_ANY).format(rows=sql.SQL(rows), is_below=is_below)

    return sql.SQL(_FROZEN_ROWS).format(
        row_known=_columns_known_of_row(named),
        new_known=_columns_known(named, sql.SQL("new_rows")),
        old_known=_columns_known(named, sql.SQL("old_rows")),
        stored=sql.Literal(_STORED.format(is_below=is_below.as_string(None).replace("%", "%%"))),
        relid=sql.Literal(layout.relid),
        new_row=any_of("(SELECT NEW.*)"),
        old_row=any_of("(SELECT OLD.*)"),
        new=any_of("new_rows"),
        old=any_of("old_rows"),
        readers=sql.SQL(_FREEZING).format(
            relid=sql.Literal(layout.relid), number=sql.Literal(frozen.number), bound=sql.Literal(frozen.bound)
        ),
        column=sql.Literal(column.name),
        bound=bound,
    )


def _columns_known(columns: Sequence[NamedColumn], rows: sql.SQL) -> sql.Composable:
    """SQL that checks whether a transition table has these columns, with the types that they had.

    The columns are those that the function names, so it finds out before a statement of its own could fail.
    """
    if not columns:
        return sql.SQL("true")
    names = [sql.Identifier(column.name) for column in columns]
    return sql.SQL(_COLUMNS_KNOWN).format(
        absent=_list(sql.SQL("NULL::void AS {}").format(name) for name in names),
        names=_list(names),
        rows=rows,
        # CASE gives the base type of a domain, as the buffer has it.
        as_captured=sql.SQL(" AND ").join(
            sql.SQL("pg_typeof(CASE WHEN false THEN c.{} END) = {}::oid").format(
                sql.Identifier(column.name), sql.Literal(column.base_oid)
            )
            for column in columns
        ),
    )


def _row_known(layout: Layout) -> sql.Composable:
    """The same for OLD and NEW, and whether they are of a relation that the layout knows."""
    checks: list[sql.Composable] = []
    if any(member.routes for member in layout.members):
        checks.append(sql.SQL("TG_RELID IN ({})").format(_relids(layout.members)))
    if layout.named:
        checks.append(_columns_known_of_row(layout.named))
    return sql.SQL(" AND ").join(checks or [sql.SQL("true")])


def _columns_known_of_row(columns: Sequence[NamedColumn]) -> sql.Composable:
    expected = _list(
        sql.SQL("({}::name, {}::oid)").format(sql.Literal(c.name), sql.Literal(c.type_oid)) for c in columns
    )
    return sql.SQL(_COLUMNS_KNOWN_OF_ROW).format(expected=expected, count=sql.Literal(len(columns)))


def _statement_known(layout: Layout, rows: sql.SQL, *, reaches_children: bool = True) -> sql.Composable:
    """SQL that checks the columns, and whether there are partitions or children that the layout doesn't know."""
    columns = _columns_known(layout.named, rows)
    parents = [member for member in layout.members if member.may_have_members]
    routes = any(member.routes for member in layout.members)
    if not parents or not (routes or reaches_children):
        return columns
    members = sql.SQL(_MEMBERS_KNOWN).format(parents=_relids(parents), members=_relids(layout.members))
    if routes:
        members = sql.SQL("(TG_RELID NOT IN ({}) OR {})").format(_relids(parents), members)
    return sql.SQL("{} AND {}").format(columns, members)


def _relids(members: Iterable[Member]) -> sql.Composed:
    return _list(sql.Literal(member.relid) for member in members)


def _events(layout: Layout, old: LiteralString, new: LiteralString, *, checked: bool) -> dict[str, sql.Composable]:
    """The statements that write what an INSERT, UPDATE or DELETE did."""
    before, after = _rows(layout, sql.SQL(old), "o"), _rows(layout, sql.SQL(new), "n")
    if not layout.columns:
        # Only the number of rows matters (`count(*)` of a table without a key), which an UPDATE can't change.
        update: sql.Composable = sql.SQL("NULL")
    elif not layout.pairing:
        update = _by_image(layout, before, after)
    elif checked:
        update = sql.SQL(_UPDATE_CHECKED).format(
            key=_list(sql.Identifier(k) for k in layout.pairing),
            unpaired=_unpaired(layout, before, after),
            by_key=_by_key(layout, before, after),
        )
    else:
        update = _by_key(layout, before, after)
    return {
        "insert": _one_sided(layout, "I", "new", "n", after),
        "delete": _one_sided(layout, "D", "old", "o", before),
        "update": update,
    }


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


def _unpaired(layout: Layout, old: sql.Composed, new: sql.Composed) -> sql.Composed:
    absent = _list([sql.SQL("NULL")] * len(layout.columns))
    return _kept(layout, sql.SQL(_UNPAIRED).format(absent=absent, **_both(layout, old, new)))


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
