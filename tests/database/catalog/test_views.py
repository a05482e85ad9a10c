"""Whoever has only psql sees the state of the stream tables."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.records import Dependency


@pytest.fixture
def shop(conn):
    """base → totals → (big, report), big → report; `stale` has never been refreshed."""
    ids = {}
    for name, schedule in [("totals", None), ("big", None), ("report", "1h30m"), ("stale", "@daily")]:
        ids[name] = records.insert(
            conn, schema="shop", name=name, schedule=schedule, original_query="q", defining_query="q"
        ).id
    reads = {"totals": ["base"], "big": ["totals"], "report": ["totals", "big"], "stale": []}
    oids = {"base": 1, "totals": 2, "big": 3}
    for name, sources in reads.items():
        records.replace_dependencies(
            conn,
            ids[name],
            [
                Dependency(
                    ids[name], oids[s], "STREAM_TABLE" if s in ids else "TABLE", "shop", s, ids.get(s),
                    ("a", "b") if s == "base" else None, "TRIGGER" if s == "base" else "NONE",
                )
                for s in sources
            ],
        )  # fmt: skip
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET is_populated = true, status = 'ACTIVE',"
        " data_timestamp = now() - interval '2 hours' WHERE pgt_name <> 'stale'"
    )
    for action, status, rows in [("FULL", "COMPLETED", 5), ("DIFFERENTIAL", "FAILED", 0), ("SKIP", "SKIPPED", 0)]:
        records.insert_history(
            conn, pgt_id=ids["totals"], action=action, status=status, rows_inserted=rows, duration_ms=10.0
        )
    return conn


def test_info_tells_staleness_sources_and_levels(shop):
    rows = shop.execute(
        "SELECT name, status, stale, depends_on, topo_level, effective_schedule, staleness IS NULL"
        " FROM pgtrickle.stream_tables_info ORDER BY topo_level, pgt_name"
    ).fetchall()
    every = timedelta(minutes=90)
    assert rows == [
        ("shop.stale", "INITIALIZING", True, [], 0, None, True),
        ("shop.totals", "ACTIVE", True, ["shop.base"], 0, every, False),
        ("shop.big", "ACTIVE", True, ["shop.totals"], 1, every, False),
        ("shop.report", "ACTIVE", True, ["shop.big", "shop.totals"], 2, every, False),
    ]


def test_fresh_tables_are_not_stale(shop):
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now(), is_populated = true")
    assert shop.execute("SELECT count(*) FROM pgtrickle.stream_tables_info WHERE stale").fetchone() == (0,)


def test_statistics_are_of_the_history(shop):
    row = shop.execute(
        "SELECT total_refreshes, successful_refreshes, failed_refreshes, skipped_refreshes, total_rows_inserted,"
        " avg_duration_ms, last_action, cdc_modes FROM pgtrickle.pg_stat_stream_tables WHERE pgt_name = 'totals'"
    ).fetchone()
    assert row == (2, 1, 1, 1, 5, 10.0, "SKIP", ["TRIGGER"])
    stats = shop.execute("SELECT pgt_name, total_refreshes FROM pgtrickle.st_refresh_stats()").fetchall()
    assert stats == [("big", 0), ("report", 0), ("stale", 0), ("totals", 2)]


def test_functions_take_names_with_or_without_schema(shop):
    for name in ("totals", "shop.totals", '"shop"."totals"'):
        assert shop.execute("SELECT round(pgtrickle.get_staleness(%s))", [name]).fetchone() == (7200,)
    assert shop.execute("SELECT pgtrickle.get_staleness('stale')").fetchone() == (None,)
    history = shop.execute("SELECT action, status FROM pgtrickle.get_refresh_history('totals', 2)").fetchall()
    assert history == [("SKIP", "SKIPPED"), ("DIFFERENTIAL", "FAILED")]
    sources = shop.execute("SELECT * FROM pgtrickle.list_sources('totals')").fetchall()
    assert sources == [("shop.base", 1, "TABLE", "TRIGGER", ["a", "b"])]
    with pytest.raises(psycopg.errors.UndefinedTable, match="there is no stream table nothing"):
        shop.execute("SELECT pgtrickle.get_staleness('nothing')")


def test_an_ambiguous_name_is_refused(shop):
    records.insert(shop, schema="other", name="totals", original_query="q", defining_query="q")
    with pytest.raises(psycopg.errors.AmbiguousAlias, match="in several schemas"):
        shop.execute("SELECT pgtrickle.get_staleness('totals')")


def test_the_tree_is_drawn(shop):
    lines = [row[0] for row in shop.execute("SELECT tree_line FROM pgtrickle.dependency_tree()")]
    assert lines == [
        "shop.report",
        "├── shop.big",
        "│   └── shop.totals",
        "│       └── shop.base [src]",
        "└── shop.totals",
        "    └── shop.base [src]",
        "shop.stale",
    ]
    first = shop.execute(
        "SELECT node, node_type, depth, status, refresh_mode FROM pgtrickle.dependency_tree() LIMIT 1"
    ).fetchone()
    assert first == ("shop.report", "stream_table", 0, "ACTIVE", "AUTO")


def test_the_rest_answers(shop):
    assert shop.execute("SELECT name, status FROM pgtrickle.pgt_status() LIMIT 1").fetchone() == ("shop.big", "ACTIVE")
    assert shop.execute("SELECT pgt_name, source_name, cdc_mode FROM pgtrickle.pgt_cdc_status").fetchall() == [
        ("totals", "base", "TRIGGER")
    ]
    assert shop.execute("SELECT * FROM pgtrickle.slot_health()").fetchall() == []
    assert shop.execute("SELECT pgtrickle.version()").fetchone()[0].startswith("catalog ")
