"""UNLOGGED buffers: a crash of the server empties them, every reader notices, and runs FULL once."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from tests.database.wal.conftest import QUERIES, Shop
from tests.database.wal.test_promotion import _has_followed, _promoted, _standby, _write

pytestmark = pytest.mark.timeout(200)

DIFFERENTIAL = ("DIFFERENTIAL", None)
LOST = ("FULL", "buffer_lost")
AGAIN = "SELECT n, count(*) AS groups, sum(total) AS total FROM totals GROUP BY n"


def _declare(shop: Shop, cdc_mode: str = "trigger", **options: Any) -> None:
    shop.declare("totals", "regions", cdc_mode=cdc_mode, **{"unlogged_buffers": True, **options})
    shop.pt.create_stream_table("again", AGAIN, **{"unlogged_buffers": True, **options})


def _persistence(shop: Shop) -> str:
    """Of each buffer, in their order."""
    return str(
        shop.one(
            "SELECT string_agg(relpersistence, '' ORDER BY oid) FROM pg_class"
            " WHERE relnamespace = 'pgtrickle_changes'::regnamespace AND relkind = 'r'"
        )
    )


def _refreshed(shop: Shop) -> dict[str, tuple[str, str | None]]:
    found = {}
    for name in ("totals", "regions", "again"):
        result = shop.pt.refresh_stream_table(name)
        found[name] = (result.action, result.fallback_reason)
        assert shop.pt.verify(name).differences == 0, name
    assert shop.differences("totals") == shop.differences("regions") == []
    return found


def _crashed(shop: Shop) -> None:
    shop.pt.close()
    shop.server.kill()
    shop.server.start()
    shop.conn = psycopg.connect(shop.dsn, autocommit=True)


@pytest.mark.parametrize("cdc_mode", ["trigger", "wal"])
def test_after_a_crash_every_reader_runs_full_once(any_shop: Shop, cdc_mode: str) -> None:
    _declare(any_shop, cdc_mode)
    assert _persistence(any_shop) == "uuu"
    _write(any_shop)
    assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}
    for _ in range(2):
        _write(any_shop)
        # One reader has consumed more than the others.
        any_shop.pt.refresh_stream_table("totals")
        _write(any_shop)
        _crashed(any_shop)
        # Writers find an empty buffer and write into it before any reader looks.
        _write(any_shop)
        assert any_shop.one("SELECT count(*) FROM pgtrickle.pgt_distrusted") == 3
        assert _refreshed(any_shop) == {"totals": LOST, "regions": LOST, "again": LOST}
        assert any_shop.one("SELECT count(*) FROM pgtrickle.pgt_distrusted") == 0
        _write(any_shop)
        assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}


def test_a_crash_without_a_change_is_noticed_as_well(shop: Shop) -> None:
    """What was captured and consumed leaves an empty buffer, and so does a crash."""
    _declare(shop)
    _write(shop)
    _refreshed(shop)
    _crashed(shop)
    alerts = shop.rows("SELECT DISTINCT alert FROM pgtrickle.check_cdc_health()")
    assert alerts == [("buffer_emptied",)]
    assert set(_refreshed(shop).values()) == {LOST}
    assert shop.rows("SELECT DISTINCT alert FROM pgtrickle.check_cdc_health()") == [(None,)]


def test_an_orderly_restart_loses_nothing(any_shop: Shop) -> None:
    _declare(any_shop)
    _write(any_shop)
    any_shop.pt.close()
    any_shop.server.stop()
    any_shop.server.start()
    any_shop.conn = psycopg.connect(any_shop.dsn, autocommit=True)
    _write(any_shop)
    assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}


def test_a_crash_amid_writers_loses_nothing(shop: Shop) -> None:
    _declare(shop)

    def write(number: int) -> None:
        try:
            with psycopg.connect(shop.dsn, autocommit=True) as conn:
                while True:
                    conn.execute(f"UPDATE orders SET amount = amount + 1 WHERE id % 4 = {number}")
        except psycopg.Error:
            pass

    for _ in range(3):
        writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
        for writer in writers:
            writer.start()
        shop.pt.refresh_stream_table("totals")
        _crashed(shop)
        for writer in writers:
            writer.join()
        assert set(_refreshed(shop).values()) == {LOST}


def test_cleanup_and_refreshes_leave_the_mark(any_shop: Shop) -> None:
    _declare(any_shop)
    for _ in range(3):
        _write(any_shop)
        assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}
        any_shop.pt.cleanup()
    assert any_shop.rows("SELECT DISTINCT pending_rows FROM pgtrickle.change_buffer_sizes()") == [(0,)]
    assert {pending for (pending,) in any_shop.rows("SELECT pending_rows FROM pgtrickle.check_cdc_health()")} == {0}


def test_a_buffer_is_unlogged_if_all_of_its_readers_allow_it(any_shop: Shop) -> None:
    any_shop.declare("totals", cdc_mode="trigger", unlogged_buffers=True)
    assert _persistence(any_shop) == "u"
    any_shop.declare("regions", cdc_mode="trigger")
    assert _persistence(any_shop) == "pp"
    _write(any_shop)
    refreshed = any_shop.pt.refresh_stream_table("totals")
    assert (refreshed.action, refreshed.fallback_reason) == LOST
    _write(any_shop)
    assert any_shop.pt.refresh_stream_table("totals").action == "DIFFERENTIAL"
    any_shop.pt.alter_stream_table("regions", unlogged_buffers=True)
    assert _persistence(any_shop) == "uu"
    _write(any_shop)
    for name in ("totals", "regions"):
        refreshed = any_shop.pt.refresh_stream_table(name)
        assert (refreshed.action, refreshed.fallback_reason) == LOST
        assert any_shop.differences(name) == []
    any_shop.pt.alter_stream_table("totals", unlogged_buffers=False)
    any_shop.pt.alter_stream_table("regions", unlogged_buffers=False)
    assert _persistence(any_shop) == "pp"
    _crashed(any_shop)
    _write(any_shop)
    for name in ("totals", "regions"):
        any_shop.pt.refresh_stream_table(name)
        assert any_shop.differences(name) == []


def test_the_setting_counts_when_a_table_is_declared(shop: Shop) -> None:
    with shop.client(unlogged_buffers=True) as client:
        client.create_stream_table("totals", QUERIES["totals"])
        assert _persistence(shop) == "u"
    assert shop.pt.refresh_stream_table("totals").action == "NO_DATA"
    assert _persistence(shop) == "u"


def test_parts_have_unlogged_buffers_with_their_owner(shop: Shop) -> None:
    query = "SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY 1) o GROUP BY n"
    shop.pt.create_stream_table("st", query, unlogged_buffers=True)
    assert shop.one("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE is_hidden") == 1
    assert _persistence(shop) == "uu"
    _write(shop)
    assert shop.pt.refresh_stream_table("st").action == "DIFFERENTIAL"
    _write(shop)
    _crashed(shop)
    assert shop.pt.refresh_stream_table("st").fallback_reason == "buffer_lost"
    assert shop.pt.verify("st").differences == 0


def test_a_promoted_standby_runs_full_once(any_shop: Shop) -> None:
    _declare(any_shop)
    with _standby(any_shop) as standby:
        _write(any_shop)
        any_shop.pt.refresh_stream_table("totals")
        _write(any_shop)
        _has_followed(any_shop, standby)
        with psycopg.connect(standby.dsn(any_shop.dbname), autocommit=True) as reading:
            # No server in recovery reads an UNLOGGED table.
            for asked in ("change_buffer_sizes()", "check_cdc_health()", "pgt_distrusted"):
                reading.execute(f"SELECT * FROM pgtrickle.{asked}")
        with _promoted(any_shop, standby) as there:
            _write(there)
            assert set(_refreshed(there).values()) == {LOST}
            _write(there)
            assert set(_refreshed(there).values()) == {DIFFERENTIAL}


def test_a_restored_database_runs_full_once(shop: Shop) -> None:
    _declare(shop)
    _write(shop)
    shop.pt.refresh_stream_table("totals")
    _write(shop)
    dump = shop.server.folder / "dump.sql"
    shop.server._run("pg_dump", "-d", shop.admin_dsn, "-f", str(dump), "--clean", "--if-exists", data=False)
    _write(shop)
    shop.pt.close()
    shop.server._run("psql", "-q", "-d", shop.admin_dsn, "-f", str(dump), data=False)
    _write(shop)
    for name in ("totals", "regions", "again"):
        result = shop.pt.refresh_stream_table(name)
        assert result.action in ("FULL", "REINITIALIZE"), result
        assert shop.pt.verify(name).differences == 0
    _write(shop)
    assert set(_refreshed(shop).values()) == {DIFFERENTIAL}
