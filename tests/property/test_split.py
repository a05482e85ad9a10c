"""A query in two halves, on random schemas, queries and histories: the outer one over its part is the whole."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from psycopg import sql

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.oracle.arena import Case
from tests.oracle.declare import declare
from tests.oracle.harness import Maintained, Refused
from tests.property.changes import histories
from tests.property.test_properties import FEWER, SOAK, Example, _judged, examples
from tests.property.worlds import worlds

# Each gathers the groups of a column of a random query.
_GATHERED = (
    "SELECT n, count(*) AS c FROM (SELECT {key} AS k, count(*) AS n FROM ({query}) AS q GROUP BY 1) AS g GROUP BY n",
    "SELECT max(n) AS most FROM (SELECT {key} AS k, count(*) AS n FROM ({query}) AS q GROUP BY 1) AS g",
    "SELECT {key} AS k, count(*) AS n, rank() OVER (ORDER BY count(*)) AS place FROM ({query}) AS q GROUP BY 1",
    "SELECT {key} AS k, min({key}) AS m FROM ({query}) AS q GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 2",
    "SELECT DISTINCT count(*) AS n FROM ({query}) AS q GROUP BY {key}",
    "SELECT {key} AS k FROM ({query}) AS q GROUP BY 1 HAVING count(*) >= (SELECT count(*) / 2 FROM ({query}) AS r)",
    "SELECT {key} AS k FROM ({query}) AS q WHERE (SELECT count(*) FROM ({query}) AS r) > 3",
    "WITH g AS (SELECT {key} AS k, count(*) AS n FROM ({query}) AS q GROUP BY 1)"
    " SELECT a.k, a.n FROM g AS a WHERE a.n = (SELECT max(n) FROM g)",
)


@st.composite
def gathered(draw: st.DrawFn) -> tuple[Example, str, int]:
    """A random example, what gathers it, and the number of the column whose groups it gathers."""
    return draw(examples()), draw(st.sampled_from(_GATHERED)), draw(st.integers(0, 20))


@st.composite
def of_one_row(draw: st.DrawFn) -> Example:
    """A random world, and a query of several values, each of one table by a condition of its own."""
    world = draw(worlds())
    table = draw(st.sampled_from(world.tables))
    values = []
    for number in range(draw(st.integers(2, 4))):
        of = f"length({draw(st.sampled_from(table.columns)).name}::text)"
        by = f"length({draw(st.sampled_from(table.columns)).name}::text)"
        call = draw(st.sampled_from(["count(*)", f"count({of})", f"sum({of})", f"avg({of})", f"sum(DISTINCT {of})"]))
        call += draw(st.sampled_from(["", f" FILTER (WHERE {by} <> 2)"]))
        where = draw(st.sampled_from(["", f" WHERE {by} > 1", f" WHERE {by} IS NULL OR {of} < 3"]))
        values.append(f"(SELECT {call} FROM {table.name}{where}) AS v{number}")
    query = f"SELECT {', '.join(values)}{draw(st.sampled_from(['', f' FROM {table.name}']))}"
    return world, query, draw(histories(world, query))


def _gathered_halves_are_the_whole(wrapping: str, number: int) -> Callable[[Case, str, list[list[str]]], None]:
    def judge(opened: Case, query: str, history: list[list[str]]) -> None:
        columns = declare(opened.conn, opened.schema, query).columns
        key = sql.Identifier("q", columns[number % len(columns)][0]).as_string(None)
        whole = wrapping.format(key=f"{key}::text", query=query)
        note(whole)
        _halves_are_the_whole(opened, whole, history)

    return judge


def _halves_are_the_whole(opened: Case, query: str, history: list[list[str]]) -> None:
    declared = declare(opened.conn, opened.schema, query)
    for number, split in enumerate(dvm.splits(declared.canonical, declared.schema)):
        with opened.undone():
            _maintain(opened, split, f"part_{number}", query, history)


def _maintain(opened: Case, split: dvm.Split, name: str, query: str, history: list[list[str]]) -> None:
    try:
        part = Maintained.create(opened, split.part, name=name)
        opened.capture()
        outer = Maintained.create(opened, split.outer(opened.schema, name), name="st_outer")
    except (Refused, PgTrickleError, psycopg.Error):
        event("in one piece")
        return
    event("halved" + (", several blocks at once" if split.is_for_several else ""))
    outer.query = query
    outer.verify()
    for transaction in history:
        opened.change(*transaction)
        part.refresh()
        assert outer.refresh() in ("DIFFERENTIAL", "TOPK")


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_halves_are_the_whole(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, _halves_are_the_whole)


@pytest.mark.timeout(900)
@FEWER
@given(drawn=gathered())
def test_what_is_gathered_is_the_whole(oracle_connection: psycopg.Connection, drawn: tuple[Example, str, int]) -> None:
    example, wrapping, number = drawn
    _judged(oracle_connection, example, _gathered_halves_are_the_whole(wrapping, number))


@pytest.mark.timeout(900)
@FEWER
@given(example=of_one_row())
def test_values_of_one_table_are_one_part(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, _halves_are_the_whole)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(drawn=gathered())
def test_ten_thousand_halves(oracle_connection: psycopg.Connection, drawn: tuple[Example, str, int]) -> None:
    example, wrapping, number = drawn
    _judged(oracle_connection, example, _gathered_halves_are_the_whole(wrapping, number))
