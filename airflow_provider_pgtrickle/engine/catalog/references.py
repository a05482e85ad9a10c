"""What a view refers to, views behind views included, by PostgreSQL's own record of dependencies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog import zone
from airflow_provider_pgtrickle.engine.catalog.functions import that_may_read_tables
from airflow_provider_pgtrickle.engine.catalog.internals import pruned
from airflow_provider_pgtrickle.engine.catalog.relations import FIRST_USER_OID
from airflow_provider_pgtrickle.engine.dvm.clock import FUNCTIONS
from airflow_provider_pgtrickle.engine.dvm.schema import READS_CLOCK, READS_TABLES
from airflow_provider_pgtrickle.engine.errors import QueryError
from airflow_provider_pgtrickle.engine.names import RESERVED_PREFIX

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

# pg_depend leaves out what came with the server, and doesn't tell `count(*)` from a reference to a whole row. The
# stored parse tree shows both: relations, those read without their children (ONLY), functions, and variables with
# attribute number 0. Python searches it, because PostgreSQL takes seconds for that of a long query.
_PARSE_TREES = """
    SELECT r.ev_class::bigint, r.ev_action::text FROM pg_catalog.pg_rewrite r WHERE r.ev_class = ANY(%s)
"""
_RELATION = re.compile(r":rtekind 0 :relid (\d+)([^{}]*)")
_FUNCTION = re.compile(r":(?:funcid|aggfnoid|winfnoid|opfuncid) (\d+)")
_TYPE = re.compile(r"type(?:id)? (\d+)")
_COLLATION = re.compile(r"coll(?:id|Oid|ation) (\d+)")
_UNNAMED_ROW = re.compile(r':row_typeid 2249 :row_format 2 :colnames \("(?!f1")')
#: A row of no named type as one value, and the columns of a join in parentheses that has an alias.
_RECORD = ":varattno 0 :vartype 2249 "
_ALIASED_JOIN = re.compile(
    r":alias \{ALIAS [^{}]*\} :eref \{ALIAS :aliasname \S+ :colnames \(((?:\"(?:[^\"\\]|\\.)*\" ?)*)\)\} :rtekind 2 "
)
_NAME = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")
#: XMLTABLE or JSON_TABLE with names for its columns behind its alias.
_RENAMED_TABLE = re.compile(r":alias \{ALIAS :aliasname \S+ :colnames \([^{}]*\)\} :eref \{ALIAS [^{}]*\} :rtekind 4 ")

# Of each table read without its children: these, whether its rows are not told from theirs, and why it may not be read
# so. A row of a table that inherits in two ways counts twice. A virtual column of a child has another expression in the
# parent.
_ALONE = """
    SELECT c.oid::bigint, n.nspname || '.' || c.relname,
           ARRAY(SELECT i.inhrelid::bigint FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid ORDER BY 1),
           c.relhassubclass AND EXISTS (
               SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attgenerated = 'v')
           OR EXISTS (SELECT FROM (
               WITH RECURSIVE tree(oid) AS (
                   SELECT c.oid
                   UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid)
               SELECT FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
               GROUP BY i.inhrelid HAVING count(*) > 1) AS twice),
           CASE WHEN c.relkind = 'p' THEN 'which is partitioned and has no rows of its own'
                WHEN s.pgt_id IS NOT NULL THEN 'which is a stream table' END
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pgtrickle.pgt_stream_tables s ON s.pgt_relid = c.oid
    WHERE c.oid = ANY(%s) AND c.relkind <> 'v' ORDER BY c.oid
"""

#: Which columns of its SELECT lists a view groups and sorts by, as numbers.
_KEYS = """
    SELECT ARRAY(SELECT m[1] FROM regexp_matches(r.ev_action::text, ':ressortgroupref (\\d+)', 'g') AS m)
    FROM pg_catalog.pg_rewrite r WHERE r.ev_class = %s::regclass
"""

_VIEWS = """
    SELECT c.oid::bigint, n.nspname, c.relname,
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY(%s)
"""

# OFFSET keeps the planner from mixing the three steps.
_QUOTED = """
    SELECT printed.text, pg_catalog.set_config('quote_all_identifiers', 'off', true)
    FROM (SELECT pg_catalog.pg_get_viewdef(%s::oid) AS text
          FROM pg_catalog.set_config('quote_all_identifiers', 'on', true) OFFSET 0) AS printed
"""

# PostgreSQL labels every aggregate immutable, so the labels of its functions count. The offset of a zone, by which a
# time of day moves, is that of the present day, be it summer or winter; UTC has one alone.
_FUNCTIONS = """
    SELECT p.oid::bigint, lower(p.proname), greatest(p.provolatile::text, parts.worst), p.prokind = 'a', p.proretset,
           p.prosrc = 'timetz_zone' OR p.prosrc IN ('time_timetz', 'timetz_at_local') AND NOT %s
    FROM pg_catalog.pg_proc p
    LEFT JOIN LATERAL (
        SELECT max(f.provolatile::text) AS worst
        FROM pg_catalog.pg_aggregate a
        JOIN pg_catalog.pg_proc f ON f.oid IN (a.aggtransfn, a.aggfinalfn, a.aggmtransfn, a.aggminvtransfn,
                                               a.aggmfinalfn)
        WHERE a.aggfnoid = p.oid AND p.oid >= 16384) AS parts ON true
    WHERE p.oid = ANY(%s)
"""

# PostgreSQL prints CYCLE … TO 'x'::text DEFAULT 'y'::text, and reads constants there only as text 'x'.
_CYCLE_MARKS = re.compile(r"(TO|DEFAULT) ('(?:[^']|'')*')::([^'()]+?(?:\(\d+\))?)(?= DEFAULT | USING )")

# In the parse tree current_date, current_user and the like are not functions, but numbered: first those of the clock.
_SQL_VALUES = re.compile(r"\{SQLVALUEFUNCTION :op (\d+)")
_FIRST_OF_SESSION = 9
CLOCK = "current_timestamp or the like"
SESSION = "current_user or the like"

#: Functions that PostgreSQL calls STABLE because a setting shapes their answer. Every session of ours has the same
#: settings, so for the same arguments they answer the same.
STEADY = frozenset(
    """
    anytextcat array_to_json array_to_string concat concat_ws convert convert_from convert_to date date_add
    date_cmp_timestamptz date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz date_le_timestamptz
    date_lt_timestamptz date_ne_timestamptz date_part date_subtract date_trunc enum_first enum_last enum_range extract
    format generate_series interval_pl_timestamptz json_agg json_agg_strict json_build_array json_build_object
    json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict json_populate_record
    json_populate_recordset json_to_record json_to_recordset jsonb_agg jsonb_agg_strict jsonb_build_array
    jsonb_build_object jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict
    jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz
    jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset jsonb_to_record jsonb_to_recordset
    length make_timestamptz money numeric overlaps pg_typeof quote_literal quote_nullable row_to_json textanycat time
    timestamp timestamp_cmp_timestamptz timestamp_eq_timestamptz timestamp_ge_timestamptz timestamp_gt_timestamptz
    timestamp_le_timestamptz timestamp_lt_timestamptz timestamp_ne_timestamptz timestamptz timestamptz_cmp_date
    timestamptz_cmp_timestamp timestamptz_eq_date timestamptz_eq_timestamp timestamptz_ge_date
    timestamptz_ge_timestamp timestamptz_gt_date timestamptz_gt_timestamp timestamptz_le_date timestamptz_le_timestamp
    timestamptz_lt_date timestamptz_lt_timestamp timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp
    timestamptz_pl_interval timetz timezone to_char to_date to_json to_jsonb to_number to_timestamp xml
    xml_is_well_formed
    """.split()
)


@dataclass(frozen=True)
class References:
    columns: Mapping[int, frozenset[str] | None]
    """The columns named, by relid of each relation that is no view; None means all columns."""
    own_columns: Mapping[int, frozenset[str]]
    """The columns that the starting view names itself, and not through another view."""
    views: Mapping[int, tuple[tuple[str, str], str, tuple[str, ...]]]
    """(schema, name), canonical text and column names of each view by oid, without the starting view."""
    functions: Mapping[str, str]
    """The worst volatility that is called under each function name. Functions in STEADY count as immutable."""
    aggregates: frozenset[str]
    """Names under which an aggregate is called."""
    set_returning: frozenset[str]
    """Names under which a function that returns a set is called."""
    function_oids: tuple[int, ...]
    """User-defined functions."""
    types: frozenset[int]
    """User-defined types of values that the query handles."""
    collations: frozenset[int]
    heirs: Mapping[int, tuple[int, ...]]
    """For each table that is read without its children (ONLY): the children. See `Schema.heirs`."""


def follow(conn: Connection, view: int) -> References:
    """Everything that `view` reads, to a fixpoint. The session's search_path decides how view texts are printed."""
    columns: dict[int, frozenset[str] | None] = {}
    own: dict[int, frozenset[str]] = {}
    functions: set[int] = set()
    types: set[int] = set()
    collations: set[int] = set()
    reads_session: set[str] = set()
    childless: set[int] = set()
    seen, frontier = {view}, {view}
    for _ in range(MAX_DEPTH):
        if not frontier:
            break
        whole_rows, asks_session = _parse_trees(conn, frontier, functions, types, collations, childless)
        reads_session |= asks_session
        following: set[int] = set()
        for owner, relid, relkind, schema, name, named in conn.execute(_DEPENDENCIES, [list(frontier)]):
            if relkind == "v":
                _refuse_builtin(relid, schema, name)
                following.add(relid)
            elif relkind in "rpmf":
                if owner == view:
                    own[relid] = frozenset(named or ())
                before = columns.get(relid, frozenset())
                columns[relid] = None if owner in whole_rows or before is None else before | frozenset(named or ())
            elif relkind == "S":
                raise QueryError(f"The query reads the sequence {schema}.{name}", remedy="Read a table instead.")
        frontier = following - seen
        seen |= following
    else:
        raise QueryError(f"Views are nested more than {MAX_DEPTH} deep", remedy="Query the tables more directly.")
    views = {
        oid: ((schema, name), _without_internals(definition(conn, oid, quoted=True)), tuple(names))
        for oid, schema, name, names in conn.execute(_VIEWS, [list(seen - {view})]).fetchall()
    }
    return References(
        columns,
        own,
        views,
        *_functions(conn, functions, reads_session),
        frozenset(oid for oid in types if oid >= FIRST_USER_OID),
        frozenset(collations - {0}),
        _heirs(conn, childless),
    )


def _without_internals(text: str) -> str:
    """The text without the internal columns that a view made as SELECT * of a stream table has."""
    return pruned(text) if RESERVED_PREFIX in text else text


def definition(conn: Connection, view: int, *, quoted: bool = False) -> str:
    """A view's text as PostgreSQL prints it; `quoted`: with every name in quotes, so that other words are grammar."""
    row = conn.execute(_QUOTED if quoted else "SELECT pg_catalog.pg_get_viewdef(%s::oid)", [view]).fetchone()
    assert row is not None
    return _CYCLE_MARKS.sub(r"\1 \3 \2", str(row[0]).strip().removesuffix(";"))


def _parse_trees(
    conn: Connection,
    views: set[int],
    functions: set[int],
    types: set[int],
    collations: set[int],
    childless: set[int],
) -> tuple[set[int], set[str]]:
    """Which of `views` refer to whole rows, and which of CLOCK and SESSION they ask for.

    What they call and handle is added to `functions`, `types` and `collations`, what they read without its children to
    `childless`.
    """
    whole_rows: set[int] = set()
    asks_session: set[str] = set()
    for view, tree in conn.execute(_PARSE_TREES, [list(views)]).fetchall():
        if ":varattno 0 " in tree:
            whole_rows.add(view)
        functions.update(map(int, _FUNCTION.findall(tree)))
        types.update(map(int, _TYPE.findall(tree)))
        collations.update(map(int, _COLLATION.findall(tree)))
        if "{ROWMARKCLAUSE " in tree:
            raise QueryError("The query locks rows (FOR UPDATE or FOR SHARE)", remedy="Remove the locking clause.")
        if _UNNAMED_ROW.search(tree) or (_RECORD in tree and _has_namesakes(tree)):
            raise QueryError(
                "The query takes the whole row of a join's alias as one value, and PostgreSQL's own text of it forgets"
                " the names of its fields",
                remedy="Give the join in a derived table: FROM (SELECT … FROM a JOIN b …) AS u.",
            )
        if ":rtekind 4 " in tree and _RENAMED_TABLE.search(tree):
            raise QueryError(
                "The query renames columns of XMLTABLE or JSON_TABLE behind its alias, and PostgreSQL's own text of it"
                " forgets the new names",
                remedy="Give the columns these names in COLUMNS (…).",
            )
        if ":groupingSets (" in tree:
            _refuse_lost_keys(conn, view)
        asked = {int(op) for op in _SQL_VALUES.findall(tree)}
        asks_session |= {CLOCK if op < _FIRST_OF_SESSION else SESSION for op in asked}
        relations = [(int(relid), rest) for relid, rest in _RELATION.findall(tree)]
        childless.update(relid for relid, rest in relations if " :inh false" in rest)
        for relid in dict.fromkeys(relid for relid, _ in relations):
            if relid < FIRST_USER_OID:
                row = conn.execute(
                    "SELECT relnamespace::regnamespace::text, relname FROM pg_catalog.pg_class WHERE oid = %s", [relid]
                ).fetchone()
                _refuse_builtin(relid, *(row or ("pg_catalog", str(relid))))
    return whole_rows, asks_session


def _has_namesakes(tree: str) -> bool:
    """Whether a join's alias has two columns of one name, which PostgreSQL prints as id and id_1.

    Which alias a row is taken of isn't looked at: it is one of these, or stands beside one.
    """
    named = (_NAME.findall(listed) for listed in _ALIASED_JOIN.findall(tree))
    return any(len(set(names)) < len(names) for names in named)


def _refuse_lost_keys(conn: Connection, view: int) -> None:
    """Refuse GROUPING SETS (1, 2) over two equal expressions: PostgreSQL prints the first one twice."""
    with conn.transaction(force_rollback=True):
        conn.execute("CREATE VIEW pgtrickle.__pgt_reread AS " + definition(conn, view))
        before, after = (conn.execute(_KEYS, [str(name)]).fetchone() for name in (view, "pgtrickle.__pgt_reread"))
    if before != after:
        raise QueryError(
            "GROUPING SETS tells two columns of one expression apart, and PostgreSQL's own text of the query doesn't",
            remedy="Give the two columns their names in a derived table, and group by those.",
        )


def _heirs(conn: Connection, childless: set[int]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    if not childless:
        return found
    for relid, name, children, is_mixed, objection in conn.execute(_ALONE, [list(childless)]).fetchall():
        if objection:
            raise QueryError(f"The query reads ONLY {name}, {objection}", remedy="Leave ONLY out.")
        if not is_mixed:
            found[relid] = tuple(children)
    return found


def _refuse_builtin(relid: int, schema: str, name: str) -> None:
    if relid < FIRST_USER_OID:
        raise QueryError(
            f"The query reads {schema}.{name}, whose changes can't be captured",
            remedy="System catalogs can't feed a stream table; copy what you need into a table.",
        )


def _functions(
    conn: Connection, oids: set[int], reads_session: set[str]
) -> tuple[dict[str, str], frozenset[str], frozenset[str], tuple[int, ...]]:
    functions: dict[str, str] = {asked: READS_CLOCK if asked == CLOCK else "s" for asked in reads_session}
    aggregates, set_returning = set(), set()
    readers = that_may_read_tables(conn, oids)
    found = conn.execute(_FUNCTIONS, [zone.of(conn) is None, list(oids)]).fetchall()
    for oid, name, volatility, is_aggregate, returns_set, follows_day in found:
        if volatility == "s" and oid < FIRST_USER_OID and name in STEADY and not follows_day:
            volatility = "i"
        if oid < FIRST_USER_OID and name in FUNCTIONS:
            volatility = READS_CLOCK
        if oid in readers:
            volatility = max(volatility, READS_TABLES)
        functions[name] = max(functions.get(name, "i"), volatility)  # 'i' < 'n' < 's' < 't' < 'v', as it happens
        if is_aggregate:
            aggregates.add(name)
        if returns_set:
            set_returning.add(name)
    own = tuple(sorted(oid for oid in oids if oid >= FIRST_USER_OID))
    return functions, frozenset(aggregates), frozenset(set_returning), own
