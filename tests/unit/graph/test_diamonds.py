"""A diamond never shows two instants: what lies between fan-out and fan-in moves together."""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx
import pytest

from airflow_provider_pgtrickle.engine.graph import Diamond, Graph, Node


def build(options: dict[str, dict[str, str]] | None = None, **sources: str) -> Graph:
    return Graph.build(
        Node(name, frozenset(text.split()), **(options or {}).get(name, {})) for name, text in sources.items()
    )


def by_definition(name: str, reads: dict[str, set[str]]) -> Diamond | None:
    """Name for name, without bit sets: what feeds both of two sources, and the tables that lead from there to them."""
    edges = nx.DiGraph([(source, reader) for reader, sources in reads.items() for source in sources])
    edges.add_nodes_from(reads)
    above = {known: {known, *nx.ancestors(edges, known)} for known in edges}
    branches: set[str] = set()
    parting: set[str] = set()
    for left, right in combinations(reads[name], 2):
        shared = above[left] & above[right]
        one, other = (
            {n for n in above[tip] - shared if n in reads and above[n] & shared} for tip in (left, right)
        )  # fmt: skip
        if one and other:
            branches |= one | other
            parting |= {source for n in one | other for source in reads[n]} & shared
    return Diamond(name, tuple(sorted(branches)), tuple(sorted(parting))) if branches else None


@pytest.mark.parametrize("seed", range(40))
def test_bit_sets_find_what_the_definition_says(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"t{i:02}" for i in range(25)]
    bases = ["orders", "items", "customers"]
    reads: dict[str, set[str]] = {}
    for i, name in enumerate(names):
        # Tables of constants, tables on one base table alone, and dense ones.
        reads[name] = set(rng.sample([*names[max(0, i - 8) : i], *bases], rng.choice((0, 1, 2, 2, 3))))
    g = Graph.build(Node(name, frozenset(sources)) for name, sources in reads.items())
    expected = [diamond for name in g.order() if (diamond := by_definition(name, reads))]
    assert g.diamonds() == expected
    # Overlapping groups are one unit; a circle of units may make it larger still.
    unit = {member: u for u in g.units() for member in u}
    assert all(len({unit[member] for member in diamond.members}) == 1 for diamond in expected)


def test_two_tables_on_one_source_that_meet_again_are_a_diamond() -> None:
    g = build(totals="orders", counts="orders", report="totals counts")
    assert g.diamonds() == [Diamond("report", ("counts", "totals"), ("orders",))]
    assert g.units() == [("counts", "totals", "report")]


def test_tables_that_meet_without_a_shared_source_are_none() -> None:
    g = build(totals="orders", stock="items", report="totals stock")
    assert g.diamonds() == []
    assert g.units() == [("stock",), ("totals",), ("report",)]


def test_the_table_at_which_the_paths_part_is_not_in_the_unit() -> None:
    g = build(base="orders", b="base", c="base", d="b c")
    assert g.diamonds() == [Diamond("d", ("b", "c"), ("base",))]
    assert g.units() == [("base",), ("b", "c", "d")]


def test_long_branches_belong_to_the_unit_whole() -> None:
    assert build(a="o", b1="a", b2="b1", c="a", d="b2 c", e="d").units() == [("a",), ("b1", "b2", "c", "d"), ("e",)]


def test_a_source_read_directly_and_through_one_table_is_none() -> None:
    assert build(totals="orders", report="orders totals").diamonds() == []
    assert build(base="orders", totals="base", report="base totals").diamonds() == []


def test_diamond_consistency_none_leaves_the_tables_apart() -> None:
    g = build({"report": {"diamond_consistency": "none"}}, totals="orders", counts="orders", report="totals counts")
    assert g.units() == [("counts",), ("totals",), ("report",)]
    assert len(g.diamonds()) == 1


def test_diamonds_that_overlap_are_one_unit() -> None:
    g = build(a="o", b="o", c="a b", d="o", e="c d")
    assert g.units() == [("a", "b", "c", "d", "e")]


def test_three_branches_of_which_each_two_share_another_source_move_together() -> None:
    g = build(m="y z", p1="m", p2="m", p3="y", c="p1 p2 p3")
    assert g.units() == [("m", "p1", "p2", "p3", "c")]


def test_units_that_would_wait_for_each_other_are_merged() -> None:
    # {a1, a2, a3} over o and {b1, b2, b3} over p; a1 feeds b3's group, which feeds a3.
    g = build(a1="o", a2="o", x="q a1", b1="p x", b2="p", b3="b1 b2", y="b2", a3="a1 a2 y")
    order = g.order()
    position = {name: i for i, unit in enumerate(g.units()) for name in unit}
    assert sorted(name for unit in g.units() for name in unit) == sorted(order)
    for name in order:
        assert all(position[parent] <= position[name] for parent in g.parents(name))
    assert position["a1"] == position["a3"]
    assert position["b1"] == position["b3"] == position["x"] == position["a1"]


def test_the_slowest_policy_is_that_of_the_table_where_the_diamond_closes() -> None:
    slow = {"diamond_schedule_policy": "slowest"}
    g = build({"report": slow, "totals": {}}, totals="orders", counts="orders", report="totals counts")
    assert g.policy(g.units()[0]) == "slowest"
    g = build({"totals": slow}, totals="orders", counts="orders", report="totals counts")
    assert g.policy(g.units()[0]) == "fastest"
