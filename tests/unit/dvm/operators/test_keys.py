"""K = the distinct values of some expressions over a relation; weights don't matter."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Keys, Node
from airflow_provider_pgtrickle.engine.dvm.operators.keys import expression_keys, keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from tests.unit.dvm.algebra import first
from tests.unit.dvm.shop import view

TABLE = "SELECT a.id, a.g FROM public.a"


def _sql(keys: Keys | None) -> str:
    made = view(TABLE)
    assert keys is not None
    return made.render(keys.relation, made.example_binding())


def _change() -> Node:
    found = Differ(["1"]).delta(first(TABLE, Scan))
    assert found is not None
    return found


def test_the_keys_of_a_table_are_distinct() -> None:
    assert "SELECT DISTINCT" in _sql(keys_from(first(TABLE, Scan), ["g"]))


def test_those_of_a_change_are_not_worth_it() -> None:
    """They hardly repeat, and after DISTINCT PostgreSQL expects 200 rows."""
    assert "DISTINCT" not in _sql(keys_from(_change(), ["g"]))


def test_a_weight_is_no_part_of_a_key() -> None:
    assert _sql(keys_from(_change(), ["g"])).rpartition("\n")[2].startswith('SELECT __pgt_q1."g" AS "g" FROM')


def test_a_grouping_has_a_group_of_nulls_and_a_join_has_none() -> None:
    assert "IS DISTINCT FROM NULL" not in _sql(keys_from(_change(), ["g"]))
    assert "IS DISTINCT FROM NULL" in _sql(expression_keys(_change(), [("x", column("g"))]))


def test_it_is_computed_once() -> None:
    keys = keys_from(_change(), ["g"])
    assert keys is not None
    assert keys.relation.shared
