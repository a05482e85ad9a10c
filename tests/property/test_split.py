"""A query in two halves, on random schemas, queries and histories: the outer one over its part is the whole."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.split import Split, splits
from airflow_provider_pgtrickle.engine.dvm.types import is_its_image
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


@st.composite
def of_values(draw: st.DrawFn) -> Example:
    """A random world, and groups of one or two of its tables: of DISTINCT values, of sums, and of these filtered."""
    world = draw(worlds())
    table = draw(st.sampled_from(world.tables))
    scope = tuple(c.of("t") for c in table.columns)
    source, columns = f"{table.name} AS t", [c.name for c in scope]
    if draw(st.integers(0, 3)) == 3:
        other = draw(st.sampled_from(world.tables))
        left, right = (draw(st.sampled_from(of)).name for of in (table.columns, other.columns))
        source += f" JOIN {other.name} AS u ON length(t.{left}::text) = length(u.{right}::text)"
        columns += [f"u.{c.name}" for c in other.columns]
    column = st.sampled_from(columns)
    number = column.map(lambda name: f"length({name}::text)")
    condition = st.one_of(number.map(lambda x: f"{x} <> 2"), column.map(lambda x: f"{x} IS NOT NULL"))
    keys = draw(st.lists(st.one_of(column, number), max_size=2, unique=True))
    distinct = [f"count(DISTINCT {draw(column)})", f"count(DISTINCT {draw(number)})", f"sum(DISTINCT {draw(number)})"]
    distinct += [f"avg(DISTINCT {draw(number)})", f"stddev(DISTINCT {draw(number)})", f"max(DISTINCT {draw(number)})"]
    plain = [
        "count(*)",
        f"count({draw(column)})",
        f"sum({draw(number)})",
        f"avg({draw(number)} * 0.5)",
        f"min({draw(number)})",
    ]
    calls = draw(st.lists(st.sampled_from(distinct), min_size=0, max_size=2))
    calls += draw(st.lists(st.sampled_from(plain), min_size=0 if calls else 1, max_size=2))
    calls = [c + draw(st.sampled_from(["", "", f" FILTER (WHERE {draw(condition)})"])) for c in calls]
    is_collected = draw(st.integers(0, 3)) == 3
    if is_collected:
        value = draw(st.one_of(number, column.map(lambda name: f"{name}::text")))
        order = draw(st.sampled_from(["", " DESC", " NULLS FIRST"]))
        separator = ", ','" if value.endswith("text") and draw(st.booleans()) else ""
        name = "string_agg" if separator else draw(st.sampled_from(["array_agg", "jsonb_agg"]))
        calls = [f"{name}(DISTINCT {value}{separator} ORDER BY {value}{order})"]
        calls += draw(st.sampled_from([[], [f"count(DISTINCT {value})"]]))
    shown = [f"{x} AS {n}" for n, x in zip("abcdefgh", [*keys, *calls], strict=False)]
    rest = f"FROM {source}{draw(st.sampled_from(['', f' WHERE {draw(condition)}']))}"
    rest += f" GROUP BY {', '.join(keys)}" if keys else ""
    lookup = f"(SELECT count(*) FROM {draw(st.sampled_from(world.tables)).name})"
    having = [f"{calls[0]} > 1", f"{calls[-1]} <= 3", f"{calls[0]} < {lookup}", f"{calls[0]} IS NULL OR count(*) > 2"]
    above = [f"{x} IS NULL" for x in keys[:1]] + [f"{calls[0]} > 0 AND {keys[0]} IS NOT NULL"] if keys else []
    if is_collected:
        having, above = [f"count(DISTINCT {value}) > 1", f"{calls[0]} IS NOT NULL"], []
    rest += draw(st.sampled_from(["", *(f" HAVING {h}" for h in having + above)]))
    query = f"SELECT {', '.join(shown)} {rest}"
    name = "abcdefgh"[len(keys)]
    wrapped = [
        query,
        query,
        f"SELECT q.{name} FROM ({query}) AS q WHERE q.{name} > 1",
        f"WITH q AS ({query}) SELECT q.{name} + 1 AS n FROM q WHERE q.{name} IS NOT NULL",
        f"SELECT q.{name}, count(*) AS n FROM ({query}) AS q GROUP BY q.{name}",
    ]
    query = (
        wrapped[-1]
        if is_collected and draw(st.booleans())
        else query
        if is_collected
        else draw(st.sampled_from(wrapped))
    )
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
    for number, split in enumerate(splits(declared.canonical, declared.schema)):
        with opened.undone():
            _maintain(opened, split, f"part_{number}", query, history)


def _maintain(opened: Case, split: Split, stem: str, query: str, history: list[list[str]]) -> None:
    names = [f"{stem}_{number}" for number in range(len(split.parts))]
    try:
        parts = [Maintained.create(opened, text, name=name) for text, name in zip(split.parts, names, strict=True)]
        for part in parts:
            values = [kind for name, kind in part.storage if name in split.alike]
            if not all(is_its_image(kind) for kind in values):
                event("values that may look different")
                return
        opened.capture()
        outer = Maintained.create(opened, split.outer(*((opened.schema, name) for name in names)), name="st_outer")
    except (Refused, PgTrickleError, psycopg.Error):
        event("in one piece")
        return
    event("halved" + (", several blocks at once" if split.is_for_several else "") + (", values" if split.alike else ""))
    outer.query = query
    outer.verify()
    for transaction in history:
        opened.change(*transaction)
        for part in parts:
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


@pytest.mark.timeout(900)
@settings(FEWER, max_examples=FEWER.max_examples // 2)
@given(example=of_values())
def test_values_and_filtered_groups_are_parts(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, _halves_are_the_whole)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=of_values())
def test_ten_thousand_of_values(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, _halves_are_the_whole)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(drawn=gathered())
def test_ten_thousand_halves(oracle_connection: psycopg.Connection, drawn: tuple[Example, str, int]) -> None:
    example, wrapping, number = drawn
    _judged(oracle_connection, example, _gathered_halves_are_the_whole(wrapping, number))
