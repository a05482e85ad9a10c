"""The oracle: a stream table kept by deltas alone, held against its query after every cycle.

    with case(conn, ddl) as c:
        st = Maintained.create(c, "SELECT g, sum(v) AS s FROM t GROUP BY g")
        c.change("DELETE FROM t WHERE v = 1")
        assert st.refresh() == "DIFFERENTIAL"          # and by then its content has been verified

`dvm` is driven directly, without Spark and without the refresh protocol; what stands in for the sink is the plainest
one possible: rows are text images with weights, added up. A weight below zero is a row taken that was never there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, SourceBinding, Window
from airflow_provider_pgtrickle.engine.dvm.emit import ORDERED
from airflow_provider_pgtrickle.engine.dvm.reasons import Refusal
from airflow_provider_pgtrickle.engine.dvm.sinks.floats import FLOATS
from airflow_provider_pgtrickle.engine.dvm.types import as_text, base_type
from airflow_provider_pgtrickle.engine.refresh import clock
from airflow_provider_pgtrickle.engine.refresh.compare import within_bounds
from tests.answers import only
from tests.oracle.arena import Case
from tests.oracle.declare import Declared, Misprinted, declare

#: Recursions in recursions yield millions of rows from five, and nothing that five thousand don't.
_MOST_ROWS = 100_000


#: What the clock says in a case that doesn't move it.
CLOCK_STARTS = "2026-03-28 12:00:00+00"
_NOW = re.compile(
    r"\b(?:(now|transaction_timestamp|statement_timestamp)\(\)|(current_timestamp|current_date|localtimestamp|localtime)\b)",
    re.IGNORECASE,
)
_KINDS = {"current_date": "date", "localtimestamp": "timestamp", "localtime": "time"}


def at_instant(query: str, instant: str) -> str:
    """A query with every word of the clock replaced by a literal."""

    def literal(found: re.Match[str]) -> str:
        kind = _KINDS.get((found[2] or "").lower())
        return f"('{instant}'::timestamptz)" + (f"::{kind}" if kind else "")

    return _NOW.sub(literal, query)


class Contradiction(AssertionError):
    """The stream table is not what its query says, or a delta took away what wasn't there."""


class Refused(Contradiction):
    """The view says that it can't be kept by deltas; `reason` says why."""

    def __init__(self, refusal: Refusal, query: str) -> None:
        self.reason = refusal.reason
        super().__init__(f"{refusal}\n{query}")


class Undefined(Exception):
    """PostgreSQL refuses the query on the present data, or prints another one: there is nothing to be equal to."""


@dataclass
class Maintained:
    case: Case
    name: str
    query: str
    declared: Declared
    view: dvm.View
    storage: tuple[tuple[str, str], ...]
    """Name and type of each stored column, hidden ones included."""
    frontier: int
    exact_images: bool
    """Whether equal values must also look equal (1.0 is not 1.00)."""
    last_delta: str | None = None
    instant: str = CLOCK_STARTS
    """The data timestamp of the content."""
    spelled: str | None = None
    """The query with its views written out, if these read the clock."""

    @classmethod
    def create(
        cls,
        case: Case,
        query: str,
        *,
        name: str = "st_0",
        exact_images: bool = True,
        instant: str | None = None,
        spelled: str | None = None,
        approximate: bool = False,
    ) -> Maintained:
        """Declare the query, insist on its being differentiable, and populate it once."""
        try:
            declared = declare(case.conn, case.schema, query)
        except Misprinted as misprinted:
            raise Undefined(str(misprinted)) from misprinted
        floats = {name: kind for name, kind, _ in declared.columns if kind in FLOATS}
        view = dvm.analyze(declared.canonical, declared.schema, floats if approximate else {})
        if view.refusal is not None and view.topk is None:
            raise Refused(view.refusal, query)
        if case.by_product:
            case.capture_by_product(view.sources, view.used)
        table = sql.Identifier(case.schema, name)
        case.conn.execute(sql.SQL("CREATE TABLE {} AS {} WITH NO DATA").format(table, sql.SQL(view.storage_query())))
        _restore_modifiers(case.conn, table, declared)
        storage = case.conn.execute(
            "SELECT attname, format_type(atttypid, atttypmod), attcollation::int8 FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
            (table.as_string(case.conn),),
        ).fetchall()
        made = cls(case, name, query, declared, view, tuple((n, t) for n, t, _ in storage), case.xid, exact_images)
        made.instant, made.spelled = instant or made.instant, spelled
        made._expect_types(storage)
        made.refresh(full=True)
        return made

    # -- one cycle -----------------------------------------------------------------------------------------------

    def refresh(self, *, full: bool = False, instant: str | None = None, slices: int = 1, bounded: bool = False) -> str:
        """Bring the table to the present, by its delta unless told otherwise; the action that was taken.

        `instant`: the time to which the clock moves. `slices`: into how many the changes are cut, where they can be.
        `bounded`: the least value of each column in the changes is known.
        """
        binding = self.binding(at=instant, bounded=bounded)
        self.instant = instant or self.instant
        self._expect_defined()
        truncated = any(
            buffer.truncated(self.case.conn, self.frontier)
            for key, buffer in self.case.buffers.items()
            if key in self.view.sources
        )
        text: str | None
        if full or truncated:
            action, text = "FULL", self.view.full(binding)
        elif self.view.topk is not None:
            action, text = "TOPK", self.view.delta(binding)
        else:
            action, text = "DIFFERENTIAL", self.view.delta(binding)
            if slices > 1 and (parts := self.slices(binding, slices)):
                action = "SLICED"
                text = " UNION ALL ".join(f"SELECT * FROM ({part}) AS part" for part in parts)
        self.frontier = self.case.xid
        if action == "FULL":
            self.case.conn.execute(sql.SQL("DELETE FROM {}").format(self._table))
            text = f"SELECT 1 AS __pgt_w, full_content.* FROM ({text}) AS full_content"
        self.last_delta = text
        if text is not None:
            self._apply(text)
        self.verify()
        return action

    def binding(self, *, at: str | None = None, bounded: bool = False) -> Binding:
        """What changed since the frontier, source by source, if the clock moves to an instant."""
        old = f"{self.frontier + 1}:{self.frontier + 1}:"
        sources = {}
        for key in self.view.sources:
            buffer = self.case.buffers[key]
            sources[key] = SourceBinding(
                changed=buffer.changed(self.case.conn, self.frontier),
                window=Window(buffer=(buffer.schema, buffer.name), old=old, new=self.case.snapshot, also=()),
                handed_on=None,
                least=self._extremes(key, "LEAST", "min") if bounded else (),
                most=self._extremes(key, "GREATEST", "max") if bounded else (),
            )
        readings = clock.read(self.case.conn, self.view.readings, self.instant, at or self.instant)
        return Binding(sources=sources, stored=(self.case.schema, self.name), readings=readings)

    def _extremes(self, key: str, of: str, in_image: str) -> tuple[tuple[str, str], ...]:
        """The extreme value in either image of each column that has an order which all types share."""
        source, buffer, found = self.view.sources[key], self.case.buffers[key], []
        for column in source.columns:
            if column.name not in self.view.used[key] or base_type(column.type) not in ORDERED:
                continue
            (extreme,) = only(
                self.case.conn.execute(
                    sql.SQL("SELECT {0}({1}({2}), {1}({3}))::text FROM {4} WHERE xid > {5}::xid8").format(
                        sql.SQL(of),
                        sql.SQL(in_image),
                        sql.Identifier(f"new_{column.name}"),
                        sql.Identifier(f"old_{column.name}"),
                        sql.Identifier(buffer.schema, buffer.name),
                        sql.Literal(str(self.frontier)),
                    )
                )
            )
            if extreme is not None:
                found.append((column.name, f"'{extreme}'::{column.type}"))
        return tuple(found)

    def slices(self, binding: Binding, count: int) -> tuple[str, ...]:
        """The change in so many slices, whatever their rows have in common."""
        conditions = [f"change_id % {count} = {number}" for number in range(count)]
        return self.view.slices(binding, dict.fromkeys(binding.changed & binding.sources.keys(), conditions))

    def _apply(self, delta: str) -> None:
        """Add the weighted rows to the stored bag; they travel as text, as they do from Spark to the sink."""
        conn, table = self.case.conn, self._table
        columns = sql.SQL(", ").join(sql.Identifier(name) for name, _ in self.storage)
        as_stored = sql.SQL(", ").join(
            sql.SQL("{}::{} AS {}").format(
                sql.SQL(as_text(sql.Identifier(name).as_string(conn), kind)), sql.SQL(kind), sql.Identifier(name)
            )
            for name, kind in self.storage
        )
        try:
            conn.execute("DROP TABLE IF EXISTS pg_temp.stage, pg_temp.bag")
            conn.execute(
                sql.SQL("CREATE TEMP TABLE stage AS SELECT __pgt_w, {} FROM ({}) AS delta").format(
                    as_stored, sql.SQL(delta)
                )
            )
        except psycopg.errors.QueryCanceled as error:
            # How long it takes is asked by benchmarks; a machine that does other things beside tells nothing of it.
            raise Undefined("the delta takes longer than a case may") from error
        except psycopg.Error as error:
            raise Contradiction(
                f"the delta fails where the query does not: {error}\n{self.query}\n--\n{delta}"
            ) from error
        image = sql.SQL("bag::text") if self.exact_images else columns
        conn.execute(
            sql.SQL(
                "CREATE TEMP TABLE bag AS SELECT (array_agg(bag::{table}))[1] AS stored, sum(w) AS w FROM ("
                " SELECT stored AS bag, 1 AS w FROM {table} AS stored"
                " UNION ALL SELECT ROW({columns})::{table}, __pgt_w FROM stage"
                ") AS rows {unpacked} GROUP BY {image} HAVING sum(w) <> 0"
            ).format(
                table=table,
                columns=columns,
                image=image,
                unpacked=sql.SQL("")
                if self.exact_images
                else sql.SQL("CROSS JOIN LATERAL (SELECT (bag).*) AS unpacked"),
            )
        )
        missing = conn.execute("SELECT w, stored::text FROM bag WHERE w < 0 LIMIT 5").fetchall()
        if missing:
            raise Contradiction(f"the delta takes rows that were never stored: {missing}\n{self.query}\n--\n{delta}")
        conn.execute(sql.SQL("DELETE FROM {}").format(table))
        conn.execute(sql.SQL("INSERT INTO {} SELECT (stored).* FROM bag, generate_series(1, w)").format(table))

    # -- what must hold ------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Visible content equals the query, stored content equals the storage query, keys are unique."""
        visible = sql.SQL(", ").join(sql.Identifier(name) for name, _, _ in self.declared.columns)
        asked, bounds = self.asked, self.view.bounds(self._at_instant())
        if bounds is not None:
            names = [name for name, _, _ in self.declared.columns]
            asked = within_bounds(asked, bounds, names, self.view.approximate)
        self._expect_equal("content", visible, sql.SQL(asked), images=self.exact_images)
        everything = sql.SQL(", ").join(sql.Identifier(name) for name, _ in self.storage)
        # What nobody sees may look otherwise (a sum of 0 or of 0.00), as long as it is equal.
        images = any(not self.case.has_equality(kind) for _, kind in self.storage)
        self._expect_equal("hidden state", everything, sql.SQL(self.view.full(self._at_instant())), images=images)
        if self.view.keyed:
            self._expect_unique_identity()

    def rows(self, order_by: str = "1") -> list[tuple]:
        """The visible rows."""
        names = sql.SQL(", ").join(sql.Identifier(name) for name, _, _ in self.declared.columns)
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(names, self._table, sql.SQL(order_by))
        return self.case.conn.execute(query).fetchall()

    def images(self) -> list[str]:
        """The visible rows as they look."""
        names = sql.SQL(", ").join(sql.Identifier(name) for name, _, _ in self.declared.columns)
        query = sql.SQL("SELECT ROW({})::text FROM {} ORDER BY 1").format(names, self._table)
        return [image for (image,) in self.case.conn.execute(query)]

    @property
    def asked(self) -> str:
        """The query with the clock's words replaced by the instant: PostgreSQL's own answer to it is the oracle's."""
        return at_instant(self.spelled or self.query, self.instant)

    def _at_instant(self) -> Binding:
        return Binding(readings=clock.read(self.case.conn, self.view.readings, None, self.instant))

    @property
    def _table(self) -> sql.Identifier:
        return sql.Identifier(self.case.schema, self.name)

    def _expect_equal(self, what: str, columns: sql.Composable, query: sql.Composable, *, images: bool) -> None:
        image = sql.SQL("x::text") if images else sql.SQL("x.*")
        stored = sql.SQL("SELECT {} FROM (SELECT {} FROM {}) AS x").format(image, columns, self._table)
        wanted = sql.SQL("SELECT {} FROM ({}) AS x").format(image, query)
        for words, left, right in (("too many", stored, wanted), ("missing", wanted, stored)):
            rows = self.case.conn.execute(sql.SQL("({}) EXCEPT ALL ({}) LIMIT 5").format(left, right)).fetchall()
            if rows:
                raise Contradiction(f"{what}: {words}: {rows}\n{self.query}\n-- delta:\n{self.last_delta}")

    def _expect_unique_identity(self) -> None:
        if not self.view.identity:
            query = sql.SQL("SELECT count(*) FROM {} HAVING count(*) > 1").format(self._table)
        else:
            identity = sql.SQL(", ").join(sql.Identifier(name) for name in self.view.identity)
            query = sql.SQL("SELECT {0} FROM {1} GROUP BY {0} HAVING count(*) > 1").format(identity, self._table)
        twice = self.case.conn.execute(query).fetchall()
        if twice:
            raise Contradiction(f"the identity {self.view.identity} is not one: {twice[:5]}\n{self.query}")

    def _expect_types(self, storage: Iterable[tuple[str, str, int]]) -> None:
        """The stored visible columns are, name by name and type by type, what the query yields."""
        visible = {name for name, _, _ in self.declared.columns}
        stored = [row for row in storage if row[0] in visible]
        if sorted(stored) != sorted(self.declared.columns):
            raise Contradiction(f"types differ: {stored} is not {self.declared.columns}\n{self.query}")

    def _expect_defined(self) -> None:
        try:
            with self.case.conn.transaction():
                (rows,) = self.case.rows(f"SELECT count(x::text) FROM ({self.asked}) AS x")[0]
        except psycopg.Error as error:
            raise Undefined(str(error)) from error
        if rows > _MOST_ROWS:
            raise Undefined(f"{rows} rows are more than the oracle compares")


def _restore_modifiers(conn: psycopg.Connection, table: sql.Identifier, declared: Declared) -> None:
    """PostgreSQL forgets numeric(10,2) where a NULL meets it; the product's table has its query's own types."""
    held: dict[str, str] = dict(
        conn.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass",
            (table.as_string(conn),),
        ).fetchall()
    )
    for name, kind, _ in declared.columns:
        if held.get(name) != kind and held.get(name) == base_type(kind):
            conn.execute(sql.SQL("ALTER TABLE {} ALTER {} TYPE {}").format(table, sql.Identifier(name), sql.SQL(kind)))


def maintain(
    case: Case, query: str, *cycles: Sequence[str], exact_images: bool = True, approximate: bool = False
) -> Maintained:
    """Create the stream table, then refresh it after each cycle of DML, always by its delta.

    `approximate`: its sums over floats are kept by adding.
    """
    st = Maintained.create(case, query, exact_images=exact_images, approximate=approximate)
    for statements in cycles:
        accepted = case.change(*statements)
        assert accepted == len(statements), f"PostgreSQL refused some of {statements}"
        action = st.refresh()
        assert action == "DIFFERENTIAL", action
    return st
