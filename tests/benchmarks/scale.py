"""What grows with the number of stream tables: measured at some sizes, predicted for the largest from the others.

Chains of ten tables over small sources, so that what is measured is each table's own cost and not that of its rows.
Times are the processor's, of this process and the server together, so the server must be on this machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog import alerts
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.declare import dependencies, owners
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.operators import readiness
from airflow_provider_pgtrickle.operators.fenced_run import move_together, refresh_without_spark
from tests.benchmarks import place
from tests.benchmarks.measure import Goal, Measured, Processor, median, timed

SIZES = (100, 500, 2000)
LENGTH = 10
SHARE = 10
"""One chain of so many gets changes."""
_SOURCE_ROWS = 1000
_LISTENERS = (0, 50)
_IDLE = 20
"""So many tables without changes a task refreshes at once."""
#: What is carried to this many tables in `docs/scale.md`.
CARRIED = (10_000, 100_000)


@dataclass(frozen=True)
class Line:
    """found = fixed + each * tables."""

    fixed: float
    each: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Line:
        """The line with the least sum of squared relative errors, so that the small sizes count as much as the large.

        Neither a part that is fixed nor one for each table takes away what the other one costs.
        """
        weights = [1 / max(y, 1e-9) ** 2 for _, y in points]
        total = sum(weights)
        x_mean = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
        y_mean = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
        spread = sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points, strict=True))
        slope = (
            sum(w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points, strict=True)) / spread
            if spread
            else 0.0
        )
        each = max(slope, 0.0)
        return cls(max(y_mean - each * x_mean, 0.0), each)

    def at(self, tables: float) -> float:
        return self.fixed + self.each * tables


def run(dsn: str, sizes: Sequence[int] = SIZES) -> Iterator[Measured]:
    """One database grows from size to size."""
    with (
        place.database(dsn) as url,
        PgTrickle(url, placement="database", differential_max_change_ratio=0.0) as pt,
        psycopg.connect(url, autocommit=True) as conn,
    ):
        pt.install()
        empty, there = _catalog(conn), 0
        for size in sorted(sizes):
            processor = Processor(conn)
            chains = range(there, size // LENGTH)
            took = [_chain(pt, conn, processor, chain) for chain in chains]
            there = size // LENGTH
            conn.execute("VACUUM ANALYZE")
            # The last ones, when the others are there.
            found = {"declare and fill a table": (1000 * sum(took[-3:]) / len(took[-3:]) / LENGTH, "ms")}
            for name, total in _catalog(conn).items():
                found[f"{name}, for each table"] = ((total - empty[name]) / size / 1024, "KB")
            found |= dict(_of_size(pt, conn, processor, there))
            for name, (value, unit) in found.items():
                yield Measured("scale", name, value / 1000 if unit == "ms" else 0.0, _facts(size, value, unit))


def _facts(size: int, found: float, unit: str) -> dict[str, Any]:
    return {"tables": size, "found": found, "unit": unit}


def predicted(rows: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """Each measure: the line through all sizes but the largest, what it says of the largest, and what was found."""
    by_name: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append((row.facts["tables"], row.facts["found"]))
    units = {row.name: row.facts["unit"] for row in rows}
    for name, points in by_name.items():
        *known, (largest, found) = sorted(points)
        line, whole = Line.through(known), Line.through(points)
        told = line.at(largest)
        yield {
            "measure": name,
            "unit": units[name],
            **{f"at {size:,}": _rounded(value) for size, value in sorted(points)},
            "predicted": _rounded(told),
            "found / predicted": round(found / told, 2) if told else None,
            **{f"carried to {tables:,}": _rounded(whole.at(tables)) for tables in CARRIED},
        }


def goals(rows: list[Measured]) -> Iterator[Goal]:
    """Nothing grows faster than the tables do; a quarter is for the machine."""
    for line in predicted(rows):
        if line["found / predicted"] is not None:
            yield Goal(f"{line['measure']}: found / predicted", 1.25, line["found / predicted"])


def _of_size(
    pt: PgTrickle, conn: psycopg.Connection, processor: Processor, chains: int
) -> Iterator[tuple[str, tuple[float, str]]]:
    """What is measured with so many chains, by name: value and unit."""
    names = [_name(chain, number) for chain in range(chains) for number in range(LENGTH)]
    first, last = names[0], names[LENGTH - 1]
    refresh = partial(_refreshed, pt, conn)
    works: dict[str, Callable[[], object]] = {
        **{f"plan, no change: {name}": work for name, work in _of_plan(pt.database, names).items()},
        **{f"page: {name}": work for name, work in _of_page(conn).items()},
        "`pgtrickle status`": pt.status,
        "`pgtrickle cleanup`, nothing to do": pt.cleanup,
        "`pgtrickle health`": pt.health,
        "a refresh that finds nothing": partial(refresh, first, change=False),
        "a refresh of one changed row": partial(refresh, first),
        "a refresh with nine tables upstream": partial(refresh, last),
        "what a refresh task asks before it": partial(_asked, pt.database, [first]),
    }
    for name, work in works.items():
        yield name, (_ms(processor, work), "ms")
    yield from _graph(pt, conn, processor, chains, names)
    for listeners in _LISTENERS:
        yield (
            f"a commit with NOTIFY, {listeners} listeners, by the clock",
            (_notified(pt.database.dsn, listeners), "ms"),
        )


def _name(chain: int, number: int) -> str:
    return f"public.chain_{chain:05}_{number}"


def _chain(pt: PgTrickle, conn: psycopg.Connection, processor: Processor, chain: int) -> float:
    """Declare and fill a chain; the processor's seconds."""
    begun, source = processor.seconds(), f"rows_{chain:05}"
    conn.execute(f"CREATE TABLE {source} (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
    conn.execute(f"INSERT INTO {source} SELECT n, n % 100, n FROM generate_series(1, {_SOURCE_ROWS}) n")
    for number in range(LENGTH):
        read = _name(chain, number - 1) if number else source
        pt.create_stream_table(_name(chain, number), f"SELECT g, sum(v) AS v FROM {read} GROUP BY g", schedule="1h")
    return processor.seconds() - begun


def _of_plan(database: Database, names: list[str]) -> Mapping[str, Callable[[], object]]:
    """What the task `plan` asks, each in a transaction of its own as there."""

    def asked(work: Callable[[psycopg.Connection[Any]], object]) -> Callable[[], object]:
        def ask() -> object:
            with database.transaction() as conn:
                return work(conn)

        return ask

    return {
        "states": asked(lambda conn: readiness.read(conn, names)),
        "owners": asked(owners.owners),
        "stale tables": asked(lambda conn: alerts.tell_of_stale(conn, names)),
    }


def _of_page(conn: psycopg.Connection) -> Mapping[str, Callable[[], object]]:
    from airflow_provider_pgtrickle.web import state

    def rows(query: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> Callable[[], object]:
        return lambda: conn.execute(query.encode(), values).fetchall()

    return {
        "tables": rows(state._TABLES),
        "what reads what": rows(state._READS),
        "pending": rows(state._PENDING),
        "costs of a day": rows(state._COSTS, {"hours": 24}),
        "units": lambda: dependencies.graph(conn).units(),
        "one table": rows(state._TABLE, ["public", "chain_00000_1"]),
        "its sources": rows(state._SOURCES, ["public.chain_00000_1"]),
        "pg_stat_stream_tables": rows("SELECT * FROM pgtrickle.pg_stat_stream_tables"),
    }


def _refreshed(pt: PgTrickle, conn: psycopg.Connection, name: str, *, change: bool = True) -> None:
    if change:
        conn.execute("UPDATE rows_00000 SET v = v + 1 WHERE id = 1")
    pt.refresh_stream_table(name)


def _ms(processor: Processor, work: Callable[[], object]) -> float:
    """Milliseconds of a call, when it was called once before."""
    work()
    return processor.of(work) * 1000


def _asked(database: Database, names: Sequence[str]) -> object:
    with database.transaction() as conn:
        return readiness.read(conn, names)


def _graph(
    pt: PgTrickle, conn: psycopg.Connection, processor: Processor, chains: int, names: Sequence[str]
) -> Iterator[tuple[str, tuple[float, str]]]:
    """What one task does at granularity `graph`: units without changes together, the others one after the other."""
    changed = range(0, chains, SHARE)
    tables = [QualifiedName.parse(_name(chain, number)) for chain in changed for number in range(LENGTH)]
    idle = [QualifiedName.parse(name) for name in names[LENGTH : LENGTH + _IDLE]]
    history = _bytes(conn, "pgtrickle.pgt_refresh_history")
    with PgTrickle(pt.database.dsn, placement="database", differential_max_change_ratio=0.0) as other:
        rounds, empty = [], _memory(other.database)
        for number in range(3):
            for chain in changed:
                conn.execute(f"UPDATE rows_{chain:05} SET v = v + 1 WHERE id <= 10")
            if number == 0:
                yield "plan, 10% changed: states", (_ms(processor, partial(_asked, pt.database, names)), "ms")
            begun = processor.seconds()
            _units(other.database, tables, other.settings)
            rounds.append((processor.seconds() - begun) / len(tables) * 1000)
        # The first round plans and renders everything; a process that stays does that once.
        yield "granularity graph: a changed table, first run of a process", (rounds[0], "ms")
        yield "granularity graph: a changed table, later runs", (rounds[-1], "ms")
        memory = _memory(other.database) - empty
        yield "memory of its session, for each table refreshed", (memory / len(tables) / 1024, "KB")
        grown = _bytes(conn, "pgtrickle.pgt_refresh_history") - history
        yield "history, for each refresh", (grown / len(tables) / len(rounds) / 1024, "KB")
        together = partial(_moved, other.database, idle, other.settings)
        yield "granularity graph: a table without a change", (_ms(processor, together) / len(idle), "ms")


def _moved(database: Database, tables: Sequence[QualifiedName], settings: Settings) -> None:
    assert move_together(database, tables, settings, run_token="bench", initiated_by="bench") is not None


def _units(database: Database, tables: Sequence[QualifiedName], settings: Settings) -> None:
    for table in tables:
        done = refresh_without_spark(database, [table], settings, run_token="bench", initiated_by="bench")
        assert done is not None
        actions = {result.action for result in done.values()}
        assert actions == {"DIFFERENTIAL"}, actions


def _catalog(conn: psycopg.Connection) -> dict[str, float]:
    """Bytes of PostgreSQL's catalog, of ours, and relations."""
    row = conn.execute("""
        SELECT sum(pg_total_relation_size(c.oid)) FILTER (WHERE n.nspname = 'pg_catalog' AND c.relkind = 'r'),
               sum(pg_total_relation_size(c.oid)) FILTER (WHERE n.nspname = 'pgtrickle' AND c.relkind = 'r'),
               sum(pg_total_relation_size(c.oid)) FILTER (WHERE n.nspname = 'pgtrickle_changes' AND c.relkind = 'r'),
               1024 * count(*)
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    """).fetchone()
    assert row is not None
    kinds = ("PostgreSQL's catalog", "pgtrickle's catalog and history", "empty change buffers", "thousand relations")
    return dict(zip(kinds, (float(value or 0) for value in row), strict=True))


def _bytes(conn: psycopg.Connection, relation: str) -> int:
    row = conn.execute("SELECT pg_total_relation_size(%s::regclass)", (relation,)).fetchone()
    assert row is not None
    return int(row[0])


def _memory(database: Database) -> int:
    with database.session() as conn:
        row = conn.execute("SELECT sum(total_bytes) FROM pg_backend_memory_contexts").fetchone()
    assert row is not None
    return int(row[0])


def _notified(url: str, listeners: int) -> float:
    """Milliseconds of a commit that tells listeners, which sit in other sessions and read what comes."""
    ended = threading.Event()
    heard = [psycopg.connect(url, autocommit=True) for _ in range(listeners)]
    threads = [threading.Thread(target=_listen, args=(conn, ended)) for conn in heard]
    for conn in heard:
        conn.execute("LISTEN pg_trickle_alert")
    for thread in threads:
        thread.start()
    try:
        with psycopg.connect(url, autocommit=True) as conn:
            payload = "x" * 400
            statement = "SELECT pg_notify('pg_trickle_alert', %s)"
            took = [timed(partial(conn.execute, statement, (payload + str(n),)))[0] for n in range(200)]
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for conn in heard:
            conn.close()
    return median(took) * 1000


def _listen(conn: psycopg.Connection, ended: threading.Event) -> None:
    while not ended.is_set():
        for _ in conn.notifies(timeout=0.2):
            pass


def _rounded(value: float) -> float:
    return round(value, 2 if value < 10 else 1 if value < 100 else 0)
