"""A value of any type goes through the buffer unchanged."""

from __future__ import annotations

import pytest

from tests import servers
from tests.database.capture.conftest import Captured

#: All of it holds whether triggers capture or the WAL is pumped.
pytestmark = pytest.mark.usefixtures("way")

#: Type, and two values of it that differ, if only in their image.
TYPES = [
    ("smallint", "1", "-32768"),
    ("bigint", "9223372036854775807", "0"),
    ("numeric", "'NaN'", "'Infinity'"),
    ("numeric(10,2)", "1.50", "-0.01"),
    ("numeric", "1.0", "1.00"),
    ("real", "'0.1'", "'-0'"),
    ("double precision", "0.1::float8 + 0.2", "0.3"),
    ("double precision", "'-0'", "'0'"),
    ("money", "'1.23'", "'-5'"),
    ("boolean", "true", "false"),
    ("text", "''", "E'tab\\t\\n\\\\ \"quoted\"'"),
    ('text COLLATE "C"', "'a'", "'B'"),
    ("varchar(5)", "'abc'", "'abc  '"),
    ("char(5)", "'ab'", "'ba'"),
    ('"char"', "'a'", "'b'"),
    ("name", "'a'", "'b'"),
    ("bytea", r"'\x00ff'", r"'\x'"),
    ("uuid", "'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000002'"),
    ("date", "'infinity'", "'0044-03-15 BC'"),
    ("timestamp(3)", "'2024-02-29 12:00:00.123'", "'-infinity'"),
    ("timestamptz", "'2024-10-27 02:30:00+01'", "'2024-10-27 02:30:00+02'"),
    ("time", "'24:00'", "'00:00'"),
    ("timetz", "'12:00+05'", "'12:00-05'"),
    ("interval", "'1 month'", "'30 days'"),
    ("json", """'{"a":1, "a":2}'""", """'{"a": 1}'"""),
    ("jsonb", """'{"a":1}'""", """'[1.0]'"""),
    ("xml", "'<a/>'", "'<a></a>'"),
    ("int[]", "'{1,NULL,3}'", "'[0:1]={1,2}'"),
    ("text[][]", """'{{a,"b,c"},{NULL,"NULL"}}'""", "'{}'"),
    ("json[]", """ARRAY['{"a":1}'::json]""", "'{}'"),
    ("int4range", "'[1,5)'", "'empty'"),
    ("int4multirange", "'{[1,2),[5,7)}'", "'{}'"),
    ("tstzrange", "'[2024-01-01,)'", "'(,)'"),
    ("point", "'(1,2)'", "'(1,3)'"),
    ("box", "'(1,2),(0,0)'", "'(2,1),(0,0)'"),
    ("polygon", "'((0,0),(1,1),(1,0))'", "'((0,0),(1,1))'"),
    ("circle", "'<(0,0),1>'", "'<(1,1),0.5642>'"),
    ("inet", "'10.0.0.1/8'", "'::1'"),
    ("cidr", "'10.0.0.0/8'", "'10.0.0.0/9'"),
    ("macaddr", "'08:00:2b:01:02:03'", "'08:00:2b:01:02:04'"),
    ("bit(3)", "B'101'", "B'100'"),
    ("bit varying", "B''", "B'1'"),
    ("tsvector", "'a:1 b:2'", "'a b'"),
    ("tsquery", "'a & b'", "'a | b'"),
    ("pg_lsn", "'0/16'", "'0/17'"),
    ("xid8", "'1'", "'2'"),
    ("jsonpath", "'$.a'", "'$.b'"),
    ("mood", "'happy'", "'sad'"),
    ("mood[]", "'{happy}'", "'{happy,sad}'"),
    ("pair", "ROW(1, 'a')::pair", "ROW(NULL, '')::pair"),
    ("pair[]", "ARRAY[ROW(1, 'a')::pair]", "'{}'"),
    ("positive", "1", "2"),
    ("code", "'ab'", "'cd'"),
    ("positive[]", "'{1}'", "'{2}'"),
]


@pytest.fixture
def types(conn):
    conn.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    conn.execute("CREATE TYPE pair AS (n int, t text)")
    conn.execute("CREATE DOMAIN positive AS int NOT NULL CHECK (VALUE > 0)")
    conn.execute("CREATE DOMAIN code AS varchar(5) CHECK (length(VALUE) = 2)")
    return conn


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_values_of_every_type_survive(types, admin_of, key):
    # The wheel's PostgreSQL 18 is built without libxml, Debian's 15 with it.
    rows = [row for row in TYPES if row[0] != "xml" or servers.is_second(types)]
    columns = ", ".join(f"c{n} {type_}" for n, (type_, _, _) in enumerate(rows))
    ones, others = (", ".join(row[side] for row in rows) for side in (1, 2))
    types.execute(f"CREATE TABLE t (id int {key}, {columns})")
    table = Captured(types, "t")
    table.save()
    for role, writer in (("origin", types), ("replica", admin_of)):
        if role == "replica":
            writer.execute("SET session_replication_role = replica")
        base = 1 if role == "origin" else 10
        writer.execute(f"INSERT INTO t SELECT {base}, {ones}")
        writer.execute(f"INSERT INTO t SELECT {base + 1}, {others}")
        writer.execute("UPDATE t SET id = id")
        for n, (_, _, other) in enumerate(rows):
            writer.execute(f"UPDATE t SET c{n} = {other} WHERE id = {base}")
        assert table.differences() == []
        expected = len(rows) * (1 if key else 2) + 2
        assert len(table.changes()) == expected * (1 if role == "origin" else 2)


@pytest.mark.parametrize(
    "type_",
    ["numeric", 'text COLLATE "C"', "uuid", "date", "bytea", "mood", "int4range", "jsonb", "int[]", "code", "char(3)"],
)
def test_a_key_of_any_type_pairs_rows(types, type_):
    values = {t: (a, b) for t, a, b in TYPES} | {"char(3)": ("'a'", "'b'"), "numeric": ("1.0", "2")}
    one, other = values[type_]
    types.execute(f"CREATE TABLE t (id {type_} PRIMARY KEY, n int)")
    table = Captured(types, "t")
    types.execute(f"INSERT INTO t VALUES ({one}, 1), ({other}, 1)")
    table.save()
    types.execute("UPDATE t SET n = 2")
    assert table.actions() == "UU"
    assert table.differences() == []


def test_a_key_that_only_looks_different_is_one_update(conn):
    conn.execute("CREATE TABLE t (id numeric PRIMARY KEY, n int)")
    conn.execute("INSERT INTO t VALUES (1.0, 1)")
    table = Captured(conn, "t")
    table.save()
    conn.execute("UPDATE t SET id = 1.00")
    assert table.changes() == [("U", "1.00", "1", "1.0", "1")]


def test_a_key_whose_fields_are_all_null_is_a_key(conn):
    """ROW(NULL, NULL) is no NULL, but IS NULL holds for it: its UPDATE was captured as an insertion."""
    conn.execute("CREATE TYPE pair AS (x int, y text)")
    conn.execute("CREATE TABLE t (id pair PRIMARY KEY, n int)")
    conn.execute("INSERT INTO t VALUES (ROW(NULL, NULL), 1)")
    table = Captured(conn, "t")
    table.save()
    conn.execute("UPDATE t SET n = 2")
    assert table.actions() == "U"
    table.save()
    conn.execute("UPDATE t SET id = ROW(1, NULL)")
    assert sorted(table.actions()) == ["D", "I"]
    assert table.differences() == []


def test_the_buffer_keeps_a_columns_collation(conn):
    conn.execute('CREATE TABLE t (id int PRIMARY KEY, a text COLLATE "C", b text)')
    table = Captured(conn, "t")
    collations = conn.execute(
        "SELECT c.collname FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation"
        " WHERE attrelid = %s::regclass AND attname IN ('new_a', 'old_b') ORDER BY attname",
        [table.buffer.quoted],
    )
    assert collations.fetchall() == [("C",), ("default",)]


def test_the_writers_session_settings_do_not_change_what_is_captured(conn, any_dsn):
    conn.execute("CREATE TABLE log (f float8, t timestamptz, i interval, b bytea)")
    log = Captured(conn, "log")
    conn.execute("INSERT INTO log VALUES (0.1, '2024-10-27 00:30Z', '1 day', 'a')")
    log.save()
    with servers.user_session(any_dsn) as writer:
        writer.execute("SET extra_float_digits = -10")
        writer.execute("SET TimeZone = 'Europe/Berlin'")
        writer.execute("SET DateStyle = 'SQL, DMY'")
        writer.execute("UPDATE log SET f = 0.1::float8 + 1e-16, t = '2024-10-27 01:30Z'")
    assert log.actions() == "DI"
    assert log.differences() == []
