"""At most `max_concurrent_refreshes` units of a database are refreshed at a time, and what is latest goes first.

A graph may have a limit of its own, and its units a queue of their own before the database's. So who waits for its
graph stands in nobody else's way.

    lateness  =  staleness / effective schedule        of the latest table of the unit

A running unit holds one of that many advisory locks, its slot; a waiting one holds, shared with others, the lock whose
number is its lateness, where the others see it. Whoever sees nobody later than himself tries the slots. All of it ends
with the session, so nothing is left by who is killed, and all graphs and people of the database are in one queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from airflow_provider_pgtrickle.engine.refresh.lock import Request
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection

#: First halves of the locks' keys, "pgts" and "pgtw" in ASCII: slots, and lateness in thousandths.
SLOTS = int.from_bytes(b"pgts")
WAITING = int.from_bytes(b"pgtw")

_GLANCE_SECONDS = 0.2

# A table without content, or without a schedule that is known, is as late as can be.
_LATENESS = """
SELECT coalesce(max(least(2147483647, greatest(0, coalesce(1000
           * extract(epoch FROM pg_catalog.clock_timestamp() - t.data_timestamp)
           / nullif(extract(epoch FROM t.effective_schedule), 0), 2147483647)))), 0)::int
FROM pgtrickle.pgt_stream_tables t
JOIN unnest(%s::text[], %s::text[]) AS n(schema, name) ON (t.pgt_schema, t.pgt_name) = (n.schema, n.name)
"""

_GRAPHS = """
SELECT DISTINCT o.graph
FROM pgtrickle.pgt_stream_tables t
JOIN unnest(%s::text[], %s::text[]) AS n(schema, name) ON (t.pgt_schema, t.pgt_name) = (n.schema, n.name)
JOIN pgtrickle.pgt_owners o USING (pgt_id)
WHERE o.graph = ANY(%s) AND o.removed_at IS NULL ORDER BY 1
"""

# Anybody can take an advisory lock: one of a role that may refresh nothing is overlooked, and so is a slot that it has.
_OTHERS = """
SELECT count(*) FILTER (WHERE l.classid = %(waiting)s AND l.objid::bigint > %(lateness)s AND r.is_rightful),
       count(DISTINCT l.objid) FILTER (WHERE l.classid = %(slots)s AND NOT r.is_rightful)
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a USING (pid)
CROSS JOIN LATERAL (
    SELECT coalesce(pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_stream_tables', 'UPDATE'), false)
) AS r(is_rightful)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid IN (%(waiting)s, %(slots)s)
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
"""


@dataclass(frozen=True)
class Queue:
    """A limit, and the first halves of its locks' keys."""

    most: int
    slots: int = SLOTS
    waiting: int = WAITING

    @classmethod
    def of_graph(cls, graph: str, most: int) -> Queue:
        """A graph's queue. Two graphs whose names have the same digest share it, and wait longer than they must."""
        slots, waiting = (
            int.from_bytes(sha256(f"{kind} {graph}".encode()).digest()[:4]) & 0x7FFFFFFF
            for kind in ("slots", "waiting")
        )
        return cls(most, slots, waiting)


def take(conn: Connection, request: Request) -> bool:
    """Wait for this unit's turn, which lasts until the session gives its locks back; False if it didn't come."""
    if not request.queues:
        return True
    until = time.monotonic() + request.settings.max_queue_seconds
    # The order is the same for all, so that of two units that wait none holds what the other waits for.
    return all(_taken(conn, request, queue, until) for queue in _queues(conn, request))


def _queues(conn: Connection, request: Request) -> Iterator[Queue]:
    """The limits that hold for the unit: those of its tables' graphs, by name, then the database's."""
    quotas = request.settings.quotas
    if quotas:
        for (graph,) in conn.execute(_GRAPHS, (*_names(request), list(quotas))).fetchall():
            yield Queue.of_graph(graph, quotas[graph])
    if request.settings.max_concurrent_refreshes:
        yield Queue(request.settings.max_concurrent_refreshes)


def _names(request: Request) -> tuple[list[str], list[str]]:
    return [name.schema for name in request.names], [name.name for name in request.names]


def _taken(conn: Connection, request: Request, queue: Queue, until: float) -> bool:
    """Wait for a slot of this queue; False if there was none in time."""
    shown: int | None = None
    while True:
        (lateness,) = conn.execute(_LATENESS, _names(request)).fetchone() or (0,)
        if lateness != shown:
            _show(conn, queue, shown, lateness)
            shown = lateness
        asked = {"lateness": lateness, "slots": queue.slots, "waiting": queue.waiting}
        later, overlooked = conn.execute(_OTHERS, asked).fetchone() or (0, 0)
        if not later and _slot(conn, queue, overlooked):
            _show(conn, queue, shown, None)
            return True
        if time.monotonic() >= until:
            _show(conn, queue, shown, None)
            return False
        time.sleep(_GLANCE_SECONDS)


def _show(conn: Connection, queue: Queue, before: int | None, now: int | None) -> None:
    """Let the others see how late this unit is, or that it waits no longer."""
    if now is not None:
        conn.execute("SELECT pg_catalog.pg_advisory_lock_shared(%s, %s)", (queue.waiting, now))
    if before is not None:
        conn.execute("SELECT pg_catalog.pg_advisory_unlock_shared(%s, %s)", (queue.waiting, before))


def _slot(conn: Connection, queue: Queue, overlooked: int) -> bool:
    """Take a free slot."""
    for number in range(queue.most + overlooked):
        row = conn.execute("SELECT pg_catalog.pg_try_advisory_lock(%s, %s)", (queue.slots, number)).fetchone()
        if row is not None and row[0]:
            return True
    return False
