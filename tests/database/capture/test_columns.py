"""Whenever the columns of a captured table change: no writer fails, nothing that was captured is other than it was."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import chain

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors, sql
from psycopg.pq import TransactionStatus

from tests import servers
from tests.database.capture.conftest import Captured

#: Enough for PostgreSQL to keep a plan instead of making one for each statement.
_MANY = 8

_WRITES = [
    "INSERT INTO t (id) VALUES (100)",
    "UPDATE t SET w = 'x' WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "INSERT INTO t (id) SELECT 200 WHERE false",
]

#: What the owner says, and whether writers can tell that it concerns what is captured: `id` and `v`.
_CHANGES = [
    ("ALTER TABLE t DROP COLUMN v", True),
    ("ALTER TABLE t RENAME COLUMN v TO u", True),
    ("ALTER TABLE t RENAME COLUMN id TO v1; ALTER TABLE t RENAME COLUMN w TO id", True),
    ("ALTER TABLE t ALTER COLUMN v TYPE bigint", True),
    ("ALTER TABLE t ALTER COLUMN v TYPE text", True),
    ("ALTER TABLE t ALTER COLUMN v TYPE whole", False),
    ("ALTER TABLE t ADD COLUMN x int DEFAULT 7", False),
    ("ALTER TABLE t DROP COLUMN w; ALTER TABLE t ADD COLUMN w text", False),
    ("ALTER TABLE t DROP COLUMN v; ALTER TABLE t ADD COLUMN v int", False),
    ("ALTER TABLE t RENAME COLUMN v TO z; ALTER TABLE t RENAME COLUMN y TO v", False),
]


@pytest.fixture
def table(conn):
    conn.execute("CREATE DOMAIN whole AS int")
    conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int, w text, y int)")
    conn.execute("INSERT INTO t SELECT g, g, 'w', -g FROM generate_series(1, 20) AS g")
    captured = Captured(conn, "t", ["id", "v"])
    captured.save()
    return captured


def is_whole(table: Captured) -> bool:
    """Whether the refresh that comes next trusts what was captured."""
    row = table.conn.execute(
        "SELECT digest = pgtrickle.pgt_capture_digest(source_relid) FROM pgtrickle.pgt_change_tracking"
        " WHERE source_relid = %s",
        [table.source.relid],
    ).fetchone()
    assert row is not None
    return bool(row[0])


def warm(writer: psycopg.Connection) -> None:
    """Let the session have plans for all that the capturing function says."""
    for number in range(_MANY):
        writer.execute("INSERT INTO t VALUES (%s, 1, '', 1)", [1000 + number])
        writer.execute("UPDATE t SET v = v + 1 WHERE id = %s", [1000 + number])
        writer.execute("DELETE FROM t WHERE id = %s", [1000 + number])


def test_plans_that_outlive_an_alter_capture_nothing_wrong(table, any_dsn):
    conn = table.conn
    for change, tells in _CHANGES:
        conn.execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v int, w text, y int)")
        conn.execute("INSERT INTO t SELECT g, g, 'w', -g FROM generate_series(1, 20) AS g")
        table = Captured(conn, "t", ["id", "v"])
        table.save()
        with servers.user_session(any_dsn) as writer:
            warm(writer)
            assert table.differences() == []
            for statement in change.split("; "):
                conn.execute(statement)
            # Where the key is called otherwise, another column has its name.
            writes = [w.replace("id", "v1").replace("w = 'x'", "y = 3") if "v1" in change else w for w in _WRITES]
            for write in writes:
                conn.execute(sql.SQL("DELETE FROM {}").format(table.buffer.sql))
                writer.execute(write)
                found = "".join(action for (action,) in conn.execute(f"SELECT action FROM {table.buffer.quoted}"))
                assert found == "T" if tells else "T" not in found, (change, write)
            assert is_whole(table) == ("COLUMN x" in change or "DROP COLUMN w" in change), change
            again = Captured(conn, "t", ["v1" if "v1" in change else "id"])
            again.save()
            for write in writes[:2]:
                writer.execute(write.replace("100", "101"))
            assert again.actions() == "I", change
            assert again.differences() == []


def test_a_column_that_came_in_the_place_of_another_is_captured_with_its_own_values(table, any_dsn):
    with servers.user_session(any_dsn) as writer:
        warm(writer)
        table.conn.execute("ALTER TABLE t RENAME COLUMN v TO z")
        table.conn.execute("ALTER TABLE t RENAME COLUMN y TO v")
        table.save()
        writer.execute("INSERT INTO t (id, v, z) VALUES (500, 5, 6)")
        writer.execute("UPDATE t SET z = 7 WHERE id = 500")
        writer.execute("UPDATE t SET v = 8 WHERE id = 500")
        assert table.changes() == [("I", "500", "5", None, None), ("U", "500", "8", "500", "5")]
        assert not is_whole(table)


def test_an_alter_between_the_statements_of_a_transaction_is_told_and_its_end_too(table):
    conn = table.conn
    with conn.transaction():
        conn.execute("INSERT INTO t VALUES (500, 5)")
        conn.execute("ALTER TABLE t RENAME COLUMN v TO u")
        conn.execute("INSERT INTO t (id, u) VALUES (501, 6)")
        conn.execute("ALTER TABLE t RENAME COLUMN u TO v")
        conn.execute("INSERT INTO t VALUES (502, 7)")
        conn.execute("ALTER TABLE t ALTER COLUMN v TYPE bigint")
        conn.execute("DELETE FROM t WHERE id = 500")
        conn.execute("ALTER TABLE t ALTER COLUMN v TYPE int")
        conn.execute("DELETE FROM t WHERE id = 502")
    assert [row[:3] for row in table.changes()] == [
        ("I", "500", "5"), ("T", None, None), ("I", "502", "7"), ("T", None, None), ("D", None, None)
    ]  # fmt: skip
    assert not is_whole(table)


def test_an_alter_that_is_rolled_back_leaves_plans_that_are_right(table):
    conn = table.conn
    warm(conn)
    table.save()
    for change, _ in _CHANGES:
        with conn.transaction(force_rollback=True):
            for statement in change.split("; "):
                conn.execute(statement)
            conn.execute("INSERT INTO t SELECT FROM (SELECT) AS s WHERE false")
        conn.execute("UPDATE t SET v = v + 1 WHERE id <= 3")
    assert table.actions() == "U" * 3 * len(_CHANGES)
    assert table.differences() == []
    assert is_whole(table)


def test_a_snapshot_that_is_older_than_the_alter_fails_no_writer(table, any_dsn):
    """The check asked the catalog, which looked as the old snapshot shows it; the statement after it failed."""
    with servers.user_session(any_dsn) as writer:
        warm(writer)
        table.save()
        for write in _WRITES[:3]:
            writer.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            writer.execute("SELECT count(*) FROM pg_class")
            table.conn.execute("ALTER TABLE t RENAME COLUMN v TO u")
            writer.execute(write)
            writer.execute("COMMIT")
            table.conn.execute("ALTER TABLE t RENAME COLUMN u TO v")
        assert table.actions() == "TTT"
        writer.execute("UPDATE t SET v = 1 WHERE id = 3")
        assert table.actions() == "TTTU"


def test_what_an_old_snapshot_planned_is_no_later_transactions_truth(table, any_dsn):
    """A plan that is made under an old snapshot outlives it."""
    with servers.user_session(any_dsn) as writer:
        writer.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        writer.execute("SELECT count(*) FROM pg_class")
        table.conn.execute("ALTER TABLE t ALTER COLUMN v TYPE text")
        writer.execute("INSERT INTO t VALUES (500, 'five')")
        writer.execute("COMMIT")
        writer.execute("INSERT INTO t VALUES (501, 'six')")
        assert table.actions() == "TT"
        table.conn.execute("ALTER TABLE t ALTER COLUMN v TYPE int USING 1")
        writer.execute("INSERT INTO t VALUES (502, 7)")
        assert table.actions() == "ITT"


def test_sessions_with_plans_of_their_own_all_notice(table, any_dsn):
    with servers.user_session(any_dsn) as one, servers.user_session(any_dsn) as other:
        warm(one)
        warm(other)
        table.save()
        one.execute("ALTER TABLE t ALTER COLUMN v TYPE numeric")
        other.execute("UPDATE t SET v = 0.5 WHERE id = 1")
        one.execute("UPDATE t SET v = 1.5 WHERE id = 2")
        assert table.actions() == "TT"
        other.execute("ALTER TABLE t ALTER COLUMN v TYPE int")
        one.execute("UPDATE t SET v = 5 WHERE id = 1")
        other.execute("UPDATE t SET v = 6 WHERE id = 2")
        assert table.actions() == "TTUU"
        assert not is_whole(table)


def test_copy_notices_too(table, any_dsn):
    with servers.user_session(any_dsn) as writer:
        warm(writer)
        table.save()
        table.conn.execute("ALTER TABLE t RENAME COLUMN v TO u")
        with writer.cursor().copy("COPY t (id, u) FROM STDIN") as copy:
            copy.write_row((500, 1))
        assert table.actions() == "T"


def test_members_of_a_table_notice_by_themselves(conn, any_dsn):
    conn.execute("CREATE TABLE p (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id)")
    conn.execute("CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
    conn.execute("CREATE TABLE p_2 (v int, gone int, id int NOT NULL)")
    conn.execute("ALTER TABLE p_2 DROP COLUMN gone")
    conn.execute("ALTER TABLE p ATTACH PARTITION p_2 FOR VALUES FROM (10) TO (20)")
    parent = Captured(conn, "p")
    parent.save()
    with servers.user_session(any_dsn) as writer:
        for number in range(_MANY):
            writer.execute("INSERT INTO p VALUES (%s, 1), (%s, 2)", [number, 10 + number])
            writer.execute("UPDATE p_1 SET v = v + 1")
            writer.execute("UPDATE p_2 SET v = v + 1")
        assert parent.differences() == []
        parent.save()
        conn.execute("ALTER TABLE p RENAME COLUMN v TO u")
        for statement in ("UPDATE p SET u = 0", "UPDATE p_1 SET u = 1", "DELETE FROM p_2"):
            writer.execute(statement)
        assert parent.actions() == "TTT"
        conn.execute("ALTER TABLE p RENAME COLUMN u TO v")
        parent.save()
        # A partition that was detached keeps its triggers, and its columns may go their own way.
        conn.execute("ALTER TABLE p DETACH PARTITION p_1")
        conn.execute("ALTER TABLE p_1 DROP COLUMN v")
        writer.execute("DELETE FROM p_1")
        assert parent.actions() == "T"


def test_columns_that_are_called_like_the_checks_own_names(conn, any_dsn):
    conn.execute("CREATE TABLE t (r int PRIMARY KEY, c int, absent int, nothing int, new_rows int, xid int, w int)")
    table = Captured(conn, "t", ["r", "c", "absent", "nothing", "new_rows", "xid"])
    table.save()
    with servers.user_session(any_dsn) as writer:
        writer.execute("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 7)")
        writer.execute("UPDATE t SET absent = 0, new_rows = 0")
        assert table.actions() == "IU"
        assert table.differences() == []
        for name in ("c", "absent", "nothing", "new_rows", "xid"):
            table.save()
            with conn.transaction(force_rollback=True):
                conn.execute(f"ALTER TABLE t DROP COLUMN {name}")
                conn.execute("UPDATE t SET w = 1")
                assert table.conn.execute(f"SELECT action FROM {table.buffer.quoted}").fetchall() == [("T",)]


def test_a_domain_is_captured_as_what_it_is_of(conn):
    conn.execute("CREATE DOMAIN whole AS int CHECK (VALUE > 0)")
    conn.execute("CREATE DOMAIN tiny AS whole CHECK (VALUE < 9)")
    conn.execute("CREATE TABLE t (id whole PRIMARY KEY, v tiny, a whole[], e tiny NOT NULL)")
    table = Captured(conn, "t")
    table.save()
    conn.execute("INSERT INTO t VALUES (1, 2, '{3,4}', 5), (2, NULL, NULL, 1)")
    conn.execute("UPDATE t SET v = 3 WHERE id = 1")
    conn.execute("DELETE FROM t WHERE id = 2")
    assert table.actions() == "DIIU"
    assert table.differences() == []


@pytest.mark.parametrize(("role", "key"), [("origin", "PRIMARY KEY"), ("replica", "")])
def test_what_a_virtual_column_is_computed_from_may_be_renamed(conn18, admin_dsn, role, key):
    """Its expression was computed by old names: the writer failed, or it was computed from another column."""
    conn18.execute(f"CREATE TABLE items (id int {key}, n int, m int, twice int GENERATED ALWAYS AS (n * 2) VIRTUAL)")
    items = Captured(conn18, "items", ["id", "twice"])
    items.save()
    with servers.user_session(admin_dsn) as writer:
        writer.execute(f"SET session_replication_role = {role}")
        writer.execute("INSERT INTO items VALUES (1, 10, 0)")
        conn18.execute("ALTER TABLE items RENAME COLUMN n TO o")
        writer.execute("INSERT INTO items VALUES (2, 11, 0)")
        assert items.actions() == "IT"
        assert not is_whole(items)
        items = Captured(conn18, "items", ["id", "twice"])
        assert is_whole(items)
        items.save()
        conn18.execute("ALTER TABLE items RENAME COLUMN m TO n")
        assert is_whole(items)
        writer.execute("INSERT INTO items VALUES (3, 12, 0)")
        assert items.differences() == []
        conn18.execute("ALTER TABLE items RENAME COLUMN n TO m")
        conn18.execute("ALTER TABLE items RENAME COLUMN o TO n")
        assert not is_whole(items)


def test_a_writers_settings_change_nothing_of_a_table_with_a_key(conn, any_dsn):
    conn.execute("CREATE TABLE log (at timestamptz PRIMARY KEY, f float8, i interval)")
    conn.execute("CREATE TABLE entries (at timestamptz PRIMARY KEY REFERENCES log ON UPDATE CASCADE ON DELETE CASCADE)")
    conn.execute("INSERT INTO log VALUES ('2024-10-27 00:30Z', 0.1, '1 day')")
    conn.execute("INSERT INTO entries SELECT at FROM log")
    log, entries = Captured(conn, "log"), Captured(conn, "entries")
    with servers.user_session(any_dsn) as writer:
        writer.execute("SET extra_float_digits = -10; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'sql_standard'")
        writer.execute("SET TimeZone = 'Europe/Berlin'")
        for seen in (log, entries):
            seen.save()
            writer.execute("UPDATE log SET f = 0.1::float8 + 1e-16, i = '24 hours'")
            writer.execute("UPDATE log SET at = at + '1 hour'::interval")
            writer.execute("UPDATE log SET i = i")
            assert seen.differences() == []


def test_a_row_that_actions_change_twice_is_captured_as_what_is_left_of_it(conn):
    conn.execute("CREATE TABLE parents (id int PRIMARY KEY)")
    conn.execute("""
        CREATE TABLE links (id int PRIMARY KEY, a int REFERENCES parents ON UPDATE CASCADE,
                            b int REFERENCES parents ON UPDATE CASCADE)
    """)
    conn.execute("INSERT INTO parents VALUES (1), (2)")
    conn.execute("INSERT INTO links VALUES (1, 1, 2), (2, 2, 2)")
    links = Captured(conn, "links")
    links.save()
    conn.execute("UPDATE parents SET id = id + 10")
    assert set(links.actions()) == {"D", "I"}
    assert links.differences() == []


def test_what_is_made_of_a_row_that_actions_change_twice_is_right(pt, conn):
    conn.execute("CREATE TABLE parents (id int PRIMARY KEY)")
    conn.execute("""
        CREATE TABLE links (id int PRIMARY KEY, a int REFERENCES parents ON UPDATE CASCADE,
                            b int REFERENCES parents ON UPDATE CASCADE, note text)
    """)
    conn.execute("INSERT INTO parents VALUES (1), (2), (3)")
    conn.execute("INSERT INTO links VALUES (1, 1, 2, 'x'), (2, 2, 2, 'y'), (3, 1, NULL, NULL)")
    conn.execute("INSERT INTO links SELECT g, 3, 3, 'z' FROM generate_series(10, 400) AS g")
    queries = {
        "rows": "SELECT id, a, b, note FROM links",
        "sums": "SELECT a, count(*) AS n, sum(b) AS s FROM links GROUP BY a",
    }
    for mode in ("DIFFERENTIAL", "IMMEDIATE"):
        for name, query in queries.items():
            pt.create_stream_table(f"{name}_{mode.lower()}", query, refresh_mode=mode)
    for statement in ("UPDATE parents SET id = id + 10 WHERE id < 3", "UPDATE parents SET id = id - 10 WHERE id = 12"):
        conn.execute(statement)
        for mode in ("DIFFERENTIAL", "IMMEDIATE"):
            for name, query in queries.items():
                table = f"{name}_{mode.lower()}"
                if mode == "DIFFERENTIAL":
                    assert pt.refresh_stream_table(table).action == "DIFFERENTIAL"
                rows = ", ".join(["id, a, b, note" if name == "rows" else "a, n, s"])
                for one, other in ((f"SELECT {rows} FROM {table}", query), (query, f"SELECT {rows} FROM {table}")):
                    assert conn.execute(f"{one} EXCEPT ALL {other}").fetchall() == [], (table, statement)


_NAMES = ("v", "w", "x", "y")
_ALTER = st.one_of(
    st.builds("ALTER TABLE t RENAME COLUMN {} TO {}".format, st.sampled_from(_NAMES), st.sampled_from(_NAMES)),
    st.builds(
        "ALTER TABLE t ALTER COLUMN {0} TYPE {1} USING {0}::text::{1}".format,
        st.sampled_from(_NAMES),
        st.sampled_from(["int", "bigint", "text", "whole"]),
    ),
    st.builds("ALTER TABLE t DROP COLUMN {}".format, st.sampled_from(_NAMES)),
    st.builds("ALTER TABLE t ADD COLUMN {} int DEFAULT {}".format, st.sampled_from(_NAMES), st.integers(1, 3)),
    st.builds("ALTER TABLE t DROP COLUMN {0}, ADD COLUMN {0} int".format, st.sampled_from(_NAMES)),
)
_NUMBER = st.integers(1, 20)
#: `{}` is a column that there is when the statement runs.
_WRITE = st.one_of(
    st.builds("INSERT INTO t (id) SELECT coalesce(max(id), 0) + {} FROM t".format, _NUMBER),
    st.builds("UPDATE t SET {{}} = '{}' WHERE id >= {}".format, _NUMBER, _NUMBER),
    st.builds("DELETE FROM t WHERE id = {}".format, _NUMBER),
    st.builds("UPDATE t SET id = -id WHERE id = {}".format, _NUMBER),
)
_WRITES_ONE = st.tuples(st.just("write"), _WRITE, st.integers(0, 3))
_STEPS = st.one_of(
    st.lists(_WRITES_ONE, min_size=1, max_size=2),
    st.lists(st.tuples(st.just("alter"), _ALTER, st.booleans()), min_size=1, max_size=2),
    # A snapshot from before the owner's change, and one statement after it.
    st.tuples(
        st.tuples(st.just("snapshot"), st.just(""), st.just(0)),
        st.tuples(st.just("alter"), _ALTER, st.just(False)),
        _WRITES_ONE,
    ),
)


def test_no_history_of_alters_and_writes_is_captured_wrong_and_believed(conn, any_dsn):
    """Whatever is believed is true, a mark of the unknown is never believed, and no writer ever fails."""
    conn.execute("CREATE DOMAIN whole AS int")

    @settings(
        max_examples=int(os.environ.get("PGTRICKLE_EXAMPLES", "24")) // 2,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(histories=st.lists(_STEPS, min_size=1, max_size=4))
    def holds(histories):
        conn.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, v int, w text)")
        conn.execute("INSERT INTO t SELECT g, g, g FROM generate_series(1, 20) AS g")
        table = Captured(conn, "t", ["id", "v"])
        table.save()
        with servers.user_session(any_dsn) as writer:
            for _ in range(_MANY):
                writer.execute("UPDATE t SET v = v + 1 WHERE id = 1")
            is_holding = False  # a lock, for which the owner would wait
            for kind, said, choice in chain.from_iterable(histories):
                in_transaction = writer.info.transaction_status != TransactionStatus.IDLE
                if kind == "snapshot":
                    if not in_transaction:
                        writer.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                        writer.execute("SELECT count(*) FROM pg_class")
                        is_holding = False
                elif kind == "alter":
                    owner = writer if choice else conn
                    if owner is conn and in_transaction and is_holding:
                        writer.execute("COMMIT")
                    with suppress(psycopg.Error), owner.transaction():
                        owner.execute(said)
                    is_holding = is_holding or owner is writer
                else:
                    there = writer.execute("SELECT * FROM t LIMIT 0").description or []
                    names = [column.name for column in there if column.name != "id"] or ["id"]
                    with suppress(errors.SerializationFailure, errors.UniqueViolation), writer.transaction():
                        writer.execute(said.format(names[choice % len(names)]))
                    is_holding = True
            if writer.info.transaction_status != TransactionStatus.IDLE:
                writer.execute("COMMIT")
        actions = "".join(row[0] for row in conn.execute(f"SELECT action FROM {table.buffer.quoted}").fetchall())
        if is_whole(table):
            assert "T" not in actions
            assert table.differences() == []

    holds()
