"""The function that brings one stream table up to date with changes that its sources hold already.

    d      = consolidated Δ(query)        the algebra's difference over the rows at hand
    stored = stored − d⁻ + d⁺             the deletions, replacements and insertions of a refresh, in that order

One variant of Δ is written for each source that changes alone, and one for several at once. After a TRUNCATE, or where
capture met something that it doesn't know, d is the whole content less the stored rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.layout import keep_to_owner
from airflow_provider_pgtrickle.engine.capture.maintained import erase
from airflow_provider_pgtrickle.engine.catalog import zone
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import identity_index
from airflow_provider_pgtrickle.engine.dvm import Binding, SourceBinding, View
from airflow_provider_pgtrickle.engine.dvm.binding import InHand
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, ROW_ID, buffer_name
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.identity import server_row_id_sql
from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.sinks.parts import COUNT
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Addition
from airflow_provider_pgtrickle.engine.refresh import stage
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from airflow_provider_pgtrickle.engine.refresh.stage import DELETE, DUPLICATE, INSERT, OP, UPDATE, Target

# Above so many changed rows a statement is planned anew, knowing their number. Below, its plan is kept.
_MANY = 500

_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}({parameters}) RETURNS {handed_on}[]
LANGUAGE plpgsql {zone} AS {body}
"""

_BODY = """
#variable_conflict use_column
<<here>>
DECLARE
    d {difference}[];
    deletions bigint;
    replacements bigint;
    insertions bigint;
    twins bigint;
    touched bigint;
    gone bigint[];
    is_negative boolean;
    is_lost boolean;
    handed_on {handed_on}[];
BEGIN
    {compute}
    IF here.d IS NULL THEN
        RETURN NULL;
    END IF;
    IF here.twins > 0 THEN
        RAISE EXCEPTION 'the difference of stream table % holds the same identity more than once', {name}
            USING ERRCODE = 'data_exception', HINT = {remedy};
    END IF;
    {delete}
    {replace}
    IF here.insertions > 0 THEN
        {insert}
    END IF;
    {hand_on}
    RETURN here.handed_on;
END
"""

_CHECKED = """IF {number} > 0 THEN
        {statement}
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF here.touched <> {number} THEN
            RAISE EXCEPTION 'the difference of stream table % would have {done} % rows, but % such are stored',
                {name}, {number}, here.touched USING ERRCODE = 'data_exception', HINT = {remedy};
        END IF;
    END IF;"""

_COMPUTE = """SELECT array_agg(ROW(x.*)::{difference}),
               sum(abs(x.{weight})) FILTER (WHERE x.{op} = {delete_}),
               sum(abs(x.{weight})) FILTER (WHERE x.{op} = {update_}),
               sum(abs(x.{weight})) FILTER (WHERE x.{op} = {insert_}),
               sum(abs(x.{weight})) FILTER (WHERE x.{op} = {twins_})
          {into}
          FROM ({consolidated}) AS x"""

_EITHER = """IF {number} > {many} THEN
            EXECUTE {text} {into} USING {values};
        ELSE
            {static}
        END IF;"""

_INTO = "INTO here.d, here.deletions, here.replacements, here.insertions, here.twins"

# The rows that a statement has upserted are its own: a later statement of the transaction deletes them.
_ADD = """{upsert}
        IF here.is_negative THEN
            RAISE EXCEPTION 'the difference of stream table % takes rows from a group that has none', {name}
                USING ERRCODE = 'data_exception', HINT = {remedy};
        END IF;
        IF here.gone IS NOT NULL THEN
            DELETE FROM {table} AS s WHERE s.{row_id} = ANY (here.gone) AND s.{count} = 0;
        END IF;
        IF here.is_lost THEN
            {whole}
        END IF;"""

_ADDED = """WITH added AS ({upsert})
            SELECT array_agg(added.id) FILTER (WHERE added.left = 0), bool_or(added.left < 0), bool_or(added.anew)
              {into} FROM added"""

_REMEDY = "Refresh it with force_full; if its rows were not changed by hand, please report this."


@dataclass(frozen=True)
class Maintained:
    """A stream table that writers maintain."""

    st: StreamTable
    view: View
    target: Target
    is_read: bool
    """Other stream tables read it, and its changes are handed on to them."""
    grouped: Node | None
    """The rows to whose stored groups its changes are added without reading these; None where they are read."""

    @classmethod
    def of(cls, conn: Connection, st: StreamTable, view: View, *, is_read: bool) -> Maintained:
        columns = describe(conn, st.qualified.sql, [column.name for column in st.storage])
        target = Target(st.qualified, columns, tuple(st.identity), st.keyed)
        return cls(st, view, target, is_read, None if is_read else _added_to(conn, target, view))

    @property
    def is_apart(self) -> bool:
        """Whether each change is maintained by itself, whatever others change at the same time.

        A row that follows from one row of one source is locked with it by the writer, and sums of one source are added
        under the locks of their groups.
        """
        if len(self.keys) > 1 or self.view.topk is not None:
            return False
        if self.grouped is not None:
            return _is_row_wise(self.grouped)
        return self.view.keyed and self.view.tree is not None and _is_row_wise(self.view.tree)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its sources, in the order of the function's parameters."""
        return tuple(sorted(self.view.sources))

    @property
    def function(self) -> sql.Identifier:
        return sql.Identifier(CHANGES, f"maintain_{self.st.id}")

    @property
    def difference(self) -> sql.Identifier:
        """The type of a row of its difference."""
        return sql.Identifier(CHANGES, f"difference_{self.st.id}")

    @property
    def handed_on(self) -> sql.Identifier:
        """The type of a row that its readers get."""
        return change_type(self.st.key) if self.is_read else self.difference


def change_type(key: str) -> sql.Identifier:
    """The type of a captured row of a source: the row of its change buffer."""
    return sql.Identifier(CHANGES, buffer_name(key))


def parameter(key: str) -> str:
    return f"__pgt_c_{key}"


def create(conn: Connection, of: Maintained) -> None:
    """Create the function and the type of its difference."""
    erase(conn, of.st.id)
    columns = [(WEIGHT, "bigint"), (ROW_ID, "bigint"), *((c.name, c.type) for c in of.st.storage), (OP, "text")]
    typed = sql.SQL(", ").join(
        # The type is PostgreSQL's own `format_type` text.
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_))
        for name, type_ in columns
    )
    conn.execute(sql.SQL("CREATE TYPE {} AS ({})").format(of.difference, typed))
    parameters = sql.SQL(", ").join(
        sql.SQL("{} {}[]").format(sql.Identifier(parameter(key)), change_type(key)) for key in of.keys
    )
    hand_on: sql.Composable = sql.SQL("")
    if of.is_read:
        visible = tuple(column.name for column in of.st.visible)
        hand_on = sql.SQL(
            "WITH made AS ({} RETURNING {} AS row) SELECT array_agg(made.row) INTO here.handed_on FROM made;"
        ).format(
            stage.handing_on(of.target, buffer_name(of.st.key), visible, sql.SQL("unnest(here.d) AS x")),
            sql.Identifier(buffer_name(of.st.key)),
        )
    body = sql.SQL(_BODY).format(
        difference=of.difference,
        handed_on=of.handed_on,
        compute=_compute(of),
        delete=_checked(of, "deletions", "deleted", stage.deletion),
        replace=_checked(of, "replacements", "replaced", stage.replacement),
        insert=_writing(of, "insertions", stage.insertion),
        hand_on=hand_on,
        name=sql.Literal(str(of.st.qualified)),
        remedy=sql.Literal(_REMEDY),
    )
    conn.execute(
        sql.SQL(_FUNCTION).format(
            function=of.function,
            parameters=parameters,
            handed_on=of.handed_on,
            zone=zone.clause(of.st.timezone),
            body=sql.Literal(body.as_string(None)),
        )
    )
    keep_to_owner(conn, of.function)


def hands_on(conn: Connection, of: Maintained) -> bool:
    """Whether the function that is there hands the changes on."""
    row = conn.execute(
        "SELECT prorettype = pg_catalog.to_regtype(%s) FROM pg_catalog.pg_proc WHERE proname = %s"
        " AND pronamespace = pg_catalog.to_regnamespace(%s)",
        (f"{change_type(of.st.key).as_string(conn)}[]", f"maintain_{of.st.id}", CHANGES),
    ).fetchone()
    return bool(row and row[0])


def statement(of: Maintained, key: str) -> sql.Composed:
    """What a small change of one source runs before anything is written; its rows are parameter 1."""
    placed = _at_hand([key], lambda _: "$1", (of.st.schema, of.st.name))
    if of.grouped is not None:
        found = of.view.addition(placed)
        assert found is not None
        return _upsert(of, *found)
    text = None if of.view.topk is not None else of.view.delta(placed)
    if text is None:
        return sql.SQL("{}").format(sql.SQL(of.view.full(Binding())))
    return _computing(of, sql.SQL(text), whole=False, into="")


def _compute(of: Maintained) -> sql.Composed:
    """The statements that fill `d`: of the whole content, of one changed source, or of several."""
    tables = [key for key in of.keys if of.view.sources[key].pgt_id is None]
    truncated = sql.SQL(" OR ").join(
        sql.SQL("EXISTS (SELECT FROM unnest({}) AS c WHERE c.action = 'T')").format(sql.Identifier(parameter(key)))
        for key in tables
    )
    if of.view.topk is not None:
        return _whole(of)
    branches: list[tuple[sql.Composable, sql.Composable]] = []
    if tables:
        branches.append((truncated, _whole(of)))
    if len(of.keys) > 1:
        for key in of.keys:
            alone = sql.SQL(" AND ").join(
                sql.SQL("{} IS NULL").format(sql.Identifier(parameter(other))) for other in of.keys if other != key
            )
            branches.append((alone, _by_number(of, [key])))
    last = _by_number(of, of.keys)
    if not branches:
        return sql.Composed([last])
    text: list[sql.Composable] = []
    for number, (condition, statements) in enumerate(branches):
        text.append(
            sql.SQL("{} {} THEN\n        {}\n    ").format(sql.SQL("ELSIF" if number else "IF"), condition, statements)
        )
    return sql.SQL("").join([*text, sql.SQL("ELSE\n        {}\n    END IF;").format(last)])


def _is_row_wise(tree: Node) -> bool:
    return all(node.row_wise or isinstance(node, Scan) for node in descendants(tree))


def _added(
    view: View, changed: Iterable[str], name: Callable[[str], str], stored: tuple[str, str]
) -> tuple[str, Addition] | None:
    return view.addition(_at_hand(changed, name, stored))


def _at_hand(changed: Iterable[str], name: Callable[[str], str], stored: tuple[str, str]) -> Binding:
    """The changed sources' captured rows, which are in the arrays that `name` gives."""
    return Binding({key: SourceBinding(True, InHand(f"unnest({name(key)})")) for key in changed}, stored)


def _added_to(conn: Connection, target: Target, view: View) -> Node | None:
    """The rows to whose groups changes can be added; None unless a unique index, made here, tells the groups apart."""
    found = _added(view, view.sources, lambda _: "NULL", ("", ""))
    if found is None or set(found[1].keys.values()) != set(target.identity):
        return None
    is_exact = all(column.exact for column in target.key)
    is_unique = is_exact and identity_index.ensure(conn, target.table, target.identity, keyed=target.keyed)
    return found[1].rows if is_unique else None


def _adding(of: Maintained, changed: Sequence[str]) -> sql.Composed:
    """The statements that add a change to the stored groups, and delete those of which nothing is left.

    The groups are taken in order, so that two writers can't wait for each other within a statement. A group that
    another writer deletes meanwhile is inserted anew, and one that he inserts is added to.
    """

    def statement(name: Callable[[str], str], into: str) -> sql.Composed:
        found = _added(of.view, changed, name, (of.st.schema, of.st.name))
        assert found is not None
        return sql.SQL(_ADDED).format(upsert=_upsert(of, *found), into=sql.SQL(into))

    into = "INTO here.gone, here.is_negative, here.is_lost"
    return sql.SQL(_ADD).format(
        upsert=sql.SQL(_EITHER).format(
            number=_number(changed),
            many=_MANY,
            text=sql.Literal(statement(lambda key: f"${of.keys.index(key) + 1}", "").as_string(None)),
            into=sql.SQL(into),
            values=sql.SQL(", ").join(sql.Identifier(parameter(key)) for key in of.keys),
            static=sql.Composed([statement(lambda key: f'"{parameter(key)}"', into), sql.SQL(";")]),
        ),
        name=sql.Literal(str(of.st.qualified)),
        remedy=sql.Literal(_REMEDY),
        table=of.target.table.sql,
        row_id=sql.Identifier(ROW_ID),
        count=sql.Identifier(COUNT),
        whole=_whole(of),
    )


def _upsert(of: Maintained, added: str, addition: Addition) -> sql.Composed:
    types = {column.name: column.type for column in of.st.storage}
    names = (*addition.keys.values(), *addition.values, *addition.hidden)

    def typed(relation: str, column: str, name: str) -> sql.Composed:
        # The type is PostgreSQL's own `format_type` text.
        return sql.SQL("{}::{} AS {}").format(
            sql.Identifier(relation, column), sql.SQL(types[name]), sql.Identifier(name)
        )

    fresh = sql.SQL(", ").join(
        [
            *(typed("a", column, held) for column, held in addition.keys.items()),
            *(typed("a", name, name) for name in addition.hidden),
        ]
    )
    values = sql.SQL("").join(sql.SQL(", {}").format(sql.SQL(value)) for value in addition.values.values())
    summed = sql.SQL(", ").join(
        [
            *(sql.SQL("s.{0} AS {0}").format(sql.Identifier(held)) for held in addition.keys.values()),
            *(sql.SQL("s.{0} + excluded.{0} AS {0}").format(sql.Identifier(name)) for name in addition.hidden),
        ]
    )
    hidden = stage.names(addition.hidden)
    changed = sql.SQL(" OR ").join(sql.SQL("x.{} <> 0").format(sql.Identifier(name)) for name in addition.hidden)
    return sql.SQL(
        "INSERT INTO {table} AS s ({row_id}, {names}) SELECT {id}, {keys}{values}, {hidden}"
        " FROM (SELECT {fresh} FROM ({added}) AS a) AS x WHERE {changed} ORDER BY {keys}"
        " ON CONFLICT ({identity}) DO UPDATE SET ({set}) = (SELECT {set_values} FROM (SELECT {summed}) AS n)"
        " RETURNING s.{row_id} AS id, s.{count} AS left, {anew} AS anew"
    ).format(
        table=of.target.table.sql,
        row_id=sql.Identifier(ROW_ID),
        names=stage.names(names),
        id=sql.SQL(server_row_id_sql(of.st.identity_columns, "x")),
        keys=stage.names(tuple(addition.keys.values())),
        values=values,
        hidden=hidden,
        fresh=fresh,
        added=sql.SQL(added),
        changed=changed,
        identity=stage.names(of.target.identity),
        set=stage.names((*addition.values, *addition.hidden)),
        set_values=sql.SQL(", ").join([*map(sql.SQL, addition.values.values()), hidden]),
        summed=summed,
        count=sql.Identifier(COUNT),
        anew=sql.SQL(addition.anew or "false"),
    )


def _by_number(of: Maintained, changed: Sequence[str]) -> sql.Composed:
    """The difference of some sources: by a plan that is kept or, of many rows, by one that is made for them."""
    if of.grouped is not None:
        return _adding(of, changed)
    static = _difference(of, changed, lambda key: f'"{parameter(key)}"')
    if static is None:
        return sql.SQL("NULL;").format()
    large = _difference(of, changed, lambda key: f"${of.keys.index(key) + 1}")
    assert large is not None
    text = _computing(of, large, whole=False, into="").as_string(None)
    return sql.SQL(_EITHER).format(
        number=_number(changed),
        many=_MANY,
        text=sql.Literal(text),
        into=sql.SQL(_INTO),
        values=sql.SQL(", ").join(sql.Identifier(parameter(key)) for key in of.keys),
        static=_filled(of, static, whole=False),
    )


def _number(changed: Sequence[str]) -> sql.Composed:
    """SQL of the number of captured rows."""
    return sql.SQL(" + ").join(
        sql.SQL("coalesce(cardinality({}), 0)").format(sql.Identifier(parameter(key))) for key in changed
    )


def _checked(
    of: Maintained, number: str, done: str, statement: Callable[[Target, sql.Composable], sql.Composed]
) -> sql.Composed:
    """A statement that must find all the rows that it is to touch."""
    return sql.SQL(_CHECKED).format(
        number=sql.Identifier("here", number),
        statement=_writing(of, number, statement),
        done=sql.SQL(done),
        name=sql.Literal(str(of.st.qualified)),
        remedy=sql.Literal(_REMEDY),
    )


def _writing(of: Maintained, number: str, statement: Callable[[Target, sql.Composable], sql.Composed]) -> sql.Composed:
    """A statement of a refresh: by a plan that is kept or, of many rows, by one that is made for them."""
    text = statement(of.target, sql.SQL("unnest($1)")).as_string(None)
    return sql.SQL(_EITHER).format(
        number=sql.Identifier("here", number),
        many=_MANY,
        text=sql.Literal(text),
        into=sql.SQL(""),
        values=sql.SQL("here.d"),
        static=sql.Composed([statement(of.target, sql.SQL("unnest(here.d)")), sql.SQL(";")]),
    )


def _difference(of: Maintained, changed: Iterable[str], name: Callable[[str], str]) -> sql.SQL | None:
    text = of.view.delta(_at_hand(changed, name, (of.st.schema, of.st.name)))
    return None if text is None else sql.SQL(text)


def _whole(of: Maintained) -> sql.Composed:
    """The statement that fills `d` from the whole content, less the stored rows."""
    rows = sql.SQL("SELECT 1::bigint AS {}, f.* FROM ({}) AS f")
    return _filled(of, rows.format(sql.Identifier(WEIGHT), sql.SQL(of.view.full(Binding()))), whole=True)


def _filled(of: Maintained, rows: sql.Composable, *, whole: bool) -> sql.Composed:
    return sql.Composed([_computing(of, rows, whole=whole, into=_INTO), sql.SQL(";")])


def _computing(of: Maintained, rows: sql.Composable, *, whole: bool, into: str) -> sql.Composed:
    """The SELECT of the consolidated difference as one array. Values get the types of the storage first."""
    storage = of.st.storage
    typed = sql.SQL("").join(
        # The type is PostgreSQL's own `format_type` text.
        sql.SQL(", {}::{} AS {}").format(sql.Identifier("q", c.name), sql.SQL(c.type), sql.Identifier(c.name))
        for c in storage
    )
    identified = sql.SQL(
        "SELECT r.{w}, {id} AS {row_id}, {columns} FROM (SELECT q.{w}{typed} FROM ({rows}) AS q) AS r"
    ).format(
        w=sql.Identifier(WEIGHT),
        id=sql.SQL(server_row_id_sql(of.st.identity_columns, "r")),
        row_id=sql.Identifier(ROW_ID),
        columns=stage.names(of.target.names, "r"),
        typed=typed,
        rows=rows,
    )
    if whole:
        identified += sql.SQL(" UNION ALL SELECT -1, {} FROM {}").format(
            stage.names((ROW_ID, *of.target.names)), of.target.table.sql
        )
    consolidated = sql.SQL("SELECT c.*, {} AS {} FROM ({}) c").format(
        stage.operation(of.target), sql.Identifier(OP), stage.net(identified, of.target.columns)
    )
    return sql.SQL(_COMPUTE).format(
        difference=of.difference,
        weight=sql.Identifier(WEIGHT),
        op=sql.Identifier(OP),
        delete_=sql.Literal(DELETE),
        update_=sql.Literal(UPDATE),
        insert_=sql.Literal(INSERT),
        twins_=sql.Literal(DUPLICATE),
        into=sql.SQL(into),
        consolidated=consolidated,
    )
