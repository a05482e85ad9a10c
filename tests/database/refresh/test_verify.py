"""`verify`: a content that is its query's answer at the frontier, and every way in which it may not be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.verify import Request, Verified, verify

SHOP = """
    CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text);
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10, 2), weight float8, note text);
    CREATE TABLE log (at int, what text);
    CREATE TABLE edges (a int, b int, PRIMARY KEY (a, b));
    INSERT INTO customers SELECT i, 'c' || i, (ARRAY['north', 'south', NULL])[1 + i % 3] FROM generate_series(1, 20) i;
    INSERT INTO orders SELECT i, 1 + i % 20, i * 1.5, i / 7.0, 'n' || i FROM generate_series(1, 400) i;
    INSERT INTO log SELECT i % 7, 'x' FROM generate_series(1, 100) i;
    INSERT INTO edges SELECT i, i + 1 FROM generate_series(1, 30) i;
"""
QUERIES = {
    "bag": "SELECT at, what FROM log",
    "joined": "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer",
    "outer_joined": "SELECT c.id, c.region, o.id AS order_id FROM customers c LEFT JOIN orders o ON o.customer = c.id",
    "added": "SELECT customer, sum(amount) AS total, count(*) AS n, avg(amount) AS mean FROM orders GROUP BY customer",
    "by_key": "SELECT id, note, count(*) AS n FROM orders GROUP BY id",
    "by_joined_key": "SELECT c.id, c.name, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer = c.id"
    " GROUP BY c.id",
    "rolled": "SELECT o.customer, (SELECT count(*) FROM customers c WHERE c.id = o.customer) AS c, sum(o.amount) AS s,"
    " (SELECT grouping(o.customer)) AS g FROM orders o GROUP BY ROLLUP (o.customer)",
    "whole": "SELECT count(*) AS n, sum(amount) AS total FROM orders",
    "replaced": "SELECT customer, string_agg(note, ',' ORDER BY id) AS notes FROM orders GROUP BY customer",
    "unordered": "SELECT customer, array_agg(note) AS notes FROM orders GROUP BY customer",
    "floats": "SELECT customer, sum(weight) AS w, min(weight) AS least FROM orders GROUP BY customer",
    "ranked": "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS place FROM orders",
    "first": "SELECT DISTINCT ON (customer) customer, note FROM orders ORDER BY customer, amount > 100",
    "top": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "tied": "SELECT customer, note FROM orders ORDER BY customer LIMIT 5",
    "parts": "SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) x"
    " GROUP BY n",
    "reached": "WITH RECURSIVE r AS (SELECT a, b FROM edges WHERE a = 1 UNION SELECT r.a, e.b FROM r JOIN edges e"
    " ON e.a = r.b) SELECT a, b FROM r",
    "without": "SELECT id FROM customers EXCEPT SELECT customer FROM orders WHERE amount > 500",
    "known": "SELECT id, name FROM customers c WHERE EXISTS"
    " (SELECT FROM orders o WHERE o.customer = c.id AND amount > 400)",
    "sets": "SELECT region, count(*) AS n FROM customers GROUP BY GROUPING SETS ((region), ())",
}
#: The order of what is gathered, the last digits of sums of floats, rows that tie.
LEFT_OPEN = ("unordered", "floats", "first", "tied")
CHANGES = """
    UPDATE orders SET amount = amount + 0.25, weight = weight * 1.1 WHERE id % 11 = 0;
    DELETE FROM orders WHERE id % 13 = 0;
    INSERT INTO orders SELECT i, 1 + i % 25, i, i / 3.0, 'm' || i FROM generate_series(401, 450) i;
    UPDATE customers SET region = 'east' WHERE id = 3;
    DELETE FROM log WHERE at = 2; INSERT INTO log VALUES (3, 'x'), (3, 'y');
    DELETE FROM edges WHERE a = 20; INSERT INTO edges VALUES (5, 40);
"""

BOTH = {"missing", "unexpected"}


def never() -> NoReturn:
    raise AssertionError("computed elsewhere")


class Stopping:
    """A database whose sessions are interrupted when so many snapshots have been looked at."""

    def __init__(self, database: Database, after: int) -> None:
        self._database, self._left = database, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        conn = self._database.connect(**options)
        execute, stopping = conn.execute, self

        def counted(query: Any, *rest: Any, **more: Any) -> Any:
            if query == "ROLLBACK":
                stopping._left -= 1
            if isinstance(query, str) and query.startswith("BEGIN ISOLATION") and stopping._left == 0:
                raise KeyboardInterrupt
            return execute(query, *rest, **more)

        conn.execute = counted  # type: ignore[method-assign]
        return conn


class Shop:
    def __init__(self, pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
        self.pt, self.conn = pt, conn

    def run(self, statement: str) -> None:
        self.conn.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.conn.execute(statement).fetchall()

    def create(self, name: str, query: str | None = None, **options: Any) -> None:
        self.pt.create_stream_table(name, query or QUERIES[name], **options)

    def corrupt(self, statement: str) -> None:
        """As somebody who goes around the guard."""
        with self.conn.transaction():
            self.conn.execute("SET LOCAL pgtrickle.refreshing = 'on'")
            self.conn.execute(statement)

    def verify(self, name: str, **options: Any) -> Verified:
        """What came of the table itself; its parts hold."""
        found = self.pt.verify(name, **options)
        assert not any(part.differences for part in found.tables[1:])
        return found.tables[0]


@pytest.fixture
def shop(any_dsn: str) -> Iterator[Shop]:
    """On PostgreSQL 18 and 15."""
    yield from _shop(any_dsn)


@pytest.fixture
def shop18(dsn: str) -> Iterator[Shop]:
    yield from _shop(dsn)


def _shop(dsn: str) -> Iterator[Shop]:
    database = Database(dsn)
    settings: dict[str, Any] = {"differential_max_change_ratio": 0.0, "retry_attempts": 1}
    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        PgTrickle(dsn, executor=lambda: PostgresExecutor(database), **settings) as pt,
    ):
        pt.install()
        conn.execute(SHOP)
        yield Shop(pt, conn)


@pytest.mark.parametrize("name", QUERIES)
def test_a_content_holds_at_its_frontier_before_and_after_changes_and_refreshes(shop: Shop, name: str) -> None:
    shop.create(name)
    for step in ("filled", "pending", "refreshed"):
        if step == "pending":
            shop.run(CHANGES)
        if step == "refreshed":
            action = shop.pt.refresh_stream_table(name).action
            assert action in ("DIFFERENTIAL", "TOPK")
        before = shop.pt.history(name)
        found = shop.verify(name)
        assert (found.status, found.differences, found.rows) == ("EQUAL", 0, ()), step
        assert found.undecided == 0 or name in LEFT_OPEN
        assert found.rows_compared == shop.rows(f"SELECT count(*) FROM {name}")[0][0]
        # Nothing was refreshed for it.
        assert shop.pt.history(name) == before


@pytest.mark.parametrize(
    ("name", "corruption", "compared", "sides"),
    [
        ("bag", "DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag)", "content", {"missing"}),
        ("bag", "INSERT INTO bag SELECT * FROM bag LIMIT 1", "content", {"unexpected"}),
        ("bag", "UPDATE bag SET what = NULL WHERE ctid = (SELECT min(ctid) FROM bag)", "content", BOTH),
        ("bag", "UPDATE bag SET what = '' WHERE ctid = (SELECT min(ctid) FROM bag)", "content", BOTH),
        ("joined", "DELETE FROM joined WHERE id = 7", "content", {"missing"}),
        ("joined", "UPDATE joined SET amount = amount + 0.01 WHERE id = 7", "content", BOTH),
        # Sums over columns would stay as they are.
        (
            "joined",
            "UPDATE joined SET name = 'c' || 4 - id WHERE id IN (1, 2)",
            "content",
            BOTH,
        ),
        ("added", "UPDATE added SET total = total + 1 WHERE customer = 4", "content", BOTH),
        ("added", "UPDATE added SET __pgt_count = __pgt_count + 1 WHERE customer = 4", "state", BOTH),
        ("added", "UPDATE added SET __pgt_row_id = __pgt_row_id + 1 WHERE customer = 4", "row id", {"unexpected"}),
        ("whole", "DELETE FROM whole", "content", {"missing"}),
        ("top", "DELETE FROM top WHERE id = 400", "content", {"missing"}),
        ("top", "UPDATE top SET id = -id WHERE id = 398", "content", BOTH),
        ("first", "UPDATE first SET customer = 99 WHERE customer = 3", "content", BOTH),
        ("reached", "INSERT INTO reached SELECT * FROM reached LIMIT 1", "content", {"unexpected"}),
        ("sets", "UPDATE sets SET n = n + 1 WHERE region = 'north'", "content", BOTH),
        ("parts", "DELETE FROM parts", "content", {"missing"}),
    ],
)
@pytest.mark.parametrize("when", ["at rest", "with changes pending"])
def test_each_kind_of_corruption_is_found(
    shop18: Shop, name: str, corruption: str, compared: str, sides: set[str], when: str
) -> None:
    shop18.create(name)
    if when == "with changes pending":
        shop18.run(CHANGES)
    shop18.corrupt(corruption)
    found = shop18.verify(name)
    assert found.status == "DIFFERENT"
    assert {wrong.compared for wrong in found.rows} >= {compared}
    assert {wrong.side for wrong in found.rows if wrong.compared == compared} == sides
    told = shop18.rows("SELECT differences, status FROM pgtrickle.pgt_verifications ORDER BY 1 DESC LIMIT 1")
    assert told == [(found.differences, "DIFFERENT")]


def test_a_wrong_part_is_found_beside_its_owner(shop18: Shop) -> None:
    shop18.create("parts")
    (part,) = (v.name for v in shop18.pt.verify("parts").tables if "__part_" in v.name)
    shop18.corrupt(f"UPDATE {part} SET a1 = a1 + 1 WHERE k1 = 3")
    found = {v.name: v for v in shop18.pt.verify("parts").tables}
    assert found[part].differences == 2
    # Its owner is the query's answer, though not the answer over that part: the next difference would spoil it.
    assert {wrong.compared for wrong in found["public.parts"].rows} == {"state"}
    repaired = {v.name: v.repaired for v in shop18.pt.verify("parts", repair=True).tables}
    assert repaired == {"public.parts": True, part: True}
    shop18.run(CHANGES)
    assert shop18.pt.refresh_stream_table("parts").action == "DIFFERENTIAL"
    assert shop18.pt.verify("parts").differences == 0


def test_a_row_is_recorded_as_text_with_its_side(shop18: Shop) -> None:
    shop18.create("added")
    shop18.corrupt("UPDATE added SET total = 0 WHERE customer = 4")
    found = shop18.verify("added")
    assert found.differences == 2
    rows = {wrong.side: wrong.stored for wrong in found.rows}
    assert (rows["unexpected"]["customer"], rows["unexpected"]["total"]) == ("4", "0")
    assert rows["missing"]["total"] == str(shop18.rows("SELECT sum(amount) FROM orders WHERE customer = 4")[0][0])
    recorded = shop18.rows("SELECT side, stored ->> 'total' FROM pgtrickle.pgt_verification_rows ORDER BY 1")
    assert recorded == [("missing", rows["missing"]["total"]), ("unexpected", "0")]


def test_no_more_than_a_hundred_rows_are_recorded(shop18: Shop) -> None:
    shop18.create("joined")
    shop18.corrupt("UPDATE joined SET amount = -amount")
    assert shop18.verify("joined").differences == 800
    assert shop18.rows("SELECT count(*) FROM pgtrickle.pgt_verification_rows") == [(100,)]


def test_a_change_that_was_lost_on_its_way_is_found(shop18: Shop) -> None:
    """As if no trigger had seen it: nothing is pending, and every check of capture is content."""
    shop18.create("added")
    shop18.run("UPDATE orders SET amount = 1 WHERE id = 7")
    ((buffer,),) = shop18.rows("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    shop18.run(f"DELETE FROM pgtrickle_changes.{buffer}")
    assert shop18.pt.refresh_stream_table("added").action == "NO_DATA"
    assert shop18.verify("added").differences == 2
    assert shop18.pt.verify("added", repair=True).differences == 0


def test_a_difference_is_an_alert_and_a_finding_of_health(shop18: Shop) -> None:
    shop18.create("added")
    shop18.verify("added")
    assert {f.check: f.ok for f in shop18.pt.health()}["verification"]
    shop18.corrupt("DELETE FROM added WHERE customer = 4")
    shop18.run("LISTEN pg_trickle_alert")
    shop18.verify("added")
    (note,) = shop18.conn.notifies(timeout=10, stop_after=1)
    assert json.loads(note.payload) | {"verification_id": 0, "data_timestamp": ""} == {
        "event": "content_differs",
        "stream_table": "public.added",
        "differences": 1,
        "verification_id": 0,
        "data_timestamp": "",
    }
    (finding,) = (f for f in shop18.pt.health() if f.check == "verification")
    assert (finding.ok, "public.added differed from its query in 1 rows" in finding.detail) == (False, True)
    assert shop18.rows("SELECT verified FROM pgtrickle.stream_tables_info") == [("DIFFERENT",)]
    shop18.pt.verify("added", repair=True)
    assert {f.check: f.ok for f in shop18.pt.health()}["verification"]


@pytest.mark.parametrize("name", ["bag", "added", "joined", "top", "reached", "parts"])
def test_repair_computes_anew_and_proves_it(shop: Shop, name: str) -> None:
    shop.create(name)
    shop.create("reader", f"SELECT count(*) AS n FROM {name}")
    shop.run(CHANGES)
    shop.corrupt(f"DELETE FROM {name} WHERE ctid = (SELECT min(ctid) FROM {name})")
    shop.corrupt(f"UPDATE {name} SET __pgt_row_id = 1 WHERE ctid = (SELECT max(ctid) FROM {name})")
    found = shop.pt.verify(name, repair=True)
    assert (found.differences, found.tables[0].repaired, found.tables[0].status) == (0, True, "EQUAL")
    assert shop.pt.history(name, 1)[0]["action"] == "REINITIALIZE"
    assert shop.pt.history(name, 1)[0]["fallback_reason"] == "content_differs"
    # Its reader was told nothing of the corruption, and would have been misled by the difference.
    assert shop.pt.refresh_stream_table("reader").fallback_reason == "buffer_lost"
    assert shop.pt.verify().differences == 0
    shop.run("INSERT INTO orders VALUES (9999, 1, 1, 1, 'z')")
    assert shop.pt.refresh_stream_table(name).action in ("DIFFERENTIAL", "TOPK", "NO_DATA")
    assert shop.pt.verify().differences == 0


def test_a_key_that_stands_twice_is_found_and_repaired(shop18: Shop) -> None:
    shop18.create("added", partition_by="HASH (customer)")
    (index,) = shop18.rows(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'added'::regclass AND indisunique"
    ) or [(None,)]
    if index[0]:
        shop18.corrupt(f"DROP INDEX {index[0]}")
    shop18.corrupt("INSERT INTO added SELECT * FROM added WHERE customer = 4")
    assert shop18.verify("added").differences == 1
    assert shop18.pt.verify("added", repair=True).differences == 0


def test_a_gated_table_is_verified_and_not_repaired(shop18: Shop) -> None:
    shop18.create("added")
    shop18.pt.gate("added", "loading")
    shop18.run(CHANGES)
    assert shop18.verify("added").status == "EQUAL"
    shop18.corrupt("DELETE FROM added WHERE customer = 4")
    found = shop18.pt.verify("added", repair=True).tables[0]
    assert (found.status, found.differences, found.repaired) == ("DIFFERENT", 1, False)


def test_what_has_no_delta_is_refreshed_first_or_skipped(shop18: Shop) -> None:
    shop18.run("CREATE MATERIALIZED VIEW m AS SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    shop18.create("over_view", "SELECT customer, n FROM m")
    assert shop18.verify("over_view", refresh=False).status == "SKIPPED"
    shop18.run(CHANGES)
    shop18.run("REFRESH MATERIALIZED VIEW m")
    assert shop18.verify("over_view").status == "EQUAL"
    assert shop18.pt.history("over_view", 1)[0]["initiated_by"] == "verify"
    shop18.run("TRUNCATE edges")
    shop18.create("reached")
    shop18.run("INSERT INTO edges VALUES (1, 2); TRUNCATE edges")
    skipped = shop18.verify("reached", refresh=False)
    assert (skipped.status, skipped.reason) == (
        "SKIPPED",
        "public.edges was truncated since its last refresh, and it was not to be refreshed first",
    )
    assert shop18.verify("reached").status == "EQUAL"


def test_what_can_not_be_held_against_a_query_is_skipped_with_the_reason(shop18: Shop) -> None:
    shop18.create("session", "SELECT id, current_user AS who FROM customers", refresh_mode="FULL")
    shop18.create("empty", "SELECT id FROM customers", initialize=False)
    skipped = shop18.pt.verify().skipped
    assert skipped["public.session"].startswith("its content depends on the session or on chance")
    assert skipped["public.empty"] == "it has no content yet"
    assert [s for (s,) in shop18.rows("SELECT DISTINCT status FROM pgtrickle.pgt_verifications")] == ["SKIPPED"]


def test_values_that_are_equal_and_look_different_are_told_apart_and_no_alarm(shop18: Shop) -> None:
    shop18.run(
        "CREATE TABLE v (id int PRIMARY KEY, n numeric, f float8, j jsonb, b char(5), i interval, d date[], t text);"
        "INSERT INTO v VALUES (1, 1.0, 0, '{\"a\": 1.0}', 'x', '1 day', '{2020-01-01}', 'é'),"
        " (2, 'NaN', 'NaN', NULL, NULL, NULL, NULL, NULL)"
    )
    shop18.create("values_kept", "SELECT id, n, f, j, b, i, d, t FROM v")
    assert shop18.verify("values_kept").undecided == 0
    shop18.corrupt("UPDATE values_kept SET n = 1.00, f = '-0', j = '{\"a\": 1.00}', i = '24 hours' WHERE id = 1")
    found = shop18.verify("values_kept")
    assert (found.status, found.undecided) == ("EQUAL", 1)
    shop18.corrupt("UPDATE values_kept SET j = '{\"a\": 2}' WHERE id = 1")
    assert shop18.verify("values_kept").differences == 2


def test_columns_without_equality_and_of_odd_collations(dsn15: str) -> None:
    """On PostgreSQL 15, whose build has ICU."""
    with contextmanager(_shop)(dsn15) as shop:
        _odd(shop)


def _odd(shop: Shop) -> None:
    shop.run(
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
        "CREATE TABLE v (id int PRIMARY KEY, k text COLLATE caseless, j json, p point);"
        "INSERT INTO v SELECT i, 'K' || i, json_build_object('a', i), point(i, i) FROM generate_series(1, 50) i"
    )
    shop.create("odd", "SELECT k, j, p FROM v")
    shop.create("counted", "SELECT k, count(*) AS n FROM v GROUP BY k")
    shop.run("UPDATE v SET p = point(0, 0) WHERE id < 5; UPDATE v SET k = lower(k) WHERE id > 40")
    assert shop.pt.verify().differences == 0
    shop.pt.refresh(["odd", "counted"])
    assert shop.pt.verify().differences == 0
    shop.corrupt("UPDATE odd SET j = '{\"a\":  7}' WHERE k = 'k7'")
    assert shop.verify("odd").differences == 2


def test_a_stopped_verification_goes_on_with_what_it_left(shop18: Shop) -> None:
    shop18.run("INSERT INTO orders SELECT i, i % 50, i, i, 'n' FROM generate_series(1000, 21000) i")
    shop18.create("joined", "SELECT o.id, o.amount FROM orders o")
    shop18.run("ANALYZE joined")
    shop18.pt.settings = type(shop18.pt.settings).load(verify_chunk_rows=6000)
    stopped = Stopping(shop18.pt.database, after=2)
    with pytest.raises(KeyboardInterrupt):
        verify(Request(stopped, never, shop18.pt.settings), [QualifiedName("public", "joined")])  # type: ignore[arg-type]
    ((status, ranges, done),) = shop18.rows("SELECT status, ranges, done FROM pgtrickle.pgt_verifications")
    assert (status, ranges, len(done)) == ("UNFINISHED", 64, 32)
    # What was proven isn't looked at again: a row that was right then, and is spoiled since, is the next one's to find.
    shop18.run(CHANGES)
    shop18.pt.refresh_stream_table("joined")
    found = shop18.verify("joined")
    assert (found.status, found.ranges, found.ranges_done) == ("EQUAL", 64, 64)
    assert shop18.rows("SELECT count(*) FROM pgtrickle.pgt_verifications") == [(1,)]
    assert shop18.verify("joined", restart=True).ranges_done == 64
    assert shop18.rows("SELECT count(*) FROM pgtrickle.pgt_verifications") == [(2,)]


def test_a_sample_compares_some_ranges(shop18: Shop) -> None:
    shop18.create("joined")
    found = shop18.verify("joined", sample=0.25)
    assert (found.ranges, found.ranges_done) == (16, 4)
    assert 0 < found.rows_compared < 400
    shop18.corrupt("UPDATE joined SET amount = -amount")
    # One range of a hundred, which is picked at random and may hold none of the few rows.
    assert any(shop18.verify("joined", sample=0.01).differences for _ in range(20))
    with pytest.raises(UsageError, match="sample"):
        shop18.pt.verify("joined", sample=2)


def test_writers_may_write_and_are_not_waited_for(shop18: Shop, dsn: str) -> None:
    for name in ("added", "joined", "replaced", "top", "parts"):
        shop18.create(name)
    stop = threading.Event()

    def write(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not stop.is_set():
                conn.execute(
                    "UPDATE orders SET amount = amount + 1, customer = 1 + (customer + %s) %% 25, note = note || 'x'"
                    " WHERE id %% 7 = %s",
                    (number, number),
                )
                conn.execute("DELETE FROM orders WHERE id = (SELECT min(id) FROM orders WHERE id > 50)")

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, number) for number in range(2)]
        refreshing = pool.submit(lambda: [shop18.pt.refresh(["added", "joined", "top"]) for _ in range(5)])
        try:
            for _ in range(3):
                found = shop18.pt.verify()
                assert (found.differences, found.skipped) == (0, {})
            refreshing.result()
        finally:
            stop.set()
        for writer in writers:
            writer.result()


def test_ddl_on_a_source_waits_and_an_older_snapshot_does_not_see_it_empty(shop18: Shop, dsn: str) -> None:
    """A rewritten table is empty to whoever took a snapshot before: the lock comes first."""
    shop18.create("joined")
    with psycopg.connect(dsn) as ddl, ThreadPoolExecutor(1) as pool:
        ddl.execute("ALTER TABLE customers ADD COLUMN uid uuid DEFAULT gen_random_uuid()")
        verifying = pool.submit(shop18.pt.verify, "joined")
        waiting = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity USING (pid)"
        waiting += " WHERE NOT granted AND datname = current_database()"
        while shop18.rows(waiting) == [(0,)]:
            pass
        ddl.commit()
        assert verifying.result().tables[0].status == "EQUAL"


def test_two_do_not_verify_one_table_at_a_time(shop18: Shop) -> None:
    shop18.create("added")
    ((pgt_id,),) = shop18.rows("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
    shop18.run(f"SELECT pg_advisory_lock({int.from_bytes(b'pgtv')}, {pgt_id})")
    assert shop18.verify("added").reason == "another session verifies it now"


def test_old_verifications_are_forgotten_and_never_the_last(shop18: Shop) -> None:
    shop18.create("added")
    shop18.verify("added")
    shop18.verify("added")
    shop18.run("UPDATE pgtrickle.pgt_verifications SET started_at = started_at - interval '31 days'")
    shop18.pt.cleanup()
    assert shop18.rows("SELECT count(*) FROM pgtrickle.pgt_verifications") == [(1,)]
    shop18.pt.drop_stream_table("added")
    shop18.pt.cleanup()
    assert shop18.rows("SELECT count(*) FROM pgtrickle.pgt_verifications") == [(0,)]


def test_upstream_tables_are_as_they_are_stored(shop18: Shop) -> None:
    """What reads another stream table is held against that one's rows, and not against its sources."""
    shop18.create("added")
    shop18.create("big", "SELECT customer, total FROM added WHERE total > 1000")
    shop18.run(CHANGES)
    assert shop18.pt.verify().differences == 0
    shop18.pt.refresh(["added"])
    assert shop18.pt.verify().differences == 0
    shop18.pt.refresh(["big"])
    assert shop18.pt.verify().differences == 0


def test_what_is_behind_the_query_may_change_and_is_taken_up_first(shop18: Shop) -> None:
    shop18.create("joined")
    shop18.create("reader", "SELECT id FROM joined")
    shop18.run("ALTER TABLE orders ALTER amount TYPE numeric(14, 3)")
    assert shop18.verify("joined", refresh=False).reason == (
        "it is to be reinitialized (schema_changed), and it was not to be refreshed first"
    )
    assert shop18.verify("joined").status == "EQUAL"
    assert shop18.pt.history("joined", 1)[0]["action"] == "REINITIALIZE"


def test_one_that_can_not_be_read_stops_no_other(shop18: Shop) -> None:
    shop18.create("added")
    shop18.run("CREATE TABLE d (id int PRIMARY KEY, n int); INSERT INTO d VALUES (1, 1)")
    shop18.create("broken", "SELECT id, 1 / n AS q FROM d")
    shop18.corrupt("UPDATE broken SET q = 7")
    shop18.run("ALTER TABLE d DISABLE TRIGGER ALL; UPDATE d SET n = 0; ALTER TABLE d ENABLE TRIGGER ALL")
    with pytest.raises(PgTrickleError, match="Division by zero"):
        shop18.pt.verify()
    done = shop18.rows("SELECT pgt_name, verified FROM pgtrickle.stream_tables_info ORDER BY 1")
    assert dict(done)["added"] == "EQUAL"
