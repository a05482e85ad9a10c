"""Frozen rows: no writer changes them, whichever way he takes, and everything else goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import UsageError
from tests import servers
from tests.database.declare.conftest import SHOP, difference
from tests.database.declare.test_concurrency import wait_for_a_waiter

LARGE = "SELECT id, amount, placed FROM orders WHERE amount > 1"
DELTA: dict[str, Any] = {"refresh_mode": "DIFFERENTIAL", "differential_max_change_ratio": 0.0}
REFUSED = psycopg.errors.RestrictViolation
#: The shop's order i is placed on 2026-01-01 + i, so 1 to 9 are frozen.
BOUND = {"orders.placed": "2026-01-11"}
BREACHES = (
    "INSERT INTO orders VALUES (900, 1, 5, '2026-01-10')",
    "INSERT INTO orders VALUES (900, 1, 5, '2026-03-01'), (901, 1, 5, '-infinity')",
    "INSERT INTO orders VALUES (3, 5, 5, '2026-03-01') ON CONFLICT (id) DO UPDATE SET amount = 9",
    "UPDATE orders SET amount = amount + 1 WHERE id IN (3, 30)",
    "UPDATE orders SET note = 'x' WHERE id = 3",
    "UPDATE orders SET placed = '2026-03-01' WHERE id = 3",
    "UPDATE orders SET placed = '2026-01-10' WHERE id = 30",
    "DELETE FROM orders WHERE id = 9",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "MERGE INTO orders o USING (VALUES (3)) v(id) ON o.id = v.id WHEN MATCHED THEN DELETE",
)
ALLOWED = (
    "INSERT INTO orders VALUES (910, 1, 5, '2026-01-11'), (911, 1, 5, NULL), (912, 1, 5, 'infinity')",
    "UPDATE orders SET amount = amount + 1 WHERE id >= 10",
    "UPDATE orders SET placed = NULL WHERE id = 30",
    "UPDATE orders SET placed = '2026-01-11' WHERE id = 31",
    "DELETE FROM orders WHERE id IN (10, 30)",
    "UPDATE orders SET amount = 0 WHERE id = -1",
    "DELETE FROM orders WHERE id = -1",
)


@pytest.fixture
def conn(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    conn.execute(SHOP)
    return conn


def refuses(conn: psycopg.Connection[Any], statement: str) -> bool:
    try:
        with conn.transaction(force_rollback=True):
            conn.execute(statement)
    except REFUSED:
        return True
    return False


def refreshed(pt: PgTrickle, conn: psycopg.Connection[Any], query: str = LARGE, action: str = "DIFFERENTIAL") -> None:
    result = pt.refresh_stream_table("large")
    assert (result.action, result.fallback_reason) == (action, None)
    assert difference(conn, "large", query) == 0
    assert pt.verify("large").differences == 0


def test_a_change_of_a_frozen_row_is_refused_to_the_writer_who_is_told_by_whom(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("large", LARGE, **DELTA, frozen_before=BOUND)
    for statement in BREACHES:
        with pytest.raises(REFUSED, match=r"placed is below 2026-01-11, as stream table public\.large says") as refused:
            conn.execute(statement)
        assert (
            refused.value.diag.message_hint == "Declare it otherwise: pgtrickle alter public.large --frozen-before none"
        )
    before = conn.execute("SELECT * FROM orders WHERE placed < '2026-01-11' ORDER BY id").fetchall()
    for statement in ALLOWED:
        conn.execute(statement)
        refreshed(pt, conn, action="NO_DATA" if "id = -1" in statement else "DIFFERENTIAL")
    assert conn.execute("SELECT * FROM orders WHERE placed < '2026-01-11' ORDER BY id").fetchall() == before
    assert len(before) == 9
    (row,) = [row for row in pt.status() if row["pgt_name"] == "large"]
    assert row["frozen_before"] == "orders.placed: 2026-01-11"


def test_a_table_without_frozen_rows_may_be_truncated(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("DELETE FROM orders WHERE id < 10")
    pt.create_stream_table("large", LARGE, frozen_before=BOUND)
    conn.execute("TRUNCATE orders")
    pt.refresh_stream_table("large")
    assert difference(conn, "large", LARGE) == 0
    assert refuses(conn, BREACHES[0])


@pytest.mark.parametrize(
    ("type_", "is_age", "old", "new"),
    [
        ("date", True, "current_date - 40", "current_date"),
        ("timestamp", True, "localtimestamp - interval '31 days'", "localtimestamp - interval '29 days'"),
        ("timestamptz", True, "now() - interval '30 days 1 s'", "now() - interval '29 days 23:59'"),
        ("date", False, "date '2026-01-10'", "date '2026-01-11'"),
        ("timestamp", False, "timestamp '2026-01-10 23:59:59'", "timestamp '2026-01-11 00:00'"),
        ("timestamptz", False, "timestamptz '2026-01-10 23:59:59+00'", "timestamptz '2026-01-11 00:00+00'"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_times_are_counted_in_utc(
    pt: PgTrickle, conn: psycopg.Connection[Any], type_: str, is_age: bool, old: str, new: str, zone: str
) -> None:
    conn.execute(f"CREATE TABLE events (id int PRIMARY KEY, at {type_})")
    bound = {"public.events.at": "30 days" if is_age else "2026-01-11"}
    pt.create_stream_table("large", "SELECT id FROM events", frozen_before=bound)
    conn.execute(f"SET TimeZone = '{zone}'")
    conn.execute("SET DateStyle = 'SQL, DMY'")
    in_utc = "SET LOCAL TimeZone = 'UTC'"
    for value, expected in ((old, True), (new, False), ("NULL", False), ("'infinity'", False)):
        # The values are made in UTC, the row is written in the session's zone.
        with conn.transaction():
            conn.execute(in_utc)
            made = conn.execute(f"SELECT ({value})::{type_}::text").fetchone()
        assert made is not None
        written = f"INSERT INTO events VALUES (1, '{made[0]}')".replace("'None'", "NULL")
        with conn.transaction(force_rollback=True):
            conn.execute("SET LOCAL DateStyle = 'SQL, DMY'")
            if type_ == "timestamptz":
                conn.execute("SET LOCAL TimeZone = 'UTC'")
            assert refuses(conn, written) is expected, written


@pytest.mark.parametrize(
    ("type_", "bound", "old", "new"),
    [("int", "100", "99", "100"), ("bigint", "-5", "-6", "-5"), ("numeric(8, 2)", "1.5", "1.49", "'NaN'")],
)
def test_numbers_may_be_frozen_too(
    pt: PgTrickle, conn: psycopg.Connection[Any], type_: str, bound: str, old: str, new: str
) -> None:
    conn.execute(f"CREATE DOMAIN number AS {type_}")
    conn.execute("CREATE TABLE events (id number PRIMARY KEY, v int)")
    pt.create_stream_table("large", "SELECT v FROM events", frozen_before={"events.id": bound})
    assert refuses(conn, f"INSERT INTO events VALUES ({old}, 1)")
    assert not refuses(conn, f"INSERT INTO events VALUES ({new}, 1)")


@pytest.mark.parametrize("kind", ["partitioned", "inherited"])
def test_partitions_and_children_are_reached(pt: PgTrickle, conn: psycopg.Connection[Any], kind: str) -> None:
    if kind == "partitioned":
        conn.execute("CREATE TABLE events (id int, v int) PARTITION BY RANGE (id)")
        conn.execute("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (100)")
        conn.execute("CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (v)")
        conn.execute("CREATE TABLE events_3 PARTITION OF events_2 DEFAULT")
    else:
        conn.execute("CREATE TABLE events (id int, v int)")
        conn.execute("CREATE TABLE events_1 () INHERITS (events)")
        conn.execute("CREATE TABLE events_2 () INHERITS (events)")
        conn.execute("CREATE TABLE events_3 () INHERITS (events_2)")
    conn.execute("INSERT INTO events_1 SELECT i, i FROM generate_series(1, 9) i")
    conn.execute("INSERT INTO events_3 SELECT i, i FROM generate_series(101, 109) i")
    query = "SELECT v FROM events WHERE v > (SELECT min(v) FROM events)"
    pt.create_stream_table("large", query, **DELTA, frozen_before="events.id: 50")
    for statement in (
        "UPDATE events SET v = 0",
        "UPDATE events_1 SET v = 1 WHERE id = 1",
        "DELETE FROM events_1 WHERE id = 2",
        "INSERT INTO events_1 VALUES (49, 1)",
        "TRUNCATE events_1",
        "TRUNCATE events",
    ):
        assert refuses(conn, statement), statement
    if kind == "partitioned":
        assert refuses(conn, "UPDATE events SET id = 20 WHERE id = 101")
        assert refuses(conn, "UPDATE events SET id = 120 WHERE id = 1")
    for statement in ("INSERT INTO events_1 VALUES (50, 1)", "UPDATE events_3 SET v = 77 WHERE id = 101"):
        conn.execute(statement)
        refreshed(pt, conn, query)
    # What is emptied holds no frozen row.
    conn.execute("TRUNCATE events_2")
    pt.refresh_stream_table("large")
    assert difference(conn, "large", query) == 0


def test_a_partition_that_came_since_is_asked_for_its_frozen_rows(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE events (id int, v int) PARTITION BY RANGE (id)")
    conn.execute("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (100) TO (200)")
    pt.create_stream_table("large", "SELECT v FROM events", frozen_before="events.id: 50")
    conn.execute("CREATE TABLE loaded (id int, v int)")
    conn.execute("INSERT INTO loaded VALUES (1, 1)")
    conn.execute("ALTER TABLE events ATTACH PARTITION loaded FOR VALUES FROM (0) TO (100)")
    conn.execute("CREATE TABLE events_0 PARTITION OF events FOR VALUES FROM (-100) TO (0) PARTITION BY RANGE (v)")
    conn.execute("CREATE TABLE events_00 PARTITION OF events_0 DEFAULT")
    breaches = (
        "UPDATE events SET v = 2",
        "INSERT INTO events VALUES (2, 2)",
        # The statement names what is new, or moves a row there.
        "UPDATE loaded SET v = 2",
        "DELETE FROM loaded",
        "INSERT INTO loaded VALUES (2, 2)",
        "INSERT INTO events_0 VALUES (-2, 2)",
        "INSERT INTO events_00 VALUES (-2, 2)",
        "UPDATE events SET id = 3 WHERE id = 150",
    )
    conn.execute("INSERT INTO events VALUES (150, 0), (151, 0)")
    conn.execute("INSERT INTO loaded VALUES (60, 6), (61, 6)")
    conn.execute("UPDATE loaded SET v = 7 WHERE id = 60")
    conn.execute("DELETE FROM loaded WHERE id = 61")
    assert refuses(conn, "TRUNCATE events")
    assert [statement for statement in breaches if not refuses(conn, statement)] == []
    with pytest.raises(REFUSED), conn.cursor() as cursor, cursor.copy("COPY loaded FROM STDIN") as copy:
        copy.write_row((5, 5))
    # Only the refresh gives it triggers for statements, of which TRUNCATE is one.
    assert not refuses(conn, "TRUNCATE loaded")
    pt.refresh_stream_table("large")
    assert difference(conn, "large", "SELECT v FROM events") == 0
    assert refuses(conn, "TRUNCATE loaded")
    assert [statement for statement in breaches if not refuses(conn, statement)] == []
    conn.execute("UPDATE loaded SET v = 8 WHERE id = 60")
    refreshed(pt, conn, "SELECT v FROM events")
    only_refusing = "SELECT count(*) FROM pg_trigger WHERE tgname ~ '_(came|left)$'"
    assert conn.execute(only_refusing).fetchone() == (10,)  # of the table, three partitions and one of a partition's
    pt.alter_stream_table("large", frozen_before="none")
    assert conn.execute(only_refusing).fetchone() == (0,)
    conn.execute("UPDATE loaded SET v = 9")
    refreshed(pt, conn, "SELECT v FROM events")


def test_tables_without_a_key_and_referential_actions_are_reached(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE days (day date PRIMARY KEY)")
    conn.execute("CREATE TABLE visits (day date REFERENCES days ON DELETE CASCADE ON UPDATE CASCADE, n int)")
    conn.execute("INSERT INTO days SELECT date '2026-01-01' + i FROM generate_series(0, 30) i")
    conn.execute("INSERT INTO visits SELECT day, 1 FROM days, generate_series(1, 2)")
    query = "SELECT day, n FROM visits"
    pt.create_stream_table("large", query, **DELTA, frozen_before="visits.day: 2026-01-11")
    assert refuses(conn, "DELETE FROM days WHERE day = '2026-01-05'")
    assert refuses(conn, "UPDATE days SET day = '2027-01-01' WHERE day = '2026-01-05'")
    assert refuses(conn, "UPDATE visits SET n = n + 1")
    conn.execute("DELETE FROM days WHERE day = '2026-01-15'")
    conn.execute("UPDATE days SET day = '2027-01-01' WHERE day = '2026-01-16'")
    refreshed(pt, conn, query)


@pytest.mark.parametrize("role", ["origin", "replica"])
def test_rows_that_replication_applies_are_refused_one_by_one(
    pt: PgTrickle, conn: psycopg.Connection[Any], admin_of: psycopg.Connection[Any], role: str
) -> None:
    pt.create_stream_table("large", LARGE, **DELTA, frozen_before=BOUND)
    admin_of.execute(f"SET session_replication_role = {role}")
    for statement in BREACHES:
        assert refuses(admin_of, statement), statement
    for statement in ALLOWED:
        admin_of.execute(statement)
    refreshed(pt, conn)


def test_a_virtual_column_may_be_what_freezes(conn18: psycopg.Connection[Any], dsn: str) -> None:
    conn18.execute("CREATE TABLE events (id int PRIMARY KEY, n int, even int GENERATED ALWAYS AS (n - n % 2) VIRTUAL)")
    conn18.execute("INSERT INTO events VALUES (1, 9)")
    with PgTrickle(dsn, placement="database") as pt:
        pt.create_stream_table("large", "SELECT id FROM events", **DELTA, frozen_before="events.even: 10")
        for statement in ("INSERT INTO events VALUES (2, 9)", "UPDATE events SET n = 12", "TRUNCATE events"):
            assert refuses(conn18, statement)
        conn18.execute("INSERT INTO events VALUES (2, 10)")
        refreshed(pt, conn18, "SELECT id FROM events")


@pytest.mark.parametrize("end", ["drop", "alter", "FULL"])
def test_who_is_gone_or_altered_refuses_nothing(pt: PgTrickle, conn: psycopg.Connection[Any], end: str) -> None:
    pt.create_stream_table("large", LARGE, frozen_before=BOUND)
    pt.create_stream_table("other", LARGE, **DELTA)
    assert all(refuses(conn, statement) for statement in BREACHES)
    match end:
        case "drop":
            pt.drop_stream_table("large")
        case "alter":
            pt.alter_stream_table("large", frozen_before="none")
        case _:
            # A table that is always computed in full is captured like others, and asks for the same.
            pt.alter_stream_table("large", refresh_mode="FULL")
            assert all(refuses(conn, statement) for statement in BREACHES)
            pt.drop_stream_table("large")
    assert not any(refuses(conn, statement) for statement in BREACHES)
    conn.execute(BREACHES[3])
    assert pt.refresh_stream_table("other").action == "DIFFERENTIAL"
    assert difference(conn, "other", LARGE) == 0


def test_a_bound_that_is_altered_holds_from_then_on_and_costs_no_full_refresh(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("large", LARGE, **DELTA)
    conn.execute("UPDATE orders SET amount = 7 WHERE id = 3")
    pt.alter_stream_table("large", frozen_before=BOUND)
    assert refuses(conn, "DELETE FROM orders WHERE id = 9")
    refreshed(pt, conn)
    pt.alter_stream_table("large", frozen_before={"orders.placed": "2026-01-05"})
    conn.execute("DELETE FROM orders WHERE id = 9")
    assert refuses(conn, "DELETE FROM orders WHERE id = 3")
    refreshed(pt, conn)
    pt.alter_stream_table("large", frozen_before={"orders.placed": "2026-02-05"})
    assert refuses(conn, "DELETE FROM orders WHERE id = 30")
    # A declaration that says the same changes nothing.
    pt.create_or_replace_stream_table("large", LARGE, **DELTA, frozen_before="orders.placed : 2026-02-05")
    refreshed(pt, conn, action="NO_DATA")


def test_each_table_has_bounds_of_its_own(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, frozen_before=BOUND)
    pt.create_stream_table("other", LARGE, frozen_before={"orders.placed": "2026-02-01", "orders.id": "12"})
    with pytest.raises(REFUSED, match=r"as stream table public\.other says"):
        conn.execute("DELETE FROM orders WHERE id = 20")
    with pytest.raises(REFUSED, match=r"id is below 12, as stream table public\.other says"):
        conn.execute("INSERT INTO orders VALUES (-1, 1, 1, NULL)")
    pt.drop_stream_table("other")
    conn.execute("DELETE FROM orders WHERE id = 20")
    with pytest.raises(REFUSED, match=r"as stream table public\.large says"):
        conn.execute("DELETE FROM orders WHERE id = 2")


def test_the_column_that_was_meant_stays_whatever_its_name(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    query = "SELECT id, amount FROM orders"
    pt.create_stream_table("large", query, **DELTA, frozen_before=BOUND)
    for renamed in (
        "ALTER TABLE orders RENAME placed TO placed_on",
        "ALTER TABLE orders ADD placed date DEFAULT '2020-01-01'",
    ):
        conn.execute(renamed)
        # Until the next refresh nothing is refused by a column of another name, and no statement fails.
        conn.execute("UPDATE orders SET note = 'x' WHERE id = 40")
        pt.refresh_stream_table("large")
        assert difference(conn, "large", query) == 0
        assert refuses(conn, "DELETE FROM orders WHERE id = 9")
        assert refuses(conn, "TRUNCATE orders")
        assert not refuses(conn, "DELETE FROM orders WHERE id = 10")
    conn.execute("ALTER TABLE orders RENAME TO purchases")
    assert refuses(conn, "DELETE FROM purchases WHERE id = 9")
    query = "SELECT id, amount FROM purchases"
    pt.alter_stream_table("large", query=query)
    conn.execute("DELETE FROM purchases WHERE id = 10")
    refreshed(pt, conn, query)
    assert refuses(conn, "TRUNCATE purchases")


@pytest.mark.parametrize("altered", ["DROP placed", "ALTER placed TYPE uuid USING NULL"])
def test_a_column_that_is_gone_is_told_to_its_reader_alone(
    pt: PgTrickle, conn: psycopg.Connection[Any], altered: str
) -> None:
    pt.create_stream_table("large", "SELECT id, amount FROM orders", **DELTA, frozen_before=BOUND)
    pt.create_stream_table("other", "SELECT id, note FROM orders", **DELTA)
    conn.execute(f"ALTER TABLE orders {altered}")
    for _ in range(2):
        conn.execute("UPDATE orders SET note = note || 'x', amount = amount + 1 WHERE id = 1")
        pt.refresh_stream_table("other")
        assert difference(conn, "other", "SELECT id, note FROM orders") == 0
        with pytest.raises(UsageError, match=r"frozen_before (names orders\.placed, and|can't compare) public\.orders"):
            pt.refresh_stream_table("large")
    pt.alter_stream_table("large", frozen_before="none")
    pt.refresh_stream_table("large")
    assert difference(conn, "large", "SELECT id, amount FROM orders") == 0


def test_it_holds_through_views_parts_and_an_altered_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE VIEW recent AS SELECT * FROM orders WHERE amount > 0")
    query = "SELECT n, count(*) AS c FROM (SELECT customer_id, count(*) AS n FROM recent GROUP BY 1) AS x GROUP BY n"
    pt.create_stream_table("large", query, **DELTA, frozen_before=BOUND)
    assert refuses(conn, BREACHES[0])
    conn.execute(ALLOWED[0])
    refreshed(pt, conn, query)
    pt.alter_stream_table("large", query=LARGE)
    assert refuses(conn, BREACHES[0])
    with pytest.raises(UsageError, match=r"frozen_before names orders\.placed, and the stream table reads no captured"):
        pt.alter_stream_table("large", query="SELECT id FROM customers")
    assert refuses(conn, BREACHES[0])
    refreshed(pt, conn, action="NO_DATA")


def test_it_goes_with_append_only_and_immediate(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, refresh_mode="IMMEDIATE", frozen_before=BOUND)
    pt.create_stream_table("other", LARGE, append_only=True, append_only_breach="refuse")
    with pytest.raises(REFUSED, match="is append-only"):
        conn.execute("DELETE FROM orders WHERE id = 40")
    with pytest.raises(REFUSED, match="are frozen"):
        conn.execute(BREACHES[0])
    pt.drop_stream_table("other")
    for statement in BREACHES:
        assert refuses(conn, statement)
    for statement in ALLOWED:
        conn.execute(statement)
        assert difference(conn, "large", LARGE) == 0


def test_full_and_reinitialize_find_the_rows_as_they_stand(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, **DELTA, frozen_before=BOUND)
    conn.execute(ALLOWED[0])
    pt.refresh_stream_table("large", force_full=True)
    assert difference(conn, "large", LARGE) == 0
    conn.execute("ALTER TABLE orders ALTER amount TYPE numeric(12, 3)")
    assert refuses(conn, BREACHES[0])
    pt.refresh_stream_table("large")
    assert difference(conn, "large", LARGE) == 0
    assert refuses(conn, BREACHES[0])
    conn.execute(ALLOWED[1])
    refreshed(pt, conn)


def test_a_declaration_waits_for_writers_and_holds_for_those_who_come_after(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("large", LARGE, **DELTA)
    with ThreadPoolExecutor(1) as threads, servers.user_session(pt.database.dsn, autocommit=False) as writer:
        writer.execute("UPDATE orders SET amount = 70 WHERE id IN (3, 30)")
        declared = threads.submit(pt.alter_stream_table, "large", frozen_before=BOUND)
        wait_for_a_waiter(conn, declared)
        writer.commit()
        declared.result(timeout=30)
        # His next transaction meets the new function, though his session has run the old one.
        with pytest.raises(REFUSED):
            writer.execute("UPDATE orders SET amount = 71 WHERE id = 3")
        writer.rollback()
        writer.execute("UPDATE orders SET amount = 71 WHERE id = 30")
        with pytest.raises(REFUSED):
            conn.execute("UPDATE orders SET amount = 72 WHERE id = 4")
        writer.commit()
    refreshed(pt, conn)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("orders", "frozen_before can't be"),
        ({}, "frozen_before can't be"),
        ({"orders.placed": "tomorrow"}, "can't have the bound 'tomorrow'"),
        ({"orders.placed": "1000"}, r"can't compare public\.orders\.placed, which is date, with '1000'"),
        ({"orders.placed": "2026-02-30"}, "can't compare"),
        ({"orders.id": "90 days"}, r"can't compare public\.orders\.id, which is integer"),
        ({"orders.id": "1.5"}, "can't compare"),
        ({"orders.note": "5"}, r"public\.orders\.note, which is text"),
        ({"orders.gone": "90 days"}, r"public\.orders has no such column"),
        ({"customers.id": "5"}, "reads no captured table of that name"),
        ({"shop.orders.placed": "90 days"}, "reads no captured table of that name"),
    ],
)
def test_what_nobody_would_check_is_not_accepted(
    pt: PgTrickle, conn: psycopg.Connection[Any], given: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        pt.create_stream_table("large", LARGE, frozen_before=given)
    assert not any(refuses(conn, statement) for statement in BREACHES)


def test_what_the_log_tells_is_refused_to_nobody(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(UsageError, match="exclude each other: what the log tells is committed"):
        pt.create_stream_table("large", LARGE, frozen_before=BOUND, cdc_mode="wal")
    pt.create_stream_table("large", LARGE, frozen_before=BOUND)
    with pytest.raises(UsageError, match="exclude each other"):
        pt.alter_stream_table("large", cdc_mode="wal")
    pt.alter_stream_table("large", frozen_before="none", cdc_mode="auto")
