"""Makes a stream table take one of its ways, by the history from which costs are learned."""

from __future__ import annotations

import psycopg


def prefer(conn: psycopg.Connection, name: str, way: str, *, whole: bool = True) -> None:
    """All other ways of FULL, or of the difference, have taken for ever of late; this one took no time."""
    for taken, ms in ((way, 1.0), *((other, 1e9) for other in ("database", "pushed", "sliced", "lowered"))):
        if (taken, ms) == (way, 1e9):
            continue
        conn.execute(
            "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, run_token, unit, initiated_by, start_time, end_time,"
            " status, action, way, actual_ms, source_changes, net_changes, source_rows, candidates, regime)"
            " SELECT pgt_id, 'preferred', '{}', 'manual', now(), now(), 'COMPLETED', %s, %s, %s, 1, 1, 1, '{}',"
            " pgtrickle.pgt_regime(pgt_id) FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s",
            ("FULL" if whole else "DIFFERENTIAL", taken, ms, name),
        )
