"""What a star means over stream tables: the columns that their queries give, and none of the internal ones."""

from __future__ import annotations

import re

import sqlglot
from psycopg import Connection, sql
from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_provider_pgtrickle.engine.catalog.search_path import reading_under
from airflow_provider_pgtrickle.engine.dvm.dialect import CANONICAL
from airflow_provider_pgtrickle.engine.names import RESERVED_PREFIX

_VISIBLE = """
    SELECT n.nspname, c.relname,
           ARRAY(SELECT column_ ->> 'name' FROM jsonb_array_elements(t.storage) AS column_
                 WHERE column_ ->> 'role' = 'visible')
    FROM pgtrickle.pgt_stream_tables t
    JOIN pg_catalog.pg_class c ON c.oid = t.pgt_relid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE t.pgt_relid = %s
"""


#: In characters. A longer text counts as open-ended, which costs a rebuild when a source gets a column.
_LONGEST_PARSED = 200_000

#: A star other than that of count(*), or NATURAL.
_MAY_BE_OPEN_ENDED = re.compile(r"(?<!\()\*|\*(?!\))|\bnatural\b", re.IGNORECASE)


def visible_only(conn: Connection, query: str, path: str | None = None) -> str:
    """The user's text with each stream table in it read through its visible columns.

    SELECT * FROM totals NATURAL JOIN names
        →  SELECT * FROM (SELECT id, total FROM totals) AS totals NATURAL JOIN names

    Only the tables' names are replaced. A text that can't be parsed is left as it is.
    """
    if len(query) > _LONGEST_PARSED:
        return query
    try:
        tree = sqlglot.parse_one(query, dialect="postgres")
    except (SqlglotError, RecursionError):
        return query
    cuts: list[tuple[int, int, str]] = []
    for table in tree.find_all(exp.Table):
        parts = [p for p in (table.args.get("db"), table.this) if isinstance(p, exp.Identifier)]
        if not parts or any("start" not in p.meta for p in parts):
            continue
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        with reading_under(conn, path):
            named = conn.execute("SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid", [query[start:end]]).fetchone()
        found = conn.execute(_VISIBLE, named).fetchone()
        if found is not None and not _is_common_table(table):
            schema, name, columns = found
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
            text = sql.SQL("(SELECT {} FROM {})").format(listed, sql.Identifier(schema, name)).as_string(None)
            alias = "" if table.alias else f" AS {sql.Identifier(name).as_string(None)}"
            cuts.append((start, end, text + alias))
    for start, end, text in sorted(cuts, reverse=True):
        query = query[:start] + text + query[end:]
    return query


def pruned(text: str) -> str:
    """A canonical text without the internal columns that a star over a view brought into the lists of its SELECTs.

    >>> pruned('SELECT "v"."a", "v"."__pgt_row_id" FROM "public"."v"')
    'SELECT "v"."a" FROM "public"."v"'
    """
    try:
        tree = sqlglot.parse_one(text, read=CANONICAL)
    except (SqlglotError, RecursionError):
        return text
    for select in tree.find_all(exp.Select):
        kept = [e for e in select.expressions if not (isinstance(e, exp.Column) and e.name.startswith(RESERVED_PREFIX))]
        if kept and len(kept) < len(select.expressions):
            select.set("expressions", kept)
    return tree.sql(CANONICAL, normalize_functions=False)


def is_open_ended(query: str) -> bool:
    """Whether columns added to a table later would change what `query` says.

    >>> [is_open_ended(f"SELECT {what} FROM t") for what in ("count(*)", "t.*", "f(t.*)")]
    [False, True, True]
    """
    if not _MAY_BE_OPEN_ENDED.search(query):
        return False
    try:
        if len(query) > _LONGEST_PARSED:
            return True
        tree = sqlglot.parse_one(query, dialect="postgres")
    except (SqlglotError, RecursionError):
        # PostgreSQL understood it and sqlglot doesn't, so it may be open-ended.
        return True
    if any(join.method.upper() == "NATURAL" for join in tree.find_all(exp.Join)):
        return True
    if any(isinstance(column.this, exp.Star) for column in tree.find_all(exp.Column)):
        return True
    return any(
        isinstance(e, exp.Star) and select.args.get("from_") and not isinstance(select.args["from_"].this, exp.Values)
        for select in tree.find_all(exp.Select)
        for e in select.expressions
    )


def _is_common_table(table: exp.Table) -> bool:
    """Whether the name means, or may mean, a WITH item."""
    return not table.args.get("db") and any(
        cte.alias == table.name for clause in table.root().find_all(exp.With) for cte in clause.expressions
    )
