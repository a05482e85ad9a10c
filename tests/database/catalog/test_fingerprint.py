"""A fingerprint changes when something behind a query changes its meaning, and only then."""

from __future__ import annotations

import json

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog import records, zone
from airflow_provider_pgtrickle.engine.catalog.fingerprint import again, changed, fingerprint
from airflow_provider_pgtrickle.engine.catalog.probe import probe


@pytest.fixture
def shop(conn):
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY, item text NOT NULL, price numeric(10,2), note text)")
    conn.execute("CREATE TABLE parts (id int, day int) PARTITION BY RANGE (day)")
    conn.execute("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)")
    conn.execute(
        "CREATE FUNCTION twice(numeric) RETURNS numeric IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 * 2; END'"
    )
    conn.execute("CREATE VIEW doubled AS SELECT id, twice(price) AS price FROM orders")
    return conn


QUERY = "SELECT d.id, d.price, p.day, o.item FROM doubled d JOIN parts p USING (id) JOIN orders o USING (id)"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER TABLE orders ALTER item TYPE varchar(9)", "table orders changed"),
        ("ALTER TABLE orders ALTER item DROP NOT NULL", "table orders changed"),
        ("ALTER TABLE orders RENAME item TO thing", "table orders changed"),
        ("ALTER TABLE orders DROP COLUMN item", "table orders changed"),
        ("ALTER TABLE orders DROP CONSTRAINT orders_pkey", "table orders changed"),
        ("ALTER TABLE orders RENAME TO purchases", "table purchases changed"),
        ("ALTER TABLE orders ENABLE ROW LEVEL SECURITY", "table orders changed"),
        ("CREATE POLICY readers ON orders USING (id > 0)", "table orders changed"),
        ("CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)", "table parts changed"),
        ("ALTER TABLE parts DETACH PARTITION parts_1", "table parts changed"),
        ("CREATE OR REPLACE VIEW doubled AS SELECT id, price::numeric AS price FROM orders", "view doubled changed"),
        (
            "CREATE OR REPLACE FUNCTION twice(numeric) RETURNS numeric IMMUTABLE LANGUAGE plpgsql"
            " AS 'BEGIN RETURN $1 * 3; END'",
            "function twice(numeric) changed",
        ),
        ("ALTER FUNCTION twice(numeric) VOLATILE", "function twice(numeric) changed"),
    ],
)
def test_a_change_behind_the_query_is_noticed_and_named(shop, statement, words):
    before = fingerprint(shop, probe(shop, QUERY))
    shop.execute(statement)
    assert changed(shop, before) == (words,)
    assert again(shop, before) != before


#: The same zone by other rules: an hour more, a week earlier, an hour later at night.
RULES = ("A-1B,M3.5.0,M10.5.0", "A-2B,M3.5.0,M10.5.0", "A-1B,M3.4.0,M10.5.0", "A-1B,M3.5.0/3,M10.5.0")


def test_the_rules_of_zones_are_known_to_the_second_and_asked_for_once(shop, any_dsn):
    found = {zone.rules(shop, name) for name in (*RULES, "Europe/Oslo", "America/New_York", "Asia/Kolkata", "UTC")}
    assert None not in found
    assert len(found) == 8
    assert zone.rules(shop, "Atlantis") is None
    with psycopg.connect(any_dsn) as other:
        assert zone.rules(other, RULES[0]) in found
    shop.close()
    assert zone.rules(shop, "Europe/Oslo") in found


@pytest.mark.parametrize(
    ("query", "own", "named"),
    [
        ("SELECT id FROM orders", None, set()),
        ("SELECT id, now() AT TIME ZONE 'UTC' AS at FROM orders", None, set()),
        ("SELECT id FROM orders", "Asia/Kolkata", {"Asia/Kolkata"}),
        ("SELECT timezone('Europe/Oslo', now()) AS at, item FROM orders", None, {"Europe/Oslo"}),
        ("SELECT now() AT TIME ZONE interval '1 hour' AS at, item FROM orders", None, set()),
        ("SELECT at FROM local", "Asia/Kolkata", {"Asia/Kolkata", "America/New_York"}),
    ],
)
def test_the_zones_that_a_query_follows_are_watched(shop, query, own, named):
    shop.execute("CREATE VIEW local AS SELECT now() AT TIME ZONE 'America/New_York' AS at FROM orders")
    with zone.in_zone(shop, own):
        before = fingerprint(shop, probe(shop, query))
    taken = json.loads(before)
    assert set(taken.get("zones", {})) == named
    assert again(shop, before) == before
    for name in named:
        other = json.dumps({**taken, "zones": {**taken["zones"], name: "other"}})
        assert changed(shop, other) == (f"zone {name} has other rules",)


def test_a_dropped_table_is_named_by_its_number(shop):
    before = fingerprint(shop, probe(shop, "SELECT id FROM parts"))
    shop.execute("DROP TABLE parts")
    (words,) = changed(shop, before)
    assert words.endswith("was dropped")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders ADD COLUMN extra int",
        "ALTER TABLE orders DROP COLUMN note",
        "ALTER TABLE orders ALTER note TYPE varchar(3)",
        "INSERT INTO orders VALUES (1, 'a', 1, 'n')",
        "CREATE INDEX ON orders (price)",
        "ANALYZE orders",
        "SET search_path = pg_catalog",
    ],
)
def test_what_the_query_does_not_name_goes_unnoticed(shop, statement):
    before = fingerprint(shop, probe(shop, QUERY))
    shop.execute(statement)
    assert changed(shop, before) == ()
    assert again(shop, before) == before


def test_a_star_is_about_all_columns(shop):
    before = fingerprint(shop, probe(shop, "SELECT * FROM orders"))
    shop.execute("ALTER TABLE orders ADD COLUMN extra int")
    assert changed(shop, before) == ("table orders changed",)


def test_the_fingerprint_of_dependencies_equals_the_stored_one(shop):
    probed = probe(shop, QUERY)
    table = records.insert(
        shop, schema="public", name="st", original_query=QUERY, defining_query=probed.canonical,
        fingerprint=fingerprint(shop, probed),
    )  # fmt: skip
    assert table.fingerprint is not None
    assert again(shop, table.fingerprint) == table.fingerprint
    shop.execute("ALTER TABLE orders ALTER item TYPE varchar(9)")
    assert again(shop, table.fingerprint) != table.fingerprint
