"""±R: a bag's rows count the sign; a weighted row's weight is multiplied by it."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Expose, Weigh, difference
from tests.unit.dvm.algebra import first, written
from tests.unit.dvm.shop import view

TABLE = "SELECT a.id FROM public.a"


def _sql(node: Node) -> str:
    made = view(TABLE)
    return made.render(node, made.example_binding()).rpartition("\n")[2]


@pytest.mark.parametrize(
    ("signs", "weight"), [((1,), "1"), ((-1,), "-1"), ((-1, -1), "1"), ((1, -1), "-1"), ((-1, 1), "-1")]
)
def test_signs_multiply(signs: tuple[int, ...], weight: str) -> None:
    node = first(TABLE, Scan)
    for sign in signs:
        node = Weigh(node, sign)
    assert _sql(node).startswith(f'SELECT {weight} AS "__pgt_w"')


def test_a_change_is_negated_row_by_row() -> None:
    change = Differ(["1"]).delta(first(TABLE, Scan))
    assert change is not None
    assert _sql(Weigh(change, -1)).startswith('SELECT -__pgt_q1."__pgt_w" AS "__pgt_w"')


def test_a_difference_is_new_less_old() -> None:
    scan = first(TABLE, Scan)
    assert written(difference(scan, Differ(["1"]).old(scan))) == "a − a⁰"


@pytest.mark.parametrize(("sign", "text"), [(1, "a"), (-1, "−a"), (2, "2·a"), (-2, "−2·a")])
def test_a_weight_that_no_rule_has_is_seen(sign: int, text: str) -> None:
    assert written(Weigh(first(TABLE, Scan), sign)) == text


def test_an_exposed_weight_is_a_column_like_any_other() -> None:
    node = Expose(Weigh(first(TABLE, Scan), -1), "w")
    assert not node.weighted
    assert node.names == ("w", "id")
