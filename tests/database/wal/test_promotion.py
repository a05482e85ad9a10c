"""A promoted standby: where it kept the slot, nothing is lost; where it has none, every reader runs FULL once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests import servers
from tests.database.wal.conftest import Shop

pytestmark = pytest.mark.timeout(200)


@contextmanager
def _standby(shop: Shop, **options: str) -> Iterator[PostgresServer]:
    """A copy of the shop's server that follows it."""
    primary = shop.server
    # Named as the test servers are, so that the next run removes what a killed one has left.
    folder = Path(f"{primary.folder}standby")
    standby = PostgresServer(
        folder, binaries=primary._binaries, options={**primary.options, "hot_standby_feedback": "on", **options}
    )
    try:
        folder.mkdir()
        shutil.copy(primary.folder / "password", folder / "password")
        if standby._owner is not None:
            os.chown(folder, standby._owner.pw_uid, standby._owner.pw_gid)
        shop.superuser("SELECT pg_create_physical_replication_slot('standby', true)")
        standby._run("pg_basebackup", "-d", primary.dsn(), "-R", "-X", "stream", "-S", "standby", "-c", "fast")
        yield standby.start()
    finally:
        standby.remove()
        shop.superuser(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_type = 'physical' AND NOT active"
        )


def _has_followed(shop: Shop, standby: PostgresServer) -> None:
    at = shop.one("SELECT pg_current_wal_insert_lsn()::text")
    shop.conn.execute("SELECT pg_logical_emit_message(true, 'x', 'x')")
    with psycopg.connect(standby.dsn(), autocommit=True) as conn:
        while conn.execute("SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", (at,)).fetchone() != (False,):
            conn.execute("SELECT pg_sleep(0.01)")


@contextmanager
def _promoted(shop: Shop, standby: PostgresServer) -> Iterator[Shop]:
    with psycopg.connect(standby.dsn(), autocommit=True) as admin:
        assert admin.execute("SELECT pg_promote()").fetchone() == (True,)
    there = Shop.__new__(Shop)
    there.server, there.dbname = standby, shop.dbname
    there.dsn, there.admin_dsn = servers.ordinary_dsn(standby, shop.dbname), standby.dsn(shop.dbname)
    there.conn = psycopg.connect(there.dsn, autocommit=True)
    there.pt = there.client()
    try:
        yield there
    finally:
        there.close()


def _write(shop: Shop) -> None:
    shop.conn.execute("UPDATE orders SET amount = amount + 1 WHERE id < 10; DELETE FROM orders WHERE id % 10 = 5")
    shop.conn.execute("INSERT INTO orders SELECT max(id) + 5, 3, 7, 'new' FROM orders")


def test_without_the_slot_every_reader_runs_full_once(any_shop: Shop) -> None:
    any_shop.declare("totals", "regions")
    with _standby(any_shop) as standby:
        _write(any_shop)
        any_shop.pt.refresh_stream_table("totals")
        _write(any_shop)
        _has_followed(any_shop, standby)
        with _promoted(any_shop, standby) as there:
            _write(there)
            for name in ("totals", "regions"):
                assert there.pt.refresh_stream_table(name).fallback_reason == "buffer_lost"
                assert there.differences(name) == []
            _write(there)
            for name in ("totals", "regions"):
                assert there.pt.refresh_stream_table(name).action == "DIFFERENTIAL"
                assert there.differences(name) == []
            assert set(there.modes().values()) == {"WAL"}


def test_with_the_slot_kept_nothing_is_lost(shop: Shop) -> None:
    shop.declare("totals")
    with _standby(shop, sync_replication_slots="on") as standby:
        with psycopg.connect(standby.dsn(), autocommit=True) as conn:
            kept: list[tuple[object, ...]] = []
            while kept != [(True, False)]:
                # The standby keeps the slot for good once the slot begins behind what the standby has.
                _write(shop)
                shop.pt.refresh_stream_table("totals")
                shop.superuser("CHECKPOINT")
                shop.pt.pump()
                _has_followed(shop, standby)
                conn.execute("SELECT pg_sleep(0.2)")
                kept = conn.execute("SELECT synced, temporary FROM pg_replication_slots").fetchall()
        _write(shop)
        _has_followed(shop, standby)
        with _promoted(shop, standby) as there:
            _write(there)
            assert there.pt.refresh_stream_table("totals").action == "DIFFERENTIAL"
            assert there.differences("totals") == []
