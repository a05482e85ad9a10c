"""The defining query of a stream table is analysed once for each definition."""

from __future__ import annotations

import threading

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare.definition import survives_parsing
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection

_KEPT = 1000
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
        probed = probe(conn, st.maintained_query, accepted=st.foreign_code)
        view = dvm.analyze(probed.text, probed.schema, probed.floats if st.approximates else {})
        is_refused_there = view.refusal is None and not st.differentiable
        if is_refused_there or (view.is_rewritten and not survives_parsing(conn, probed)):
            # PostgreSQL reads our text otherwise. So FULL is computed from its own.
            view = dvm.refused(view, dvm.Reason.ROUND_TRIP, st.refusal or "")
        with _lock:
            if len(_analysed) >= _KEPT:
                _analysed.pop(next(iter(_analysed)))
            _analysed[key] = view
    return view


def forget(conn: Connection, st: StreamTable) -> None:
    """Forget what was analysed in a transaction that is rolled back: a source may have been another one there."""
    _analysed.pop(_key(conn, st), None)


def _key(conn: Connection, st: StreamTable) -> tuple[object, ...]:
    place = (conn.info.host, conn.info.port, conn.info.dbname)
    return (*place, st.id, st.relid, st.maintained_query, st.fingerprint, st.differentiable, st.float_sums)
