"""The defining query of a stream table is analysed once for each definition, and not at all to find that it is idle."""

from __future__ import annotations

import threading

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.declare.definition import survives_parsing
from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection

_KEPT = 1000
# A query that compares with the clock has a probe; without one it is steady only if it doesn't read the clock.
_SOURCES = """
SELECT t.clock_probe IS NULL, d.source_relid::bigint, d.source_type, d.source_schema, d.source_name, d.source_pgt_id
  FROM pgtrickle.pgt_stream_tables t
  LEFT JOIN pgtrickle.pgt_dependencies d ON d.pgt_id = t.pgt_id AND d.source_type <> 'VIEW'
 WHERE t.pgt_id = %s
"""
_lock = threading.Lock()  # threads refresh side by side
_analysed: dict[tuple[object, ...], dvm.View] = {}


def analysed(conn: Connection, st: StreamTable) -> dvm.View:
    """The query of a stream table whose fingerprint is known to hold.

    Analysis costs more than a small refresh, so a process keeps its result until the canonical text or the sources'
    fingerprint changes. The frontier keys in it are oids, so the result is valid in one database only.
    """
    key = _key(conn, st)
    view = _analysed.get(key)
    if view is None:
        with in_zone(conn, st.timezone):
            probed = probe(conn, st.maintained_query, accepted=st.foreign_code)
            # What writers maintain is never filled anew, so it may be an older version's and hold less beside.
            held = frozenset(column.name for column in st.storage) if st.is_live else None
            view = dvm.analyze(probed.text, probed.schema, probed.floats if st.approximates else {}, held)
            if st.frozen_rows is not None:
                view = dvm.copying(view, st.frozen_rows)
            is_refused_there = view.refusal is None and not st.differentiable
            if is_refused_there or (view.is_rewritten and not survives_parsing(conn, probed)):
                # PostgreSQL reads our text otherwise. So FULL is computed from its own.
                view = dvm.refused(view, dvm.Reason.ROUND_TRIP, st.refusal or "")
        with _lock:
            if len(_analysed) >= _KEPT:
                _analysed.pop(next(iter(_analysed)))
            _analysed[key] = view
    return view


class MustBeRead(NoExecutor):
    """Something came in a source of a query that wasn't read: only the query says whether it concerns the content."""


class Unread(dvm.View):
    """The sources of a query, by the catalog and without their columns. If nothing came in any, the content holds."""

    @property
    def is_text(self) -> bool:
        # Nothing is computed of it.
        return False


def unread(conn: Connection, st: StreamTable) -> dvm.View:
    """The analysed query if this process has it, else only its sources, where these alone decide the content.

    Most tables are idle in most refreshes, and a new process would spend ten times as long on reading their queries
    as on finding that.
    """
    view = _analysed.get(_key(conn, st))
    if view is not None or not st.steady:
        return view or analysed(conn, st)
    rows = conn.execute(_SOURCES, [st.id]).fetchall()
    if not rows or not rows[0][0]:
        return analysed(conn, st)
    sources = [
        dvm.Source(
            f"pgt_{pgt_id}" if pgt_id is not None else str(relid),
            schema,
            name,
            (),
            kind=kind,
            relid=relid,
            pgt_id=pgt_id,
        )
        for _, relid, kind, schema, name, pgt_id in rows
        if relid is not None
    ]
    return Unread(st.maintained_query, (), {source.key: source for source in sources}, {}, steady=True, sink=None)


def forget(conn: Connection, st: StreamTable) -> None:
    """Forget what was analysed in a transaction that is rolled back: a source may have been another one there."""
    _analysed.pop(_key(conn, st), None)


def _key(conn: Connection, st: StreamTable) -> tuple[object, ...]:
    place = (conn.info.host, conn.info.port, conn.info.dbname)
    meant = (st.maintained_query, st.timezone, st.float_sums, st.frozen_rows)
    return (*place, st.id, st.relid, *meant, st.fingerprint, st.differentiable, tuple(c.name for c in st.storage))
