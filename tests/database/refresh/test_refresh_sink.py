"""The single sink: bags, keys, NULLs, types without equality, equal values that look different, collisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from psycopg import sql

from airflow_provider_pgtrickle.engine.errors import InvariantViolated, RefreshError, TableAltered
from airflow_provider_pgtrickle.engine.refresh import write
from tests.database.refresh.handwritten import HandWritten, filtered
from tests.database.refresh.workshop import Workshop


def table(workshop: Workshop, columns: str, *, key: Sequence[str] | None = None, **more: Any) -> HandWritten:
    """A stream table `st` over one source, whose content and change a test sets row by row."""
    source = workshop.source("orders")
    query = HandWritten(lambda b: "", lambda b: "", {source.key: source})
    workshop.stream_table("st", columns, query, key=key, **more)
    return query


def fill(workshop: Workshop, query: HandWritten, rows: str) -> None:
    query.full_sql = lambda b: rows
    workshop.refresh_one("st", force_full=True)


def change(workshop: Workshop, query: HandWritten, rows: str) -> tuple[int, int, int]:
    """Apply weighted rows; what was inserted, updated, deleted."""
    query.delta_sql = lambda b: rows
    workshop.run("UPDATE orders SET note = note || '!' WHERE id = 1")
    result = workshop.refresh_one("st")
    assert result.action == "DIFFERENTIAL"
    return result.rows_inserted, result.rows_updated, result.rows_deleted


def test_exactly_n_twins_are_deleted_from_a_bag(any_workshop: Workshop) -> None:
    query = table(any_workshop, "a int, b text")
    fill(any_workshop, query, "SELECT 1 AS a, 'x' AS b FROM generate_series(1, 5) UNION ALL SELECT NULL, NULL")
    weighted = "SELECT -2 AS __pgt_w, 1 AS a, 'x' AS b UNION ALL SELECT -1, 1, 'x' UNION ALL SELECT 2, NULL, NULL"
    assert change(any_workshop, query, weighted) == (2, 0, 3)
    assert any_workshop.rows("SELECT a, b, count(*) FROM st GROUP BY 1, 2 ORDER BY 1") == [(1, "x", 2), (None, None, 3)]


def test_weights_are_summed_before_anything_is_written(any_workshop: Workshop) -> None:
    query = table(any_workshop, "a int", key=["a"])
    fill(any_workshop, query, "SELECT 1 AS a")
    weighted = "SELECT w AS __pgt_w, a FROM (VALUES (1, 1), (-1, 1), (3, 2), (-2, 2), (1, 3), (-1, 3)) v(w, a)"
    assert change(any_workshop, query, weighted) == (1, 0, 0)
    assert any_workshop.rows("SELECT a FROM st ORDER BY 1") == [(1,), (2,)]


def test_a_null_key_is_a_key(any_workshop: Workshop) -> None:
    query = table(any_workshop, "k text, n int", key=["k"])
    fill(any_workshop, query, "SELECT NULL::text AS k, 1 AS n UNION ALL SELECT '', 2")
    weighted = "SELECT w AS __pgt_w, k, n FROM (VALUES (-1, NULL, 1), (1, NULL, 9)) v(w, k, n)"
    assert change(any_workshop, query, weighted) == (0, 1, 0)
    assert any_workshop.rows("SELECT k, n FROM st ORDER BY n") == [("", 2), (None, 9)]


def test_a_table_of_one_row_has_the_empty_key(any_workshop: Workshop) -> None:
    query = table(any_workshop, "n int", key=[])
    fill(any_workshop, query, "SELECT 1 AS n")
    assert change(any_workshop, query, "SELECT w AS __pgt_w, n FROM (VALUES (-1, 1), (1, 2)) v(w, n)") == (0, 1, 0)
    assert any_workshop.rows("SELECT n FROM st") == [(2,)]


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "bag"])
def test_types_without_equality_are_told_apart_by_their_text(any_workshop: Workshop, key: Sequence[str] | None) -> None:
    query = table(any_workshop, "id int, j json, p point", key=key)
    row = "SELECT {w} AS __pgt_w, {id} AS id, '{j}'::json AS j, point(1, {id}) AS p"
    fill(
        any_workshop,
        query,
        "SELECT id, j, p FROM ("
        + " UNION ALL ".join(row.format(w=1, id=n, j='{"b": 1,  "a": 2}') for n in (1, 2))
        + ") f",
    )
    weighted = " UNION ALL ".join(
        [row.format(w=-1, id=1, j='{"b": 1,  "a": 2}'), row.format(w=1, id=1, j='{"a": 2, "b": 1}')]
    )
    assert change(any_workshop, query, weighted) == ((0, 1, 0) if key else (1, 0, 1))
    assert any_workshop.rows("SELECT id, j::text FROM st ORDER BY id") == [
        (1, '{"a": 2, "b": 1}'),
        (2, '{"b": 1,  "a": 2}'),
    ]


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "bag"])
@pytest.mark.parametrize(
    ("type_", "old", "new"),
    [
        ("numeric", "1.0", "1.00"),
        ("float8", "0", "-0"),
        ("interval", "1 day", "24:00:00"),
        ("jsonb", "[1.0]", "[1.00]"),
    ],
)
def test_an_equal_value_that_looks_different_is_a_change(
    workshop: Workshop, key: Sequence[str] | None, type_: str, old: str, new: str
) -> None:
    query = table(workshop, f"id int, v {type_}", key=key)
    fill(workshop, query, f"SELECT 1 AS id, '{old}'::{type_} AS v")
    weighted = f"SELECT w AS __pgt_w, 1 AS id, v::{type_} FROM (VALUES (-1, '{old}'), (1, '{new}')) x(w, v)"
    change(workshop, query, weighted)
    assert workshop.rows("SELECT v::text FROM st") == [(new,)]


def test_of_equal_twins_the_one_that_looks_like_it_goes(workshop: Workshop) -> None:
    # One row id for all, as a canonical form of numeric gives it.
    query = table(workshop, "v numeric", key=[], keyed=False)
    fill(workshop, query, "SELECT v FROM (VALUES (1.0), (1.00), (1.000)) x(v)")
    change(workshop, query, "SELECT -1 AS __pgt_w, 1.00 AS v")
    assert workshop.rows("SELECT v::text FROM st ORDER BY 1") == [("1.0",), ("1.000",)]


def test_an_equal_row_is_found_though_it_looks_different(workshop: Workshop) -> None:
    query = table(workshop, "id int, v numeric", key=["id"])
    fill(workshop, query, "SELECT 1 AS id, 1.00 AS v")
    assert change(workshop, query, "SELECT -1 AS __pgt_w, 1 AS id, 1.0 AS v") == (0, 0, 1)


def test_text_that_copy_could_trip_over_survives(workshop: Workshop) -> None:
    words = ["", "\\.", "\\N", 'say "hi"', "a,b", "x\ny\r\nz", "\\.\n\\.", "NULL", " ", "\ttab", "žluťoučký 🐴", "'"]
    query = table(workshop, "id int, t text", key=["id"])
    workshop.run("CREATE TABLE words (id int, t text)")
    for number, word in enumerate([*words, None]):
        workshop.run("INSERT INTO words VALUES (%s, %s)", number, word)
    fill(workshop, query, "SELECT id, t FROM public.words")
    assert workshop.rows("SELECT t FROM st ORDER BY id") == [(word,) for word in [*words, None]]


def test_two_identities_with_one_hash_stay_two_rows(workshop: Workshop) -> None:
    query = table(workshop, "a text, n int", key=["a"])
    fill(workshop, query, "SELECT a, n FROM (VALUES ('x', 1), ('y', 2), ('z', 3)) v(a, n)")
    # Nobody finds a real collision of 64 bits: all stored rows get the hash that 'x' will come with.
    workshop.run("BEGIN; SET LOCAL pgtrickle.refreshing = 'on';"
                 " UPDATE st SET __pgt_row_id = (SELECT __pgt_row_id FROM st WHERE a = 'x'); COMMIT")  # fmt: skip
    weighted = "SELECT w AS __pgt_w, a, n FROM (VALUES (-1, 'x', 1), (1, 'x', 9)) v(w, a, n)"
    assert change(workshop, query, weighted) == (0, 1, 0)
    assert change(workshop, query, "SELECT -1 AS __pgt_w, 'x' AS a, 9 AS n") == (0, 0, 1)
    assert workshop.rows("SELECT a, n FROM st ORDER BY a") == [("y", 2), ("z", 3)]


@pytest.mark.parametrize(
    ("key", "weighted", "words"),
    [
        (["a"], "SELECT -1 AS __pgt_w, 7 AS a, 'x' AS b", "would have deleted 1 stored rows, but 0"),
        (["a"], "SELECT -1 AS __pgt_w, 1 AS a, 'other' AS b", "would have deleted 1 stored rows, but 0"),
        (
            ["a"],
            "SELECT w AS __pgt_w, 1 AS a, b FROM (VALUES (-1, 'other'), (1, 'y')) v(w, b)",
            "would have replaced 1 stored rows, but 0",
        ),
        (["a"], "SELECT 1 AS __pgt_w, 1 AS a, 'y' AS b", "that is stored already"),
        (["a"], "SELECT 1 AS __pgt_w, 5 AS a, b FROM (VALUES ('x'), ('y')) v(b)", "more than once"),
        (["a"], "SELECT 2 AS __pgt_w, 5 AS a, 'x' AS b", "more than once"),
        (None, "SELECT -2 AS __pgt_w, 1 AS a, 'x' AS b", "would have deleted 2 stored rows, but 1"),
    ],
)
def test_a_difference_that_contradicts_the_stored_rows_fails_loudly(
    any_workshop: Workshop, key: Sequence[str] | None, weighted: str, words: str
) -> None:
    query = table(any_workshop, "a int, b text", key=key)
    fill(any_workshop, query, "SELECT 1 AS a, 'x' AS b")
    before = any_workshop.record("st")
    with pytest.raises(InvariantViolated, match=words):
        change(any_workshop, query, weighted)
    after = any_workshop.record("st")
    assert any_workshop.rows("SELECT a, b FROM st") == [(1, "x")]
    assert (after.frontier, after.status) == (before.frontier, "ERROR")
    assert words in (after.last_error or "")
    # The remedy that the message names.
    fill(any_workshop, query, "SELECT 1 AS a, 'y' AS b")
    assert any_workshop.record("st").status == "ACTIVE"


def test_a_large_difference_with_an_identity_that_is_stored_fails_as_loudly(
    any_workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the identity's own index finds it, and one of somebody else's is still told as theirs."""
    monkeypatch.setattr(write, "_MANY", 2)
    query = table(any_workshop, "a int, b text", key=["a"])
    fill(any_workshop, query, "SELECT 1 AS a, 'x' AS b")
    with pytest.raises(InvariantViolated, match="that is stored already"):
        change(any_workshop, query, "SELECT 1 AS __pgt_w, a, 'y' AS b FROM generate_series(1, 5) a")
    assert any_workshop.rows("SELECT a, b FROM st") == [(1, "x")]
    assert any_workshop.record("st").status == "ERROR"
    fill(any_workshop, query, "SELECT 1 AS a, 'y' AS b")
    assert change(any_workshop, query, "SELECT 1 AS __pgt_w, a, 'z' || a AS b FROM generate_series(2, 5) a") == (
        4,
        0,
        0,
    )
    any_workshop.run("CREATE UNIQUE INDEX theirs ON st (b)")
    with pytest.raises(TableAltered, match="'theirs' refuses"):
        change(any_workshop, query, "SELECT 1 AS __pgt_w, a, 'y' AS b FROM generate_series(6, 9) a")


def test_a_first_content_with_an_identity_twice_fails(workshop: Workshop) -> None:
    query = table(workshop, "a int, b text", key=["a"])
    with pytest.raises(InvariantViolated, match="more than once"):
        fill(workshop, query, "SELECT 1 AS a, b FROM (VALUES ('x'), ('y')) v(b)")


def test_quoted_names_and_reserved_words_are_columns_like_others(any_workshop: Workshop) -> None:
    query = table(any_workshop, '"select" int, "A b""c" text, "%s {}" text', key=["select"])
    fill(any_workshop, query, """SELECT 1 AS "select", 'x' AS "A b""c", '{}' AS "%s {}" """)
    weighted = """SELECT 1 AS __pgt_w, 2 AS "select", 'y' AS "A b""c", '%' AS "%s {}" """
    assert change(any_workshop, query, weighted) == (1, 0, 0)


def test_domains_arrays_enums_ranges_and_composites(any_workshop: Workshop) -> None:
    any_workshop.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TYPE pair AS (a int, b text);"
        " CREATE DOMAIN doc AS json; CREATE DOMAIN price AS numeric(10, 2) CHECK (VALUE >= 0)"
    )
    query = table(any_workshop, "m mood, p pair, d doc, c price, r int4range, a numeric[], js json[], ch char(5)")
    values = (
        "'happy'::public.mood AS m, ROW(1, 'x')::public.pair AS p, '{}'::public.doc AS d, 1.5::public.price AS c,"
        " '[1,5)'::int4range AS r,"
        " ARRAY[1.0, NULL] AS a, ARRAY['{}', '[]']::json[] AS js, 'ab'::char(5) AS ch"
    )
    fill(any_workshop, query, f"SELECT {values} FROM generate_series(1, 3)")
    assert change(any_workshop, query, f"SELECT -2 AS __pgt_w, {values}") == (0, 0, 2)


def test_a_nondeterministic_collation_hides_no_change(workshop15: Workshop) -> None:
    # The wheel's server is built without ICU.
    workshop15.run("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    query = table(workshop15, "id int, t text COLLATE loose", key=["id"])
    fill(workshop15, query, "SELECT 1 AS id, 'abc' AS t")
    weighted = "SELECT w AS __pgt_w, 1 AS id, t FROM (VALUES (-1, 'abc'), (1, 'ABC')) v(w, t)"
    assert change(workshop15, query, weighted) == (0, 1, 0)
    assert workshop15.rows("SELECT t FROM st") == [("ABC",)]


def test_a_generated_source_column_reaches_the_table(any_workshop: Workshop) -> None:
    any_workshop.run("CREATE TABLE items (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2) STORED)")
    any_workshop.run("INSERT INTO items VALUES (1, 1), (2, 2)")
    query = filtered(any_workshop.source("items"), ("id", "twice"), "twice > 2")
    any_workshop.stream_table("st", "id int, twice int", query, key=["id"])
    any_workshop.refresh_one("st")
    any_workshop.run("UPDATE items SET n = n + 1")
    assert any_workshop.refresh_one("st").action == "DIFFERENTIAL"
    assert any_workshop.differs("st", "SELECT id, twice FROM items WHERE twice > 2") == []


def test_a_partitioned_stream_table_is_written_in_all_its_partitions(any_workshop: Workshop) -> None:
    query = table(any_workshop, "a int, b text")
    any_workshop.run(
        "ALTER TABLE st RENAME TO old; CREATE TABLE st (LIKE old) PARTITION BY LIST (a);"
        " CREATE TABLE st_1 PARTITION OF st FOR VALUES IN (1); CREATE TABLE st_2 PARTITION OF st DEFAULT"
    )
    fill(any_workshop, query, "SELECT a, 'x' AS b FROM generate_series(1, 4) a, generate_series(1, 2)")
    # The first row of each partition has the same place in its file.
    assert change(any_workshop, query, "SELECT -1 AS __pgt_w, 2 AS a, 'x' AS b") == (0, 0, 1)
    assert any_workshop.rows("SELECT a, count(*) FROM st GROUP BY 1 ORDER BY 1") == [(1, 2), (2, 1), (3, 2), (4, 2)]


def test_a_large_result_goes_through_the_shared_stage_and_leaves_none(any_workshop: Workshop) -> None:
    source = any_workshop.source("orders")
    any_workshop.stream_table("st", "id int, amount numeric", filtered(source, ("id", "amount"), "true"), key=["id"])
    any_workshop.settings = type(any_workshop.settings)(collect_max_rows=10, retry_attempts=1)
    any_workshop.refresh_one("st")
    any_workshop.run("UPDATE orders SET amount = amount + 1 WHERE id <= 30")
    result = any_workshop.refresh_one("st")
    assert (result.action, result.rows_updated) == ("DIFFERENTIAL", 30)
    assert [computation.large for computation in any_workshop.executor.computed] == [True, True]
    assert any_workshop.differs("st", "SELECT id, amount FROM orders") == []
    stages = sql.SQL("SELECT relname FROM pg_class WHERE relname LIKE 'stage%'")
    assert any_workshop.conn.execute(stages).fetchall() == []


@pytest.mark.parametrize("key", [["a"], None], ids=["keyed", "bag"])
def test_a_difference_that_only_adds_rows_is_one_plain_insert(
    any_workshop: Workshop, key: Sequence[str] | None
) -> None:
    query = table(any_workshop, "a int", key=key)
    fill(any_workshop, query, "SELECT 1 AS a")
    any_workshop.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'No plain INSERT'; END $$"
    )
    # A statement's trigger fires also where no row is found.
    any_workshop.run(
        "CREATE TRIGGER refused BEFORE DELETE OR UPDATE ON st FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    )
    assert change(any_workshop, query, "SELECT 1 AS __pgt_w, a FROM (VALUES (2), (3)) v(a)") == (2, 0, 0)
    with pytest.raises(RefreshError, match="No plain INSERT"):
        change(any_workshop, query, "SELECT -1 AS __pgt_w, 2 AS a")
