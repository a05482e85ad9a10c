"""What writers did, and what refreshes showed: every content must be the query over the transactions it says it saw.

Each writer's transaction records what it wrote and under which transaction number. A trigger on the catalog records
each content in the very commit that moved its frontier. Afterwards the checker computes each content anew, in Python,
from the transactions that are visible in that frontier's snapshot, and no others.

The order of two writes to one row is known without guessing: each takes the next version of its key under a row lock.
A transaction is committed where its marker is there, whatever its client was told when it was killed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from airflow_provider_pgtrickle.engine.refresh.snapshot import Frontier, Xids

__all__ = ["KEYS", "PRELUDE", "STREAM_TABLES", "UNITS", "Checked", "Transaction", "check", "watch"]

KEYS = 120
_GROUPS = 6

PRELUDE = f"""
CREATE TABLE t (id int PRIMARY KEY, g int, v int);
CREATE TABLE u (g int PRIMARY KEY, name text);
CREATE TABLE versions (place text, key int, ver int NOT NULL, PRIMARY KEY (place, key));
CREATE TABLE markers (n text PRIMARY KEY);
INSERT INTO versions SELECT 't', n, 0 FROM generate_series(1, {KEYS}) AS n;
INSERT INTO versions SELECT 'u', n, 0 FROM generate_series(0, {_GROUPS - 1}) AS n;
"""

#: From the sources up. `st_dia` closes a diamond over `st_sum`.
STREAM_TABLES = {
    "st_rows": "SELECT id, g, v FROM t",
    "st_join": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
    "st_sum": "SELECT g, sum(v) AS total, count(*) AS n FROM t GROUP BY g",
    "st_over": "SELECT n, count(*) AS c FROM st_sum GROUP BY n",
    "st_left": "SELECT g, total FROM st_sum WHERE total % 2 = 0",
    "st_right": "SELECT g, n FROM st_sum WHERE n > 1",
    "st_dia": "SELECT a.g, a.total, b.n FROM st_left AS a JOIN st_right AS b ON a.g = b.g",
}
#: As the product's own graph would: a diamond is one unit.
UNITS = (
    tuple(STREAM_TABLES),
    ("st_rows",),
    ("st_join", "st_rows"),
    ("st_sum",),
    ("st_over",),
    ("st_left", "st_right", "st_dia"),
    ("st_sum", "st_over"),
    ("st_sum", "st_left", "st_right", "st_dia"),
)

Row = tuple[Any, ...]
Bag = list[Row]
State = dict[str, dict[int, Row]]

_WATCH = """
CREATE TABLE seen (n bigserial PRIMARY KEY, name text, frontier jsonb, data_timestamp timestamptz, content jsonb);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE content jsonb;
BEGIN
    EXECUTE format('SELECT coalesce(jsonb_agg(jsonb_build_array(%s)), ''[]'') FROM %I.%I',
        (SELECT string_agg(quote_ident(c ->> 'name'), ', ') FROM jsonb_array_elements(new.storage) AS c
         WHERE c ->> 'role' = 'visible'), new.pgt_schema, new.pgt_name) INTO content;
    INSERT INTO public.seen (name, frontier, data_timestamp, content)
    VALUES (new.pgt_name, new.frontier, new.data_timestamp, content);
    RETURN NULL;
END $$;
CREATE TRIGGER see AFTER UPDATE OF frontier ON pgtrickle.pgt_stream_tables
    FOR EACH ROW WHEN (new.is_populated AND new.frontier IS DISTINCT FROM old.frontier) EXECUTE FUNCTION see();
"""


def watch(conn: psycopg.Connection) -> None:
    """From now on every content is recorded with its frontier."""
    conn.execute(_WATCH)


@dataclass
class Transaction:
    """What one transaction of a writer wrote; rolled back savepoints are not in it."""

    marker: str
    xid: int = 0
    promised: bool = False
    """Whether its client was told that it is committed."""
    writes: list[tuple[str, int, int, Row | None]] = field(default_factory=list)
    """Table, key, version, and the row as it is then; None: it is gone."""


@dataclass(frozen=True)
class Checked:
    """What was checked, and what is wrong."""

    contents: int
    transactions: int
    late: int
    """Contents that a transaction was missing from which had begun before one that is in it: late commits were met."""
    wrong: tuple[str, ...]


def check(conn: psycopg.Connection, transactions: Iterable[Transaction]) -> Checked:
    """Compute every recorded content anew."""
    marked = {n for (n,) in conn.execute("SELECT n FROM markers")}
    committed = sorted((t for t in transactions if t.marker in marked), key=lambda t: t.xid)
    rows = conn.execute("SELECT name, frontier, data_timestamp, content FROM seen ORDER BY n").fetchall()
    wrong: list[str] = []
    shown: dict[tuple[str, Any], str] = {}
    last: dict[str, Any] = {}
    contents: list[tuple[str, str, Bag]] = []
    for name, stored, instant, content in rows:
        if name in last and instant < last[name]:
            wrong.append(f"{name}: its data timestamp went back from {last[name]} to {instant}")
        last[name] = instant
        frontier = Frontier.from_json(stored)
        below = {key: part for key, part in frontier.sources.items() if not key.startswith("pgt_")}
        if below:
            snapshots = {part.snapshot for part in below.values()}
            if len(snapshots) != 1:
                wrong.append(f"{name}: it shows several instants at once: {snapshots}")
            (snapshot, *_) = snapshots
        else:
            upstream = "st_sum"
            found = shown.get((upstream, instant))
            if found is None:
                wrong.append(f"{name}: no content of {upstream} is of {instant}")
                continue
            snapshot = found
        shown[name, instant] = snapshot
        contents.append((name, snapshot, [tuple(row) for row in content]))
    states = _states(committed, [snapshot for _, snapshot, _ in contents])
    late = 0
    for name, snapshot, content in contents:
        state, overtaken = states[snapshot]
        late += overtaken
        expected = _QUERIES[name](state)
        if sorted(map(repr, content)) != sorted(map(repr, expected)):
            surplus, missing = _apart(content, expected)
            wrong.append(f"{name} at {snapshot}: surplus {surplus[:3]}, missing {missing[:3]}")
    return Checked(len(contents), len(committed), late, tuple(wrong))


def _states(committed: list[Transaction], snapshots: list[str]) -> dict[str, tuple[State, bool]]:
    """The rows that each snapshot sees."""
    states: dict[str, tuple[State, bool]] = {}
    settled: dict[tuple[str, int], tuple[int, Row | None]] = {}
    place = 0
    for text in sorted(set(snapshots), key=lambda s: (Xids.parse(s).xmin, Xids.parse(s).xmax)):
        seen = Xids.parse(text)
        while place < len(committed) and committed[place].xid < seen.xmin:
            _write(settled, committed[place])
            place += 1
        now = dict(settled)
        missing = overtaken = False
        for transaction in committed[place:]:
            if transaction.xid >= seen.xmax:
                break
            if seen.sees(transaction.xid):
                _write(now, transaction)
                overtaken |= missing
            else:
                missing = True
        state: State = {"t": {}, "u": {}}
        for (table, key), (_, row) in now.items():
            if row is not None:
                state[table][key] = row
        states[text] = state, overtaken
    return states


def _write(rows: dict[tuple[str, int], tuple[int, Row | None]], transaction: Transaction) -> None:
    for table, key, version, row in transaction.writes:
        if version > rows.get((table, key), (-1, None))[0]:
            rows[table, key] = version, row


def _apart(content: Bag, expected: Bag) -> tuple[Bag, Bag]:
    surplus, missing = list(content), []
    for row in expected:
        if row in surplus:
            surplus.remove(row)
        else:
            missing.append(row)
    return surplus, missing


# The queries once more, in Python


def _rows(state: State) -> Bag:
    return [(id, g, v) for id, (g, v) in state["t"].items()]


def _join(state: State) -> Bag:
    return [(id, v, state["u"][g][0]) for id, (g, v) in state["t"].items() if g in state["u"]]


def _sum(state: State) -> Bag:
    groups: dict[int, list[int]] = defaultdict(list)
    for g, v in state["t"].values():
        groups[g].append(v)
    return [(g, sum(values), len(values)) for g, values in groups.items()]


def _over(state: State) -> Bag:
    counted: dict[int, int] = defaultdict(int)
    for _, _, n in _sum(state):
        counted[n] += 1
    return list(counted.items())


def _left(state: State) -> Bag:
    return [(g, total) for g, total, _ in _sum(state) if total % 2 == 0]


def _right(state: State) -> Bag:
    return [(g, n) for g, _, n in _sum(state) if n > 1]


def _dia(state: State) -> Bag:
    return [(g, total, n) for g, total, n in _sum(state) if total % 2 == 0 and n > 1]


_QUERIES: dict[str, Callable[[State], Bag]] = {
    "st_rows": _rows,
    "st_join": _join,
    "st_sum": _sum,
    "st_over": _over,
    "st_left": _left,
    "st_right": _right,
    "st_dia": _dia,
}
assert _QUERIES.keys() == STREAM_TABLES.keys()
