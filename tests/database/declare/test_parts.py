"""Parts: aggregates that are kept by themselves, in hidden stream tables."""

from __future__ import annotations

from tests.database.declare.conftest import NO_TRACES, difference, traces

DISTRIBUTION = (
    "SELECT n, count(*) AS customers FROM"
    " (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS c GROUP BY n"
)


def test_an_aggregate_over_an_aggregate_is_kept_in_two(pt, conn):
    pt.create_stream_table("spread", DISTRIBUTION, schedule="5m")
    hidden = conn.execute("SELECT defining_query FROM pgtrickle.pgt_stream_tables WHERE is_hidden").fetchall()
    assert len(hidden) == 1
    assert difference(conn, "spread", DISTRIBUTION) == 0
    conn.execute("INSERT INTO orders SELECT i, 3, i, now(), NULL FROM generate_series(100, 105) i")
    result = pt.refresh_stream_table("spread")
    assert (result.action, result.name) == ("DIFFERENTIAL", "public.spread")
    assert difference(conn, "spread", DISTRIBUTION) == 0
    pt.drop_stream_table("spread")
    assert traces(conn) == NO_TRACES
