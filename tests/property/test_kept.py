"""A query that changes to another one, with changes pending: what is kept equals what is computed anew."""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.property.changes import histories
from tests.property.expressions import aggregates, comparable, predicates
from tests.property.joins import joined
from tests.property.kinds import Column, keys
from tests.property.queries import OPERATORS
from tests.property.relation import Columns, Relation, Scope, outputs, relations
from tests.property.tables import World
from tests.property.test_placement import _defined, _differ, change, inhabited
from tests.property.test_properties import FEWER, SOAK
from tests.property.worlds import worlds


@dataclass(frozen=True)
class Altered:
    world: World
    queries: tuple[str, ...]
    """Each is the table's query, one after the other."""
    histories: list[list[list[str]]]


@st.composite
def altered(draw: st.DrawFn) -> Altered:
    """Queries over one relation: lists, filters and groups come and go."""
    world = draw(worlds())
    scope = Scope(world, draw(st.sampled_from((1, 1, 1, 2))), OPERATORS, shadows=False)
    child = draw(st.one_of(relations(Scope(world, 0, OPERATORS, shadows=False)), joined(scope), relations(scope)))
    columns = child.of("k")
    queries = draw(_grouped(child, columns) if draw(st.booleans()) else _listed(child, columns))
    read = " ".join(queries)
    return Altered(world, tuple(queries), [draw(histories(world, read))[:2] for _ in queries])


@st.composite
def _listed(draw: st.DrawFn, child: Relation, columns: Columns) -> list[str]:
    scalar = tuple(column for column in columns if comparable(column))
    told_by = [column for column in columns if column.name.removeprefix("k.") in child.key]
    always = told_by or draw(st.lists(st.sampled_from(columns), max_size=3, unique=True))
    pool = draw(st.lists(predicates(scalar), min_size=1, max_size=2)) if scalar else []
    lists = [draw(outputs(columns)) for _ in range(2)]
    # Lists come back, and so do the columns that were computed.
    both = [*lists[0], *lists[1]]
    shown = [lists[0], draw(st.sampled_from((both, both, lists[0]))), draw(st.sampled_from((both, lists[1])))]
    return [_select(child, [*always, *some], draw(_terms(pool, n))) for n, some in enumerate(shown)]


@st.composite
def _grouped(draw: st.DrawFn, child: Relation, columns: Columns) -> list[str]:
    scalar = tuple(column for column in columns if comparable(column))
    if not scalar:
        return draw(_listed(child, columns))
    by = list(keys(tuple(draw(st.lists(st.sampled_from(scalar), max_size=2, unique=True)))))
    found = draw(st.lists(aggregates(scalar), min_size=1, max_size=3))
    about = draw(st.lists(predicates(tuple(by)), max_size=1)) if by else []
    rest = f" GROUP BY {', '.join(c.name for c in by)}" if by else ""
    having = ["count(*) > 1", f"{found[0].name} IS NOT NULL", *about]
    made = []
    for number in range(3):
        some = draw(st.lists(st.sampled_from(found), min_size=1, unique=True)) if number else found
        above = draw(_terms(having, number))
        text = rest + (f" HAVING {' AND '.join(f'({x})' for x in above)}" if above else "")
        made.append(_select(child, [*by, *some], draw(_terms(about, number)), text))
    return made


@st.composite
def _terms(draw: st.DrawFn, pool: list[str], number: int) -> list[str]:
    """Mostly one more than the query before has."""
    if pool and draw(st.integers(0, 5)) == 5:
        return draw(st.lists(st.sampled_from(pool), unique=True))
    return pool[:number]


def _select(child: Relation, shown: list[Column], terms: list[str], rest: str = "") -> str:
    """A SELECT whose columns have the same name in each query of the relation."""
    names: dict[str, str] = {}
    for column in shown:
        plain = re.sub(r"\W+", "_", column.name)[-40:]
        names.setdefault(f"n_{plain}_{len(column.name)}", column.name)
    listed = ", ".join(f"{text} AS {name}" for name, text in names.items())
    where = f" WHERE {' AND '.join(f'({t})' for t in terms)}" if terms else ""
    return f"SELECT {listed} FROM {child.aliased('k')}{where}{rest}"


def _follows(dsn: str, example: Altered) -> None:
    world = example.world
    told = "\n".join(f"-- {query};\n-- {h}" for query, h in zip(example.queries, example.histories, strict=True))
    note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n{told}")
    with inhabited(dsn, world, "reader", "kept") as (conn, pt):
        _play(conn, pt, example)


def _play(conn: psycopg.Connection, pt: PgTrickle, example: Altered) -> None:
    first, *others = example.queries
    if not _defined(conn, first):
        return
    try:
        pt.create_stream_table("kept", first, refresh_mode="DIFFERENTIAL")
        shared = " , ".join(dict.fromkeys(re.findall(r"AS (n_\w+)", first)))
        pt.create_stream_table("reader", f"SELECT {shared} FROM kept")
    except PgTrickleError as refused:
        event(type(refused).__name__)
        return
    for query, (pending, later) in zip(others, example.histories, strict=False):
        change(conn, pending)
        if not _defined(conn, query):
            return
        try:
            told = pt.cost_of_query("kept", query)
            pt.alter_stream_table("kept", query=query)
        except PgTrickleError as refused:
            event(type(refused).__name__)
            return
        reason = next(row["fallback_reason"] for row in pt.history("kept") if row["action"] != "SKIP")
        event(re.sub(r"\b\d+ |n_\w+|[a-z]+_?\d+\b", "", reason)[:90])
        assert _differ(conn, query) == [], reason
        assert pt.verify("kept", refresh=False).differences == 0, reason
        # What is foretold looks at the query's form alone: if that might have parts, it says that nothing is kept.
        event(f"foretold {told.kept is not None}, kept {'kept what is stored' in reason}")
        _reads_what_is_there(conn, pt)
        change(conn, later)
        if _defined(conn, query):
            pt.refresh_stream_table("kept")
            assert _differ(conn, query) == [], reason
            _reads_what_is_there(conn, pt)


def _reads_what_is_there(conn: psycopg.Connection, pt: PgTrickle) -> None:
    if conn.execute("SELECT to_regclass('reader') IS NOT NULL").fetchone() != (True,):
        return
    try:
        pt.refresh_stream_table("reader")
    except PgTrickleError:
        # What it reads has lost a column.
        pt.drop_stream_table("reader")
        return
    described = conn.execute("SELECT * FROM reader LIMIT 0").description or []
    names = ", ".join(f"x.{c.name}" for c in described if not c.name.startswith("__pgt_"))
    rows = [f"SELECT ROW({names})::text FROM {place} AS x" for place in ("reader", "kept")]
    for one, other in (rows, rows[::-1]):
        assert conn.execute(f"({one}) EXCEPT ALL ({other})").fetchall() == []


@pytest.mark.timeout(900)
@FEWER
@given(example=altered())
def test_what_is_kept_of_an_altered_query_is_its_content(dsn: str, example: Altered) -> None:
    _follows(dsn, example)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=altered())
def test_ten_thousand_altered_queries(dsn: str, example: Altered) -> None:
    _follows(dsn, example)
