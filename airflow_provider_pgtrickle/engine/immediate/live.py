"""An IMMEDIATE table becomes live when its sources' writers begin to maintain it, and stops when they no longer do.

Writers are kept out only for one small difference: the table is filled and refreshed as any other one, then its sources
are locked, a last refresh brings it up to that moment, and the functions are in place before the locks are given back.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from graphlib import TopologicalSorter

import psycopg
from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.layout import layout, lock_members
from airflow_provider_pgtrickle.engine.capture.maintained import erase, erase_sources
from airflow_provider_pgtrickle.engine.capture.st_buffer import drop_st_buffer
from airflow_provider_pgtrickle.engine.capture.tracking import track
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.locks import lock_declarations
from airflow_provider_pgtrickle.engine.catalog.planned import planned
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.dvm import View
from airflow_provider_pgtrickle.engine.dvm.explain import WriterCost
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, TransientFault, UsageError
from airflow_provider_pgtrickle.engine.immediate import maintain, propagate
from airflow_provider_pgtrickle.engine.immediate.maintain import Maintained
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.failure import back_off
from airflow_provider_pgtrickle.engine.refresh.query import analysed
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from airflow_provider_pgtrickle.engine.settings import Settings

MODE = records.IMMEDIATE


def enliven(database: Database, settings: Settings, refreshed: Collection[str]) -> list[QualifiedName]:
    """Let writers maintain those of the tables just refreshed that they should maintain, and don't yet; their names."""
    with database.session() as conn:
        found = waiting(conn, refreshed)
    for name in found:
        go_live(database, settings, name)
    if found:
        with database.session() as conn:
            # Else the server would count what the last refresh has written later, and as written by writers.
            conn.execute("SELECT pg_catalog.pg_stat_force_next_flush()")
            written(conn, list(map(str, found)))
    return found


def go_live(database: Database, settings: Settings, name: QualifiedName) -> None:
    """Let writers maintain a populated table from now on.

    Behind a long transaction of a writer all others would wait, too. So the lock is given up after a second, and tried
    again.
    """
    for number in range(1, max(settings.retry_attempts, 1) + 1):
        try:
            _go_live(database, settings, name)
        except TransientFault as fault:
            is_busy = isinstance(fault.__cause__, psycopg.errors.LockNotAvailable)
            if not is_busy or number >= settings.retry_attempts:
                raise
            time.sleep(back_off(number, settings))
        else:
            return


def _go_live(database: Database, settings: Settings, name: QualifiedName) -> None:
    """The last refresh runs in PostgreSQL whatever its size, because writers wait for it."""
    with database.transaction(stream_table=str(name)) as conn:
        lock_declarations(conn)
        conn.execute("SET LOCAL lock_timeout = '1s'")
        st = records.get(conn, name)
        if st.is_live:
            return
        refuse(conn, settings, st)
        _keep_writers_out(conn, st)
        last = refresh_unit(
            database,
            [name],
            executor=lambda: PostgresExecutor(database),
            settings=settings,
            initiated_by="live",
            # Writers wait for it, and whoever has the turn may wait for one of them.
            queues=False,
        )[str(name)]
        if last.action == "SKIP":
            raise TransientFault(
                f"It can't be brought up to date now ({last.fallback_reason})",
                stream_table=str(name),
                remedy="Refresh it once more; then its sources' writers maintain it.",
            )
        install(conn, st)


def install(conn: Connection, st: StreamTable) -> None:
    """Put in place what maintains a table that is up to date, while nobody writes its sources."""
    records.update(conn, st.id, is_live=True, schedule=None)
    conn.execute("INSERT INTO pgtrickle.pgt_immediate (pgt_id) VALUES (%s) ON CONFLICT DO NOTHING", (st.id,))
    _arrange(conn)


def withdraw(conn: Connection, *tables: StreamTable) -> list[QualifiedName]:
    """Let their sources' writers no longer maintain these tables, nor what reads them; the names of the latter.

    The next refresh computes them anew. The queries are not looked at, because a source may no longer fit them.
    """
    leaving = _with_live_readers(conn, [st.id for st in tables])
    if not leaving:
        return []
    read = [d for d in records.dependencies(conn) if d.pgt_id in leaving and d.source_pgt_id is None]
    sources = read_sources(conn, sorted({d.source_relid for d in read}))
    _lock(conn, sources.values())
    for pgt_id in leaving:
        records.update(conn, pgt_id, is_live=False, frontier=None)
    conn.execute("DELETE FROM pgtrickle.pgt_immediate WHERE pgt_id = ANY(%s)", (leaving,))
    left = {key for of in _arrange(conn) for key in of.keys}
    unread = [source for source in sources.values() if source.key not in left]
    erase_sources(conn, {d.key for d in records.dependencies(conn) if d.pgt_id in leaving} - left)
    for source in unread:
        of_source = [d for d in read if d.source_relid == source.relid]
        track(conn, source, {name for d in of_source for name in d.columns_used or ()}, of_source[0].pgt_id)
    for pgt_id in leaving:
        erase(conn, pgt_id)
    still_read = {dependency.source_pgt_id for dependency in records.dependencies(conn)}
    for pgt_id in leaving:
        if pgt_id not in still_read:
            drop_st_buffer(conn, pgt_id)
    readers = records.by_ids(conn, set(leaving) - {st.id for st in tables})
    return sorted(st.qualified for st in readers.values())


def refuse(conn: Connection, settings: Settings, st: StreamTable) -> None:
    """Raise if writers can't maintain the table."""
    name, view = str(st.qualified), analysed(conn, st)
    if view.readings:
        raise UsageError(
            "IMMEDIATE can't follow the clock, which changes the answer while nobody writes",
            stream_table=name,
            remedy="Use refresh_mode AUTO or DIFFERENTIAL, which follow it at each refresh.",
        )
    if view.refusal is not None and view.topk is None:
        raise NotDifferentiable(
            f"IMMEDIATE needs a difference: {view.refusal.message}",
            stream_table=name,
            remedy="Use refresh_mode AUTO or FULL.",
        )
    most = settings.immediate_topk_max_limit
    if view.topk is not None and (view.topk.limit is None or view.topk.limit + view.topk.offset > most):
        raise UsageError(
            "IMMEDIATE computes ORDER BY with LIMIT anew at each statement, and here it reaches further than"
            f" immediate_topk_max_limit ({most}) rows",
            stream_table=name,
            remedy="Raise the setting, or use refresh_mode AUTO.",
        )
    if not st.steady:
        raise UsageError(
            "IMMEDIATE needs a query whose answer depends on its sources alone, and not on the session or on chance",
            stream_table=name,
            remedy="Use refresh_mode AUTO or FULL.",
        )
    if st.foreign_code:
        raise UsageError(
            "IMMEDIATE needs a query without functions and views of other roles, because whoever replaces one of them"
            " would run code with your rights at the next write",
            stream_table=name,
            remedy="Own them, or use refresh_mode AUTO, whose refreshes notice the replacement.",
        )
    for source in view.sources.values():
        _refuse_source(conn, name, source)


def _refuse_source(conn: Connection, name: str, source: Source) -> None:
    read = f"{source.schema}.{source.name}"
    if source.pgt_id is not None:
        return  # Whoever maintains that one, writers or refreshes, maintains this one with it.
    if not source.captured:
        raise UsageError(
            f"It reads {read} ({source.kind}), whose writers fire no triggers",
            stream_table=name,
            remedy="Use refresh_mode AUTO or FULL.",
        )
    if layout(conn, source, ()).row_wise:
        raise UsageError(
            f"It reads {read}, which statements also reach through a table that contains it",
            stream_table=name,
            remedy="Read that table, or use refresh_mode AUTO.",
        )


def _arrange(conn: Connection) -> list[Maintained]:
    """Write the functions of all live tables and of their sources, as they are bound together now."""
    tables = _live(conn)
    for of in tables:
        maintain.create(conn, of)
    for component in propagate.components(tables):
        propagate.create(conn, component)
    for of in tables:
        for source in _tables(of.view):
            track(conn, source, of.view.used.get(source.key, ()), of.st.id)
    return tables


def _live(conn: Connection) -> list[Maintained]:
    """All live tables, upstream first."""
    _end_what_lost_its_buffers(conn)
    ids = conn.execute("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE is_live").fetchall()
    if not ids:
        return []
    live = records.by_ids(conn, [pgt_id for (pgt_id,) in ids])
    read = records.dependencies(conn)
    reads: dict[int, set[int]] = {pgt_id: set() for pgt_id in sorted(live)}
    for dependency in read:
        if dependency.pgt_id in live and dependency.source_pgt_id in live:
            reads[dependency.pgt_id].add(dependency.source_pgt_id)
    handed = {dependency.source_pgt_id for dependency in read}
    return [
        Maintained.of(conn, live[pgt_id], analysed(conn, live[pgt_id]), is_read=pgt_id in handed)
        for pgt_id in TopologicalSorter(reads).static_order()
    ]


def _tables(view: View) -> list[Source]:
    """The tables among the sources, in the order in which everybody locks them."""
    return sorted((s for s in view.sources.values() if s.pgt_id is None), key=lambda source: source.relid)


def _keep_writers_out(conn: Connection, st: StreamTable) -> None:
    """Lock the tables whose writers maintain it, or what it reads; of what refreshes write, the stored rows."""
    view = analysed(conn, st)
    for upstream in records.by_ids(conn, [s.pgt_id for s in view.sources.values() if s.pgt_id is not None]).values():
        if upstream.is_live:
            _keep_writers_out(conn, upstream)
        else:
            lock_members(conn, upstream.qualified)
    _lock(conn, _tables(view))


def _lock(conn: Connection, sources: Iterable[Source]) -> None:
    for source in sorted(sources, key=lambda source: source.relid):
        lock_members(conn, QualifiedName(source.schema, source.name))


def _with_live_readers(conn: Connection, ids: Iterable[int]) -> list[int]:
    """Those of these tables that are live, and the live tables that read them directly or through others."""
    rows = conn.execute(
        "WITH RECURSIVE reader (pgt_id) AS (SELECT unnest(%s::bigint[]) UNION SELECT d.pgt_id FROM reader r"
        " JOIN pgtrickle.pgt_dependencies d ON d.source_pgt_id = r.pgt_id)"
        " SELECT pgt_id FROM reader JOIN pgtrickle.pgt_stream_tables t USING (pgt_id) WHERE t.is_live ORDER BY 1",
        (list(ids),),
    )
    return [pgt_id for (pgt_id,) in rows]


def settle(conn: Connection) -> None:
    """Let each live table hand its changes on if other stream tables read it by now, and only then.

    Writers are kept out meanwhile: each has handed its changes on when a new reader is first filled, or will do so.
    """
    tables = _live(conn)
    odd = [of for of in tables if of.is_read != maintain.hands_on(conn, of)]
    for of in odd:
        _keep_writers_out(conn, of.st)
    if odd:
        _arrange(conn)
    for of in odd:
        if not of.is_read:
            drop_st_buffer(conn, of.st.id)


def _end_what_lost_its_buffers(conn: Connection) -> None:
    """Tables that have another oid since a restore, or whose sources have no buffer, are not maintained by anybody."""
    conn.execute(
        "WITH RECURSIVE lost AS ("
        " SELECT d.pgt_id FROM pgtrickle.pgt_dependencies d JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)"
        " WHERE t.is_live AND (t.pgt_relid IS DISTINCT FROM"
        " pg_catalog.to_regclass(pg_catalog.format('%I.%I', t.pgt_schema, t.pgt_name))::oid"
        " OR pg_catalog.to_regclass(pg_catalog.format('pgtrickle_changes.changes_%s',"
        " coalesce('pgt_' || d.source_pgt_id, d.source_relid::text))) IS NULL)"
        " UNION SELECT d.pgt_id FROM lost JOIN pgtrickle.pgt_dependencies d ON d.source_pgt_id = lost.pgt_id)"
        " UPDATE pgtrickle.pgt_stream_tables SET is_live = false, frontier = NULL"
        " WHERE pgt_id IN (SELECT pgt_id FROM lost) AND is_live"
    )


def waiting(conn: Connection, names: Collection[str]) -> list[QualifiedName]:
    """Those of these IMMEDIATE tables that have content and are not live, upstream first.

    What was withdrawn meanwhile is left to its next refresh, which keeps no writers out, and so is what reads an
    IMMEDIATE table that isn't live.
    """
    ids = records.not_yet_live(conn, names)
    if not ids:
        return []
    due = records.by_ids(conn, ids)
    reads = {
        pgt_id: {d.source_pgt_id for d in records.dependencies(conn, pgt_id) if d.source_pgt_id is not None}
        for pgt_id in due
    }
    upstream = {pgt_id for sources in reads.values() for pgt_id in sources}
    alive = {pgt_id for pgt_id, st in records.by_ids(conn, upstream).items() if st.is_live or st.refresh_mode != MODE}
    order = []
    for pgt_id in TopologicalSorter(reads).static_order():
        if pgt_id in due and reads[pgt_id] <= alive:
            alive.add(pgt_id)
            order.append(due[pgt_id].qualified)
    return order


_WRITTEN = """
    WITH counted AS (
        SELECT t.pgt_id, t.rows_written AS before, n.now
          FROM pgtrickle.pgt_stream_tables t
         CROSS JOIN LATERAL (
             SELECT ARRAY[sum(pg_stat_get_tuples_inserted(p.relid)), sum(pg_stat_get_tuples_updated(p.relid)),
                          sum(pg_stat_get_tuples_deleted(p.relid))]::bigint[] AS now
               FROM (SELECT t.pgt_relid UNION SELECT relid FROM pg_partition_tree(t.pgt_relid)) AS p(relid)) AS n
         WHERE t.is_live AND t.pgt_schema || '.' || t.pgt_name = ANY(%s)
    )
    UPDATE pgtrickle.pgt_stream_tables t SET rows_written = c.now
      FROM counted c WHERE c.pgt_id = t.pgt_id AND c.now IS DISTINCT FROM c.before
    RETURNING t.pgt_schema || '.' || t.pgt_name, coalesce(c.before, '{0,0,0}'), c.now
"""


def written(conn: Connection, names: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Rows inserted, updated and deleted in live tables since this was last asked; of those in which there were any.

    The server counts them, at no cost to writers. It counts what is rolled back, too, and begins anew after a crash.
    """
    found = conn.execute(_WRITTEN, (list(names),)).fetchall()
    return {
        name: tuple(now - before if now >= before else now for before, now in zip(old, new, strict=True))
        for name, old, new in found
    }


def prune_samples(conn: Connection) -> None:
    """Delete the timings of writers' statements that are older than a day, if the role may: one that only refreshes
    may not.
    """
    may = conn.execute("SELECT pg_catalog.has_table_privilege('pgtrickle.pgt_immediate_stats', 'DELETE')").fetchone()
    if may is None or not may[0]:
        return
    conn.execute("DELETE FROM pgtrickle.pgt_immediate_stats WHERE at < pg_catalog.now() - interval '1 day'")


def writers_costs(conn: Connection, st: StreamTable) -> tuple[WriterCost, ...]:
    """What a statement on each source of a live table costs its writer: the planner's estimate, and samples."""
    view = analysed(conn, st)
    of = Maintained.of(conn, st, view, is_read=any(d.source_pgt_id == st.id for d in records.dependencies(conn)))
    sampled = {
        source: (count, rows, mean, most)
        for source, count, rows, mean, most in conn.execute(
            "SELECT source, count(*), avg(rows)::float8, avg(duration_ms), max(duration_ms)"
            " FROM pgtrickle.pgt_immediate_stats WHERE pgt_id = %s GROUP BY 1",
            (st.id,),
        )
    }
    return tuple(
        WriterCost(f"{source.schema}.{source.name}", _estimated(conn, of, key), *sampled.get(key, (0, 0.0, 0.0, 0.0)))
        for key, source in sorted(view.sources.items(), key=lambda item: (item[1].schema, item[1].name))
    )


def _estimated(conn: Connection, of: Maintained, key: str) -> float:
    """The planner's cost of what maintains the table after a small change of the source."""
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        prepared = sql.SQL("PREPARE pgtrickle_cost ({}[]) AS {}")
        conn.execute(prepared.format(maintain.change_type(key), maintain.statement(of, key)))
        cost = float(planned(conn, "EXECUTE pgtrickle_cost(NULL)")["Total Cost"])
        conn.execute("DEALLOCATE pgtrickle_cost")
    return cost
