"""The stage keeps a member's computed rows beside the stream table, and consolidation makes the true difference of it.

A stage has a weight, a row id and the storage columns. Consolidation groups by all columns, sums the weights and drops
zeros; from a whole content (FULL) it first subtracts the stored rows. Each row of the difference has its operation.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, ROW_ID, buffer_column
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.errors import PermissionFault
from airflow_provider_pgtrickle.engine.names import RESERVED_PREFIX, QualifiedName
from airflow_provider_pgtrickle.engine.refresh.sameness import Column, agree, look_alike
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_pgtrickle.engine.declare.partitions import Touched

_CHUNK = 50_000
_ANALYZE_FROM = 5_000
_MUCH = 50_000
_WORK_MEM = "128MB"

OP = "__pgt_op"

# The operations for the rows of a difference.
INSERT, DELETE = "I", "D"
# An identity that both goes and comes: UPDATE marks the new row, REPLACED the old row that it replaces.
UPDATE, REPLACED = "U", "O"
# An identity that comes or goes twice, which no correct difference holds.
DUPLICATE = "!"


@dataclass(frozen=True)
class Target:
    """A stream table as a write sees it."""

    table: QualifiedName
    columns: tuple[Column, ...]
    """All storage columns, in order."""
    identity: tuple[str, ...]
    keyed: bool
    """Whether the identity is a key. If it isn't, the table is a bag of rows."""
    server_row_id: str | None = None
    """SQL of the row id over the storage columns, for a table whose row ids the server computes."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.name in self.identity)


@dataclass(frozen=True)
class Difference:
    """The difference, which is in a temporary table of the session."""

    table: sql.Identifier
    counts: dict[str, int]
    """Rows by operation."""

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


def temporary(conn: Connection, target: Target, pgt_id: int, arrow: pa.Table) -> sql.Identifier:
    """Make a temporary stage of these rows, whose columns have the types and collations of the stream table's."""
    name = f"pgt_stage_{pgt_id}"
    conn.execute(
        sql.SQL("CREATE TEMPORARY TABLE {} AS SELECT 0 AS {}, {} FROM {} WITH NO DATA").format(
            sql.Identifier(name), sql.Identifier(WEIGHT), names((ROW_ID, *target.names)), target.table.sql
        )
    )
    stage = sql.Identifier("pg_temp", name)
    copy_arrow(conn, stage, arrow)
    return stage


def prepare(conn: Connection, pgt_id: int, rows: sql.Composable) -> sql.Identifier:
    """Make an empty temporary stage for the rows of a statement, with the types and collations that it yields."""
    name = f"pgt_stage_{pgt_id}"
    conn.execute(
        sql.SQL("CREATE TEMPORARY TABLE {} AS SELECT * FROM {} WITH NO DATA").format(sql.Identifier(name), rows)
    )
    return sql.Identifier("pg_temp", name)


def filling(stage: sql.Identifier, rows: sql.Composable) -> sql.Composed:
    """The statement that fills it."""
    return sql.SQL("INSERT INTO {} SELECT * FROM {}").format(stage, rows)


def set_aside(conn: Connection, pgt_id: int, values: str) -> None:
    """Compute the values of new columns, which are set in the stored rows when these have the columns."""
    table = aside(pgt_id)
    rows = sql.SQL("({}) AS v").format(sql.SQL(values))
    conn.execute(sql.SQL("CREATE TEMPORARY TABLE {} AS SELECT * FROM {} WITH NO DATA").format(table, rows))
    with read_only(conn):
        number = conn.execute(filling(table, rows)).rowcount
    analyze(conn, table, number)


def aside(pgt_id: int) -> sql.Identifier:
    """The table of these values."""
    return sql.Identifier("pg_temp", f"pgt_aside_{pgt_id}")


def setting(target: Target, values: sql.Identifier, columns: tuple[str, ...]) -> sql.Composed:
    """The statement that sets the columns to these values."""
    return sql.SQL("UPDATE {t} t SET {assignments} FROM {v} v WHERE t.{id} = v.{id} AND {same}").format(
        t=target.table.sql,
        assignments=sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Identifier("v", name)) for name in columns
        ),
        v=values,
        id=sql.Identifier(ROW_ID),
        same=agree(target.key, "t", "v"),
    )


def computed(statement: str, columns: tuple[str, ...]) -> sql.Composed:
    """The rows of a computation that the session stages itself, as an item of FROM with a stage's columns."""
    return sql.SQL("(SELECT {}, {} AS {}{} FROM ({}) AS c) AS r").format(
        sql.Identifier("c", WEIGHT),
        sql.Identifier("c", "__pgt_key"),
        sql.Identifier(ROW_ID),
        sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier("c", name)) for name in columns),
        sql.SQL(statement),
    )


def shared(conn: Connection, pgt_id: int, token: str, columns: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Create an empty stage that executors can reach. It is unlogged, because it is not used after the refresh."""
    schema = _schema(conn)
    table = f"{'' if schema == CHANGES else RESERVED_PREFIX}{_prefix(pgt_id)}{token}"
    typed = sql.SQL("").join(
        # The type is PostgreSQL's own `format_type` text.
        sql.SQL(", {} {}").format(sql.Identifier(name), sql.SQL(type_))
        for name, type_ in columns
    )
    conn.execute(
        sql.SQL("CREATE UNLOGGED TABLE {} ({} int NOT NULL, {} bigint NOT NULL{})").format(
            sql.Identifier(schema, table), sql.Identifier(WEIGHT), sql.Identifier(ROW_ID), typed
        )
    )
    return schema, table


def _schema(conn: Connection) -> str:
    """The schema in which the role may make a stage: that of the buffers, or the schema of the role's own name.

    A role that only refreshes creates nothing in the buffers' schema: a table or function that it created there before
    the owner did would be used as if it were the owner's.
    """
    row = conn.execute(
        "SELECT pg_catalog.has_schema_privilege(%s, 'CREATE'), current_user::text,"
        " coalesce(pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace("
        " pg_catalog.quote_ident(current_user))::oid, 'CREATE'), false)",
        (CHANGES,),
    ).fetchone()
    assert row is not None
    owns, role, has_schema = row
    if owns:
        return CHANGES
    if has_schema:
        return str(role)
    raise PermissionFault(
        f"Role {role} has no schema in which it may create the staging table of a large refresh",
        remedy=f'Make it one of its own: CREATE SCHEMA AUTHORIZATION "{role}".',
    )


def drop_shared(conn: Connection, ids: Sequence[int]) -> None:
    """Drop the tables' shared stages: those of this run, and those that dead runs left.

    Only the holder of the tables' locks may do this, in the transaction that commits, because no other stage is in use
    then.
    """
    # A range of names is found by the index, however many tables there are. After _ comes `.
    left = conn.execute(
        "SELECT n.nspname, c.relname FROM unnest(%s::text[], %s::text[]) AS s(schema, prefix)"
        " JOIN pg_catalog.pg_namespace n ON n.nspname = coalesce(s.schema, current_user)::name JOIN LATERAL ("
        "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid"
        " AND c.relname >= s.prefix::name AND c.relname < (rtrim(s.prefix, '_') || '`')::name"
        " AND c.relkind = 'r' AND pg_catalog.pg_has_role(c.relowner, 'USAGE')) AS c ON true",
        (
            [schema for _ in ids for schema in (CHANGES, None)],
            [prefix for pgt_id in ids for prefix in (_prefix(pgt_id), RESERVED_PREFIX + _prefix(pgt_id))],
        ),
    ).fetchall()
    for place in left:
        conn.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(*place)))


def copy_arrow(conn: Connection, target: sql.Identifier, arrow: pa.Table) -> int:
    """COPY an Arrow table whose column names are the target's; PostgreSQL's input functions parse each value."""
    # The import is late, because it takes a fifth of a second and a refresh that finds no change doesn't need it.
    from pyarrow import csv

    # Strings are quoted and NULL is written as nothing at all, so COPY tells NULL from the empty string.
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(target, names(tuple(arrow.column_names)))
    with conn.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in arrow.to_batches(max_chunksize=_CHUNK):
            sink = io.BytesIO()
            csv.write_csv(batch, sink, options)
            copy.write(sink.getvalue())
    analyze(conn, target, arrow.num_rows)
    return int(arrow.num_rows)


def finished(
    conn: Connection, table: sql.Identifier, late: tuple[tuple[str, str], ...], target: Target, *, identified: bool
) -> sql.Composable:
    """The stage as an item of FROM, with what PostgreSQL computes: late columns of the rows that come, and row ids."""
    if late:
        settings = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.SQL(expression)) for name, expression in late
        )
        conn.execute(sql.SQL("UPDATE {} SET {} WHERE {} > 0").format(table, settings, sql.Identifier(WEIGHT)))
    if identified or target.server_row_id is None:
        return table
    return sql.SQL("(SELECT {}, {} AS {}, {} FROM {} AS r) AS r").format(
        sql.Identifier("r", WEIGHT),
        sql.SQL(target.server_row_id),
        sql.Identifier(ROW_ID),
        names(target.names, "r"),
        table,
    )


def consolidate(
    conn: Connection,
    target: Target,
    pgt_id: int,
    stage: sql.Composable,
    *,
    whole: bool,
    repairs: bool = False,
    sizes: tuple[int, int] | None = None,
) -> Difference:
    """Make the difference from the stage. If the stage is the whole content, the stored rows are subtracted from it.

    `sizes`: they were subtracted where the rows were computed, from so many rows of the content so many stored ones.
    """
    whole = whole and sizes is None
    differing(conn, target, pgt_id, whole=whole)
    conn.execute(consolidating(target, pgt_id, stage, whole=whole, repairs=repairs))
    return counted(conn, target, pgt_id, whole=whole, sizes=sizes)


def differing(conn: Connection, target: Target, pgt_id: int, *, whole: bool) -> None:
    """Make an empty temporary table for the difference, with the types and collations of the stream table's columns."""
    # A column of type text would cost PostgreSQL a table for long values, with an index.
    conn.execute(
        sql.SQL(
            "CREATE TEMPORARY TABLE {} AS SELECT 0::bigint AS {}, {}, ' '::pg_catalog.\"char\" AS {}"
            " FROM {} WITH NO DATA"
        ).format(
            _difference(pgt_id),
            sql.Identifier(WEIGHT),
            names((ROW_ID, *target.names)),
            sql.Identifier(OP),
            target.table.sql,
        )
    )
    if meets(target, whole):
        conn.execute(counting(pgt_id))


def consolidating(
    target: Target, pgt_id: int, stage: sql.Composable, *, whole: bool, repairs: bool = False, parallel: bool = False
) -> sql.Composed:
    """The statement that makes the difference of the stage's rows, or of any other rows with its columns.

    `repairs`: stored rows with a wrong row id are replaced, too. `parallel`: the rows are computed by a statement of
    its own, for which PostgreSQL may use parallel workers: never for one that writes, nor where rows are numbered.
    """
    if meets(target, whole):
        if parallel:
            columns = sql.SQL("{}::bigint, {}").format(sql.Identifier(WEIGHT), names((ROW_ID, *target.names)))
            stage = sql.SQL("{} AS r").format(_apart(target, sql.SQL("SELECT {} FROM {}").format(columns, stage)))
        rows = unmatched(target, pgt_id, stage, repairs=repairs)
    else:
        rows = sql.SQL("SELECT {}, {} FROM {}").format(sql.Identifier(WEIGHT), names((ROW_ID, *target.names)), stage)
        if whole:
            rows += sql.SQL(" UNION ALL SELECT -1, {} FROM {}").format(names((ROW_ID, *target.names)), target.table.sql)
    netted = net(rows, target.columns)
    is_apart = parallel and not meets(target, whole)
    return sql.SQL("INSERT INTO {} SELECT c.*, {} FROM {} AS c").format(
        _difference(pgt_id), operation(target), _apart(target, netted) if is_apart else sql.SQL("({})").format(netted)
    )


def _apart(target: Target, rows: sql.Composable) -> sql.Composed:
    """The rows of a statement with a stage's columns, computed before the statement around it goes on."""
    columns = [(WEIGHT, "bigint"), (ROW_ID, "bigint"), *((column.name, column.passed) for column in target.columns)]
    # The types and collations are PostgreSQL's own texts.
    typed = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(t)) for n, t in columns)
    return sql.SQL("(SELECT * FROM pgtrickle.pgt_rows({}) AS a ({}))").format(sql.Literal(rows.as_string(None)), typed)


def meets(target: Target, whole: bool) -> bool:
    """Whether rows of a whole content and stored rows can meet by a key."""
    return whole and target.keyed and bool(target.key)


def counting(pgt_id: int) -> sql.Composed:
    """The statement that makes the sequence that numbers the rows of a whole content."""
    # It takes its numbers from memory, and a read-only transaction may use it, because it is temporary.
    return sql.SQL("CREATE TEMPORARY SEQUENCE {} CACHE 10000").format(_counter(pgt_id))


def unmatched(target: Target, pgt_id: int, content: sql.Composable, *, repairs: bool) -> sql.Composed:
    """SQL of content − stored, for a keyed table: the rows of either side that the other side doesn't have.

    Both sides are read once and meet in a hash join, which compares all values; to group the rows of both takes twice
    as long. Equal rows that don't meet, such as those with NULL in the key, cancel out in `net`. The rows of the
    content are numbered, so that `counted` knows how many there were. Where the server can compute row ids, it does so
    for unmatched rows only.
    """
    stored, number = sql.Identifier("s", ROW_ID), "__pgt_nth"
    if target.server_row_id is None:
        row_id, columns = sql.Composed([sql.Identifier("r", ROW_ID)]), (ROW_ID, *target.names)
    else:
        row_id, columns = sql.Composed([sql.SQL(target.server_row_id)]), target.names
    by_key = all(column.exact for column in target.key)
    meet: list[sql.Composable] = []
    if by_key:
        meet += [sql.SQL("{} = {}").format(column.of("r"), column.of("s")) for column in target.key]
    if repairs or not by_key:
        meet.append(sql.SQL("{} = {}").format(row_id, stored))
    meet += [column.indistinct("r", "s") for column in target.columns if not by_key or column not in target.key]
    values = [(ROW_ID, row_id), *((column.name, column.of("r")) for column in target.columns)]
    return sql.SQL(
        "SELECT CASE WHEN {stored} IS NULL THEN 1 ELSE -1 END AS {weight}, {values}"
        " FROM (SELECT pg_catalog.nextval({counter}::pg_catalog.regclass) AS {number}, {columns} FROM {content}) AS r"
        " FULL JOIN {table} AS s ON {meet} WHERE {stored} IS NULL OR {counted} IS NULL"
    ).format(
        stored=stored,
        weight=sql.Identifier(WEIGHT),
        values=sql.SQL(", ").join(
            sql.SQL("CASE WHEN {} IS NULL THEN {} ELSE {} END AS {}").format(
                stored, value, sql.Identifier("s", name), sql.Identifier(name)
            )
            for name, value in values
        ),
        counter=sql.Literal(_counter(pgt_id).as_string(None)),
        number=sql.Identifier(number),
        counted=sql.Identifier("r", number),
        columns=names(columns),
        content=content,
        table=target.table.sql,
        meet=sql.SQL(" AND ").join(meet),
    )


def counted(
    conn: Connection, target: Target, pgt_id: int, *, whole: bool, sizes: tuple[int, int] | None = None
) -> Difference:
    """The difference that was made. `sizes`: see `consolidate`."""
    table = _difference(pgt_id)
    counts = {
        op: int(n)
        for op, n in conn.execute(
            sql.SQL("SELECT {0}, sum(abs({1}))::bigint FROM {2} GROUP BY 1").format(
                sql.Identifier(OP), sql.Identifier(WEIGHT), table
            )
        )
    }
    if sizes is None and meets(target, whole):
        sizes = conn.execute(sizes_of(target, pgt_id)).fetchone()
    if sizes is not None and DUPLICATE not in counts:
        # Two equal rows of the content may have met one stored row. Then more of them stay than of the stored ones.
        content, stored = sizes
        more = content - counts.get(INSERT, 0) - counts.get(UPDATE, 0)
        more -= stored - counts.get(DELETE, 0) - counts.get(REPLACED, 0)
        if more:
            counts[DUPLICATE] = abs(more)
    difference = Difference(table, counts)
    analyze(conn, table, difference.rows)
    return difference


def sizes_of(target: Target, pgt_id: int) -> sql.Composed:
    """The statement that yields the number of rows of the content that was compared last, and of the stored rows."""
    counter = _counter(pgt_id)
    return sql.SQL(
        "SELECT CASE WHEN c.is_called THEN pg_catalog.currval({}::pg_catalog.regclass) ELSE 0 END,"
        " (SELECT count(*) FROM {}) FROM {} AS c"
    ).format(sql.Literal(counter.as_string(None)), target.table.sql, counter)


def _difference(pgt_id: int) -> sql.Identifier:
    return sql.Identifier("pg_temp", f"pgt_difference_{pgt_id}")


def _counter(pgt_id: int) -> sql.Identifier:
    """The sequence that numbers the rows of a whole content."""
    return sql.Identifier("pg_temp", f"pgt_content_{pgt_id}")


def net(rows: sql.Composable, columns: tuple[Column, ...]) -> sql.Composed:
    """SQL of the consolidated rows of a statement that yields weight, row id and the columns."""
    grouping: list[sql.Composable] = [sql.Identifier("s", ROW_ID)]
    for column in columns:
        grouping += column.grouping("s")
    values = [sql.Identifier("s", ROW_ID), *(column.grouped("s") for column in columns)]
    weight = sql.SQL("sum({})").format(sql.Identifier("s", WEIGHT))
    return sql.SQL("SELECT {w}::bigint AS {name}, {values} FROM ({rows}) s GROUP BY {grouping} HAVING {w} <> 0").format(
        w=weight,
        name=sql.Identifier(WEIGHT),
        values=sql.SQL(", ").join(values),
        rows=rows,
        grouping=sql.SQL(", ").join(grouping),
    )


def operation(target: Target) -> sql.Composable:
    """SQL of the operation of each row `c` of a consolidated difference."""
    weight = sql.Identifier("c", WEIGHT)
    if not target.keyed:
        return sql.SQL("CASE WHEN {} > 0 THEN {} ELSE {} END").format(weight, INSERT, DELETE)
    # The row id is a hash, so rows are the same only if the identity's columns agree as well.
    identity = [sql.Identifier("c", ROW_ID), *(column.partition("c") for column in target.key)]
    coming, going = (
        sql.SQL("sum(greatest({}{}, 0)) OVER (PARTITION BY {})").format(
            sql.SQL(sign), weight, sql.SQL(", ").join(identity)
        )
        for sign in ("", "-")
    )
    return sql.SQL(
        "CASE WHEN {coming} > 1 OR {going} > 1 THEN {duplicate}"
        " WHEN {weight} > 0 THEN CASE WHEN {going} = 1 THEN {update} ELSE {insert} END"
        " WHEN {coming} = 1 THEN {replaced} ELSE {delete} END"
    ).format(
        coming=coming,
        going=going,
        weight=weight,
        duplicate=DUPLICATE,
        update=UPDATE,
        insert=INSERT,
        replaced=REPLACED,
        delete=DELETE,
    )


def deletion(target: Target, rows: sql.Composable, touched: Touched | None = None) -> sql.Composed:
    """The statement that deletes what the difference in `rows` deletes, of the partitions that hold it."""
    if target.keyed:
        statement = sql.SQL(
            "DELETE FROM {t} t USING {d} d WHERE d.{op} = {delete} AND t.{id} = d.{id} AND {same}{of_t}"
        )
    else:
        # Exactly n of the equal rows are deleted, first those that look the same as the row to delete.
        statement = sql.SQL(
            "DELETE FROM {t} t USING ("
            " SELECT s.tableoid AS place, s.ctid AS spot, d.__pgt_wanted AS wanted,"
            " row_number() OVER (PARTITION BY d.__pgt_twins ORDER BY {alike} DESC) AS n"
            " FROM (SELECT *, -sum({w}) OVER same AS __pgt_wanted, dense_rank() OVER (ORDER BY {all}) AS __pgt_twins,"
            " row_number() OVER same AS __pgt_nth FROM {d} d WHERE {op} = {delete}"
            " WINDOW same AS (PARTITION BY {all})) d"
            " JOIN {t} s ON s.{id} = d.{id} AND {stored}{of_s} WHERE d.__pgt_nth = 1) gone"
            " WHERE gone.n <= gone.wanted AND t.ctid = gone.spot AND t.tableoid = gone.place{of_t}"
        )
    return statement.format(
        t=target.table.sql,
        d=rows,
        op=sql.Identifier(OP),
        delete=DELETE,
        id=sql.Identifier(ROW_ID),
        w=sql.Identifier(WEIGHT),
        same=agree(target.columns, "t", "d"),
        stored=agree(target.columns, "s", "d"),
        alike=look_alike(target.columns, "s", "d"),
        all=sql.SQL(", ").join([sql.Identifier("d", ROW_ID), *(c.partition("d") for c in target.columns)]),
        of_t=_in_touched(touched, "t"),
        of_s=_in_touched(touched, "s"),
    )


def _in_touched(touched: Touched | None, alias: str) -> sql.Composable:
    return sql.SQL("") if touched is None else sql.SQL(" AND {}").format(touched.of(alias))


def replacement(target: Target, rows: sql.Composable, touched: Touched | None = None) -> sql.Composed:
    """The statement that replaces the stored rows whose identity both goes and comes."""
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(c.name), sql.Identifier("u", c.name)) for c in target.columns
    )
    return sql.SQL(
        "UPDATE {t} t SET {assignments} FROM {d} o JOIN {d} u ON u.{id} = o.{id} AND u.{op} = {update} AND {key}"
        " WHERE o.{op} = {replaced} AND t.{id} = o.{id} AND {same}{of_t}"
    ).format(
        t=target.table.sql,
        assignments=assignments,
        d=rows,
        id=sql.Identifier(ROW_ID),
        op=sql.Identifier(OP),
        update=UPDATE,
        replaced=REPLACED,
        key=agree(target.key, "u", "o"),
        same=agree(target.columns, "t", "o"),
        of_t=_in_touched(touched, "t"),
    )


def existing(target: Target, rows: sql.Composable, touched: Touched | None = None) -> sql.Composed:
    """The statement that counts the identities to insert that are stored already."""
    # The query counts all such rows, though one would do: with EXISTS PostgreSQL expects to find one soon, and scans
    # the whole table for it.
    return sql.SQL(
        "SELECT count(*) FROM {d} d JOIN {t} t ON t.{id} = d.{id} AND {same}{of_t} WHERE d.{op} = {i}"
    ).format(
        d=rows,
        t=target.table.sql,
        id=sql.Identifier(ROW_ID),
        same=agree(target.key, "t", "d"),
        op=sql.Identifier(OP),
        i=INSERT,
        of_t=_in_touched(touched, "t"),
    )


def rows_that(rows: sql.Composable, *operations: str) -> sql.Composed:
    """SELECT of the difference's rows with these operations."""
    return sql.SQL("SELECT * FROM {} AS d WHERE d.{} IN ({})").format(
        rows, sql.Identifier(OP), sql.SQL(", ").join(map(sql.Literal, operations))
    )


def insertion(target: Target, rows: sql.Composable) -> sql.Composed:
    """The statement that inserts what the difference inserts."""
    repeated = (
        sql.SQL("") if target.keyed else sql.SQL(", pg_catalog.generate_series(1, d.{})").format(sql.Identifier(WEIGHT))
    )
    return sql.SQL("INSERT INTO {t} ({columns}) SELECT {values} FROM {d} d{repeated} WHERE d.{op} = {insert}").format(
        t=target.table.sql,
        columns=names((ROW_ID, *target.names)),
        values=names((ROW_ID, *target.names), "d"),
        d=rows,
        repeated=repeated,
        op=sql.Identifier(OP),
        insert=INSERT,
    )


def handing_on(target: Target, buffer: str, visible: tuple[str, ...], rows: sql.Composable) -> sql.Composed:
    """The statement that hands the visible columns of the difference, or of the first content, on to the readers.

    Rows that differ only in hidden columns cancel out here, so that readers don't see them at all.
    """
    columns = tuple(column for column in target.columns if column.name in visible)
    weighted: sql.Composable = sql.SQL("SELECT {}, {} FROM {}").format(
        sql.Identifier(WEIGHT), names((ROW_ID, *visible)), rows
    )
    if len(columns) < len(target.columns):
        weighted = net(weighted, columns)
    return sql.SQL(
        "INSERT INTO {buffer} (action, pk_hash{targets})"
        " SELECT CASE WHEN w.{weight} > 0 THEN 'I' ELSE 'D' END, w.{id}{values}"
        " FROM ({weighted}) w, pg_catalog.generate_series(1, abs(w.{weight}))"
    ).format(
        buffer=sql.Identifier(CHANGES, buffer),
        targets=sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(buffer_column("new", c))) for c in visible),
        weight=sql.Identifier(WEIGHT),
        id=sql.Identifier(ROW_ID),
        values=sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier("w", c)) for c in visible),
        weighted=weighted,
    )


def allow_memory(conn: Connection, rows: int) -> None:
    """Raise the memory limits for many rows. Grouping or indexing them on disk would take several times as long."""
    if rows >= _MUCH:
        for setting in ("work_mem", "maintenance_work_mem"):
            conn.execute(allowing(setting, local=True))


def allowing(setting: str, *, local: bool) -> sql.Composed:
    """The statement that raises a memory limit, if it is lower than many rows need."""
    return sql.SQL(
        "SELECT pg_catalog.set_config({name}, {least}, {local}) WHERE"
        " pg_catalog.pg_size_bytes(pg_catalog.current_setting({name})) < pg_catalog.pg_size_bytes({least})"
    ).format(name=setting, least=_WORK_MEM, local=local)


def analyze(conn: Connection, table: sql.Identifier, rows: int) -> None:
    """ANALYZE a table that has so many rows that a wrong guess by the planner would cost more than ANALYZE."""
    if rows >= _ANALYZE_FROM:
        conn.execute(sql.SQL("ANALYZE {}").format(table))


def names(columns: tuple[str, ...], relation: str | None = None) -> sql.Composed:
    """The columns, quoted and separated by commas; qualified with `relation` if it is given."""
    return sql.SQL(", ").join(sql.Identifier(relation, c) if relation else sql.Identifier(c) for c in columns)


def _prefix(pgt_id: int) -> str:
    return f"stage_{pgt_id}_"
