"""The contract of a node: what an operator doesn't say has a default that is safe for any operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.prune import prune
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Node, Unary, descendants, folded, rewritten
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.proof import open_columns
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import total_order
from tests.unit.dvm.algebra import first
from tests.unit.dvm.shop import view

QUERIES = (
    "SELECT a.g, sum(b.v) AS s FROM public.a JOIN public.b ON b.g = a.g WHERE a.v > 1 GROUP BY a.g",
    "SELECT a.id, row_number() OVER (PARTITION BY a.g ORDER BY a.v) AS n FROM public.a",
    "SELECT a.g FROM public.a LEFT JOIN public.b ON a.id = b.id EXCEPT SELECT b.g FROM public.b",
    "SELECT a.g FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b WHERE b.g = a.g)",
    "SELECT a.g FROM public.a WHERE EXISTS (SELECT 1 FROM public.b WHERE b.g = a.g) UNION SELECT b.g FROM public.b",
    "WITH RECURSIVE r AS (SELECT a.id, a.g FROM public.a UNION ALL SELECT b.id, b.g FROM public.b JOIN r ON b.g = r.id)"
    " SELECT r.id, r.g FROM r",
)


@dataclass(frozen=True, eq=False)
class Reversed(Unary):
    """An operator that says no more than it must."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns[::-1]

    def label(self) -> str:
        return "Reversed"


def nodes() -> Iterator[Node]:
    """Every node of the queries' trees and of their changes."""
    for query in QUERIES:
        made = view(query)
        assert made.tree is not None
        change = made.plan(made.sources)
        assert change is not None
        yield from descendants(made.tree)
        yield from descendants(change)


def scan() -> Node:
    return first("SELECT a.id, a.v FROM public.a", Scan)


def test_an_operator_says_at_least_what_it_reads_what_it_gives_and_what_it_is_called() -> None:
    class Silent(Node):
        def with_inputs(self, inputs: Sequence[Node]) -> Node:
            return self

    with pytest.raises(TypeError, match=r"columns.*inputs.*label"):
        Silent()  # type: ignore[abstract]


def test_every_node_over_its_own_inputs_is_what_it_was() -> None:
    for node in nodes():
        again = node.with_inputs(node.inputs)
        assert type(again) is type(node)
        assert again.inputs == node.inputs
        assert (again.columns, again.unique_keys, again.label()) == (node.columns, node.unique_keys, node.label())


def test_every_node_names_groups_that_it_has() -> None:
    for node in nodes():
        assert set(node.groups or ()) <= set(node.names)


def test_what_an_operator_reads_are_columns_of_its_inputs_or_its_own() -> None:
    for node in nodes():
        below = {name for child in (*node.inputs, *node.inner) for name in child.names}
        assert node.reads(set(node.names)) <= below | set(node.names), node.label()


def test_one_that_says_nothing_is_read_whole_and_trusted_with_nothing() -> None:
    node = Reversed(scan())
    assert node.reads(set()) == set(node.child.names)
    assert node.unsettled() == "it holds Reversed"
    assert node.groups is None
    assert not node.row_wise
    assert not node.steps_from(node.child)
    with pytest.raises(TypeError, match="no operator of a query"):
        Differ(["1"]).delta(node)


def test_the_passes_need_no_line_for_a_new_operator() -> None:
    node = Reversed(scan())
    assert prune(node).names == node.names
    assert total_order(node).names == node.names
    assert open_columns(node).order == frozenset()


def test_what_is_read_twice_is_rewritten_once() -> None:
    shared = scan()
    twice = rewritten(InnerJoin((shared, shared)), lambda node, fresh: Reversed(fresh) if node is shared else fresh)
    left, right = twice.inputs
    assert left is right


def test_each_node_is_asked_once_and_the_lowest_first() -> None:
    asked: list[Node] = []
    tree = view(QUERIES[0]).tree
    assert tree is not None

    def ask(node: Node, of: Callable[[Node], int]) -> int:
        asked.append(node)
        return 1 + sum(of(i) for i in node.inputs)

    folded(tree, ask)
    assert len(asked) == len(set(asked)) == len(list(descendants(tree)))
    assert all(asked.index(i) < asked.index(node) for node in asked for i in node.inputs)


def test_deep_trees_need_no_deep_stack() -> None:
    node: Node = scan()
    for _ in range(5_000):
        node = Reversed(node)
    assert folded(node, lambda n, of: 1 + sum(of(i) for i in n.inputs)) == 5_001


def test_a_filter_passes_what_it_is_over() -> None:
    found = first("SELECT a.id FROM public.a WHERE a.v > 1", Filter)
    assert dict(found.passed) == {name: name for name in found.names}
