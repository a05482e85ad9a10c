"""The graph answers everything the planner and the factory ask, the same way each time."""

from __future__ import annotations

import random

import pytest

from airflow_provider_pgtrickle.engine.errors import CycleDetected, UnknownStreamTable, UsageError
from airflow_provider_pgtrickle.engine.graph import Graph, Node


def node(name: str, *sources: str, **options: str) -> Node:
    return Node(name, frozenset(sources), **options)


def graph(**sources: str) -> Graph:
    return Graph.build(node(name, *text.split()) for name, text in sources.items())


def test_a_chain_is_ordered_upstream_first_whatever_the_order_of_declaration() -> None:
    assert graph(c="b", b="a", a="orders").order() == ["a", "b", "c"]


def test_ties_are_broken_by_name() -> None:
    assert graph(z="orders", a="orders", m="orders").order() == ["a", "m", "z"]


def test_levels_hold_tables_that_do_not_read_each_other() -> None:
    assert graph(a="orders", b="items", c="a b", d="c a").levels() == [("a", "b"), ("c",), ("d",)]


def test_a_shared_base_table_does_not_connect_two_parts() -> None:
    assert graph(a="orders", b="orders", c="b").components() == [("a",), ("b", "c")]


def test_a_circle_is_refused_with_its_path() -> None:
    with pytest.raises(CycleDetected, match="a → b → c → a"):
        graph(b="a", c="b", a="c")


def test_a_table_that_reads_itself_is_a_circle() -> None:
    with pytest.raises(CycleDetected, match="a → a"):
        graph(a="a")


def test_a_change_that_closes_a_circle_is_refused_with_its_path() -> None:
    with pytest.raises(CycleDetected, match="a → b → c → a"):
        graph(a="orders", b="a", c="b").with_node(node("a", "c"))


def test_two_declarations_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="declared twice"):
        Graph.build([node("a"), node("a")])


def test_upstream_and_downstream_are_transitive_and_in_refresh_order() -> None:
    g = graph(a="orders", b="a", c="b", x="orders")
    assert g.upstream("c") == ("a", "b")
    assert g.downstream("a") == ("b", "c")
    assert g.parents("c") == ("b",)


def test_an_unknown_name_is_said_to_be_unknown() -> None:
    with pytest.raises(UnknownStreamTable, match="nope"):
        graph(a="orders").upstream("nope")


def test_the_tree_reaches_down_to_base_tables() -> None:
    assert list(graph(a="orders", b="a items").tree("b")) == [(0, "b"), (1, "a"), (2, "orders"), (1, "items")]


def test_a_table_added_under_its_readers_connects_them() -> None:
    g = graph(b="a").with_node(node("a", "orders"))
    assert g.order() == ["a", "b"]
    assert g.levels() == [("a",), ("b",)]


def test_a_dropped_table_leaves_its_readers_with_a_base_table() -> None:
    assert graph(a="orders", b="a").without("a").order() == ["b"]


@pytest.mark.parametrize("seed", range(30))
def test_re_planning_one_change_gives_what_building_from_nothing_gives(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"t{i:02}" for i in range(20)]
    nodes = {
        name: node(name, *rng.sample([*names[:i], "orders", "items"], min(i + 1, 3))) for i, name in enumerate(names)
    }
    g = Graph.build(nodes.values())
    for _ in range(10):
        i = rng.randrange(20)
        nodes[names[i]] = node(names[i], *rng.sample([*names[:i], "orders", "events"], min(i + 1, 2)))
        g = g.with_node(nodes[names[i]])
    fresh = Graph.build(nodes.values())
    for fact in ("order", "levels", "components", "diamonds", "units"):
        assert getattr(g, fact)() == getattr(fresh, fact)(), fact
