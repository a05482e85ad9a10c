"""Creating stream tables: what is there afterwards, and what is not when it fails."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.declare.definition import analysed, checked
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from airflow_provider_pgtrickle.engine.errors import (
    NotDifferentiable,
    PermissionFault,
    PgTrickleError,
    PgTrickleWarning,
    RefreshError,
    StreamTableExists,
    SyntaxFault,
    UsageError,
)
from airflow_provider_pgtrickle.engine.names import QualifiedName
from tests.answers import only
from tests.database.declare.conftest import NO_TRACES, TOTALS, difference, traces


def test_a_new_stream_table_equals_its_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    table = pt.create_stream_table("order_totals", TOTALS, schedule="5m")
    assert (table.status, table.is_populated, table.schedule) == ("ACTIVE", True, "5m")
    assert difference(conn, "order_totals", TOTALS) == 0


def test_its_columns_are_typed_as_the_querys(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TYPE mood AS ENUM ('glad', 'sad')")
    conn.execute(
        'CREATE TABLE t (id int PRIMARY KEY, v varchar(7), n numeric(8,3), c char(3), m mood, a int[], "U v" uuid,'
        ' k text COLLATE "C")'
    )
    query = 'SELECT id, v, n, c, m, a, "U v", k, n * 2 AS twice, now() - now() AS gap FROM t'
    with pytest.warns(PgTrickleWarning):
        pt.create_stream_table("typed", query)
    described = """
        SELECT a.attname, format_type(atttypid, atttypmod), attcollation FROM pg_attribute a
        WHERE attrelid = %s::regclass AND attnum > 0 AND attname NOT LIKE '\\_\\_pgt%%' ORDER BY attnum
    """
    conn.execute(f"CREATE VIEW plain AS {query}")
    expected = conn.execute(described, ("plain",)).fetchall()
    assert conn.execute(described, ("typed",)).fetchall() == expected


def test_it_has_an_indexed_row_id_and_refuses_writes(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    first = conn.execute(
        "SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 'order_totals'::regclass AND attnum = 1"
    ).fetchone()
    assert first == ("__pgt_row_id", True)
    indexed = conn.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'order_totals'").fetchall()
    assert any("(__pgt_row_id)" in definition for (definition,) in indexed)
    for statement in ("DELETE FROM order_totals", "TRUNCATE order_totals", "UPDATE order_totals SET total = 0"):
        with pytest.raises(psycopg.Error, match="order_totals"):
            conn.execute(statement)


def test_without_initialize_it_waits_empty_for_its_first_refresh(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    table = pt.create_stream_table("order_totals", TOTALS, initialize=False)
    assert (table.status, table.is_populated) == ("INITIALIZING", False)
    assert conn.execute("SELECT count(*) FROM order_totals").fetchone() == (0,)
    assert pt.refresh_stream_table("order_totals").action == "FULL"
    assert difference(conn, "order_totals", TOTALS) == 0


def test_what_it_reads_is_recorded_and_captured(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE VIEW big AS SELECT * FROM orders WHERE amount > 10")
    pt.create_stream_table(
        "big_spenders", "SELECT c.name, b.amount FROM big b JOIN customers c ON c.id = b.customer_id"
    )
    found = conn.execute(
        "SELECT source_name, source_type, cdc_mode FROM pgtrickle.pgt_dependencies"
        " WHERE source_type = 'TABLE' ORDER BY 1"
    ).fetchall()
    assert found == [("customers", "TABLE", "TRIGGER"), ("orders", "TABLE", "TRIGGER")]
    used = dict(conn.execute("SELECT source_name, columns FROM pgtrickle.pgt_change_tracking").fetchall())
    assert set(used["customers"]) == {"id", "name"}
    assert "note" not in used["orders"]


def test_a_change_made_while_it_is_created_is_not_lost(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS, initialize=False)
    conn.execute("INSERT INTO orders VALUES (1000, 1, 5, '2026-03-01')")
    pt.refresh_stream_table("order_totals")
    conn.execute("UPDATE orders SET amount = amount + 1 WHERE id < 5")
    pt.refresh_stream_table("order_totals")
    assert difference(conn, "order_totals", TOTALS) == 0


def test_names_may_be_quoted_and_qualified(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute('CREATE SCHEMA "My shop"')
    table = pt.create_stream_table('"My shop"."Order totals"', TOTALS)
    assert table.qualified == QualifiedName("My shop", "Order totals")
    assert difference(conn, '"My shop"."Order totals"', TOTALS) == 0


def test_a_stream_table_can_read_a_stream_table(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    pt.create_stream_table("big_customers", "SELECT * FROM order_totals WHERE total > 100")
    number = "SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'order_totals'"
    assert f"changes_pgt_{only(conn.execute(number))[0]}" in traces(conn)["relations"]
    assert difference(conn, "big_customers", "SELECT customer_id, total FROM order_totals WHERE total > 100") == 0


@pytest.mark.parametrize(
    ("partition_by", "strategy", "partitions"), [("placed", "r", 1), ("LIST (placed)", "l", 1), ("HASH (id)", "h", 4)]
)
def test_it_can_be_partitioned(
    pt: PgTrickle, conn: psycopg.Connection[Any], partition_by: str, strategy: str, partitions: int
) -> None:
    query = "SELECT id, placed FROM orders"
    if partition_by.startswith("HASH"):
        pt.create_stream_table("parted", query, partition_by=partition_by)
    else:
        with pytest.warns(PgTrickleWarning, match=r"has only a DEFAULT partition until you add others"):
            pt.create_stream_table("parted", query, partition_by=partition_by)
    found = conn.execute("SELECT partstrat FROM pg_partitioned_table WHERE partrelid = 'parted'::regclass").fetchone()
    assert found == (strategy,)
    children = conn.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'parted'::regclass")
    names = [name for (name,) in children]
    assert len(names) == partitions
    assert difference(conn, "parted", query) == 0
    with pytest.raises(psycopg.Error):
        conn.execute(f"DELETE FROM {names[0]}")
    pt.drop_stream_table("parted")
    assert traces(conn) == NO_TRACES


@pytest.mark.parametrize(
    ("name", "query", "options", "error", "sentence"),
    [
        ("t", "SELEC 1", {}, SyntaxFault, "line 1, column 1"),
        ("t", "SELECT a\nFROM missing", {}, SyntaxFault, "line 2, column 6"),
        ("t", "SELECT id, id FROM orders", {}, PgTrickleError, "AS"),
        ("t", "SELECT id FROM orders", {"schedule": "1s"}, UsageError, "shorter than the minimum"),
        (
            "t",
            "SELECT id FROM orders",
            {"refresh_mode": "IMMEDIATE", "schedule": "1m"},
            UsageError,
            "use refresh_mode AUTO",
        ),
        ("t", "SELECT id FROM orders", {"refresh_mode": "IMMEDIATE", "cdc_mode": "wal"}, UsageError, "trigger"),
        ("t", "SELECT id FROM orders", {"cdc_mode": "wal"}, UsageError, "REPLICATION"),
        ("t", "SELECT id FROM orders", {"partition_by": "nothing"}, UsageError, "no column of the query"),
        ("t", "SELECT id, random() AS r FROM orders", {"refresh_mode": "DIFFERENTIAL"}, NotDifferentiable, "AUTO"),
        ("orders", "SELECT id FROM customers", {}, UsageError, "A relation of that name"),
        ("nowhere.t", "SELECT id FROM orders", {}, UsageError, "no schema 'nowhere'"),
        ("x" * 64, "SELECT id FROM orders", {}, UsageError, "longer than 63 bytes"),
        ("it's", "SELECT id FROM orders", {}, UsageError, "quote"),
    ],
)
def test_what_is_refused_is_one_sentence_and_leaves_nothing(
    pt: PgTrickle,
    conn: psycopg.Connection[Any],
    name: str,
    query: str,
    options: dict[str, Any],
    error: type[PgTrickleError],
    sentence: str,
) -> None:
    with pytest.raises(error) as refused:
        pt.create_stream_table(name, query, **options)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert traces(conn) == NO_TRACES


def test_a_name_is_taken_once(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    before = traces(conn)
    with pytest.raises(StreamTableExists, match="create_or_replace"):
        pt.create_stream_table("order_totals", "SELECT id FROM customers")
    assert traces(conn) == before


def test_a_first_refresh_that_fails_leaves_nothing(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(RefreshError, match=r"public\.odd.*[Dd]ivision by zero"):
        pt.create_stream_table("odd", "SELECT id, 1 / (id - 7) AS x FROM orders")
    assert traces(conn) == NO_TRACES


def test_a_first_refresh_that_is_interrupted_leaves_nothing(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    with PgTrickle(dsn, executor=interrupted) as client, pytest.raises(KeyboardInterrupt):
        client.create_stream_table("order_totals", TOTALS)
    assert traces(conn) == NO_TRACES


def test_a_source_that_may_not_have_triggers_leaves_nothing(
    pt: PgTrickle, conn: psycopg.Connection[Any], admin_dsn: str
) -> None:
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("CREATE TABLE foreign_orders (id int PRIMARY KEY)")
        admin.execute("GRANT SELECT ON foreign_orders TO PUBLIC")
    with pytest.raises(PermissionFault, match="foreign_orders"):
        pt.create_stream_table("t", "SELECT o.id FROM foreign_orders f JOIN orders o ON o.id = f.id")
    conn.execute("SELECT 1")
    found = traces(conn)
    assert [name for name in found["relations"] if name != "foreign_orders"] == []
    assert {**found, "relations": []} == NO_TRACES


def test_a_materialized_view_can_only_be_read_in_full(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE MATERIALIZED VIEW snap AS SELECT id, name FROM customers")
    with pytest.raises(NotDifferentiable, match="FULL"):
        pt.create_stream_table("t", "SELECT name FROM snap", refresh_mode="DIFFERENTIAL")
    with pytest.warns(PgTrickleWarning, match="FULL"):
        table = pt.create_stream_table("t", "SELECT name FROM snap")
    assert not table.differentiable
    assert difference(conn, "t", "SELECT name FROM snap") == 0


def test_if_not_exists_leaves_alone_what_is_there(pt: PgTrickle) -> None:
    first = pt.create_stream_table_if_not_exists("order_totals", TOTALS)
    second = pt.create_stream_table_if_not_exists("order_totals", "SELECT id FROM customers", schedule="1h")
    assert (second.id, second.defining_query, second.schedule) == (first.id, first.defining_query, None)


@pytest.mark.empty
def test_the_catalog_has_to_be_installed_first(dsn: str) -> None:
    with PgTrickle(dsn) as client, pytest.raises(UsageError, match="pgtrickle install"):
        client.create_stream_table("t", "SELECT 1 AS a")


def test_the_record_tells_what_was_declared(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", f"{TOTALS}  -- by customer", tier="warm", differential_max_change_ratio=0.5)
    table = records.get(conn, QualifiedName("public", "order_totals"))
    assert table.original_query.endswith("-- by customer")
    assert "public.orders" in table.defining_query or "FROM orders" in table.defining_query
    assert (table.tier, table.differential_max_change_ratio, table.requested_cdc_mode) == ("warm", 0.5, None)
    assert [column.name for column in table.visible] == ["customer_id", "total"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, EXISTS (SELECT * FROM bare) AS e FROM customers",
        "SELECT id, x.n FROM customers LEFT JOIN (SELECT 1 AS n FROM bare) x ON x.n = id",
        "SELECT count(*) AS n FROM bare",
    ],
)
def test_a_source_without_columns(pt: PgTrickle, conn: psycopg.Connection[Any], query: str) -> None:
    conn.execute("CREATE TABLE bare ()")
    pt.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL", differential_max_change_ratio=0.0)
    for change in ("INSERT INTO bare DEFAULT VALUES", "INSERT INTO bare DEFAULT VALUES", "DELETE FROM bare"):
        conn.execute(change)
        assert pt.refresh_stream_table("kept").action == "DIFFERENTIAL"
        assert difference(conn, "kept", query) == 0


def test_columns_that_only_hash_beside_columns_that_only_sort(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """PostgreSQL can't group by both at once."""
    conn.execute("CREATE TABLE odd (hashes xid, sorts bit(2), v int)")
    conn.execute("INSERT INTO odd VALUES ('1', B'01', 1), ('1', B'01', 2), ('2', B'10', 3), (NULL, NULL, 4)")
    plain, grouped = (
        "SELECT hashes, sorts FROM odd",
        "SELECT hashes, count(*) AS n, sum(v) AS s FROM odd GROUP BY hashes",
    )
    for name, query in (("plain", plain), ("grouped", grouped)):
        pt.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", differential_max_change_ratio=0.0)
    for change in ("INSERT INTO odd VALUES ('2', B'10', 5), ('3', NULL, 6)", "DELETE FROM odd WHERE v IN (1, 4)"):
        conn.execute(change)
        for name, query in (("plain", plain), ("grouped", grouped)):
            assert pt.refresh_stream_table(name).action == "DIFFERENTIAL"
            image = "SELECT array_agg(x ORDER BY x) FROM (SELECT ROW({})::text AS x FROM {}) AS rows"
            columns = "hashes::text, sorts" if name == "plain" else "hashes::text, n, s"
            stored, wanted = (conn.execute(image.format(columns, t)).fetchone() for t in (name, f"({query}) AS q"))
            assert stored == wanted


def test_rows_that_postgresql_does_not_take_are_a_refusal(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """Whatever it objects to the text of the stored rows: here a column is gone by then."""
    conn.execute("CREATE TABLE t (g int, v int)")
    probed, view = analysed(conn, "SELECT g, sum(v) AS s FROM public.t GROUP BY g")
    assert checked(conn, view, probed) is view
    conn.execute("ALTER TABLE t DROP v")
    refusal = checked(conn, view, probed).refusal
    assert refusal is not None
    assert refusal.reason is Reason.UNPLANNABLE
    assert refusal.detail.endswith(".v does not exist")


@pytest.mark.slow
def test_a_difference_that_postgresql_refuses_is_none(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """Each variance is kept by three hidden columns, and PostgreSQL takes 1664: the declaration failed with that."""
    conn.execute("CREATE TABLE t (g int, v int); INSERT INTO t VALUES (1, 1), (1, 2)")
    query = "SELECT g, " + ", ".join(f"variance(v + {n}) AS x{n}" for n in range(420)) + " FROM t GROUP BY g"
    refused = r"PostgreSQL refuses the statement that computes the change \(.* at most"
    with pytest.raises(NotDifferentiable, match=refused):
        pt.create_stream_table("wide", query, refresh_mode="DIFFERENTIAL")
    with pytest.warns(PgTrickleWarning, match=f"Every refresh will run FULL: {refused}"):
        pt.create_stream_table("wide", query)
    assert difference(conn, "wide", query) == 0
