"""A unit by declaration sees each source at one instant, whatever its shape, and takes along only what that needs."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from airflow_provider_pgtrickle.engine.graph import Graph, Node


def build(unit: str, policy: str = "fastest", **sources: str) -> Graph:
    """Tables with what they read; those of `unit` are declared as one."""
    ledger = unit.split()
    return Graph.build(
        Node(
            name,
            frozenset(text.split()),
            unit="ledger" if name in ledger else None,
            diamond_schedule_policy=policy if name in ledger else "fastest",
        )
        for name, text in sources.items()
    )


def test_tables_that_nothing_connects_are_one_unit() -> None:
    g = build("a b", a="orders", b="items", c="items")
    assert g.units() == [("a", "b"), ("c",)]
    assert g.declared(("a", "b")) == ("ledger",)
    assert g.declared(("c",)) == ()


def test_what_lies_between_is_taken_along() -> None:
    assert build("a d", a="orders", b="a", c="b", d="c").units() == [("a", "b", "c", "d")]


def test_that_through_which_a_common_source_is_reached_is_taken_along() -> None:
    assert build("a b", a="orders", x="orders", b="x").units() == [("a", "x", "b")]


def test_a_table_that_all_read_stays_outside() -> None:
    assert build("a b", x="orders", a="x", b="x").units() == [("x",), ("a", "b")]


def test_a_table_that_all_read_is_taken_along_where_its_source_is_read_directly_too() -> None:
    assert build("a b", x="orders", a="x orders", b="x").units() == [("x", "a", "b")]


def test_only_the_last_table_of_a_second_way_is_taken_along() -> None:
    assert build("a b", y="orders", x="y", a="x", b="y").units() == [("y",), ("b", "x", "a")]


def test_a_unit_makes_one_component() -> None:
    assert build("a b", a="orders", b="items", c="b").components() == [("a", "b", "c")]


def test_a_declared_unit_and_a_diamond_with_a_common_table_are_one() -> None:
    assert build("d e", b="orders", c="orders", d="b c", e="items").units() == [("b", "c", "d", "e")]


def test_the_policy_of_a_member_counts() -> None:
    g = build("a b", policy="slowest", a="orders", b="items", c="items")
    assert (g.policy(("a", "b")), g.policy(("c",))) == ("slowest", "fastest")


def test_a_table_that_joins_a_unit_is_seen_by_the_changed_graph() -> None:
    g = build("a", a="orders", b="items")
    assert g.units() == [("a",), ("b",)]
    assert g.with_node(Node("b", frozenset({"items"}), unit="ledger")).units() == [("a", "b")]


@pytest.mark.parametrize("seed", range(60))
def test_each_source_reaches_a_declared_unit_in_one_way(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"t{i:02}" for i in range(14)]
    bases = ["orders", "items", "customers", "regions"]
    reads = {
        name: set(rng.sample([*names[max(0, i - 6) : i], *bases], rng.choice((1, 1, 2, 3))))
        for i, name in enumerate(names)
    }
    ledgers = {name: rng.choice((None, None, None, "one", "two")) for name in names}
    g = Graph.build(
        Node(name, frozenset(sources), unit=ledgers[name], diamond_consistency="none")
        for name, sources in reads.items()
    )
    edges = nx.DiGraph([(source, reader) for reader, sources in reads.items() for source in sources])
    unit_of = {member: set(unit) for unit in g.units() for member in unit}
    assert sorted(name for unit in g.units() for name in unit) == names
    for ledger in ("one", "two"):
        members = [name for name in names if ledgers[name] == ledger]
        if not members:
            continue
        unit = unit_of[members[0]]
        assert unit.issuperset(members)
        # Two that overlap or wait for each other are one, and then it may be entered in more ways.
        if all(ledgers[name] in (ledger, None) for name in unit):
            ways = {source for name in unit for source in reads[name]} - unit
            for base in bases:
                assert sum(base == way or base in nx.ancestors(edges, way) for way in ways) <= 1
    # What a unit reads is refreshed before it.
    done: set[str] = set(bases)
    for together in g.units():
        assert {source for name in together for source in reads[name]} <= done | set(together)
        done |= set(together)
