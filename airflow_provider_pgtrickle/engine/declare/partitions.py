"""The partitions of a stream table: made before rows come that have none, and dropped when all of it is out.

A new one is made apart and then attached, so that readers go on: only a DEFAULT partition, which there isn't before a
row needs it, is locked for that. Which partitions a difference touches is read from the difference, and said to
PostgreSQL as constants, because no join by row ids would tell it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.guard import ROW_TRIGGER, TRIGGER, guard_alone
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import table
from airflow_provider_pgtrickle.engine.declare.columns import Column
from airflow_provider_pgtrickle.engine.declare.options import BY_VALUE, partition_key
from airflow_provider_pgtrickle.engine.declare.periods import Periods
from airflow_provider_pgtrickle.engine.declare.retention import Declared
from airflow_provider_pgtrickle.engine.dvm.emit import ORDERED
from airflow_provider_pgtrickle.engine.dvm.types import base_type
from airflow_provider_pgtrickle.engine.errors import PermissionFault, RefreshError
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: PostgreSQL plans and locks each partition of a table, so that more would slow down all who read it.
MOST = 1_000
#: Up to so many periods or values are named; for more, all partitions are looked at.
_MOST_NAMED = 100
_BOUNDS = re.compile(r"FOR VALUES FROM \((?P<low>.*)\) TO \((?P<high>.*)\)", re.DOTALL)
_MEMBERS = """
    SELECT n.nspname, c.relname, pg_catalog.pg_get_expr(c.relpartbound, c.oid), c.relkind::text,
           pg_catalog.pg_get_partition_constraintdef(c.oid)
      FROM pg_catalog.pg_inherits i
      JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE i.inhparent = pg_catalog.to_regclass(%s) ORDER BY c.oid
"""
# Deletions are heard by publications and by triggers of users; that a table is dropped is not.
_HEARD = """
    SELECT EXISTS (SELECT FROM pg_catalog.pg_publication_tables p
                   JOIN unnest(%(schemas)s::text[], %(names)s::text[]) AS t(s, n)
                     ON (p.schemaname::text, p.tablename::text) = (t.s, t.n))
        OR EXISTS (SELECT FROM pg_catalog.pg_trigger g
                   JOIN unnest(%(schemas)s::text[], %(names)s::text[]) AS t(s, n)
                     ON g.tgrelid = pg_catalog.to_regclass(pg_catalog.format('%%I.%%I', t.s, t.n))
                   WHERE NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgname <> ALL(%(ours)s))
"""


@dataclass(frozen=True)
class Member:
    """A partition of the table itself."""

    name: QualifiedName
    bounds: str
    """FOR VALUES …, as PostgreSQL prints it, or DEFAULT."""
    is_plain: bool
    """It has no partitions of its own."""
    constraint: str

    @property
    def is_default(self) -> bool:
        return self.bounds == "DEFAULT"

    @property
    def span(self) -> tuple[str | None, str | None]:
        """The texts of a RANGE's bounds; None for MINVALUE and MAXVALUE."""
        match = _BOUNDS.fullmatch(self.bounds)
        assert match is not None
        low, high = (None if b in ("MINVALUE", "MAXVALUE") else b.strip("'") for b in (match["low"], match["high"]))
        return low, high


@dataclass(frozen=True)
class _New:
    """A partition to make."""

    bounds: str
    label: str
    takes: str
    """SQL of the condition on the rows that it takes."""


@dataclass(frozen=True)
class Touched:
    """The rows of those partitions that hold some rows."""

    column: str
    terms: tuple[Term, ...] = ()
    """Conditions on the column; none: any row."""

    def of(self, alias: str) -> sql.Composable:
        """SQL of the condition on the table by its alias."""
        terms = [term(sql.Identifier(alias, self.column)) for term in self.terms]
        return sql.SQL("({})").format(sql.SQL(" OR ").join(terms or [sql.SQL("true")]))


Term = Callable[[sql.Identifier], sql.Composable]


def _is_null(x: sql.Identifier) -> sql.Composable:
    return sql.SQL("{} IS NULL").format(x)


def _one_of(values: Sequence[sql.Composable]) -> Term:
    return lambda x: sql.SQL("{} IN ({})").format(x, sql.SQL(", ").join(values))


def _from_to(low: sql.Composable, high: sql.Composable, below: str = "<") -> Term:
    return lambda x: sql.SQL("({} >= {} AND {} {} {})").format(x, low, x, sql.SQL(below), high)


@dataclass(frozen=True)
class Partitions:
    """The partitions of one table."""

    table: QualifiedName
    method: str
    column: str
    """The first column of the key."""
    type: str
    is_single: bool
    """The key has one column."""
    periods: Periods | None
    keep: str | None

    @classmethod
    def of(cls, declared: Declared, name: QualifiedName, types: dict[str, str]) -> Partitions | None:
        """Those of a table with columns of these types; None if it isn't partitioned."""
        if declared.partition_by is None:
            return None
        method, keys = partition_key(declared.partition_by)
        column = table.key_of(declared.partition_by, types)[0]
        every = declared.partition_every
        periods = Periods.of(declared.partition_by, every, types) if every is not None else None
        return cls(name, method, column, types[column], len(keys) == 1, periods, declared.keep)

    def hold(self, conn: psycopg.Connection) -> None:
        """Let nobody else attach, detach or drop partitions until the transaction ends; readers and VACUUM of
        partitions go on.
        """
        conn.execute(sql.SQL("LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE").format(self.table.sql))

    # -- made

    def make(self, conn: psycopg.Connection, rows: sql.Composable, stored: Sequence[str]) -> int:
        """Make the partitions that these rows lack, which are to be inserted; their number.

        `rows` is a SELECT of the rows, `stored` are the table's columns.
        """
        if self.method == "HASH":
            return 0
        there = self.members(conn)
        new: list[_New] = []
        if self.periods is None:
            has_rest = not any(member.is_default for member in there) and self._lack_any(conn, rows, there)
        elif self.periods.every == BY_VALUE:
            new, has_rest = self._lacking_values(conn, rows, there)
        else:
            new, has_rest = self._lacking_periods(conn, rows, there)
        default = next((member for member in there if member.is_default), None)
        needs_default = has_rest and default is None
        if not new and not needs_default:
            return 0
        if len(there) + len(new) > MOST:
            raise RefreshError(
                f"Its rows need {len(new):,} partitions besides the {len(there):,} that it has, and at most {MOST:,}"
                " are made",
                stream_table=str(self.table),
                remedy="Use a longer partition_every, keep less, or add wider partitions by pgtrickle.add_partition.",
            )
        owner = self._owner(conn)
        for one in new:
            self._add(conn, one, owner, default, stored)
        if needs_default:
            made = self._made_apart(conn, "default", owner)
            conn.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(made.sql, sql.Literal(table.DEFAULT_PARTITION)))
            conn.execute(sql.SQL("ALTER TABLE {} ATTACH PARTITION {} DEFAULT").format(self.table.sql, made.sql))
        return len(new) + needs_default

    def members(self, conn: psycopg.Connection) -> list[Member]:
        """The partitions that it has."""
        rows = conn.execute(_MEMBERS, (self.table.quoted,)).fetchall()
        return [
            Member(QualifiedName(schema, name), bounds, kind == "r", constraint or "true")
            for schema, name, bounds, kind, constraint in rows
        ]

    def _lack_any(self, conn: psycopg.Connection, rows: sql.Composable, there: Iterable[Member]) -> bool:
        held = sql.SQL(" OR ").join([sql.SQL(f"({m.constraint})") for m in there] or [sql.SQL("false")])
        found = conn.execute(
            sql.SQL("SELECT EXISTS (SELECT FROM ({}) AS r WHERE ({}) IS NOT TRUE)").format(rows, held)
        ).fetchone()
        return found is not None and bool(found[0])

    def _lacking_periods(
        self, conn: psycopg.Connection, rows: sql.Composable, there: Iterable[Member]
    ) -> tuple[list[_New], bool]:
        """A period that users' partitions cover in part is narrowed to the gap in which a value lies."""
        p = self.periods
        assert p is not None
        spans = [member.span for member in there if not member.is_default]
        statement = sql.SQL(
            "WITH held AS MATERIALIZED ({held}), keys AS ("
            "  SELECT DISTINCT {begin} AS low FROM (SELECT {value} AS x FROM ({rows}) AS r) AS v WHERE {has_one}),"
            " periods AS MATERIALIZED (SELECT low, {end} AS high FROM keys),"
            " lacking AS MATERIALIZED (SELECT * FROM periods p WHERE NOT EXISTS ("
            "  SELECT FROM held h WHERE h.low <= p.low AND p.high <= h.high)),"
            " cut AS MATERIALIZED (SELECT * FROM lacking l WHERE EXISTS ("
            "  SELECT FROM held h WHERE h.low < l.high AND l.low < h.high)),"
            " gaps AS (SELECT greatest(c.low, (SELECT max(h.high) FROM held h WHERE h.high <= v.x)) AS low,"
            "   least(c.high, (SELECT min(h.low) FROM held h WHERE h.low > v.x)) AS high"
            "  FROM cut c JOIN (SELECT {value} AS x FROM ({rows}) AS r) AS v ON c.low <= v.x AND v.x < c.high"
            "  WHERE NOT EXISTS (SELECT FROM held h WHERE h.low <= v.x AND v.x < h.high)),"
            " new AS (SELECT * FROM gaps UNION (SELECT * FROM lacking EXCEPT SELECT * FROM cut))"
            " SELECT {low}, {high}, {label}, low::text, high::text FROM new ORDER BY new.low"
        ).format(
            held=self._spans(spans),
            begin=sql.SQL(p.begin("x")),
            value=sql.SQL(p.value(self._column("r"))),
            rows=rows,
            has_one=sql.SQL(p.has_one("x")),
            end=sql.SQL(p.end("low")),
            low=sql.SQL(p.bound("low")),
            high=sql.SQL(p.bound("high")),
            label=sql.SQL(p.label("low")),
        )
        own, compared = p.value(sql.Identifier(self.column).as_string(None)), p.compared
        new = [
            _New(
                f"FOR VALUES FROM ({low}) TO ({high})",
                label,
                f"{own} >= '{begin}'::{compared} AND {own} < '{end}'::{compared}",
            )
            for low, high, label, begin, end in conn.execute(statement).fetchall()
        ]
        rest = sql.SQL("SELECT EXISTS (SELECT FROM (SELECT {} AS x FROM ({}) AS r) AS v WHERE {} IS NOT TRUE)")
        has_rest = conn.execute(
            rest.format(sql.SQL(p.value(self._column("r"))), rows, sql.SQL(p.has_one("x")))
        ).fetchone()
        return new, bool(has_rest and has_rest[0])

    def _lacking_values(
        self, conn: psycopg.Connection, rows: sql.Composable, there: Iterable[Member]
    ) -> tuple[list[_New], bool]:
        column = sql.Identifier(self.column)
        held = [sql.SQL(f"({member.constraint})") for member in there if not member.is_default]
        found = conn.execute(
            sql.SQL(
                "SELECT {0}::text FROM (SELECT DISTINCT {0} FROM ({1}) AS r) AS k WHERE ({2}) IS NOT TRUE ORDER BY 1"
            ).format(column, rows, sql.SQL(" OR ").join(held or [sql.SQL("false")]))
        ).fetchall()
        values = [value for (value,) in found]
        new = []
        for value in values:
            if value is not None:
                literal = sql.Literal(value).as_string(None)
                takes = f"{column.as_string(None)} = {literal}::{self.type}"
                new.append(_New(f"FOR VALUES IN ({literal})", re.sub(r"\W+", "_", value) or "empty", takes))
        return new, None in values

    def _add(
        self, conn: psycopg.Connection, new: _New, owner: str | None, default: Member | None, stored: Sequence[str]
    ) -> None:
        """Attach a new partition; rows of the DEFAULT one that belong to it go through the table.

        Triggers and publications of users then see a row leave and come, as where an UPDATE moves it.
        """
        made = self._made_apart(conn, new.label, owner)
        moving = sql.Identifier("pg_temp", "pgt_moving")
        columns = sql.SQL(", ").join(map(sql.Identifier, stored))
        moved = 0
        if default is not None:
            conn.execute(
                sql.SQL("CREATE TEMPORARY TABLE pgt_moving AS SELECT {} FROM {} WHERE {}").format(
                    columns, default.name.sql, sql.SQL(new.takes)
                )
            )
            moved = conn.execute(
                sql.SQL("DELETE FROM {} WHERE {}").format(default.name.sql, sql.SQL(new.takes))
            ).rowcount
        conn.execute(
            sql.SQL("ALTER TABLE {} ATTACH PARTITION {} {}").format(self.table.sql, made.sql, sql.SQL(new.bounds))
        )
        if moved:
            conn.execute(
                sql.SQL("INSERT INTO {} ({columns}) SELECT {columns} FROM {}").format(
                    self.table.sql, moving, columns=columns
                )
            )
        if default is not None:
            conn.execute(sql.SQL("DROP TABLE {}").format(moving))

    def _made_apart(self, conn: psycopg.Connection, label: str, owner: str | None) -> QualifiedName:
        """A guarded table like this one, which nobody else sees before the commit."""
        made = self._free(conn, label)
        conn.execute(
            sql.SQL(
                "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED"
                " INCLUDING STORAGE INCLUDING COMPRESSION)"
            ).format(made.sql, self.table.sql)
        )
        if owner is not None:
            conn.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(made.sql, sql.Identifier(owner)))
        # Without one PostgreSQL would refuse every update of a published partition.
        conn.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(made.sql))
        guard_alone(conn, made.sql)
        return made

    def _free(self, conn: psycopg.Connection, label: str) -> QualifiedName:
        """A name that no relation has."""
        for number in range(1, MOST + 2):
            words = f"{self.table.name}_{label}" + (f"_{number}" if number > 1 else "")
            name = QualifiedName(self.table.schema, table.fitting(words))
            if not table.exists(conn, name):
                return name
        raise AssertionError("more names are taken than there are partitions")

    def _owner(self, conn: psycopg.Connection) -> str | None:
        """The table's owner, if that is another role that this one may act for."""
        row = conn.execute(
            "SELECT pg_catalog.pg_get_userbyid(relowner), pg_catalog.pg_get_userbyid(relowner) = current_user,"
            " pg_catalog.pg_has_role(relowner, 'USAGE'), current_user::text"
            " FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(%s)",
            (self.table.quoted,),
        ).fetchone()
        assert row is not None
        owner, is_own, may, role = row
        if not may:
            raise PermissionFault(
                f"Its rows need a new partition, and role {role} may make none in a table of {owner}'s",
                stream_table=str(self.table),
                remedy=f"Refresh it as {owner}, or GRANT {owner} TO {role}.",
            )
        return None if is_own else str(owner)

    # -- touched

    def touched(self, conn: psycopg.Connection, rows: sql.Composable) -> Touched:
        """The partitions that hold rows with the keys of these."""
        if self.method == "HASH" and not self.is_single:
            return Touched(self.column)
        if self.periods is not None and self.periods.every != BY_VALUE:
            return self._touched_periods(conn, rows)
        column = sql.Identifier(self.column)
        found = conn.execute(
            sql.SQL("SELECT DISTINCT {0}::text FROM ({1}) AS r LIMIT {2}").format(column, rows, _MOST_NAMED + 1)
        ).fetchall()
        values = [value for (value,) in found if value is not None]
        if len(found) <= _MOST_NAMED:
            named = [_one_of([self._literal(value) for value in values])] if values else []
            return Touched(self.column, (*named, *([_is_null] if len(values) < len(found) else [])))
        if self.method != "RANGE":
            return Touched(self.column)
        ends = conn.execute(
            sql.SQL(
                "SELECT (SELECT {0}::text FROM ({1}) AS r WHERE {0} IS NOT NULL ORDER BY {0} LIMIT 1),"
                " (SELECT {0}::text FROM ({1}) AS r WHERE {0} IS NOT NULL ORDER BY {0} DESC LIMIT 1),"
                " EXISTS (SELECT FROM ({1}) AS r WHERE {0} IS NULL)"
            ).format(column, rows)
        ).fetchone()
        assert ends is not None
        between = _from_to(self._literal(ends[0]), self._literal(ends[1]), "<=")
        return Touched(self.column, (between, *([_is_null] if ends[2] else [])))

    def _touched_periods(self, conn: psycopg.Connection, rows: sql.Composable) -> Touched:
        p = self.periods
        assert p is not None
        found = conn.execute(
            sql.SQL(
                "SELECT begin::text, {end}::text, rest FROM"
                " (SELECT DISTINCT CASE WHEN {has_one} THEN {begin} END AS begin,"
                " x IS NOT NULL AND NOT {has_one} AS rest FROM (SELECT {value} AS x FROM ({rows}) AS r) AS v) AS k"
                " LIMIT {most}"
            ).format(
                end=sql.SQL(p.end("begin")),
                has_one=sql.SQL(p.has_one("x")),
                begin=sql.SQL(p.begin("x")),
                value=sql.SQL(p.value(self._column("r"))),
                rows=rows,
                most=_MOST_NAMED + 1,
            )
        ).fetchall()
        if len(found) > _MOST_NAMED or any(rest for _, _, rest in found):
            return Touched(self.column)
        return Touched(
            self.column,
            tuple(
                _is_null if begin is None else _from_to(sql.SQL(self._constant(begin)), sql.SQL(self._constant(end)))
                for begin, end, _ in found
            ),
        )

    def _constant(self, compared: str) -> str:
        """SQL of a compared value as a constant by which PostgreSQL prunes."""
        assert self.periods is not None
        if self.periods.is_number:
            # Beyond the type's values it stays what it is, and PostgreSQL reads a larger number as a larger type.
            return compared
        return self.periods.back(f"'{compared}'::{self.periods.compared}")

    def _literal(self, text: str) -> sql.Composable:
        return sql.SQL("{}::{}").format(sql.Literal(text), sql.SQL(self.type))

    # -- dropped

    def outdated(self, conn: psycopg.Connection, instant: datetime) -> list[Member]:
        """The partitions of which nothing is kept at a data timestamp."""
        if self.keep is None or self.periods is None:
            return []
        there = [member for member in self.members(conn) if not member.is_default]
        p = self.periods
        cut = p.out_before(self.keep, f"'{instant.isoformat()}'::timestamp with time zone")
        rows = conn.execute(
            sql.SQL("SELECT h.nth FROM ({}) AS h WHERE h.high <= {}").format(
                self._spans([member.span for member in there]), sql.SQL(cut)
            )
        ).fetchall()
        found = [there[nth - 1] for (nth,) in rows]
        return [member for member in found if member.is_plain]

    def are_heard(self, conn: psycopg.Connection, members: Sequence[Member]) -> bool:
        """Whether a publication or a trigger of a user's own waits for the deletions of their rows."""
        tables = [self.table, *(member.name for member in members)]
        row = conn.execute(
            _HEARD,
            {
                "schemas": [name.schema for name in tables],
                "names": [name.name for name in tables],
                "ours": [TRIGGER, ROW_TRIGGER],
            },
        ).fetchone()
        return row is not None and bool(row[0])

    def rows_in(self, members: Sequence[Member], relation: str) -> sql.Composable:
        """SQL of whether a row belongs to one of these partitions, which is never NULL."""
        # The constraint names the column alone, which is one of the relation's.
        terms = sql.SQL(" OR ").join([sql.SQL(f"({member.constraint})") for member in members] or [sql.SQL("false")])
        return sql.SQL("(SELECT coalesce({}, false) FROM (SELECT {}) AS k)").format(
            terms, sql.SQL(f"{self._column(relation)} AS {sql.Identifier(self.column).as_string(None)}")
        )

    def drop(self, conn: psycopg.Connection, members: Sequence[Member]) -> int | None:
        """Drop partitions with the rows in them, whose number is returned; None if somebody reads or needs them now."""
        try:
            with conn.transaction():
                for name in (self.table, *(member.name for member in members)):
                    conn.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(name.sql))
                found = 0
                for member in members:
                    row = conn.execute(sql.SQL("SELECT count(*) FROM ONLY {}").format(member.name.sql)).fetchone()
                    found += int(row[0]) if row else 0
                    conn.execute(sql.SQL("DROP TABLE {}").format(member.name.sql))
                return found
        except (
            psycopg.errors.LockNotAvailable,
            psycopg.errors.DependentObjectsStillExist,
            psycopg.errors.InsufficientPrivilege,
        ):
            return None

    # -- said

    def _column(self, relation: str) -> str:
        return sql.Identifier(relation, self.column).as_string(None)

    def _spans(self, spans: Sequence[tuple[str | None, str | None]]) -> sql.Composable:
        """SELECT of bounds as they are compared, infinite where there are none, with their places."""
        p = self.periods
        assert p is not None
        return sql.SQL(
            "SELECT coalesce({low}, '-infinity') AS low, coalesce({high}, 'infinity') AS high, nth"
            " FROM unnest({lows}::text[], {highs}::text[]) WITH ORDINALITY AS s(l, h, nth)"
        ).format(
            low=sql.SQL(p.value(f"l::{p.type}")),
            high=sql.SQL(p.value(f"h::{p.type}")),
            lows=sql.Literal([low for low, _ in spans]),
            highs=sql.Literal([high for _, high in spans]),
        )


def cut_by(stored: StreamTable) -> str | None:
    """The column by which a table is partitioned, if there are a least and a greatest of its values.

    PostgreSQL leaves partitions of a RANGE and of a LIST out that are not between two values.
    """
    if stored.partition_by is None or partition_key(stored.partition_by)[0] == "HASH":
        return None
    types = {column.name: column.type for column in stored.storage}
    column = table.key_of(stored.partition_by, types)[0]
    return column if base_type(types[column]) in (*ORDERED, "text", "character varying") else None


def refuse(declared: Declared, columns: Iterable[Column]) -> None:
    """Raise if the column has no periods of that length."""
    if declared.partition_by is not None and declared.partition_every is not None:
        types = {column.name: column.type for column in columns if not column.hidden}
        table.key_of(declared.partition_by, types)
        Periods.of(declared.partition_by, declared.partition_every, types)
