"""Random queries whose stream table is partitioned by one of their columns, while the clock moves forth and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from tests.property.changes import histories
from tests.property.queries import queries
from tests.property.tables import World
from tests.property.test_clock import BEGINS
from tests.property.test_placement import _defined, _differ, change, inhabited
from tests.property.test_properties import BY_CHANGE, SOAK, SOME
from tests.property.worlds import worlds

_LENGTHS = ("1 day", "1 month", "3 months", "1 year", "2 weeks", "6 hours")
_KEPT = (None, None, "1 day", "1 month", "40 days", "2 months", "5 hours", "1 year")
_MOVES = (0, 0, 1, 24, 24 * 29, 24 * 31, -24 * 31, 24 * 120, -3)
#: Where the periods of a length begin, of a timestamp.
_BEGIN = {
    "1 day": "date_bin('1 day', {}, '2001-01-01')",
    "2 weeks": "date_bin('14 days', {}, '2001-01-01')",
    "6 hours": "date_bin('6 hours', {}, '2001-01-01')",
    "1 month": "date_trunc('month', {})",
    "3 months": "date_trunc('quarter', {})",
    "1 year": "date_trunc('year', {})",
}


FEW = settings(SOME, max_examples=SOME.max_examples // 20)


@dataclass(frozen=True)
class Parted:
    world: World
    query: str
    history: list[tuple[list[str], datetime]]
    place: int
    """Which of the query's columns is the key."""
    length: str
    number: str
    keep: str | None
    method: str
    by_hand: int | None
    """After which change somebody drops a partition."""
    dated: str | None
    """The type of a time that is made of a column, because few worlds have one."""


@st.composite
def parted(draw: st.DrawFn) -> Parted:
    world = draw(worlds())
    query = draw(queries(world))
    at, history = BEGINS, []
    for transaction in draw(histories(world, query)):
        at += timedelta(hours=draw(st.sampled_from(_MOVES)))
        history.append((transaction, at))
    return Parted(
        world,
        query,
        history,
        draw(st.integers(0, 7)),
        draw(st.sampled_from(_LENGTHS)),
        draw(st.sampled_from(("1", "2", "1000000"))),
        draw(st.sampled_from(_KEPT)),
        draw(st.sampled_from(("RANGE", "RANGE", "RANGE", "LIST", "HASH"))),
        draw(st.sampled_from((None, None, None, 0, 1))),
        draw(st.sampled_from((None, "date", "timestamp", "timestamptz"))),
    )


def _dated(conn: psycopg.Connection, example: Parted) -> str:
    """The query, with a time within half a year of the first refresh for each row, and NULL for some."""
    if example.dated is None:
        return example.query
    described = conn.execute(f"SELECT * FROM ({example.query}) AS x LIMIT 0").description or []
    column = described[example.place % len(described)].name
    hours = f'(length(w."{column}"::text) * 1237 + ascii(w."{column}"::text) * 331) % 4400'
    at = f"(timestamp '2023-11-28 20:00' + {hours} * interval '1 hour')"
    zone = " AT TIME ZONE 'UTC'" if example.dated == "timestamptz" else ""
    return f"SELECT w.*, ({at}{zone})::{example.dated} AS at_ FROM ({example.query}) AS w"


def _options(conn: psycopg.Connection, example: Parted, query: str) -> tuple[str, dict[str, Any]]:
    """The column's name and what is declared; times are partitioned by length, whatever was drawn."""
    described = conn.execute(f"SELECT * FROM ({query}) AS x LIMIT 0").description or []
    types = {c.name: c.type_display for c in described if c.type_display in ("date", "timestamp", "timestamptz")}
    others = [c.name for c in described]
    if types:
        name = list(types)[example.place % len(types)]
        every = "1 day" if types[name] == "date" and "hours" in example.length else example.length
        keep = {} if example.keep is None else {"keep": example.keep}
        return name, {"partition_by": f'RANGE ("{name}")', "partition_every": every, **keep}
    name = others[example.place % len(others)]
    kind = described[others.index(name)].type_display
    if example.method == "LIST":
        return name, {"partition_by": f'LIST ("{name}")', "partition_every": "value"}
    if example.method == "RANGE" and kind in ("int2", "int4", "int8", "numeric"):
        return name, {"partition_by": f'RANGE ("{name}")', "partition_every": example.number}
    return name, {"partition_by": f'{example.method} ("{name}")'}


def _within(query: str, name: str, options: dict[str, str], at: datetime) -> str:
    """The query's rows that are kept, by PostgreSQL alone."""
    if "keep" not in options:
        return query
    begin = _BEGIN[options["partition_every"]].format(f"timestamp '{at:%Y-%m-%d %H:%M}' - interval '{options['keep']}'")
    return f"SELECT * FROM ({query}) AS q WHERE q.\"{name}\" >= ({begin}) AT TIME ZONE 'UTC'"


def _follows(dsn: str, example: Parted) -> None:
    world, query = example.world, example.query
    note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n-- {query};\n-- {example.history}")
    with inhabited(dsn, world, "reader", "kept") as (conn, pt):
        conn.execute("SET TimeZone TO 'UTC'")
        if not _defined(conn, query):
            return
        query = _dated(conn, example)
        name, options = _options(conn, example, query)
        note(f"-- {options}")
        schema = conn.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]

        def refreshed(table: str, at: datetime) -> str:
            done = refresh_unit(
                pt.database,
                [QualifiedName(schema, table)],
                executor=lambda: PostgresExecutor(pt.database),
                settings=pt.settings,
                instant=at,
            )
            (result,) = done.values()
            assert result.action is not None
            return result.action

        try:
            pt.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL", initialize=False, **options)
            refreshed("kept", BEGINS)
            pt.create_stream_table("reader", "SELECT count(*) AS n FROM kept", initialize=False)
            refreshed("reader", BEGINS)
        except PgTrickleError as refused:
            event(type(refused).__name__)
            return
        event(f"{options['partition_by'].split()[0]}, {'keep' in options}")
        for number, (transaction, at) in enumerate(example.history):
            change(conn, transaction)
            dropped = number == example.by_hand and _drop_one(conn)
            whole = _within(query, name, options, at)
            if not _defined(conn, whole):
                continue
            action = refreshed("kept", at)
            assert action == "REINITIALIZE" if dropped else action in (*BY_CHANGE, "NO_DATA", "FULL")
            assert _differ(conn, whole) == []
            assert pt.verify("kept", refresh=False).differences == 0
            refreshed("reader", at)
            assert conn.execute("SELECT n = (SELECT count(*) FROM kept) FROM reader").fetchone() == (True,)


def _drop_one(conn: psycopg.Connection) -> bool:
    """Drop a partition, as a user may; False if there is none."""
    found = conn.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'kept'::regclass LIMIT 1")
    row = found.fetchone()
    if row is not None:
        conn.execute(f"DROP TABLE {row[0]}")
    return row is not None


@pytest.mark.timeout(900)
@FEW
@given(example=parted())
def test_the_content_of_partitions_is_the_query_within_what_is_kept(dsn: str, example: Parted) -> None:
    _follows(dsn, example)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=parted())
def test_ten_thousand_partitioned_tables(dsn: str, example: Parted) -> None:
    _follows(dsn, example)
