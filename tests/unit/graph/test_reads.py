"""What a query reads, by its text alone."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import QueryError, SyntaxFault
from airflow_provider_pgtrickle.engine.graph.reads import reads


def names(query: str, default_schema: str = "public") -> list[str]:
    return sorted(f"{schema}.{name}" for schema, name in reads(query, default_schema))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1 AS one", []),
        ("SELECT * FROM Orders", ["public.orders"]),
        ('SELECT * FROM "Orders" JOIN sales."My items" i USING (id)', ["public.Orders", "sales.My items"]),
        ("SELECT * FROM a WHERE EXISTS (SELECT FROM b WHERE b.id = a.id)", ["public.a", "public.b"]),
        ("SELECT (SELECT max(x) FROM b) FROM a", ["public.a", "public.b"]),
        ("SELECT * FROM a UNION ALL SELECT * FROM b", ["public.a", "public.b"]),
        ("SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.id = a.id) l", ["public.a", "public.b"]),
        ("SELECT * FROM a, generate_series(1, 3) g", ["public.a"]),
        ("VALUES (1), (2)", []),
    ],
)
def test_every_relation_is_found_wherever_it_stands(query: str, expected: list[str]) -> None:
    assert names(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WITH t AS (SELECT * FROM a) SELECT * FROM t", ["public.a"]),
        # Not recursive: inside its own definition the name still means the table.
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["public.a"]),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", []),
        ("WITH x AS (SELECT * FROM y), y AS (SELECT * FROM b) SELECT * FROM x, y", ["public.b", "public.y"]),
        ("WITH a AS (SELECT 1) SELECT * FROM public.a", ["public.a"]),
        # Seen only below the WITH that defines it.
        ("SELECT * FROM (WITH b AS (SELECT 1) SELECT * FROM b) s, b", ["public.b"]),
        ("WITH a AS (SELECT 1) SELECT * FROM (SELECT * FROM a) s", []),
        ('WITH "A" AS (SELECT 1) SELECT * FROM a', ["public.a"]),
    ],
)
def test_a_cte_hides_the_table_of_its_name_only_where_it_is_in_sight(query: str, expected: list[str]) -> None:
    assert names(query) == expected


def test_a_name_without_a_schema_is_in_the_default_one() -> None:
    assert names("SELECT * FROM a, s.b", "sales") == ["s.b", "sales.a"]


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(SyntaxFault, match="'WHERE'") as caught:
        reads("SELECT a\nFROM WHERE x")
    assert caught.value.place is not None
    assert caught.value.place.startswith("line 2, column ")


@pytest.mark.parametrize("query", ["", "  ", "DELETE FROM a", "SELECT 1; SELECT 2", "CREATE TABLE a (x int)"])
def test_anything_but_one_select_is_refused(query: str) -> None:
    with pytest.raises(QueryError, match="Give one SELECT"):
        reads(query)


def test_an_open_quote_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxFault, match="not closed"):
        reads("SELECT 'a FROM b")
