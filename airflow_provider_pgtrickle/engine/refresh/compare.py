"""Stored rows are compared with the expected ones: sums of hashes first, and single rows only if the sums differ.

Rows are divided into ranges by a hash of their identity that is the same for equal values (1.0 and 1.00), so that two
rows which could stand for one another are in the same range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.dvm import Open, identity
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import bound_name, kept_name
from airflow_provider_pgtrickle.engine.dvm.types import base_type
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import Computation
from airflow_provider_pgtrickle.engine.refresh.sameness import Column
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.stage import net

#: Types whose equal values may look different, but have the same hash.
_HASHED = {"numeric", "real", "double precision", "interval", "character", "jsonb", "macaddr8"}
_FLOATS = {"real", "double precision"}
_BATCH = 20_000
_COLUMNS = ("side", "range", "rows", "hash")

EXPECTED, STORED = "expected", "stored"
Rounding = tuple[tuple[str, ...], str, tuple[str, ...]]
"""`View.rounding`: the columns, what each is near to and by how much, and the groups' key."""


@dataclass(frozen=True)
class Ranges:
    """The ranges into which the rows are divided."""

    count: int
    by: tuple[str, ...]

    @classmethod
    def of(cls, key: Iterable[Column], count: int) -> Ranges:
        """Ranges by the identity's columns; there is only one range if none of them can be hashed."""
        by = tuple(c.name for c in key if c.exact or base_type(c.type) in _HASHED)
        return cls(count if by else 1, by)

    def number(self, relation: str) -> sql.Composable:
        """The number of a row's range."""
        if self.count == 1:
            return sql.SQL("0")
        return sql.SQL("abs(pg_catalog.hash_record_extended(ROW({}), 0) % {})").format(
            sql.SQL(", ").join(sql.Identifier(relation, name) for name in self.by), sql.Literal(self.count)
        )

    def within(self, relation: str, numbers: Sequence[int]) -> sql.Composable:
        if len(numbers) == self.count:
            return sql.SQL("true")
        listed = sql.SQL(", ").join(map(sql.Literal, numbers))
        return sql.SQL("{} IN ({})").format(self.number(relation), listed)


@dataclass(frozen=True)
class Wrong:
    """A row that one side has more often than the other side."""

    compared: str
    side: str
    """`missing`: the query has it; `unexpected`: the table has it."""
    times: int
    stored: dict[str, str | None]


@dataclass(frozen=True)
class Found:
    differences: int = 0
    undecided: int = 0
    rows: tuple[Wrong, ...] = ()

    def __add__(self, other: Found) -> Found:
        return Found(self.differences + other.differences, self.undecided + other.undecided, (*self.rows, *other.rows))


@dataclass(frozen=True)
class Comparison:
    """Some columns of a table, and statements that yield the expected rows."""

    compared: str
    """`content`, or `state`, which includes the hidden columns. Hidden values have to be equal, not to look alike."""
    table: QualifiedName
    columns: tuple[Column, ...]
    hidden: frozenset[str]
    expected: tuple[str, ...]
    """Each statement gives a right answer. The answers differ only in what the query leaves open."""
    left_open: Open
    rounding: Rounding | None = None
    """The bound of the rounding in sums of floats, where there is one."""

    @property
    def _near(self) -> dict[str, str]:
        """Each sum of floats whose rounding has a bound → the column that tells what it is near to."""
        return {name: f"__pgt_near_{n}" for n, name in enumerate(self.rounding[0] if self.rounding else ())}

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The columns that rounding decides about, and of which no bound is known."""
        rounded = (c for c in self.columns if c.name in self.left_open.rounded and base_type(c.type) in _FLOATS)
        return tuple(c.name for c in rounded if c.name not in self._near)

    @property
    def decided(self) -> tuple[Column, ...]:
        """The columns in which all right answers agree. A sum of floats is told by what it is near to."""
        skipped = {*self.left_open.order, *self.unbounded}
        return tuple(self._told(c) for c in self.columns if c.name not in skipped)

    def _told(self, column: Column) -> Column:
        return replace(column, name=self._near.get(column.name, column.name))

    def _with_near(self, rows: str) -> str:
        """The rows, and beside each sum of floats what it is near to."""
        if self.rounding is None:
            return rows
        names, kept, key = self.rounding
        return within_bounds(rows, (kept, key), [c.name for c in self.columns], names, self._near)

    def sums(self, ranges: Ranges, numbers: Sequence[int], slices: Sequence[str] = ()) -> Computation:
        """The number of rows and the sum of their hashes, by side and range. `slices` divide the stored rows."""
        table = sql.SQL("SELECT * FROM {}").format(self.table.sql)
        parts = [sql.SQL("{} WHERE {}").format(table, sql.SQL(part)) for part in slices] or [table]
        sides = [(EXPECTED, sql.SQL(self.expected[0])), *((STORED, part) for part in parts)]
        statements = [self._sum(side, rows, ranges, numbers).as_string(None) for side, rows in sides]
        return Computation(
            sql=" UNION ALL ".join(f"({statement})" for statement in statements),
            columns=_COLUMNS,
            expected_rows=2 * len(numbers),
            slices=tuple(statements) if slices else (),
        )

    def wrong(self, conn: Connection, expected: str, ranges: Ranges, numbers: Sequence[int], most: int) -> Found:
        """The rows that differ in these ranges. The columns in which all right answers agree decide."""
        compared = (*self.columns, *(self._told(c) for c in self.columns if c.name in self._near))
        columns = sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier("q", c.name)) for c in compared)
        stored = sql.SQL("SELECT * FROM {}").format(self.table.sql).as_string(None)
        sides = [
            sql.SQL("SELECT {weight} AS {name}, 0::bigint AS {id}{columns} FROM ({rows}\n) AS q WHERE {within}").format(
                weight=sql.Literal(weight),
                name=sql.Identifier(WEIGHT),
                id=sql.Identifier(ROW_ID),
                columns=columns,
                rows=rows,
                within=ranges.within("q", numbers),
            )
            for weight, rows in (
                (1, sql.SQL(self._with_near(expected))),
                (-1, sql.SQL(self._with_near(stored))),
            )
        ]
        image = sql.SQL("(SELECT pg_catalog.to_jsonb(x) FROM (SELECT {}) AS x)").format(
            sql.SQL(", ").join(sql.SQL("{} AS {}").format(c.text("n"), sql.Identifier(c.name)) for c in self.columns)
        )
        statement = sql.SQL(
            "WITH alike AS (SELECT sum({w}) AS net, sum(abs({w})) AS gross,"
            " (array_agg({image}) FILTER (WHERE {w} > 0))[1] AS missing,"
            " (array_agg({image}) FILTER (WHERE {w} < 0))[1] AS unexpected"
            " FROM ({net}) AS n GROUP BY {same})"
            " SELECT net::bigint, sum(abs(net)) OVER ()::bigint, (sum(gross - abs(net)) OVER () / 2)::bigint,"
            " missing, unexpected FROM alike WHERE gross > 0 ORDER BY net = 0 LIMIT {most}"
        ).format(
            w=sql.Identifier("n", WEIGHT),
            image=image,
            net=net(sql.SQL(" UNION ALL ").join(sides), compared),
            same=sql.SQL(", ").join([c.partition("n") for c in self.decided] or [sql.SQL("()")]),
            most=sql.Literal(max(most, 1)),
        )
        rows = conn.execute(statement).fetchall()
        if not rows:
            return Found()
        named = tuple(
            Wrong(self.compared, "missing" if net > 0 else "unexpected", abs(net), missing if net > 0 else unexpected)
            for net, _, _, missing, unexpected in rows[:most]
            if net
        )
        return Found(rows[0][1], rows[0][2], named)

    def _sum(self, side: str, rows: sql.Composable, ranges: Ranges, numbers: Sequence[int]) -> sql.Composed:
        # The whole row's text is hashed, because sums over columns would not notice two rows that exchange a value.
        row = sql.SQL(", ").join(self._image(column) for column in self.columns)
        return sql.SQL(
            "SELECT 1 AS {w}, ''::text AS \"__pgt_key\", {side}::text AS side, s.r::text AS range,"
            " count(*)::text AS rows, sum(s.h)::text AS hash FROM (SELECT {number} AS r,"
            ' pg_catalog.hashtextextended(ROW({row})::text COLLATE "C", 0)::numeric AS h'
            " FROM ({rows}\n) AS q WHERE {within}) AS s GROUP BY s.r"
        ).format(
            w=sql.Identifier(WEIGHT),
            side=sql.Literal(side),
            number=ranges.number("q"),
            row=row,
            rows=rows,
            within=ranges.within("q", numbers),
        )

    def _image(self, column: Column) -> sql.Composable:
        if column.name in self.hidden:
            return sql.SQL(identity.canonical_sql([(column.name, column.type)], "q"))
        return column.of("q")


def within_bounds(
    expected: str,
    bounds: tuple[str, tuple[str, ...]],
    columns: Sequence[str],
    approximate: Sequence[str],
    beside: Mapping[str, str] | None = None,
) -> str:
    """The expected rows; an approximate value that is as near as it may be to the one that is kept, is that one.

    So everything else compares values to the letter. `bounds`: `View.bounds`. Both meet as rows of one group, because
    in a join no index would serve keys that are NULL. `beside`: the names of columns of their own for these values,
    if the rows are to stay as they are.
    """
    kept, key = bounds
    named = {name: name for name in approximate} if beside is None else beside
    more = [sql.Identifier(made(n)) for n in range(len(approximate)) for made in (kept_name, bound_name)]
    null, side = sql.SQL("NULL"), sql.Identifier("__pgt_side")

    def listed(items: Iterable[sql.Composable]) -> sql.Composed:
        return sql.SQL(", ").join(items)

    def near(number: int, name: str) -> sql.Composable:
        of_kept, bound = (
            sql.SQL("first_value({}) OVER same").format(sql.Identifier(made(number)))
            for made in (kept_name, bound_name)
        )
        return sql.SQL("CASE WHEN {} = 'Infinity' OR abs({} - {}) <= {} THEN {} ELSE {} END AS {}").format(
            bound,
            _decimal(sql.Identifier(name)),
            _decimal(of_kept),
            bound,
            of_kept,
            sql.Identifier(name),
            sql.Identifier(named[name]),
        )

    as_they_are = [name for name in columns if name not in named.values()]
    partition = sql.SQL("PARTITION BY {} ").format(listed(map(sql.Identifier, key))) if key else sql.SQL("")
    statement = sql.SQL(
        "SELECT {shown} FROM (SELECT {side}, {values} FROM ("
        "SELECT 1 AS {side}, {names}, {nulls} FROM ({expected}\n) AS q"
        " UNION ALL SELECT 0, {keys}, {more} FROM ({kept}\n) AS k"
        ") AS both_sides ({side}, {names}, {more}) WINDOW same AS ({partition}ORDER BY {side})) AS met WHERE {side} = 1"
    ).format(
        shown=listed(map(sql.Identifier, dict.fromkeys([*columns, *named.values()]))),
        names=listed(map(sql.Identifier, columns)),
        side=side,
        values=listed([*map(sql.Identifier, as_they_are), *(near(n, name) for n, name in enumerate(approximate))]),
        nulls=listed([null] * len(more)),
        more=listed(more),
        keys=listed(sql.Identifier(name) if name in key else null for name in columns),
        expected=sql.SQL(expected),
        kept=sql.SQL(kept),
        partition=partition,
    )
    return statement.as_string(None)


def _decimal(value: sql.Composable) -> sql.Composed:
    return sql.SQL("{}::double precision::text::numeric").format(value)


def differing(sums: Iterable[tuple[str, str, str, str]]) -> tuple[int, list[int]]:
    """The number of stored rows and the ranges in which the sides differ, from the rows of `Comparison.sums`."""
    stored = 0
    totals: dict[int, tuple[int, int]] = {}
    for side, number, rows, hash_ in sums:
        sign = 1 if side == EXPECTED else -1
        stored += int(rows) if side == STORED else 0
        count, total = totals.get(int(number), (0, 0))
        totals[int(number)] = (count + sign * int(rows), total + sign * int(hash_))
    return stored, sorted(number for number, total in totals.items() if total != (0, 0))


def wrong_row_ids(
    conn: Connection,
    st: StreamTable,
    ranges: Ranges,
    numbers: Sequence[int],
    most: int,
) -> Found:
    """Stored rows whose row id is not the hash of their identity. No refresh would find such a row again."""
    key = st.identity_columns
    statement = sql.SQL("SELECT q.{id}, {key}, {right} FROM {table} AS q WHERE {within}").format(
        id=sql.Identifier(ROW_ID),
        key=sql.SQL(identity.canonical_sql(key, "q")),
        right=sql.SQL(identity.server_row_id_sql(key, "q") if st.server_row_ids else "NULL::bigint"),
        table=st.qualified.sql,
        within=ranges.within("q", numbers),
    )
    count = 0
    rows: list[Wrong] = []
    with conn.cursor(name="pgtrickle_row_ids") as cursor:
        cursor.execute(statement)
        while batch := cursor.fetchmany(_BATCH):
            for stored, text, of_server in batch:
                right = of_server if st.server_row_ids else identity.row_id(text)
                if stored != right:
                    count += 1
                    if len(rows) < most:
                        values = {ROW_ID: str(stored), "identity": text, "right": str(right)}
                        rows.append(Wrong("row id", "unexpected", 1, values))
    return Found(count, 0, tuple(rows))
