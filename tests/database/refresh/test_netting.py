"""A change of a column that nobody reads is none, and many changes of one row are computed as one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh import observe
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from tests.database.reported.conftest import Site

SHOP = """
    CREATE TABLE items (id int PRIMARY KEY, a numeric, b text COLLATE "C", c json);
    CREATE TABLE events (a numeric, b text, c json);
    INSERT INTO items SELECT i, i, 'b' || i, '{}' FROM generate_series(1, 40) AS i;
    INSERT INTO events SELECT i % 5, 'b' || i % 3, '{}' FROM generate_series(1, 40) AS i;
"""
ANALYZE = "ANALYZE items, events"

#: Each reads other columns; those whose name ends with `again` read a stream table.
QUERIES = {
    "of_a": "SELECT id, a FROM items",
    "of_b": "SELECT b, count(*) AS n FROM items GROUP BY b",
    "of_c": "SELECT id, c::text AS c FROM items",
    "all_of": "SELECT id, a, b, c::text AS c FROM items",
    "counted": "SELECT count(*) AS n FROM items",
    "paired": "SELECT x.id, x.a, y.b FROM items x JOIN items y ON y.id = x.id + 1",
    "events_a": "SELECT a::text AS a, count(*) AS n FROM events GROUP BY a::text",
    "events_b": "SELECT b, a FROM events",
    "of_a_again": "SELECT a::text AS a, count(*) AS n FROM all_of GROUP BY a::text",
    "of_b_again": "SELECT id, b FROM all_of",
    "outer_of": "SELECT x.id, x.a, e.b FROM items x LEFT JOIN events e ON e.a = x.a",
}


def _site(dsn: str, **settings: Any) -> Iterator[Site]:
    client: PgTrickle = PgTrickle(
        dsn, executor=lambda: PostgresExecutor(client.database), **{"retry_base_seconds": 0.01, **settings}
    )
    with client, psycopg.connect(dsn, autocommit=True) as conn:
        client.install()
        conn.execute(SHOP)
        yield Site(conn, client)


@pytest.fixture
def site(any_dsn: str) -> Iterator[Site]:
    yield from _site(any_dsn)


def _declare(site: Site, *names: str, **options: Any) -> None:
    for name in names:
        site.declare(name, QUERIES[name], refresh_mode="DIFFERENTIAL", **options)
    site.run(ANALYZE)


def _refresh(site: Site, name: str) -> RefreshResult:
    result = site.refresh(name)
    assert site.differs(name, QUERIES[name]) == [], name
    return result


def _last(site: Site, name: str, column: str) -> Any:
    return site.rows(
        f"SELECT {column} FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
        f" WHERE pgt_name = '{name}' ORDER BY refresh_id DESC LIMIT 1"
    )[0][0]


def _pending(site: Site, name: str) -> int:
    found = site.rows(f"SELECT pending_rows FROM pgtrickle.change_buffer_sizes() WHERE stream_table = 'public.{name}'")
    return int(found[0][0])


def test_a_change_of_a_column_that_the_reader_does_not_read_is_none(site: Site) -> None:
    _declare(site, "of_a", "of_b")
    site.run("UPDATE items SET b = b || '!'")
    assert (_pending(site, "of_a"), _pending(site, "of_b")) == (0, 40)
    result = _refresh(site, "of_a")
    assert (result.action, result.source_changes) == ("NO_DATA", 0)
    site.run("UPDATE items SET b = 'b', a = CASE WHEN id = 7 THEN 70 ELSE a END")
    assert _pending(site, "of_a") == 1
    result = _refresh(site, "of_a")
    assert (result.action, result.source_changes, result.rows_updated) == ("DIFFERENTIAL", 1, 1)
    assert _refresh(site, "of_b").fallback_reason == "change_ratio_exceeded"


def test_a_value_that_looks_different_is_a_change(site: Site) -> None:
    site.declare("st", "SELECT id, a::text AS a FROM items", refresh_mode="DIFFERENTIAL")
    _declare(site, "of_b")
    site.run("UPDATE items SET a = 3.0 WHERE id = 3")
    assert _refresh(site, "of_b").action == "NO_DATA"
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", "SELECT id, a::text AS a FROM items") == []


def test_nobody_who_read_nothing_new_leaves_rows_in_the_buffer(site: Site) -> None:
    _declare(site, "of_a", "of_b")
    site.run("UPDATE items SET b = 'x' WHERE id < 3")
    _refresh(site, "of_b")
    _refresh(site, "of_a")
    relid = site.rows("SELECT 'items'::regclass::oid::bigint")[0][0]
    assert site.rows(f"SELECT count(*) FROM pgtrickle_changes.changes_{relid}") == [(0,)]


def test_rows_without_a_key_that_the_reader_cannot_tell_apart_cancel_out(site: Site) -> None:
    _declare(site, "events_a", "events_b")
    first = "WHERE ctid = (SELECT min(ctid) FROM events)"
    site.run(f"UPDATE events SET b = 'other' {first}")
    assert _refresh(site, "events_a").action == "NO_DATA"
    assert _refresh(site, "events_b").action == "DIFFERENTIAL"
    site.run("UPDATE events SET b = 'third' WHERE a = 1", f"DELETE FROM events {first}")
    assert _refresh(site, "events_a").action == "DIFFERENTIAL"
    assert _last(site, "events_a", "net_changes") == 1


def test_a_stream_tables_change_that_its_reader_does_not_read_is_none(site: Site) -> None:
    _declare(site, "all_of", "of_a_again", "of_b_again")
    site.run("UPDATE items SET b = 'x' WHERE id < 4")
    site.client.refresh_stream_table("all_of")
    assert _refresh(site, "of_a_again").action == "NO_DATA"
    assert _refresh(site, "of_b_again").action == "DIFFERENTIAL"


def test_many_changes_of_one_row_are_computed_as_one(site: Site) -> None:
    _declare(site, "of_a", "paired")
    for _ in range(30):
        site.run("UPDATE items SET a = a + 1 WHERE id = 5")
    for name in ("of_a", "paired"):
        result = _refresh(site, name)
        assert (result.action, result.source_changes) == ("DIFFERENTIAL", 30)
        assert _last(site, name, "net_changes") in (1, 2)


def test_what_came_and_went_is_nothing(site: Site) -> None:
    _declare(site, "of_a")
    for _ in range(20):
        site.run("UPDATE items SET a = -a", "UPDATE items SET a = -a", "DELETE FROM items WHERE id = 50")
        site.run("INSERT INTO items VALUES (50, 1)", "DELETE FROM items WHERE id = 50")
    assert _refresh(site, "of_a").action == "NO_DATA"
    site.run("INSERT INTO items VALUES (50, 1)")
    assert _refresh(site, "of_a").action == "DIFFERENTIAL"


def test_many_changes_are_netted_where_a_row_changed_often(site: Site) -> None:
    _declare(site, "of_a", differential_max_change_ratio=0.0)
    site.run("INSERT INTO items SELECT i, i FROM generate_series(100, 3100) AS i")
    assert _refresh(site, "of_a").action == "DIFFERENTIAL"
    assert _last(site, "of_a", "net_changes") == 3001
    site.run("UPDATE items SET a = a + 1 WHERE id >= 100")
    assert _refresh(site, "of_a").action == "DIFFERENTIAL"
    assert "sum(s." not in _last(site, "of_a", "plan")
    for _ in range(60):
        site.run("UPDATE items SET a = a + 1 WHERE id <= 40")
    result = _refresh(site, "of_a")
    assert (result.action, result.source_changes) == ("DIFFERENTIAL", 2400)
    assert _last(site, "of_a", "net_changes") == 40
    assert "sum(s." in _last(site, "of_a", "plan")


def test_a_sample_tells_that_few_rows_changed_often(site: Site) -> None:
    _declare(site, "of_a", differential_max_change_ratio=0.0)
    site.run("UPDATE items SET a = a + 1 FROM generate_series(1, 3)")
    for _ in range(600):
        site.run("UPDATE items SET a = a + 1")
    assert _refresh(site, "of_a").source_changes > observe._ALL_LOOKED_AT
    # Estimated: of 40 rows one or none is looked at.
    assert _last(site, "of_a", "net_changes") < 1000
    assert "sum(s." in _last(site, "of_a", "plan")


def test_a_sum_sees_no_more_and_no_less_than_the_window_beside_writers(site: Site, any_dsn: str) -> None:
    _declare(site, "of_a", "of_b", "paired", "events_b", "all_of", "of_b_again", differential_max_change_ratio=0.001)
    stop = threading.Event()

    def write(number: int) -> None:
        with closing(psycopg.connect(any_dsn)) as conn:
            while not stop.is_set():
                for statement in (
                    f"UPDATE items SET a = a + 1 WHERE id % 4 = {number}",
                    f"UPDATE items SET b = 'x' || a WHERE id % 4 = {number}",
                    f"UPDATE events SET b = 'y' || random() WHERE a = {number}",
                    f"DELETE FROM items WHERE id = {number + 4}",
                    f"INSERT INTO items VALUES ({number + 4}, 1, 'new')",
                ):
                    conn.execute(statement)
                (conn.rollback if number == 3 else conn.commit)()

    writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for writer in writers:
        writer.start()
    names = ("of_a", "of_b", "paired", "events_b", "all_of", "of_b_again")
    try:
        for _ in range(4):
            for name in names:
                site.client.refresh_stream_table(name)
                assert site.client.verify(name).differences == 0
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    for name in names:
        _refresh(site, name)


_SETS = ("a = a + 1", "a = 1.0", "a = 1.00", "b = 'x'", "b = b || '!'", "c = '{\"x\": 1}'", "c = NULL", "a = NULL")
_WHERE = ("id % 3 = 0", "id < 5", "true", "id = 2")
_STATEMENTS = st.one_of(
    st.builds("UPDATE items SET {} WHERE {}".format, st.sampled_from(_SETS), st.sampled_from(_WHERE)),
    st.builds("DELETE FROM items WHERE {}".format, st.sampled_from(_WHERE)),
    st.builds(
        "INSERT INTO items SELECT i, {}, 'b', '{{}}' FROM generate_series({}, 6) AS i ON CONFLICT DO NOTHING".format,
        st.sampled_from(("i", "1", "1.00", "NULL")),
        st.integers(1, 6),
    ),
    st.just("UPDATE items SET id = 7 - id WHERE id IN (1, 6) AND (SELECT count(*) FROM items WHERE id IN (1, 6)) = 1"),
    st.builds(
        "UPDATE events SET {} WHERE {}".format, st.sampled_from(_SETS), st.sampled_from(("a = 1", "true", "b = 'b'"))
    ),
    st.builds("INSERT INTO events VALUES ({}, 'b', '{{}}')".format, st.sampled_from(("1", "1.00", "NULL"))),
    st.just("DELETE FROM events WHERE a = 1"),
)


@pytest.mark.parametrize("is_always_netted", [True, False])
def test_any_statements_are_followed_netted_or_not(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_always_netted: bool
) -> None:
    if is_always_netted:
        monkeypatch.setattr(observe, "_WORTH_NETTING", 0)
        monkeypatch.setattr(observe, "_IMAGES", 0)
    site.run("DELETE FROM items WHERE id > 6", "DELETE FROM events WHERE b <> 'b1'")
    _declare(site, *QUERIES, differential_max_change_ratio=0.0)

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(_STATEMENTS, st.sampled_from([*QUERIES, ""])), min_size=1, max_size=12))
    def followed(steps: list[tuple[str, str]]) -> None:
        for statement, refreshed in steps:
            site.run(statement)
            if refreshed:
                assert site.refresh(refreshed).action in ("NO_DATA", "DIFFERENTIAL")
                if not refreshed.endswith("again"):
                    assert site.differs(refreshed, QUERIES[refreshed]) == []
        for name in QUERIES:
            assert site.refresh(name).action in ("NO_DATA", "DIFFERENTIAL")
            assert site.differs(name, QUERIES[name]) == [], name

    followed()
