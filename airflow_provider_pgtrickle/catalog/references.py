"""What a view refers to, views behind views included, by PostgreSQL's own record of dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import Connection

from airflow_provider_pgtrickle.catalog.relations import FIRST_USER_OID
from airflow_provider_pgtrickle.errors import QueryError

#: Views on views on views: deeper than this is taken for a mistake.
MAX_DEPTH = 32

# Column 0 stands for the relation as a whole. A view's rule depends on the view itself, too.
_DEPENDENCIES = """
    SELECT r.ev_class::bigint, d.refobjid::bigint, c.relkind, n.nspname, c.relname,
           array_agg(a.attname::text) FILTER (WHERE d.refobjsubid > 0)
    FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
    JOIN pg_catalog.pg_class c ON d.refclassid = 'pg_catalog.pg_class'::regclass AND c.oid = d.refobjid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE r.ev_class = ANY(%s) AND d.refobjid <> r.ev_class
    GROUP BY r.ev_class, d.refobjid, c.relkind, n.nspname, c.relname
"""

# Dependencies leave out what came with the server, and don't tell `count(*)` from a reference to a whole row.
# The stored parse tree does: its relations, those read without their children (ONLY), its functions, and variables
# with attribute number 0.
_PARSE_TREES = r"""
    SELECT r.ev_class::bigint,
           r.ev_action::text ~ ':varattno 0 ',
           ARRAY(SELECT m[1]::bigint FROM regexp_matches(r.ev_action::text, ':rtekind 0 :relid (\d+)', 'g') AS m),
           ARRAY(SELECT DISTINCT o.oid::bigint
                 FROM regexp_matches(r.ev_action::text, ':rtekind 0 :relid (\d+)[^{}]* :inh false', 'g') AS m
                 JOIN pg_catalog.pg_class o ON o.oid = m[1]::oid AND o.relkind <> 'v'),
           ARRAY(SELECT m[1]::bigint
                 FROM regexp_matches(r.ev_action::text, ':(?:funcid|aggfnoid|winfnoid|opfuncid) (\d+)', 'g') AS m)
    FROM pg_catalog.pg_rewrite r
    WHERE r.ev_class = ANY(%s)
"""

_VIEWS = """
    SELECT c.oid::bigint, n.nspname, c.relname, pg_catalog.pg_get_viewdef(c.oid),
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY(%s)
"""

_FUNCTIONS = """
    SELECT p.oid::bigint, lower(p.proname), p.provolatile, p.prokind = 'a', p.proretset
    FROM pg_catalog.pg_proc p WHERE p.oid = ANY(%s)
"""


@dataclass(frozen=True)
class References:
    columns: Mapping[int, frozenset[str] | None]
    """By relid of each relation that is no view: the columns named, None for all of them."""
    views: Mapping[int, tuple[tuple[str, str], str, tuple[str, ...]]]
    """By oid: (schema, name), canonical text, column names. The view followed from is not among them."""
    functions: Mapping[str, str]
    """Worst volatility called under each name."""
    aggregates: frozenset[str]
    """Names under which an aggregate is called."""
    set_returning: frozenset[str]
    """Names under which a function that returns a set is called."""
    function_oids: tuple[int, ...]
    """User-defined functions."""


def follow(conn: Connection, view: int) -> References:
    """Everything that `view` reads, to a fixpoint. The session's search_path decides how view texts are printed."""
    columns: dict[int, frozenset[str] | None] = {}
    functions: set[int] = set()
    seen, frontier = {view}, {view}
    for _ in range(MAX_DEPTH):
        if not frontier:
            break
        whole_rows, called = _parse_trees(conn, frontier)
        functions |= called
        following: set[int] = set()
        for owner, relid, relkind, schema, name, named in conn.execute(_DEPENDENCIES, [list(frontier)]):
            if relkind == "v":
                _refuse_builtin(relid, schema, name)
                following.add(relid)
            elif relkind in "rpmf":
                before = columns.get(relid, frozenset())
                columns[relid] = None if owner in whole_rows or before is None else before | frozenset(named or ())
            elif relkind == "S":
                raise QueryError(f"The query reads the sequence {schema}.{name}", remedy="Read a table instead.")
        frontier = following - seen
        seen |= following
    else:
        raise QueryError(f"Views are nested more than {MAX_DEPTH} deep", remedy="Query the tables more directly.")
    views = {
        oid: ((schema, name), text.strip().removesuffix(";"), tuple(names))
        for oid, schema, name, text, names in conn.execute(_VIEWS, [list(seen - {view})])
    }
    return References(columns, views, *_functions(conn, functions))


def _parse_trees(conn: Connection, views: set[int]) -> tuple[set[int], set[int]]:
    """Which of `views` refer to whole rows, and the functions they call."""
    whole_rows: set[int] = set()
    called: set[int] = set()
    for view, whole_row, relations, alone, functions in conn.execute(_PARSE_TREES, [list(views)]).fetchall():
        if whole_row:
            whole_rows.add(view)
        called.update(functions)
        if alone:
            _refuse_only(conn, alone[0])
        for relid in relations:
            if relid < FIRST_USER_OID:
                row = conn.execute(
                    "SELECT relnamespace::regnamespace::text, relname FROM pg_catalog.pg_class WHERE oid = %s", [relid]
                ).fetchone()
                _refuse_builtin(relid, *(row or ("pg_catalog", str(relid))))
    return whole_rows, called


def _refuse_only(conn: Connection, relid: int) -> None:
    """A table's buffer holds its children's changes too, and doesn't tell them apart."""
    row = conn.execute(
        "SELECT relnamespace::regnamespace::text || '.' || relname FROM pg_catalog.pg_class WHERE oid = %s", [relid]
    ).fetchone()
    raise QueryError(
        f"The query reads ONLY {row[0] if row else relid}, without the tables that inherit from it",
        remedy="Leave ONLY out.",
    )


def _refuse_builtin(relid: int, schema: str, name: str) -> None:
    if relid < FIRST_USER_OID:
        raise QueryError(
            f"The query reads {schema}.{name}, whose changes can't be captured",
            remedy="System catalogs can't feed a stream table; copy what you need into a table.",
        )


def _functions(
    conn: Connection, oids: set[int]
) -> tuple[dict[str, str], frozenset[str], frozenset[str], tuple[int, ...]]:
    functions: dict[str, str] = {}
    aggregates, set_returning = set(), set()
    for _, name, volatility, is_aggregate, returns_set in conn.execute(_FUNCTIONS, [list(oids)]):
        functions[name] = max(functions.get(name, "i"), volatility)  # 'i' < 's' < 'v', as it happens
        if is_aggregate:
            aggregates.add(name)
        if returns_set:
            set_returning.add(name)
    own = tuple(sorted(oid for oid in oids if oid >= FIRST_USER_OID))
    return functions, frozenset(aggregates), frozenset(set_returning), own
