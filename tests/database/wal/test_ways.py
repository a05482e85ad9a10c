"""Over to the WAL and back: nothing is lost on the way, and where something was, every reader runs FULL, once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from tests.database.wal.conftest import QUERIES, SHOP, Shop


@pytest.fixture
def limited(any_shop: Shop) -> Iterator[Shop]:
    """A server that removes log which a slot has kept for too long."""
    any_shop.superuser("ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'")
    any_shop.superuser("SELECT pg_reload_conf()")
    yield any_shop
    any_shop.superuser("ALTER SYSTEM RESET max_slot_wal_keep_size")
    any_shop.superuser("SELECT pg_reload_conf()")


def _change(shop: Shop) -> None:
    shop.conn.execute("UPDATE orders SET amount = amount + 1 WHERE id % 3 = 0")
    shop.conn.execute("INSERT INTO orders SELECT max(id) + 1, 3, 7, 'new' FROM orders")
    shop.conn.execute("UPDATE customers SET region = region || '!' WHERE id = 3")


def _refreshed(shop: Shop, *names: str) -> dict[str, tuple[str, str | None]]:
    """Actions and reasons; each content is the query's answer."""
    found = {}
    for name in names or [n for (n,) in shop.rows("SELECT pgt_name FROM pgtrickle.pgt_stream_tables ORDER BY pgt_id")]:
        result = shop.pt.refresh_stream_table(name)
        found[name] = (result.action, result.fallback_reason)
        assert shop.differences(name) == []
    return found


def _reason(shop: Shop, source: str = "orders") -> str | None:
    reason = shop.one("SELECT mode_reason FROM pgtrickle.pgt_change_tracking WHERE source_name = %s", source)
    return None if reason is None else str(reason)


DIFFERENTIAL = ("DIFFERENTIAL", None)
LOST = ("FULL", "buffer_lost")


def test_auto_stays_on_triggers_where_a_slot_could_fill_the_disk(any_shop: Shop) -> None:
    any_shop.declare("totals", cdc_mode="auto")
    assert any_shop.modes() == {"orders": "TRIGGER"}
    assert any_shop.slots() == []
    assert "max_slot_wal_keep_size is not set" in str(_reason(any_shop))


def test_who_asks_for_triggers_has_them_beside_one_that_asks_for_nothing(any_shop: Shop) -> None:
    any_shop.pt.create_stream_table("mine", "SELECT id, region FROM customers", cdc_mode="trigger")
    any_shop.declare("pairs", cdc_mode="auto")
    _refreshed(any_shop, "pairs")
    assert any_shop.modes() == {"customers": "TRIGGER", "orders": "TRIGGER"}
    assert any_shop.slots() == []


def test_what_is_ignored_may_be_told_by_the_log(any_shop: Shop) -> None:
    any_shop.pt.create_stream_table(
        "kept",
        "SELECT id, amount FROM orders",
        refresh_mode="DIFFERENTIAL",
        cdc_mode="wal",
        frozen_before="orders.id: 50",
        frozen_breach="ignore",
    )
    any_shop.pt.refresh_stream_table("kept")
    assert any_shop.modes() == {"orders": "WAL"}
    any_shop.conn.execute("UPDATE orders SET amount = -1")
    any_shop.conn.execute("DELETE FROM orders WHERE id IN (7, 70)")
    assert any_shop.pt.refresh_stream_table("kept").action == "DIFFERENTIAL"
    expected = [(i, i if i < 50 else -1) for i in range(1, 101) if i != 70]
    assert any_shop.rows("SELECT id, amount FROM kept ORDER BY id") == expected
    assert any_shop.pt.verify("kept").differences == 0
    with pytest.raises(UsageError, match="or frozen_breach 'ignore', or leave frozen_before out"):
        any_shop.pt.alter_stream_table("kept", frozen_breach="refuse")
    assert any_shop.modes() == {"orders": "WAL"}


def test_frozen_rows_bring_a_source_back_to_triggers_and_let_it_go_again(any_shop: Shop) -> None:
    any_shop.declare("totals")
    _change(any_shop)
    assert _refreshed(any_shop) == {"totals": DIFFERENTIAL}
    assert any_shop.modes() == {"orders": "WAL"}
    # What is in the log by then is pumped, and what comes after is captured.
    _change(any_shop)
    any_shop.declare("pairs", cdc_mode="auto", frozen_before="orders.id: 5")
    assert any_shop.modes()["orders"] == "TRIGGER"
    assert _reason(any_shop) == "a stream table refuses changes of its frozen rows"
    for statement in ("DELETE FROM orders WHERE id = 4", "TRUNCATE orders"):
        with pytest.raises(psycopg.errors.RestrictViolation, match=r"as stream table public\.pairs says"):
            any_shop.conn.execute(statement)
    any_shop.conn.execute("UPDATE orders SET amount = 0 WHERE id = 5")
    assert _refreshed(any_shop, "totals") == {"totals": DIFFERENTIAL}
    any_shop.pt.alter_stream_table("pairs", frozen_before="none")
    any_shop.conn.execute("DELETE FROM orders WHERE id = 4")
    assert _refreshed(any_shop, "totals") == {"totals": DIFFERENTIAL}
    any_shop.conn.execute("DELETE FROM orders WHERE id = 3")
    assert _refreshed(any_shop, "totals") == {"totals": DIFFERENTIAL}
    assert any_shop.modes()["orders"] == "WAL"


def test_auto_goes_over_where_it_is_safe_and_tells_it(limited: Shop) -> None:
    with psycopg.connect(limited.dsn, autocommit=True) as listener:
        listener.execute("LISTEN pg_trickle_cdc_transition")
        limited.declare("totals", cdc_mode="auto")
        (told,) = listener.notifies(timeout=5, stop_after=1)
    assert json.loads(told.payload) == {
        "event": "transition_complete",
        "source_table": "public.orders",
        "old_mode": "TRIGGER",
        "new_mode": "WAL",
        "reason": None,
    }
    assert limited.modes() == {"orders": "WAL"}
    _change(limited)
    assert _refreshed(limited) == {"totals": DIFFERENTIAL}
    (row,) = limited.rows(
        "SELECT cdc_mode, slot_name, mode_since <= now(), lag_bytes >= 0, retained_wal_bytes > 0, wal_status"
        " FROM pgtrickle.pgt_cdc_status"
    )
    assert row == ("WAL", limited.slots()[0], True, True, True, "reserved")


def test_a_role_that_may_not_replicate_stays_on_triggers(limited: Shop) -> None:
    limited.superuser("ALTER ROLE app NOREPLICATION")
    limited.declare("totals", cdc_mode=None)
    assert limited.modes() == {"orders": "TRIGGER"}
    with pytest.raises(UsageError, match=r"may not use replication slots.*ALTER ROLE"):
        limited.declare("regions")


def test_changes_before_and_after_the_way_over_come_once(any_shop: Shop) -> None:
    any_shop.declare(cdc_mode="trigger")
    for wish, mode in (("wal", "WAL"), ("trigger", "TRIGGER"), ("wal", "WAL")):
        _change(any_shop)
        for name in QUERIES:
            any_shop.pt.alter_stream_table(name, cdc_mode=wish)
        _change(any_shop)
        assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}
        assert set(any_shop.modes().values()) == {mode}
        assert len(any_shop.slots()) == (mode == "WAL")
        _change(any_shop)
        assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}
        assert any_shop.pt.verify(refresh=False).differences == 0


def test_a_writer_whose_transaction_is_open_keeps_its_source_on_triggers(shop: Shop) -> None:
    shop.declare("totals", cdc_mode="trigger")
    with psycopg.connect(shop.dsn) as writer:
        writer.execute("UPDATE orders SET amount = amount + 1")
        impatient = shop.client(wal_transition_timeout_seconds=1)
        shop.pt.alter_stream_table("totals", cdc_mode="wal")
        impatient.refresh_stream_table("totals")
        assert shop.modes() == {"orders": "TRIGGER"}
        assert shop.slots() == []
        impatient.close()
        writer.commit()
    assert _refreshed(shop) == {"totals": DIFFERENTIAL}
    assert shop.modes() == {"orders": "WAL"}


@pytest.mark.parametrize(
    "damage",
    [
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()",
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_flush_lsn()) FROM pg_replication_slots"
        " WHERE database = current_database()",
        "DROP PUBLICATION pgtrickle",
        "ALTER PUBLICATION pgtrickle DROP TABLE orders, customers",
        "ALTER PUBLICATION pgtrickle SET (publish = 'insert')",
    ],
)
def test_what_is_lost_is_computed_anew_once(any_shop: Shop, damage: str) -> None:
    any_shop.declare()
    _change(any_shop)
    _refreshed(any_shop)
    _change(any_shop)
    # A session's slot may be advanced only to what is on the disk.
    any_shop.conn.execute("SELECT pg_logical_emit_message(true, 'x', 'x')")
    any_shop.superuser(damage)
    _change(any_shop)
    assert set(_refreshed(any_shop).values()) == {LOST}
    _change(any_shop)
    assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}


def test_log_that_the_server_has_removed_is_lost(shop: Shop) -> None:
    shop.declare("totals")
    shop.superuser("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    shop.superuser("SELECT pg_reload_conf()")
    try:
        for _ in range(4):
            shop.superuser("SELECT pg_switch_wal()")
            shop.conn.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))")
        _change(shop)
        shop.superuser("CHECKPOINT")
        assert shop.rows("SELECT wal_status FROM pgtrickle.pgt_cdc_status") == [("lost",)]
        assert [alert for *_, alert in shop.rows("SELECT source_table, alert FROM pgtrickle.check_cdc_health()")] == [
            "replication_slot_lost"
        ]
        assert _refreshed(shop) == {"totals": LOST}
        _change(shop)
        assert _refreshed(shop) == {"totals": DIFFERENTIAL}
    finally:
        shop.superuser("ALTER SYSTEM RESET max_slot_wal_keep_size")
        shop.superuser("SELECT pg_reload_conf()")


def test_a_log_that_was_not_read_for_too_long_is_left_without_loss(limited: Shop) -> None:
    limited.declare("totals", cdc_mode="auto")
    assert limited.modes() == {"orders": "WAL"}
    _change(limited)
    limited.conn.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 3000000))")
    _change(limited)
    strict = limited.client(wal_lag_limit_mb=1)
    result = strict.refresh_stream_table("totals")
    assert (result.action, result.fallback_reason) == DIFFERENTIAL
    strict.close()
    assert limited.differences("totals") == []
    assert limited.modes() == {"orders": "TRIGGER"}
    assert "wal_lag_limit_mb" in str(_reason(limited))
    # It doesn't go over again at once.
    _change(limited)
    assert _refreshed(limited) == {"totals": DIFFERENTIAL}
    assert limited.modes() == {"orders": "TRIGGER"}
    assert limited.slots() == []


def test_a_crash_of_the_server_loses_nothing(shop: Shop) -> None:
    shop.declare()
    for _ in range(2):
        _change(shop)
        shop.pt.refresh_stream_table("totals")
        _change(shop)
        shop.pt.close()
        shop.server.kill()
        shop.server.start()
        shop.conn = psycopg.connect(shop.dsn, autocommit=True)
        assert set(_refreshed(shop).values()) <= {DIFFERENTIAL}


@pytest.mark.parametrize(
    ("prepared", "query", "words"),
    [
        ("ALTER TABLE orders REPLICA IDENTITY DEFAULT", "SELECT id, note FROM orders", "keeps only id of an old row"),
        ("ALTER TABLE orders REPLICA IDENTITY NOTHING", "SELECT id FROM orders", "has no replica identity"),
        (
            "ALTER TABLE orders REPLICA IDENTITY DEFAULT; ALTER TABLE orders DROP CONSTRAINT orders_pkey",
            "SELECT id FROM orders",
            "has no replica identity",
        ),
    ],
)
def test_a_table_whose_old_rows_the_log_lacks_is_refused_with_the_statement(
    any_shop: Shop, prepared: str, query: str, words: str
) -> None:
    any_shop.conn.execute(prepared)
    with pytest.raises(UsageError, match=rf'{words}.*Run: ALTER TABLE "public"\."orders" REPLICA IDENTITY FULL'):
        any_shop.pt.create_stream_table("t", query, cdc_mode="wal")
    assert any_shop.rows("SELECT FROM pgtrickle.pgt_stream_tables") == []
    any_shop.pt.create_stream_table("t", query, cdc_mode="auto")
    assert any_shop.modes() == {"orders": "TRIGGER"}


def test_a_key_is_enough_where_nothing_else_is_read(any_shop: Shop) -> None:
    any_shop.conn.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
    any_shop.pt.create_stream_table("ids", "SELECT id FROM orders", cdc_mode="wal")
    assert any_shop.modes() == {"orders": "WAL"}
    any_shop.conn.execute("UPDATE orders SET amount = 0")
    assert any_shop.pt.refresh_stream_table("ids").action == "NO_DATA"
    any_shop.conn.execute("UPDATE orders SET id = id + 1000 WHERE id < 5; DELETE FROM orders WHERE id = 7")
    assert any_shop.pt.refresh_stream_table("ids").action == "DIFFERENTIAL"
    assert any_shop.rows("SELECT id FROM orders EXCEPT ALL SELECT id FROM ids") == []
    assert any_shop.one("SELECT count(*) FROM ids") == any_shop.one("SELECT count(*) FROM orders")
    # A reader that needs more brings the source back. Of what the log tells by the key alone, old rows are unknown now.
    any_shop.conn.execute("DELETE FROM orders WHERE id = 8")
    any_shop.declare("totals", cdc_mode="auto")
    assert any_shop.modes() == {"orders": "TRIGGER"}
    any_shop.conn.execute("DELETE FROM orders WHERE id = 9")
    result = any_shop.pt.refresh_stream_table("ids")
    assert (result.action, result.fallback_reason) == ("FULL", "truncate_detected")
    assert any_shop.one("SELECT count(*) FROM ids") == any_shop.one("SELECT count(*) FROM orders")
    any_shop.conn.execute("DELETE FROM orders WHERE id = 10")
    assert any_shop.pt.refresh_stream_table("ids").action == "DIFFERENTIAL"
    assert _refreshed(any_shop, "totals") == {"totals": DIFFERENTIAL}


def test_an_identity_that_the_owner_reduces_brings_the_source_back(any_shop: Shop) -> None:
    any_shop.declare("totals")
    _change(any_shop)
    any_shop.conn.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
    _change(any_shop)
    any_shop.conn.execute("DELETE FROM orders WHERE id = 5")
    action, reason = _refreshed(any_shop)["totals"]
    assert (action, reason) == LOST
    assert any_shop.modes() == {"orders": "TRIGGER"}
    assert "keeps only id" in str(_reason(any_shop))


def test_an_identity_that_was_less_for_a_while_is_noticed(any_shop: Shop) -> None:
    any_shop.declare("totals")
    any_shop.conn.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
    any_shop.conn.execute("DELETE FROM orders WHERE id = 5; UPDATE orders SET amount = 0 WHERE id = 6")
    any_shop.conn.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    assert _refreshed(any_shop) == {"totals": ("FULL", "truncate_detected")}
    _change(any_shop)
    assert _refreshed(any_shop) == {"totals": DIFFERENTIAL}


def test_truncate_is_seen_in_every_mode(any_shop: Shop) -> None:
    any_shop.declare("totals")
    any_shop.conn.execute("INSERT INTO orders VALUES (500, 1, 1, 'x'); TRUNCATE orders; INSERT INTO orders VALUES (1)")
    assert _refreshed(any_shop) == {"totals": ("FULL", "truncate_detected")}


def test_immediate_and_wal_exclude_each_other(any_shop: Shop) -> None:
    with pytest.raises(UsageError, match="IMMEDIATE and cdc_mode 'wal' exclude each other"):
        any_shop.declare("totals", refresh_mode="IMMEDIATE")
    any_shop.declare("totals")
    any_shop.declare("regions", refresh_mode="IMMEDIATE", cdc_mode=None)
    # Writers maintain a table by triggers, so all readers of its sources have their changes from triggers.
    assert any_shop.modes() == {"customers": "TRIGGER", "orders": "TRIGGER"}
    _change(any_shop)
    assert any_shop.differences("regions") == []
    assert _refreshed(any_shop, "totals") == {"totals": DIFFERENTIAL}


def test_readers_that_disagree_stay_on_triggers_with_a_notice(any_shop: Shop) -> None:
    any_shop.declare("totals", cdc_mode="trigger")
    with pytest.warns(UserWarning, match="another reader asks for them"):
        any_shop.declare("regions")
    assert any_shop.modes() == {"customers": "WAL", "orders": "TRIGGER"}
    _change(any_shop)
    assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}
    any_shop.pt.drop_stream_table("totals")
    _change(any_shop)
    assert _refreshed(any_shop) == {"regions": DIFFERENTIAL}
    assert any_shop.modes() == {"customers": "WAL", "orders": "WAL"}


def test_the_setting_decides_where_a_table_says_nothing(any_shop: Shop) -> None:
    client = any_shop.client(cdc_mode="wal")
    client.create_stream_table("totals", QUERIES["totals"])
    assert any_shop.modes() == {"orders": "WAL"}
    client.close()
    with pytest.warns(UserWarning, match="no effect"), any_shop.client(cdc_mode="wal") as client:
        client.create_stream_table("live", "SELECT id FROM customers", refresh_mode="IMMEDIATE")


def test_the_last_reader_takes_slot_and_publication_along(any_shop: Shop) -> None:
    any_shop.declare("totals", "regions")
    assert len(any_shop.slots()) == 1
    any_shop.pt.drop_stream_table("regions")
    assert any_shop.modes() == {"orders": "WAL"}
    assert len(any_shop.slots()) == 1
    any_shop.pt.drop_stream_table("totals")
    assert any_shop.slots() == []
    assert any_shop.rows("SELECT FROM pg_publication") == []
    assert any_shop.rows("SELECT FROM pgtrickle.pgt_wal") == []


def test_uninstall_takes_slot_and_publication_along(any_shop: Shop) -> None:
    any_shop.declare("totals")
    assert len(any_shop.slots()) == 1
    any_shop.pt.uninstall()
    assert any_shop.slots() == []
    assert any_shop.rows("SELECT FROM pg_publication") == []


def test_health_finds_a_slot_that_nobody_reads_and_cleanup_drops_it(any_shop: Shop) -> None:
    oid = any_shop.one("SELECT oid FROM pg_database WHERE datname = current_database()")
    any_shop.conn.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (f"pgtrickle_{oid}",))
    found = {finding.check: finding for finding in any_shop.pt.health()}["slots"]
    assert not found.ok
    assert f"nothing reads slot pgtrickle_{oid}" in found.detail
    assert any_shop.rows("SELECT slot_name, source_relid FROM pgtrickle.slot_health()") == [(f"pgtrickle_{oid}", None)]
    any_shop.pt.cleanup()
    assert any_shop.slots() == []


def test_pending_changes_are_counted_in_the_log(any_shop: Shop) -> None:
    any_shop.declare("totals")
    any_shop.conn.execute(
        "INSERT INTO orders VALUES (500, 1, 1, 'x'), (501, 1, 1, 'x'); DELETE FROM orders WHERE id = 1"
    )
    counted = "SELECT pending_rows FROM pgtrickle.change_buffer_sizes()"
    assert any_shop.rows(counted) == [(3,)]
    assert any_shop.pt.pump() == 3
    assert any_shop.rows(counted) == [(3,)]
    any_shop.conn.execute("DELETE FROM orders WHERE id = 2")
    assert any_shop.rows(counted) == [(4,)]
    _refreshed(any_shop)
    assert any_shop.rows(counted) == [(0,)]
    with psycopg.connect(any_shop.dsn) as writer:
        writer.execute("DELETE FROM orders WHERE id = 3")
        assert any_shop.rows(counted) == [(0,)]


def test_a_schema_change_in_mid_stream_is_followed(any_shop: Shop) -> None:
    any_shop.declare("totals", "regions")
    _change(any_shop)
    any_shop.conn.execute("ALTER TABLE orders ALTER COLUMN note TYPE varchar(50)")
    _change(any_shop)
    any_shop.conn.execute("ALTER TABLE orders ADD COLUMN more int; ALTER TABLE orders DROP COLUMN more")
    _change(any_shop)
    _refreshed(any_shop)
    _change(any_shop)
    assert set(_refreshed(any_shop).values()) == {DIFFERENTIAL}


def test_a_table_that_is_made_anew_is_another_table(any_shop: Shop) -> None:
    any_shop.declare("totals")
    _change(any_shop)
    any_shop.conn.execute("DROP TABLE orders, customers CASCADE")
    any_shop.conn.execute(SHOP)
    _change(any_shop)
    assert _refreshed(any_shop)["totals"][0] == "REINITIALIZE"
    _change(any_shop)
    assert _refreshed(any_shop) == {"totals": DIFFERENTIAL}


def test_partitions_are_captured_and_new_ones_bring_the_table_back(any_shop: Shop) -> None:
    any_shop.conn.execute("""
        CREATE TABLE sales (id int, day int, amount int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
        CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10);
        CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM (10) TO (20);
        ALTER TABLE sales_1 REPLICA IDENTITY FULL;
        ALTER TABLE sales_2 REPLICA IDENTITY FULL;
        INSERT INTO sales SELECT i, i % 20, i FROM generate_series(1, 100) AS i;
    """)
    query = "SELECT day % 5 AS d, sum(amount) AS total FROM sales GROUP BY 1"
    any_shop.pt.create_stream_table("by_day", query, cdc_mode="wal")
    assert any_shop.modes() == {"sales": "WAL"}

    def is_exact() -> bool:
        return any_shop.rows(f"({query}) EXCEPT ALL SELECT d, total FROM by_day") == []

    any_shop.conn.execute("UPDATE sales SET day = (day + 10) % 20 WHERE id < 30; DELETE FROM sales_2 WHERE id > 90")
    assert any_shop.pt.refresh_stream_table("by_day").action == "DIFFERENTIAL"
    assert is_exact()
    # Of a partition that came and went only the log tells.
    any_shop.conn.execute("CREATE TABLE sales_3 PARTITION OF sales FOR VALUES FROM (20) TO (30)")
    any_shop.conn.execute("INSERT INTO sales VALUES (1000, 25, 7)")
    any_shop.conn.execute("DROP TABLE sales_3")
    any_shop.pt.refresh_stream_table("by_day")
    assert is_exact()
    any_shop.conn.execute("CREATE TABLE sales_4 PARTITION OF sales FOR VALUES FROM (20) TO (30)")
    any_shop.conn.execute("INSERT INTO sales VALUES (1000, 25, 7); UPDATE sales SET amount = 8 WHERE id = 1000")
    assert any_shop.pt.refresh_stream_table("by_day").action == "REINITIALIZE"
    assert is_exact()
    assert any_shop.modes() == {"sales": "TRIGGER"}
    any_shop.conn.execute("ALTER TABLE sales_4 REPLICA IDENTITY FULL; UPDATE sales SET amount = amount + 1")
    any_shop.pt.refresh_stream_table("by_day")
    assert is_exact()
    assert any_shop.modes() == {"sales": "WAL"}


def test_only_a_table_without_its_children(any_shop: Shop) -> None:
    """The log tells of parent and children by themselves; what reads ONLY the parent takes the children's off again."""
    any_shop.conn.execute(
        "CREATE TABLE t (id int PRIMARY KEY, g int); CREATE TABLE c (x text, PRIMARY KEY (id)) INHERITS (t);"
        "ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE c REPLICA IDENTITY FULL;"
        "INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, 1, 'c'), (3, 2, 'c')"
    )
    query = "SELECT g, count(*) AS n, sum(id) AS s FROM ONLY t GROUP BY g"
    any_shop.pt.create_stream_table("alone", query, cdc_mode="wal", refresh_mode="DIFFERENTIAL")
    assert any_shop.modes() == {"c": "WAL", "t": "WAL"}
    for change in (
        "INSERT INTO t VALUES (4, 1); INSERT INTO c VALUES (4, 1, 'd'), (5, 2, 'd')",
        "UPDATE t SET g = g + 1; UPDATE ONLY t SET id = id + 10",
        "DELETE FROM t WHERE id > 3",
    ):
        any_shop.conn.execute(change)
        assert any_shop.pt.refresh_stream_table("alone").action == "DIFFERENTIAL"
        assert any_shop.pt.verify("alone", refresh=False).differences == 0
