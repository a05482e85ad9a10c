"""Tables of every shape are captured: partitioned, inherited, keyless, generated, oddly named, cascading."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from tests import servers
from tests.database.capture.conftest import Captured, source

#: All of it holds whether triggers capture or the WAL is pumped.
pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def partitioned(conn):
    conn.execute("CREATE TABLE sales (id int, day int, amount numeric, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)")
    conn.execute("CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10)")
    conn.execute("CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id)")
    # Its columns stand in another order than the parent's.
    conn.execute("CREATE TABLE sales_2a (amount numeric, day int NOT NULL, id int NOT NULL, PRIMARY KEY (id, day))")
    conn.execute("ALTER TABLE sales_2 ATTACH PARTITION sales_2a FOR VALUES IN (1, 2, 3)")
    conn.execute("CREATE TABLE sales_2b PARTITION OF sales_2 DEFAULT")
    conn.execute("INSERT INTO sales SELECT g, g * 3, g FROM generate_series(1, 6) AS g")
    return conn


STATEMENTS = [
    ("INSERT INTO sales VALUES (20, 1, 1), (1, 11, 1), (21, 12, 1)", "III"),
    ("INSERT INTO sales_1 VALUES (20, 1, 1)", "I"),
    ("INSERT INTO sales_2 VALUES (1, 11, 1), (21, 12, 1)", "II"),
    ("INSERT INTO sales_2a VALUES (5, 11, 1)", "I"),
    ("UPDATE sales SET amount = amount + 1", "UUUUUU"),
    ("UPDATE sales_1 SET amount = amount + 1 WHERE id = 1", "U"),
    ("UPDATE sales SET day = 15 WHERE id = 1", "DI"),  # moves to another partition
    ("UPDATE sales_2 SET id = 3 WHERE id = 5", "DI"),
    ("DELETE FROM sales WHERE id IN (1, 5)", "DD"),
    ("DELETE FROM sales_2b", "DDD"),
]


@pytest.mark.parametrize(("statement", "actions"), STATEMENTS)
def test_partitions_are_captured_whichever_relation_the_statement_names(partitioned, statement, actions):
    sales = Captured(partitioned, "sales")
    sales.save()
    partitioned.execute(statement)
    assert sales.actions() == actions
    assert sales.differences() == []


def test_a_merge_that_inserts_before_it_updates_is_captured_row_by_row(partitioned):
    sales = Captured(partitioned, "sales")
    sales.save()
    partitioned.execute(
        "MERGE INTO sales USING (VALUES (20, 6), (2, 6)) AS s (id, day) ON sales.id = s.id"
        " WHEN MATCHED THEN UPDATE SET amount = NULL WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.day, 1)"
    )
    assert sorted(sales.actions()) == ["I", "U"]
    assert sales.differences() == []


@pytest.mark.parametrize(("statement", "actions"), STATEMENTS)
def test_applied_rows_of_partitions_are_captured_once(partitioned, admin_of, statement, actions):
    sales = Captured(partitioned, "sales")
    sales.save()
    admin_of.execute("SET session_replication_role = replica")
    admin_of.execute(statement)
    assert sales.actions() == actions
    assert sales.differences() == []


@pytest.mark.parametrize(("statement", "_actions"), STATEMENTS)
def test_a_partition_by_itself_sees_what_statements_on_its_parent_do(partitioned, statement, _actions):
    part = Captured(partitioned, "sales_2")
    part.save()
    partitioned.execute(statement)
    assert part.differences() == []
    partitioned.execute("UPDATE sales SET day = 15 WHERE id = 2")
    assert part.differences() == []


@pytest.mark.parametrize("table", ["sales", "sales_1", "sales_2a"])
def test_truncating_parent_or_partition_leaves_a_marker(partitioned, table):
    sales = Captured(partitioned, "sales")
    partitioned.execute(f"TRUNCATE {table}")
    assert set(sales.actions()) == {"T"}


def test_a_partition_attached_later_is_captured_after_tracking_again(partitioned):
    sales = Captured(partitioned, "sales")
    partitioned.execute("CREATE TABLE sales_3 PARTITION OF sales FOR VALUES FROM (20) TO (30)")
    sales = Captured(partitioned, "sales")
    sales.save()
    partitioned.execute("INSERT INTO sales_3 VALUES (1, 21, 1)")
    partitioned.execute("INSERT INTO sales VALUES (2, 21, 1)")
    assert sales.actions() == "II"


def test_a_detached_partition_is_left_alone_after_tracking_again(partitioned):
    Captured(partitioned, "sales")
    partitioned.execute("ALTER TABLE sales DETACH PARTITION sales_1")
    sales = Captured(partitioned, "sales")
    sales.save()
    partitioned.execute("DELETE FROM sales_1")
    assert sales.changes() == []
    assert partitioned.execute("SELECT FROM pg_trigger WHERE tgrelid = 'sales_1'::regclass").fetchall() == []


def test_children_by_inheritance_are_captured(conn):
    conn.execute("CREATE TABLE animals (id int PRIMARY KEY, name text)")
    conn.execute("CREATE TABLE cats (lives int) INHERITS (animals)")
    conn.execute("INSERT INTO animals VALUES (1, 'worm')")
    conn.execute("INSERT INTO cats VALUES (1, 'tom', 9), (2, 'kit', 7)")
    animals = Captured(conn, "animals")
    animals.save()
    conn.execute("UPDATE animals SET name = name || '!'")
    conn.execute("UPDATE cats SET lives = lives - 1")
    conn.execute("INSERT INTO cats VALUES (3, 'leo', 9)")
    conn.execute("DELETE FROM animals WHERE id = 1")
    assert animals.differences() == []


def test_exact_duplicates_without_a_key_are_counted(conn):
    conn.execute("CREATE TABLE log (line text, n numeric)")
    conn.execute("INSERT INTO log VALUES ('a', 1), ('a', 1), ('a', 1.0), (NULL, NULL), (NULL, NULL)")
    log = Captured(conn, "log")
    log.save()
    conn.execute("DELETE FROM log WHERE ctid = '(0,1)'")
    assert log.actions() == "D"
    conn.execute("UPDATE log SET line = 'b' WHERE ctid = '(0,2)'")
    assert log.actions() == "DDI"
    conn.execute("UPDATE log SET n = 1.0 WHERE line = 'a'")
    assert log.actions() == "DDI"  # it was 1.0 already
    conn.execute("UPDATE log SET n = 1 WHERE line = 'a'")
    assert log.actions() == "DDDII"
    conn.execute("INSERT INTO log VALUES (NULL, NULL), ('b', 1)")
    assert log.differences() == []


def test_an_update_that_swaps_equal_rows_writes_nothing(conn):
    conn.execute("CREATE TABLE log (n int)")
    conn.execute("INSERT INTO log VALUES (1), (2), (2)")
    log = Captured(conn, "log")
    log.save()
    conn.execute("UPDATE log SET n = CASE WHEN n = 1 THEN 2 WHEN ctid = '(0,2)' THEN 1 ELSE n END")
    assert log.changes() == []


def test_a_keyless_table_without_referenced_columns_counts_its_rows(conn):
    conn.execute("CREATE TABLE log (n int)")
    log = Captured(conn, "log", [])
    conn.execute("INSERT INTO log VALUES (1), (2), (3)")
    conn.execute("UPDATE log SET n = n + 1")
    conn.execute("DELETE FROM log WHERE n = 2")
    assert log.actions() == "DIII"


def test_generated_and_identity_columns_are_captured(conn):
    conn.execute("""
        CREATE TABLE items (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, price numeric, n int,
            total numeric GENERATED ALWAYS AS (price * n) STORED, at serial)
    """)
    items = Captured(conn, "items")
    items.save()
    conn.execute("INSERT INTO items (price, n) VALUES (1.5, 2), (NULL, 1)")
    conn.execute("UPDATE items SET n = 4 WHERE id = 1")
    assert items.changes()[-1] == ("U", "1", "1.5", "4", "6.0", "1", "1", "1.5", "2", "3.0", "1")
    assert items.differences() == []


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_virtual_columns_are_computed(conn18, admin_dsn, role, key):
    conn18.execute(f"CREATE TABLE items (id int {key}, n int, twice int GENERATED ALWAYS AS (n * 2) VIRTUAL)")
    items = Captured(conn18, "items", ["id", "twice"])
    items.save()
    with servers.user_session(admin_dsn) as writer:
        writer.execute(f"SET session_replication_role = {role}")
        writer.execute("INSERT INTO items VALUES (1, 10), (2, NULL)")
        writer.execute("UPDATE items SET n = 11 WHERE id = 1")
        writer.execute("DELETE FROM items WHERE id = 2")
    assert ("I", "1", "20", None, None) in items.changes()
    assert items.differences() == []


def test_names_that_need_quotes_are_captured(conn):
    long = "ä" * 31
    conn.execute('CREATE SCHEMA "My ""Schema"')
    conn.execute(f"""
        CREATE TABLE "My ""Schema"."Table; DROP" (
            "Id %s" int PRIMARY KEY, "select" text, "a""b'c" text, {long} text, {long[:-1]}x text,
            xid int, lsn int, action int, o int, n int, capture int)
    """)
    table = Captured(conn, '"My ""Schema"."Table; DROP"')
    table.save()
    conn.execute("""
        INSERT INTO "My ""Schema"."Table; DROP"
        VALUES (1, 'a', 'b', 'c', 'd', 1, 2, 3, 4, 5, 6), (2, 'x', '', '', '', 1, 2, 3, 4, 5, 6)
    """)
    conn.execute(f"""UPDATE "My ""Schema"."Table; DROP" SET {long} = 'new', xid = 0 WHERE "Id %s" = 1""".encode())
    conn.execute("""DELETE FROM "My ""Schema"."Table; DROP" WHERE "select" = 'x'""")
    assert table.actions() == "DIIU"
    assert table.differences() == []


def test_cascades_are_captured(conn):
    conn.execute("CREATE TABLE parents (id int PRIMARY KEY)")
    conn.execute("""
        CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE)
    """)
    conn.execute("INSERT INTO parents SELECT generate_series(1, 4)")
    conn.execute("INSERT INTO children SELECT g, 1 + g % 4 FROM generate_series(1, 12) AS g")
    children = Captured(conn, "children")
    children.save()
    conn.execute("DELETE FROM parents WHERE id <= 2")
    assert children.actions() == "D" * 6
    conn.execute("UPDATE parents SET id = id + 10")
    assert children.actions() == "D" * 6 + "U" * 6
    assert children.differences() == []


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_row_that_several_foreign_keys_update_at_once_is_exact(conn, key):
    conn.execute("CREATE TABLE parents (id int PRIMARY KEY)")
    conn.execute(f"""
        CREATE TABLE links (
            id int {key}, a int REFERENCES parents ON UPDATE CASCADE ON DELETE SET NULL,
            b int REFERENCES parents ON UPDATE CASCADE ON DELETE SET NULL)
    """)
    conn.execute("INSERT INTO parents SELECT generate_series(1, 3)")
    conn.execute("INSERT INTO links VALUES (1, 1, 2), (2, 2, 3), (3, 3, 3), (4, 1, NULL)")
    links = Captured(conn, "links")
    links.save()
    conn.execute("UPDATE parents SET id = id + 10")
    assert links.differences() == []
    conn.execute("DELETE FROM parents WHERE id <> 13")
    assert links.differences() == []


def test_a_key_made_of_cascading_foreign_keys_is_exact(conn):
    conn.execute("CREATE TABLE parents (id int PRIMARY KEY)")
    conn.execute("""
        CREATE TABLE links (
            a int REFERENCES parents ON UPDATE CASCADE, b int REFERENCES parents ON UPDATE CASCADE, PRIMARY KEY (a, b))
    """)
    conn.execute("INSERT INTO parents SELECT generate_series(1, 3)")
    conn.execute("INSERT INTO links SELECT a.id, b.id FROM parents a, parents b")
    links = Captured(conn, "links")
    links.save()
    conn.execute("UPDATE parents SET id = id + 10")
    assert links.differences() == []


def test_a_view_cannot_be_captured(conn):
    conn.execute("CREATE MATERIALIZED VIEW mv AS SELECT 1 AS a")
    with pytest.raises(UsageError, match="can't be captured"):
        Captured(conn, "mv")


def test_a_table_with_a_foreign_partition_counts_as_foreign(conn, admin_of):
    admin_of.execute("CREATE FOREIGN DATA WRAPPER nowhere")
    admin_of.execute("CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere")
    admin_of.execute("CREATE TABLE half (id int) PARTITION BY LIST (id)")
    admin_of.execute("CREATE FOREIGN TABLE far PARTITION OF half FOR VALUES IN (1) SERVER nowhere")
    assert source(conn, "half").kind == "FOREIGN_TABLE"


def test_an_unlogged_table_is_not_captured_for_a_crash_empties_it(conn):
    conn.execute("CREATE UNLOGGED TABLE fast (id int)")
    with pytest.raises(UsageError, match="can't be captured"):
        Captured(conn, "fast")


def test_an_unlogged_partition_makes_the_whole_unlogged(conn):
    conn.execute("CREATE TABLE parts (id int) PARTITION BY LIST (id)")
    conn.execute("CREATE UNLOGGED TABLE part_1 PARTITION OF parts FOR VALUES IN (1)")
    assert source(conn, "parts").kind == "UNLOGGED_TABLE"
