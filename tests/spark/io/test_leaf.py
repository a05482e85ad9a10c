"""Reads see one instant, whole and unchanged, on both kinds of session."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.engine.errors import ConnectionFault, PermissionFault, RefreshError, TransientFault
from airflow_provider_pgtrickle.engine.refresh.slices import ctid_slices
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, read
from airflow_provider_pgtrickle.engine.spark.stage import collect

#: One literal of each family that text must carry, with its extremes.
VALUES = {
    "smallint": ["-32768", "32767"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "numeric": ["0.00", "-12345678901234567890123456789012345678901234567890.123456789", "NaN", "Infinity"],
    "double precision": ["-0", "NaN", "-Infinity", "1.7976931348623157e+308", "5e-324", "0.1"],
    "real": ["3.4028235e+38", "0.1"],
    "boolean": ["true", "false"],
    "date": ["4713-01-01 BC", "infinity", "5874897-12-31"],
    "timestamp": ["-infinity", "294276-12-31 23:59:59.999999", "0005-02-28 BC"],
    "timestamptz": ["2024-03-31 02:30:00.123456+02", "0001-12-31 23:59:59 BC"],
    "time": ["24:00:00", "00:00:00.000001"],
    "timetz": ["12:00:00+15:59"],
    "interval": ["1 year -2 mons 3 days -04:05:06.789", "178000000 years"],
    "text": [
        "",
        " ",
        "NULL",
        "\\N",
        "\\.",
        'q"q',
        "it's",
        "a,b",
        "a\nb\r\nc",
        "\t\x01\x7f",
        "é漢😀",
        "e\u0301",
        "${x}",
    ],
    "char(5)": ["ab", ""],
    "varchar(3)": ["abc"],
    "bytea": ["\\x", "\\x00ff"],
    "uuid": ["00000000-0000-0000-0000-000000000000"],
    "json": ['{"a": [1, null, "x\\ny"],  "a": 2}'],
    "jsonb": ['{"b": 1.10, "a": null}'],
    "integer[]": ["{}", "{1,NULL,3}", "[2:3]={7,8}"],
    "text[]": ['{"",NULL,"NULL","a\\"b"}'],
    "int4range": ["empty", "[1,)"],
    "nummultirange": ["{[1,2),(3,)}"],
    "inet": ["::1/64", "10.0.0.1"],
    "macaddr": ["08:00:2b:01:02:03"],
    "bit varying": ["", "101"],
    "money": ["-$92,233,720,368,547,758.08"],
    "point": ["(1,-0)"],
    "tsvector": ["'a':1A 'b c':2"],
    "pg_lsn": ["FFFFFFFF/FFFFFFFF"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_arrives_as_postgresql_writes_it(kind, any_spark, conn, snapshot_now):
    conn.execute(sql.SQL("CREATE TABLE t (n int, v {})").format(sql.SQL(kind)))
    for n, value in enumerate([*VALUES[kind], None]):
        conn.execute(sql.SQL("INSERT INTO t VALUES (%s, %s::text::{})").format(sql.SQL(kind)), [n, value])
    query = "SELECT n, v::text AS v FROM public.t ORDER BY n"
    with snapshot_now() as snapshot:
        arrived = collect(read(any_spark, snapshot, Leaf(query))).to_pylist()
    assert [(row["n"], row["v"]) for row in arrived] == conn.execute(query).fetchall()


def test_rows_written_after_the_snapshot_are_invisible_in_every_slice(any_spark, conn, snapshot_now):
    conn.execute("CREATE TABLE t (id int, v text)")
    conn.execute("INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series(1, 4000) n")
    with snapshot_now() as snapshot:
        conn.execute("INSERT INTO t SELECT n, 'late' FROM generate_series(4001, 9000) n")
        conn.execute("UPDATE t SET v = 'late' WHERE id % 3 = 0")
        conn.execute("DELETE FROM t WHERE id % 5 = 0")
        where = ctid_slices("public", "t", 120, 4000, Settings(read_partition_rows=1000))
        slices = tuple(f"SELECT id, v FROM public.t WHERE {fragment}" for fragment in where)
        assert len(slices) == 4
        for text in slices:
            values = collect(read(any_spark, snapshot, Leaf(text))).column("v").to_pylist()
            assert values
            assert "late" not in values
        whole = collect(read(any_spark, snapshot, Leaf("SELECT id, v FROM public.t", slices)))
    assert sorted(whole.column("id").to_pylist()) == list(range(1, 4001))


def test_a_reader_lives_in_the_pinned_settings_and_cannot_write(any_spark, conn, snapshot_now):
    settings = "SELECT current_setting('TimeZone') || current_setting('IntervalStyle') AS a,"
    settings += " current_setting('transaction_isolation') || current_setting('transaction_read_only') AS b"
    with snapshot_now() as snapshot:
        (row,) = collect(read(any_spark, snapshot, Leaf(settings))).to_pylist()
    assert row == {"a": "UTCpostgres", "b": "repeatable readon"}


def test_question_marks_in_operators_strings_and_names_are_left_alone(any_spark, conn, snapshot_now):
    query = """SELECT (j ? 'a?')::text AS "x?", (j ?| ARRAY['z'])::text AS b, '?''?' AS c, $q$?$q$ AS d, E'\\'?' AS e
               FROM (SELECT '{"a?": 1}'::jsonb AS j) s"""
    with snapshot_now() as snapshot:
        (row,) = collect(read(any_spark, snapshot, Leaf(query))).to_pylist()
    assert list(row.values()) == ["true", "false", "?'?", "?", "'?"]


def test_columns_that_differ_in_case_only_are_told_apart_by_position(any_spark, conn, snapshot_now):
    leaf = Leaf("""SELECT '1' AS "A", '2' AS a, '3' AS "select", '4' AS "q""t`u" """, columns=("c0", "c1", "c2", "c3"))
    with snapshot_now() as snapshot:
        (row,) = collect(read(any_spark, snapshot, leaf)).to_pylist()
    assert row == {"c0": "1", "c1": "2", "c2": "3", "c3": "4"}


def test_a_snapshot_whose_transaction_ended_is_a_transient_fault(any_spark, snapshot_now):
    with snapshot_now() as snapshot:
        pass
    with pytest.raises(TransientFault, match="snapshot is gone"):
        collect(read(any_spark, Snapshot(snapshot.jdbc, snapshot.snapshot_id), Leaf("SELECT '1' AS a")))


def test_an_error_of_the_query_arrives_in_postgresqls_words(any_spark, conn, snapshot_now):
    with snapshot_now() as snapshot, pytest.raises(RefreshError, match="division by zero") as raised:
        collect(read(any_spark, snapshot, Leaf("SELECT (1 / n)::text AS a FROM generate_series(0, 1) n")))
    assert "\n" not in str(raised.value)


def test_a_refused_password_is_a_connection_fault(any_spark, snapshot_now):
    with snapshot_now() as snapshot:
        wrong = replace(snapshot.jdbc, properties={**snapshot.jdbc.properties, "password": "wrong"})
        with pytest.raises(ConnectionFault, match="refuses the credentials"):
            collect(read(any_spark, replace(snapshot, jdbc=wrong), Leaf("SELECT '1' AS a")))


def test_a_right_that_lacks_is_a_permission_fault(any_spark, admin_dsn, snapshot_now):
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("CREATE TABLE public.secrets (a text)")
    with snapshot_now() as snapshot, pytest.raises(PermissionFault, match="permission denied for table secrets"):
        collect(read(any_spark, snapshot, Leaf("SELECT a FROM public.secrets")))


def test_ctid_slices_part_a_partitioned_table_too(any_spark, conn, snapshot_now):
    conn.execute("CREATE TABLE p (id int) PARTITION BY RANGE (id)")
    conn.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5000)")
    conn.execute("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (5000) TO (10000)")
    conn.execute("INSERT INTO p SELECT generate_series(0, 9999)")
    where = ctid_slices("public", "p", 30, 10000, Settings(read_partition_rows=4000))
    slices = tuple(f"SELECT id FROM public.p WHERE {fragment}" for fragment in where)
    with snapshot_now() as snapshot:
        whole = collect(read(any_spark, snapshot, Leaf("SELECT id FROM public.p", slices)))
    assert sorted(whole.column("id").to_pylist()) == list(range(10000))


def test_no_session_of_a_read_looks_names_up_in_the_roles_path(any_spark, conn, snapshot_now):
    """Not the one in which Spark asks for the columns either, where planning runs functions of constants."""
    role = sql.Identifier(conn.info.user)
    conn.execute(
        "CREATE FUNCTION public.upper(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN RAISE 'trapped'; END $$;"
        "CREATE FUNCTION public.really() RETURNS text LANGUAGE plpgsql AS"
        " $$ BEGIN CREATE TABLE public.written (); RETURN 'x'; END $$;"
        "CREATE FUNCTION public.writes() RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN RETURN public.really(); END $$"
    )
    conn.execute(sql.SQL("ALTER ROLE {} SET search_path = public, pg_catalog").format(role))
    try:
        with snapshot_now() as snapshot:
            query = "SELECT upper('a') AS u, current_setting('search_path') AS p,"
            query += " current_setting('transaction_read_only') AS r"
            assert collect(read(any_spark, snapshot, Leaf(query))).to_pylist() == [
                {"u": "A", "p": "pg_catalog, pg_temp", "r": "on"}
            ]
            with pytest.raises(RefreshError, match="read-only"):
                collect(read(any_spark, snapshot, Leaf("SELECT public.writes() AS w")))
    finally:
        conn.execute(sql.SQL("ALTER ROLE {} RESET search_path").format(role))
