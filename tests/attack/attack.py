"""Play a history, and judge: afterwards every stream table is equal to its query, or somebody was told."""

from __future__ import annotations

import pprint
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh import query
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from tests import servers
from tests.attack.actors import Actor, Hanging, Owner, Refresher, Room, client, named
from tests.attack.moves import Declare, Forget, History, Kill, Refresh, Resume, Step, history
from tests.attack.worlds import WORLDS, World

__all__ = ["Tally", "Verdict", "Worlds", "attack", "play", "shrunk"]


@dataclass(frozen=True)
class Verdict:
    """What is wrong, and with what."""

    kind: str
    """`different` without a word; `raw` error; `writer` failed because of us; `unmended`; `hanging`."""
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.detail}"


@dataclass
class Tally:
    """What a number of histories came to."""

    histories: int = 0
    steps: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """What happened in the histories."""
    judged: Counter[str] = field(default_factory=Counter)
    """How what was judged had been refreshed."""
    noticed: Counter[str] = field(default_factory=Counter)
    """What somebody was told."""
    found: list[tuple[str, int, tuple[Verdict, ...]]] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.histories + other.histories,
            self.steps + other.steps,
            self.counts + other.counts,
            self.judged + other.judged,
            self.noticed + other.noticed,
            [*self.found, *other.found],
        )

    def __str__(self) -> str:
        lines = [f"{self.histories} histories, {self.steps} steps, {len(self.found)} of them wrong"]
        lines += [f"  {number:7} {what}" for what, number in sorted(self.counts.items())]
        lines += [f"  {number:7} judged after {what}" for what, number in sorted(self.judged.items())]
        lines += [f"  {number:7} noticed: {what}" for what, number in self.noticed.most_common()]
        lines += [f"  {world} {seed}: {'; '.join(map(str, verdicts))}" for world, seed, verdicts in self.found]
        return "\n".join(lines)


class Worlds:
    """The databases of a server to copy histories' databases from, each made once."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made: dict[str, str] = {}
        self._known: dict[str, dict[Any, Any]] = {}

    @contextmanager
    def fresh(self, world: World) -> Iterator[str]:
        """A copy of the world: the ordinary role's way to it."""
        if world.name not in self._made:
            self._made[world.name] = self._make(world)
        name = f"{self._made[world.name]}_copy"
        with psycopg.connect(self._server.dsn(), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {name} OWNER {servers.ORDINARY_ROLE} TEMPLATE {self._made[world.name]}")
            # A second to find a deadlock is a second for each.
            admin.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '30ms'")
        dsn = servers.ordinary_dsn(self._server, name)
        self._know(world, dsn)
        try:
            yield dsn
        finally:
            with psycopg.connect(self._server.dsn(), autocommit=True) as admin:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _know(self, world: World, dsn: str) -> None:
        """What a process knows of the queries that it has refreshed before: the same for each history."""
        if world.name not in self._known:
            with client(Database(dsn)) as pt:
                pt.refresh(list(world.stream_tables))
            self._known[world.name] = dict(query._analysed)
        query._analysed.clear()
        query._analysed.update(self._known[world.name])

    def _make(self, world: World) -> str:
        name = f"world_{world.name}"
        with psycopg.connect(self._server.dsn(), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {name} OWNER {servers.ORDINARY_ROLE} TEMPLATE template0")
            # What logical replication does to triggers, an ordinary role may do where it was given this.
            admin.execute(f"GRANT SET ON PARAMETER session_replication_role TO {servers.ORDINARY_ROLE}")
        dsn = servers.ordinary_dsn(self._server, name)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(world.ddl)
        with client(Database(dsn)) as pt:
            pt.install()
            for table, text in world.stream_tables.items():
                pt.create_stream_table(table, text, refresh_mode=world.modes.get(table, "AUTO"))
        return name


def attack(
    worlds: Worlds, seeds: Sequence[int], *, shrink: bool = True, told: Callable[[str], object] = print
) -> Tally:
    """The histories of these numbers, the worlds in turn; what is found is shrunk and told."""
    tally = Tally()
    names = list(WORLDS)
    for seed in seeds:
        world = WORLDS[names[seed % len(names)]]
        steps = history(world, seed)
        verdicts = play(worlds, world, steps, tally)
        tally.histories += 1
        tally.steps += len(steps)
        if verdicts:
            tally.found.append((world.name, seed, verdicts))
            if shrink:
                least = shrunk(steps, partial(_again, worlds, world, verdicts[0]))
                told(f"{world.name} {seed}: {verdicts[0]}\n{written(least)}")
    return tally


def _again(worlds: Worlds, world: World, verdict: Verdict, fewer: History) -> bool:
    """Whether fewer steps come to the same."""
    return any((v.kind, v.subject) == (verdict.kind, verdict.subject) for v in play(worlds, world, fewer))


def written(steps: History) -> str:
    """A history as Python, to be kept as a test."""
    return pprint.pformat(steps, width=118)


def shrunk(steps: History, fails: Callable[[History], bool]) -> History:
    """A history of which nothing can be left out: halves, quarters, single steps; then gaps."""
    size = max(len(steps) // 2, 1)
    while True:
        place = 0
        while place < len(steps):
            fewer = steps[:place] + steps[place + size :]
            if fewer != steps and fails(fewer):
                steps = fewer
            else:
                place += size
        if size == 1:
            break
        size = max(size // 2, 1)
    for place, step in enumerate(steps):
        for plainer in _plainer(step):
            fewer = (*steps[:place], plainer, *steps[place + 1 :])
            if fails(fewer):
                steps = fewer
                break
    return steps


def _plainer(step: Step) -> list[Step]:
    if not isinstance(step, (Refresh, Declare)):
        return []
    simpler: list[Step] = [replace(step, pauses=())] if step.pauses else []
    if len(step.pauses) > 1:
        simpler += [replace(step, pauses=(gap,)) for gap in step.pauses]
    if isinstance(step, Refresh) and len(step.names) > 1:
        simpler += [replace(step, names=(name,), pauses=()) for name in step.names]
        simpler += [replace(step, names=(name,)) for name in step.names]
    return simpler


def play(worlds: Worlds, world: World, steps: History, tally: Tally | None = None) -> tuple[Verdict, ...]:
    """The history in a database of its own; what is wrong then."""
    tally = tally or Tally()
    with worlds.fresh(world) as dsn:
        room = Room(dsn)
        try:
            verdicts = _played(room, world, steps)
        except Hanging as hanging:
            verdicts = [Verdict("hanging", str(hanging), "nobody could go on")]
        finally:
            room.close()
        tally.counts += room.counts
        if not any(verdict.kind == "hanging" for verdict in verdicts):
            verdicts += _judged_at_the_end(dsn, world, tally)
    return tuple(verdicts)


def _played(room: Room, world: World, steps: History) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for name in sorted({step.actor for step in steps}):
        if name in ("A", "B"):
            Owner(name, room)
        else:
            Refresher(name, room, world)
    for step in steps:
        actor = room.actors[step.actor]
        match step:
            case Resume():
                actor.resume()
            case Kill():
                actor.kill()
            case Forget():
                query._analysed.clear()
            case _:
                actor.give(step)
        room.settle()
        if isinstance(step, Refresh):
            verdicts += _judged_at_once(room, actor)
    room.finish()
    for actor in room.actors.values():
        if isinstance(actor, Owner):
            verdicts += [Verdict("writer", actor.name, wrong) for wrong in actor.wronged]
        if isinstance(actor, Refresher):
            verdicts += [Verdict("raw", actor.name, error) for error in actor.raw]
    return verdicts


def _judged_at_once(room: Room, actor: Actor) -> list[Verdict]:
    """A refresh that nobody disturbed shows what its query says now."""
    assert isinstance(actor, Refresher)
    if not room.at_rest():
        return []
    refreshed = [name for name, result in actor.results.items() if result.action != "SKIP"]
    wrong = []
    for name in refreshed:
        difference = differing(room.monitor, name)
        if difference:
            result = actor.results[name]
            wrong.append(Verdict("different", name, f"after {result.action}, at once: {difference}"))
    return wrong


def _judged_at_the_end(dsn: str, world: World, tally: Tally) -> list[Verdict]:
    verdicts: list[Verdict] = []
    with client(Database(dsn)) as pt, psycopg.connect(dsn, autocommit=True) as conn:
        judge = _Judge(pt, conn, verdicts, tally)
        names = _in_order(conn)
        shown = judge.all_refreshed(names, "at the end")
        for statement in world.afterwards:
            try:
                conn.execute(statement)
            except psycopg.Error as error:
                said = f"{error.diag.message_primary} {error.diag.context}"
                if "pgtrickle" in said:
                    verdicts.append(Verdict("writer", "afterwards", f"{statement}: {said}"))
        results = judge.all_refreshed([name for name in names if name in shown], "afterwards")
        for name, result in results.items():
            # A part that a crash may empty is never sure of its changes.
            if result.fallback_reason in ("buffer_lost", "schema_changed") and not _may_be_emptied(conn):
                verdicts.append(Verdict("unmended", name, f"{result.fallback_reason} again and again"))
    return verdicts


@dataclass
class _Judge:
    pt: PgTrickle
    conn: psycopg.Connection
    verdicts: list[Verdict]
    tally: Tally

    def all_refreshed(self, names: Sequence[str], when: str) -> dict[str, RefreshResult]:
        """As one unit; where one holds the others back each by itself, and in full where that is asked for."""
        results = self.refreshed(names, when)
        for name in names:
            if name not in results:
                results |= self.refreshed([name], when) or self.refreshed([name], when, force_full=True)
        return results

    def refreshed(self, names: Sequence[str], when: str, force_full: bool = False) -> dict[str, RefreshResult]:
        """What was refreshed, as one unit; nothing where somebody was told why not."""
        if not names:
            return {}
        try:
            results = self.pt.refresh(names, force_full=force_full)
        except PgTrickleError as error:
            self.tally.noticed[f"{type(error).__name__}: {error.message[:70]}"] += 1
            return {}
        except Exception as error:
            self.verdicts.append(Verdict("raw", ", ".join(names), f"{when}: {type(error).__name__}: {error}"))
            return {}
        for name, result in results.items():
            if result.action == "SKIP":
                self.tally.noticed[f"SKIP {result.fallback_reason}"] += 1
                continue
            self.tally.judged[named(result)] += 1
            difference = differing(self.conn, name)
            if difference:
                self.verdicts.append(Verdict("different", name, f"after {result.action}, {when}: {difference}"))
        return {name: result for name, result in results.items() if result.action != "SKIP"}


def _may_be_emptied(conn: psycopg.Connection) -> bool:
    unlogged = (
        "SELECT FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    return conn.execute(unlogged).fetchone() is not None


def _in_order(conn: psycopg.Connection) -> list[str]:
    """All stream tables that can be refreshed by name, those read before their readers."""
    rows = conn.execute(
        "SELECT pgt_id, pgt_schema || '.' || pgt_name, ARRAY(SELECT source_pgt_id FROM pgtrickle.pgt_dependencies d"
        " WHERE d.pgt_id = t.pgt_id AND source_pgt_id IS NOT NULL), is_hidden"
        " FROM pgtrickle.pgt_stream_tables t ORDER BY pgt_id"
    ).fetchall()
    order: list[str] = []
    done: set[int] = {pgt_id for pgt_id, _, _, hidden in rows if hidden}
    left = [row for row in rows if row[0] not in done]
    while left:
        ready = [row for row in left if set(row[2]) <= done] or left
        order += [row[1].removeprefix("public.") for row in ready]
        done |= {row[0] for row in ready}
        left = [row for row in left if row[0] not in done]
    return order


def differing(conn: psycopg.Connection, name: str) -> str | None:
    """How the stream table and its hidden parts differ from what their queries say; None where they don't."""
    rows = conn.execute(
        "SELECT pgt_schema, pgt_name, original_query, defining_query, storage FROM pgtrickle.pgt_stream_tables"
        " WHERE %(name)s IN"
        " (pgt_name, (SELECT o.pgt_name FROM pgtrickle.pgt_stream_tables o WHERE o.pgt_id = part_of))",
        {"name": name.removeprefix("public.")},
    ).fetchall()
    for schema, table, original, defining, storage in rows:
        visible = sql.SQL(", ").join(sql.Identifier(c["name"]) for c in storage if c["role"] == "visible")
        stored = sql.SQL("SELECT {} FROM {}").format(visible, sql.Identifier(schema, table))
        # What the author wrote may mean another table by now than when he wrote it; either is right.
        said = [_difference(conn, stored, text) for text in dict.fromkeys((original, defining))]
        if all(said):
            return f"{table}: {said[0]}"
    return None


def _difference(conn: psycopg.Connection, stored: sql.Composed, text: str) -> str | None:
    asked = sql.SQL(text.strip().rstrip(";"))
    statement = sql.SQL(
        "(SELECT 'surplus', ROW(a.*)::text FROM (({stored}) EXCEPT ALL ({asked})) a)"
        " UNION ALL (SELECT 'missing', ROW(b.*)::text FROM (({asked}) EXCEPT ALL ({stored})) b) LIMIT 6"
    ).format(stored=stored, asked=asked)
    try:
        rows = conn.execute(statement).fetchall()
    except psycopg.Error as error:
        return f"can't be compared: {error.diag.message_primary}"
    return ", ".join(f"{what} {row}" for what, row in rows) or None
