"""Which tables a term means."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph import Graph, Node
from airflow_provider_pgtrickle.engine.graph.selection import select

#: a → b → c → d, and e beside them.
GRAPH = Graph.build(
    Node(f"public.{name}", frozenset({f"public.{source}"}))
    for name, source in [("a", "orders"), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "orders")]
)
TAGS = {"public.a": ("daily",), "public.d": ("daily", "big"), "public.e": ()}


def chosen(terms: str | list[str]) -> str:
    return "".join(sorted(name.removeprefix("public.") for name in select(GRAPH, TAGS, terms)))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ("c", "c"),
        ("public.c", "c"),
        ("+c", "abc"),
        ("c+", "cd"),
        ("+c+", "abcd"),
        ("1+c", "bc"),
        ("2+d", "bcd"),
        ("a+2", "abc"),
        ("tag:daily", "ad"),
        ("tag:big+", "d"),
        ("+tag:big", "abcd"),
        ("a e", "ae"),
        (["a", "e c+"], "acde"),
        ("+d,b+", "bcd"),
        ("tag:daily,tag:big", "d"),
        ("*", "abcde"),
        ("[ab]", "ab"),
        ("", ""),
    ],
)
def test_terms_select_as_in_dbt(terms: str | list[str], expected: str) -> None:
    assert chosen(terms) == expected


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ("f", r"No table of the graph is called 'f'"),
        ("tag:dayly", r"No table has the tag 'dayly'. Did you mean daily\?"),
        ("a++b", r"'a\+\+b' selects nothing"),
        ("+", r"'\+' selects nothing"),
    ],
)
def test_a_term_that_means_nothing_is_refused(terms: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chosen(terms)


@pytest.mark.parametrize("terms", ["f", "+f+", "tag:dayly", "f,a"])
def test_of_a_part_of_what_may_be_meant_such_a_term_means_nothing(terms: str) -> None:
    assert select(GRAPH, TAGS, f"{terms} c", whole=False) == {"public.c"}
    with pytest.raises(UsageError, match="can't be read"):
        select(GRAPH, TAGS, "a++b", whole=False)
