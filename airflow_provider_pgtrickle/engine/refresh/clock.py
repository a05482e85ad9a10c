"""The clock at a data timestamp: the values of what a query reads of it, which PostgreSQL computes once for a refresh.

All members of a unit read it at the unit's snapshot, unless they read a stream table that is older.
"""

from __future__ import annotations

from collections.abc import Mapping

from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm import View
from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK, INSTANT, Values, as_of
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.dvm.emit import literal
from airflow_provider_pgtrickle.engine.refresh.decision import SourceFacts
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection


def read(conn: Connection, readings: Mapping[str, Reading], old: str | None, new: str) -> dict[str, Values]:
    """The values of readings at two instants; if the content has none, `old` is None and the clock hasn't moved."""
    if not readings:
        return {}
    texts = [f"pg_catalog.pg_typeof(v{n}.new)::text, v{n}.old::text, v{n}.new::text" for n in range(len(readings))]
    items = [
        f"(SELECT {as_of(reading, _at(old or new))} AS old, {as_of(reading, _at(new))} AS new) AS v{n}"
        for n, reading in enumerate(readings.values())
    ]
    statement = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ".join(texts)), sql.SQL(", ".join(items)))
    row = conn.execute(statement).fetchone()
    assert row is not None  # each item is one row
    found = {}
    for n, text in enumerate(readings):
        kind, before, now = row[3 * n : 3 * n + 3]
        found[text] = Values(f"{literal(before)}::{kind}", f"{literal(now)}::{kind}")
    return found


def moved(conn: Connection, query: View, readings: Mapping[str, Values]) -> int:
    """The number of rows that compare otherwise with the clock now: one probe of an index for each comparison."""
    statement = query.moved(Binding(readings=readings))
    row = conn.execute(sql.SQL("SELECT {}").format(sql.SQL(statement))).fetchone() if statement else None
    return int(row[0]) if row else 0


def facts(moved: int | None) -> SourceFacts:
    """The clock as a source. No share of it is too large, because what it moves is found by range."""
    return SourceFacts(CLOCK, "the clock", buffer_lost=moved is None, pending_rows=moved or 0, judged=True)


def _at(instant: str) -> str:
    return f"{literal(instant)}::{INSTANT}"
