"""1,000 tables: built at once, and one change re-planned without looking at the rest."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.graph import Graph, Node
from airflow_provider_pgtrickle.engine.graph import dag as dag_module


def thousand_tables() -> list[Node]:
    """Forty parts of 25 tables, with chains and diamonds in each."""
    rng = random.Random(7)
    nodes = []
    for part in range(40):
        names = [f"p{part:02}_t{i:02}" for i in range(25)]
        for i, name in enumerate(names):
            pool = [*names[max(0, i - 6) : i], f"base_{part}", f"base_{part}_b"]
            nodes.append(Node(name, frozenset(rng.sample(pool, min(len(pool), rng.choice((1, 1, 2)))))))
    return nodes


def plan(graph: Graph) -> None:
    graph.units(), graph.levels(), graph.components(), graph.effective_schedules(60)


def test_only_what_lies_downstream_of_a_change_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = thousand_tables()
    started = time.perf_counter()
    graph = Graph.build(nodes)
    plan(graph)
    built = time.perf_counter() - started

    looked_at: list[str] = []
    real = dag_module.diamond_at

    def noted(name: str, *rest: Any) -> Any:
        looked_at.append(name)
        return real(name, *rest)

    monkeypatch.setattr(dag_module, "diamond_at", noted)
    started = time.perf_counter()
    changed = graph.with_node(Node("p07_t10", frozenset({"p07_t03", "base_7"})))
    plan(changed)
    replanned = time.perf_counter() - started
    print(f"\n1,000 tables: built in {built * 1000:.0f} ms, one change re-planned in {replanned * 1000:.1f} ms")

    assert "p07_t10" in looked_at
    assert set(looked_at) <= {"p07_t10", *changed.downstream("p07_t10")}
    assert len(looked_at) <= 25


def test_in_a_dense_graph_only_the_diamonds_around_a_change_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(7)
    names = [f"t{i:04}" for i in range(1000)]
    nodes = [
        Node(name, frozenset(rng.sample([*names[max(0, i - 40) : i], "base_a", "base_b"], min(i + 2, 3))))
        for i, name in enumerate(names)
    ]
    graph = Graph.build(nodes)
    looked_at: list[str] = []
    real = dag_module.diamond_at

    def noted(name: str, *rest: Any) -> Any:
        looked_at.append(name)
        return real(name, *rest)

    monkeypatch.setattr(dag_module, "diamond_at", noted)
    replaced = Node("t0500", frozenset({"t0497", "base_a"}))
    changed = graph.with_node(replaced)

    assert len(looked_at) < len(changed.downstream("t0500")) / 2
    assert changed.diamonds() == Graph.build([*(node for node in nodes if node.name != "t0500"), replaced]).diamonds()


def test_a_new_schedule_leaves_the_shape_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = thousand_tables()
    graph = Graph.build(nodes)
    monkeypatch.setattr(dag_module, "diamond_at", lambda *_: pytest.fail("no diamond can have changed"))
    changed = graph.with_node(Node(nodes[5].name, nodes[5].sources, "5m"))
    assert changed.order() == graph.order()
    assert changed.effective_schedules(60)[nodes[5].name].seconds == 300
