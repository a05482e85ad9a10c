"""R ⋉ K: the rows of R whose key columns occur in K; NULL matches NULL where K groups, nothing where it joins."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys, keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from tests.unit.dvm.algebra import first
from tests.unit.dvm.shop import view

TABLE = "SELECT a.id, a.g, a.v FROM public.a"


def _sql(node: Node) -> str:
    made = view(TABLE)
    return made.render(node, made.example_binding())


def _restricted(*columns: str, null_matches: bool = True) -> str:
    scan = first(TABLE, Scan)
    change = Differ(["1"]).delta(scan)
    assert change is not None
    keys = keys_from(change, columns, null_matches=null_matches)
    assert keys is not None
    return _sql(Restrict(scan, keys))


def test_a_key_that_is_never_null_is_compared_as_it_is() -> None:
    assert "IS NULL" not in _restricted("id")


def test_a_null_of_a_grouping_finds_the_nulls() -> None:
    assert '"g" IS NOT DISTINCT FROM NULL AND EXISTS' in _restricted("g")


def test_a_null_of_a_join_finds_nothing() -> None:
    assert "IS NULL AND" not in _restricted("g", null_matches=False)


def test_several_columns_that_may_be_null_are_compared_as_one_record() -> None:
    assert "SELECT ROW(" in _restricted("g", "v")


def test_what_is_asked_of_a_table_is_a_hint_at_its_leaf() -> None:
    scan = first(TABLE, Scan)
    change = Differ(["1"]).delta(scan)
    assert change is not None
    keys = keys_from(change, ["id"])
    assert keys is not None
    hint = scan.restrict(keys)
    assert isinstance(hint, Restrict)
    assert not hint.exact


@pytest.mark.parametrize("narrow_all", [False, True], ids=["in PostgreSQL", "in Spark"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.id AS i FROM public.a JOIN public.b ON b.g = a.g AND b.v = a.v",
        "SELECT a.id, b.id AS i FROM public.a LEFT JOIN public.b ON b.g = a.g AND b.v = a.v",
        "SELECT a.id, b.id AS i FROM public.a FULL JOIN public.b ON b.g = a.g AND b.v = a.v",
        "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b WHERE b.g = a.g AND b.v = a.v)",
        "SELECT a.id FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b WHERE b.g = a.g AND b.p = a.p)",
        "SELECT a.g, a.v, array_agg(a.t) AS t FROM public.a GROUP BY a.g, a.v",
        "SELECT a.g, a.v FROM public.a EXCEPT SELECT b.g, b.v FROM public.b",
        "SELECT a.id, rank() OVER (PARTITION BY a.g, a.v ORDER BY a.p) AS r FROM public.a",
    ],
)
def test_a_key_set_has_the_columns_by_which_it_is_asked(query: str, narrow_all: bool) -> None:
    tree = view(query).tree
    assert tree is not None
    change = Differ(["1", "2"], narrow_all=narrow_all).delta(tree)
    assert change is not None
    restricted = [node for node in descendants(change) if isinstance(node, Restrict)]
    for node in restricted:
        targets, keys = zip(*node.keys.pairs, strict=True)
        assert set(targets) <= set(node.child.names)
        assert set(keys) <= set(node.keys.relation.names)
        assert isinstance(node.keys.null_matches, bool)
        if isinstance(node.keys.relation, DistinctKeys):
            assert node.keys.relation.keep_nulls == node.keys.null_matches
