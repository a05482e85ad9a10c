"""Ask PostgreSQL what a query means: its canonical text, its columns, the relations behind it.

The query becomes a view in a transaction that is always rolled back, so names resolve exactly as they would for the
user: search_path, quoting, shadowing by CTEs, `*` and NATURAL JOIN included.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.catalog import internals, zone
from airflow_provider_pgtrickle.engine.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.engine.catalog.fingerprint import fingerprint
from airflow_provider_pgtrickle.engine.catalog.foreign import foreign_code, refuse_unaccepted
from airflow_provider_pgtrickle.engine.catalog.probed import OutputColumn, Probe
from airflow_provider_pgtrickle.engine.catalog.query_faults import as_query_fault
from airflow_provider_pgtrickle.engine.catalog.references import References, definition, follow
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.catalog.search_path import pin, read_only, reading_under
from airflow_provider_pgtrickle.engine.dvm.budget import check_text
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source
from airflow_provider_pgtrickle.engine.errors import PermissionFault, PgTrickleError, QueryError
from airflow_provider_pgtrickle.engine.names import RESERVED_PREFIX

__all__ = ["OutputColumn", "Probe", "are_one_query", "fingerprint", "planning_within", "probe"]

#: A query that takes longer to plan would do so at each refresh.
PLANNING_SECONDS = 10


@contextmanager
def planning_within(conn: Connection, seconds: int = PLANNING_SECONDS) -> Iterator[None]:
    """In the block, a savepoint of the caller's transaction, an EXPLAIN is cancelled after some seconds."""
    with conn.transaction(force_rollback=True):
        conn.execute("SELECT pg_catalog.set_config('statement_timeout', %s, true)", [f"{seconds}s"])
        yield


#: Of a view's parse tree, in its order: operators that didn't come with the server, and all columns if a USING has an
#: alias. Without such an alias the printed text may have other columns and mean the same: VALUES as a branch of UNION
#: is printed as a subquery.
_READ = r"""
    SELECT ARRAY(SELECT o[1]
                 FROM pg_catalog.regexp_matches(r.ev_action::text, ':opnos? (\d+|\(o [ \d]+\))', 'g') AS m,
                      pg_catalog.regexp_matches(m[1], '\d+', 'g') AS o
                 WHERE o[1]::bigint >= 16384),
           ARRAY(SELECT pg_catalog.array_to_string(m, ' ')
                 FROM pg_catalog.regexp_matches(
                     r.ev_action::text, '{VAR :varno (\d+) :varattno (-?\d+) [^}]*?:varlevelsup (\d+)', 'g') AS m
                 WHERE pg_catalog.strpos(r.ev_action::text, ':join_using_alias {') > 0)
    FROM pg_catalog.pg_rewrite r WHERE r.ev_class = %s
"""

#: Types by which these views group, sort or tell rows apart, and whose equality operator our sessions don't find.
_EQUALITIES = r"""
    SELECT DISTINCT pg_catalog.format_type(o.oprleft, NULL)
    FROM pg_catalog.pg_rewrite r
    CROSS JOIN LATERAL pg_catalog.regexp_matches(r.ev_action::text, ':eqop (\d+)', 'g') AS m
    JOIN pg_catalog.pg_operator o ON o.oid = m[1]::oid AND o.oprnamespace <> 'pg_catalog'::regnamespace
    WHERE r.ev_class = ANY(%s) ORDER BY 1
"""


def probe(conn: Connection, query: str, path: str | None = None, accepted: Mapping[str, str] | None = None) -> Probe:
    """What `query` means, with its names looked up along `path` or the session's own.

    Nothing of this stays in the database. The query is refused if code of others behind it is not what was `accepted`.
    Before that check the query is not even
    planned, because planning calls functions of constants.
    """
    check_text(query)
    with conn.transaction(force_rollback=True):
        open_ended = internals.is_open_ended(query)
        view = _opened(conn, query, path) if open_ended else _create_view(conn, query, path)
        canonical, text = _definition(conn, view)
        if open_ended and RESERVED_PREFIX in canonical:
            view = _create_view(conn, internals.pruned(text))
            canonical, text = _definition(conn, view)
        columns = _output_columns(conn, view)
        references = follow(conn, view)
        _refuse_unprinted(conn, view, canonical)
        odd_equalities = tuple(name for (name,) in conn.execute(_EQUALITIES, [[view, *references.views]]))
        foreign = foreign_code(conn, references.function_oids, references.views)
        refuse_unaccepted(foreign, accepted)
        sources = read_sources(conn, {*references.columns, *(h for heirs in references.heirs.values() for h in heirs)})
        texts = [canonical, *(view_text for _, view_text, _ in references.views.values())]
        open_ended = open_ended or any(map(internals.is_open_ended, texts))
        _check_names(columns)
        used = _used(references, sources)
        _check_rights(conn, view, sources, used)
        schema = Schema(
            sources={(s.schema, s.name): s for s in sources.values()},
            views={name: view_text for name, view_text, _ in references.views.values()},
            functions=references.functions,
            aggregates=references.aggregates,
            set_returning=references.set_returning,
            view_columns={name: columns for name, _, columns in references.views.values()},
            heirs={str(relid): tuple(map(str, heirs)) for relid, heirs in references.heirs.items()},
            keeps_equal_keys_apart=Capabilities.of(conn).equal_keys_kept_apart,
            is_local=zone.of(conn) is not None,
        )
    return Probe(
        original=query,
        canonical=canonical,
        text=text,
        columns=columns,
        schema=schema,
        columns_used=used,
        views=tuple(sorted(references.views)),
        function_oids=references.function_oids,
        types=references.types,
        collations=references.collations,
        foreign=foreign,
        odd_equalities=odd_equalities,
        open_ended=open_ended,
    )


def _opened(conn: Connection, query: str, path: str | None) -> int:
    """Create a view of a query in which a star over a stream table means its visible columns; the view's oid."""
    visible = internals.visible_only(conn, query, path)
    if visible != query:
        try:
            with conn.transaction():
                return _create_view(conn, visible, path)
        except PgTrickleError:
            # The rewritten text may be wrong where the author's is not: public.totals.id can't name a derived table.
            pass
    return _create_view(conn, query, path)


def are_one_query(conn: Connection, text: str, written: str) -> bool:
    """Whether PostgreSQL prints both texts the same, which means that it reads them as one query."""
    printed = []
    for query in (text, written):
        try:
            with conn.transaction(force_rollback=True):
                pin(conn)
                printed.append(definition(conn, _create_view(conn, query)))
        except PgTrickleError:
            return False
    return printed[0] == printed[1]


def compared_and_read(conn: Connection, view: int) -> tuple[list[str], list[str]]:
    """The operators of users by which a view compares, and the columns that it reads if a USING in it has an alias."""
    row = conn.execute(_READ, [view]).fetchone()
    assert row is not None  # a view has its rule
    return row[0], row[1]


def _refuse_unprinted(conn: Connection, view: int, canonical: str) -> None:
    """Refuse what PostgreSQL's own text of the query doesn't say, because the catalog keeps that text.

    NULLIF, USING, CASE x WHEN and IS DISTINCT FROM are printed without the operator by which they compare. A column of
    a USING's alias is printed without the alias, and then an outer join with the same column takes it.
    """
    before = compared_and_read(conn, view)
    try:
        with conn.transaction(force_rollback=True):
            after = compared_and_read(conn, _create_view(conn, canonical))
    except QueryError as error:
        raise QueryError(
            f"PostgreSQL can't read its own text of the query: {error.message}",
            remedy="Give other aliases to what it joins, or name the columns of the joined tables.",
        ) from error
    if before[0] != after[0]:
        raise QueryError(
            "The query compares with an operator outside pg_catalog, and PostgreSQL's own text of it doesn't say so",
            remedy="Cast what is compared to a type of pg_catalog (::text of a citext), or write the comparison out:"
            " a OPERATOR(schema.=) b.",
        )
    if before[1] != after[1]:
        raise QueryError(
            "PostgreSQL's own text of the query reads another column than the query does",
            remedy="Name a column of one of the joined tables instead of the alias of JOIN … USING (…) AS alias.",
        )


def _create_view(conn: Connection, query: str, path: str | None = None) -> int:
    name = sql.Identifier("pgtrickle", f"__pgt_probe_{secrets.token_hex(6)}")
    head = sql.SQL("CREATE VIEW {} AS ").format(name).as_string(conn)
    try:
        with reading_under(conn, path):
            # binary=True takes the extended protocol, which refuses a second statement behind a semicolon.
            conn.execute(head + query, binary=True)
    except psycopg.Error as error:
        raise as_query_fault(error, query, offset=len(head)) from error
    oid = conn.execute("SELECT %s::regclass::oid::bigint", [name.as_string(conn)]).fetchone()
    assert oid is not None
    return int(oid[0])


def _definition(conn: Connection, view: int) -> tuple[str, str]:
    """The canonical text, and the same with every name in quotes."""
    # From here on names are printed qualified. The rollback resets it.
    pin(conn)
    return definition(conn, view), definition(conn, view, quoted=True)


def _output_columns(conn: Connection, view: int) -> tuple[OutputColumn, ...]:
    rows = conn.execute(
        """
        SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid::bigint,
               CASE WHEN a.attcollation <> t.typcollation
                    THEN pg_catalog.format('%%I.%%I', n.nspname, c.collname) END
        FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
        LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
        WHERE a.attrelid = %s AND a.attnum > 0
        ORDER BY a.attnum
        """,
        [view],
    )
    return tuple(OutputColumn(*row) for row in rows)


def _check_names(columns: tuple[OutputColumn, ...]) -> None:
    if not columns:
        raise QueryError("The query has no columns", remedy="Select at least one.")
    for position, column in enumerate(columns, start=1):
        if column.name == "?column?":
            raise QueryError(f"Column {position} of the query has no name", remedy="Give it one with AS.")
        if column.name.startswith(RESERVED_PREFIX):
            raise QueryError(
                f"Column {column.name} has a name that is reserved",
                remedy="Give it another one with AS; of a stream table, name the columns that you mean.",
            )


def _either(some: frozenset[str] | None, others: frozenset[str] | None) -> frozenset[str] | None:
    return None if some is None or others is None else some | others


def _used(references: References, sources: Mapping[int, Source]) -> dict[int, tuple[str, ...]]:
    used = {}
    columns = dict(references.columns)
    for relid, heirs in references.heirs.items():
        for heir in heirs:
            columns[heir] = _either(columns.get(heir, frozenset()), columns[relid])
    for relid, source in sources.items():
        names = columns[relid]
        own = references.own_columns.get(relid, ()) if source.pgt_id is not None else ()
        if hidden := sorted(n for n in own if n.startswith(RESERVED_PREFIX)):
            raise QueryError(
                f"The query names {hidden[0]}, an internal column of the stream table {source.schema}.{source.name}",
                remedy="Name the columns that you mean.",
            )
        used[relid] = tuple(c.name for c in source.columns if names is None or c.name in names)
    return used


def _check_rights(
    conn: Connection, view: int, sources: Mapping[int, Source], used: Mapping[int, tuple[str, ...]]
) -> None:
    """Refreshes read the tables themselves, also those behind views, so SELECT on each is needed."""
    for relid, source in sources.items():
        row = conn.execute(
            """
            SELECT pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')
               AND (pg_catalog.has_table_privilege(c.oid, 'SELECT')
                    OR cardinality(%(columns)s::text[]) > 0
                       AND (SELECT bool_and(pg_catalog.has_column_privilege(c.oid, name, 'SELECT'))
                            FROM unnest(%(columns)s::text[]) AS name))
            FROM pg_catalog.pg_class c WHERE c.oid = %(relid)s
            """,
            {"relid": relid, "columns": list(used[relid])},
        ).fetchone()
        if not (row and row[0]):
            raise PermissionFault(
                f"The role may not read {source.schema}.{source.name}",
                remedy=f"Its owner can GRANT SELECT ON it (and USAGE on schema {source.schema}).",
            )
    relation = conn.execute("SELECT %s::oid::regclass::text", [view]).fetchone()
    assert relation is not None
    try:
        # EXPLAIN checks the other rights, on views and functions. It computes no row.
        with planning_within(conn), read_only(conn):
            # These are the server's defaults. Our sessions' higher limits are meant for the algebra's statements.
            conn.execute("SET LOCAL join_collapse_limit = 8; SET LOCAL from_collapse_limit = 8")
            conn.execute(sql.SQL("EXPLAIN SELECT * FROM ") + sql.SQL(relation[0]))
    except psycopg.errors.QueryCanceled as error:
        raise QueryError(
            f"PostgreSQL takes more than {PLANNING_SECONDS} s to plan the query",
            remedy="Join fewer relations, or nest it less: its inner part can be a stream table of its own.",
        ) from error
    except psycopg.Error as error:
        raise as_query_fault(error, "", offset=0) from error
