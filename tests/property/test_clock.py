"""Random queries over views that compare with the clock, while rows change and the clock moves forth and back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from tests.oracle.arena import case
from tests.oracle.declare import Misprinted
from tests.oracle.harness import Maintained, Refused, Undefined, at_instant
from tests.property.changes import histories
from tests.property.kinds import DATE, INT, TIME, TIMESTAMP, TIMESTAMPTZ, Column
from tests.property.queries import queries
from tests.property.tables import Table, World
from tests.property.test_properties import BY_CHANGE, FEWER
from tests.property.worlds import worlds

BEGINS = datetime(2024, 2, 28, 20, tzinfo=UTC)
#: A change of New York's and of St John's clock follows eleven days later, one of Oslo's a month later.
_ZONES = ("UTC", "UTC", "Europe/Oslo", "America/New_York", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe")
_SPANS = ("1 month", "-1 month", "30 days", "-2 months 3 days", "36 hours", "-1 day", "0", "-5 months")
_READINGS = {
    DATE: ("(now() + interval '{}')::date", "current_date + 1", "(now() AT TIME ZONE 'Europe/Berlin')::date"),
    TIMESTAMP: ("localtimestamp + interval '{}'", "(now() + interval '{}') AT TIME ZONE 'America/New_York'"),
    TIMESTAMPTZ: ("now() + interval '{}'", "date_trunc('month', now(), 'Europe/Berlin')", "current_date - 1"),
    TIME: ("localtime",),
    INT: ("extract(day FROM now()) - 27", "extract(month FROM now() + interval '{}')"),
}
_MOVES = (0, 1, 5, 24, 24 * 10 + 11, 24 * 29, 24 * 31, -24 * 31, 24 * 120, -3)

Example = tuple[World, dict[str, str], str, list[tuple[list[str], str]], str]


@st.composite
def predicates(draw: st.DrawFn, table: Table) -> str:
    """A condition that compares a column with the clock, alone or beside another."""
    found = [(c, text) for c in table.columns for text in _READINGS.get(c.kind, ())]
    if not found:
        return "extract(hour FROM now()) < 12"
    terms = []
    for column, text in draw(st.lists(st.sampled_from(found), min_size=1, max_size=2)):
        if column.kind is not INT and draw(st.integers(0, 3)) == 3:
            terms.append(draw(_overlaps(table, column)))
            continue
        sign = draw(st.sampled_from((">", ">=", "<", "<=", "=", "<>", "IS DISTINCT FROM", "IN", "NOT IN")))
        if sign.endswith("IN"):
            text = f"({text}, {draw(st.sampled_from(_READINGS[column.kind]))})"
        terms.append(f"{column.name} {sign} {text.replace('{}', draw(st.sampled_from(_SPANS)))}")
    joined = draw(st.sampled_from((" OR ", " AND "))).join(f"({term})" for term in terms)
    return draw(st.sampled_from((joined, joined, f"NOT ({joined})", f"({joined}) IS NOT TRUE")))


@st.composite
def _overlaps(draw: st.DrawFn, table: Table, column: Column) -> str:
    """A row's time between two columns or for a while, and one around the clock; either may end before it begins."""
    spans = [f"interval '{draw(st.sampled_from(_SPANS))}'"] if column.kind is not TIME else []
    begin, *ends = (text.replace("{}", draw(st.sampled_from(_SPANS))) for text in (*_READINGS[column.kind],) * 2)
    own = [c.name for c in table.columns if c.kind is column.kind]
    row = f"({column.name}, {draw(st.sampled_from((*own, *spans)))})"
    clock = f"({begin}, {draw(st.sampled_from((*ends, *spans)))})"
    return draw(st.sampled_from((f"{row} OVERLAPS {clock}", f"{clock} OVERLAPS {row}")))


@st.composite
def examples(draw: st.DrawFn) -> Example:
    world = draw(worlds())
    filters = {table.name: draw(predicates(table)) for table in world.tables}
    shown = replace(world, tables=tuple(replace(t, name=f"{t.name}_live") for t in world.tables))
    query = draw(queries(shown))
    history, at = [], BEGINS
    for transaction in draw(histories(world, query.replace("_live", ""))):
        at += timedelta(hours=draw(st.sampled_from(_MOVES)))
        history.append((transaction, at.isoformat()))
    return world, filters, query, history, draw(st.sampled_from(_ZONES))


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_content_equals_the_query_at_the_clock_s_time(oracle_connection: psycopg.Connection, example: Example) -> None:
    world, filters, query, history, zone = example
    note("\n".join(f"{s};" for s in (*world.ddl, *world.rows)) + f"\n-- {filters}\n-- {query};\n-- {history}")
    note(f"-- in {zone}")
    live = [f"CREATE VIEW {name}_live AS SELECT * FROM {name} WHERE {f}" for name, f in filters.items()]

    with case(oracle_connection, (*world.ddl, *live)) as opened:

        def freeze(instant: str) -> None:
            for name, f in filters.items():
                frozen = at_instant(f, instant)
                opened.execute(f"CREATE OR REPLACE VIEW {name}_frozen AS SELECT * FROM {name} WHERE {frozen}")

        opened.execute(f"SET LOCAL TimeZone = '{zone}'")
        opened.change(*world.rows)
        assume(opened.understands(query))
        freeze(BEGINS.isoformat())
        spelled = re.sub(r"_live\b", "_frozen", query)
        try:
            kept = Maintained.create(opened, query, instant=BEGINS.isoformat(), spelled=spelled)
            for transaction, instant in history:
                opened.change(*transaction)
                freeze(instant)
                assert kept.refresh(instant=instant) in BY_CHANGE
        except (Undefined, Misprinted):
            assume(False)
        except Refused as refused:
            if refused.reason is not Reason.AMBIGUOUS_ORDER:
                raise
            assume(False)
