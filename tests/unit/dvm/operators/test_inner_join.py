"""Δ(L ⋈ R) = ΔL ⋈ R¹ + L¹ ⋈ ΔR − ΔL ⋈ ΔR; what did not change has no term."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.explain import looked_up
from airflow_provider_pgtrickle.engine.dvm.explain import written as tree
from airflow_provider_pgtrickle.engine.dvm.expressions import column, plain_column
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from tests.unit.dvm.algebra import change, written
from tests.unit.dvm.shop import delta, schema, table, view

TWO = "SELECT a.id, b.id AS i FROM public.a JOIN public.b ON b.g = a.g"
FOUR = schema(*(table(name, number=n) for n, name in enumerate("abcd", 1)))
GROUPED = "(SELECT c.g, c.v, max(c.p) AS m FROM public.c GROUP BY c.g, c.v) AS x"


def joined(text: str, columns: str = "a.id, b.id AS i, c.id AS j") -> InnerJoin:
    """The join of a FROM."""
    root = view(f"SELECT {columns} FROM {text}", FOUR).tree
    assert root is not None
    return next(n for n in descendants(root) if isinstance(n, InnerJoin))


def changed(join: InnerJoin, sources: str) -> Node:
    found = Differ(sources.split()).delta(join)
    assert found is not None
    return found


def conditions(plan: Node) -> dict[str, str]:
    """Each join of a plan, and its condition."""
    joins = [n for n in descendants(plan) if isinstance(n, InnerJoin)]
    return {written(n): tree(n).splitlines()[0].replace('"', "").removeprefix("InnerJoin on ") for n in joins}


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (TWO, "1 2", "(Δa ⋈ b) + (a ⋈ Δb) − (Δa ⋈ Δb)"),
        (TWO, "1", "(Δa ⋈ b)"),
        (TWO, "2", "(a ⋈ Δb)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, InnerJoin, changed) == delta


def test_each_term_of_its_change_has_every_condition_on_its_inputs() -> None:
    join = joined("public.a JOIN public.b ON b.g = a.g AND b.v < a.v JOIN public.c ON c.v = b.v AND c.p > a.p + b.p")
    first, second = "g_2 = g AND v_2 < v", "v_3 = v_2 AND p_3 > p + p_2"
    two = "(Δa ⋈ b) + (a ⋈ Δb) − (Δa ⋈ Δb)"
    assert conditions(changed(join, "1 2 3")) == {
        "(Δa ⋈ b)": first,
        "(a ⋈ Δb)": first,
        "(Δa ⋈ Δb)": first,
        f"(({two}) ⋈ c)": second,
        "(a ⋈ b ⋈ Δc)": f"{first} AND {second}",
        f"(({two}) ⋈ Δc)": second,
    }


def test_a_condition_may_be_about_all_columns_that_are_read() -> None:
    join = joined("public.a JOIN public.b ON a.id = b.id", "a.id")
    assert conditions(changed(join, "1")) == {"(Δa ⋈ b)": "id = id_2"}


def test_a_fourth_input_repeats_no_condition_of_the_first() -> None:
    join = joined("public.a, public.b, public.c, public.d WHERE b.g = a.g AND c.g = b.v AND d.g = c.v")
    assert conditions(changed(join, "1")) == {
        "(b ⋈ Δa)": "g_2 = g",
        "((b ⋈ Δa) ⋈ c)": "g_3 = v_2",
        "(((b ⋈ Δa) ⋈ c) ⋈ d)": "g_4 = v_3",
    }
    assert conditions(changed(join, "4"))["(b ⋈ a ⋈ c ⋈ Δd)"] == "g_2 = g AND g_3 = v_2 AND g_4 = v_3"


def test_inputs_are_taken_in_an_order_in_which_each_is_tied_to_those_before() -> None:
    join = joined("public.a, public.b, public.c WHERE c.g = a.g AND c.v = b.v")
    plan = changed(join, "1")
    assert written(plan) == "((c ⋈ Δa) ⋈ b)"
    assert plan.names == join.names
    assert isinstance(plan, Project)
    assert [plain_column(x) for _, x in plan.items] == list(join.names)


def test_inputs_in_the_order_of_the_query_need_no_renaming() -> None:
    assert not isinstance(changed(joined("public.a JOIN public.b ON b.g = a.g", "a.id"), "1"), Project)


def test_an_input_that_is_looked_up_by_its_key_is_taken_before_others() -> None:
    join = joined("public.a, public.b, public.c WHERE b.g = a.v AND c.id = a.g AND c.v = b.v")
    assert written(changed(join, "1")) == "((Δa ⋈ c) ⋈ b)"


def test_inputs_that_nothing_ties_yet_come_last() -> None:
    join = joined("public.a, public.b, public.c, public.d WHERE c.g = a.g AND d.v = c.v AND b.g = d.g")
    assert written(changed(join, "3")) == "(((Δc ⋈ a) ⋈ d) ⋈ b)"


@pytest.mark.parametrize(
    ("tied", "delta"),
    [
        # From c both others are found by their keys; from a or b, one.
        ("c.g = a.id AND c.v = b.id", "((Δc ⋈ a) ⋈ b)"),
        # c has most ties, but from it only b is found by its key; from a, both others are.
        ("c.id = a.g AND b.id = c.v", "((a ⋈ Δc) ⋈ b)"),
    ],
)
def test_the_order_begins_where_most_inputs_are_looked_up_by_a_key(tied: str, delta: str) -> None:
    assert written(changed(joined(f"public.a, public.b, public.c WHERE {tied}"), "3")) == delta


def test_a_condition_may_compare_a_column_with_an_expression() -> None:
    join = joined("public.a JOIN public.b ON b.v = a.v AND b.g = a.g + 1", "a.id, b.id AS i")
    assert conditions(changed(join, "1")) == {"(Δa ⋈ b)": "v_2 = v AND g_2 = g + 1"}
    assert view(TWO.replace("a.g", "a.g + 1")).identity == ("id", "i")


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("public.a, public.b, public.c", ("id", "i", "j")),
        ("public.a, public.b, public.c WHERE b.id = a.g", ("id", "j")),
        ("public.a, public.b, public.c WHERE b.id = a.g AND c.id = b.g", ("id",)),
        # c is found by b and b by c, so one of them stays.
        ("public.a, public.b, public.c WHERE c.id = b.id", ("id", "i")),
        # b's key equals another column of b, which says nothing of a.
        ("public.a, public.b, public.c WHERE c.id = a.g AND b.id = b.g", ("id", "i")),
    ],
)
def test_an_input_that_the_others_determine_adds_nothing_to_the_identity(text: str, identity: tuple[str, ...]) -> None:
    assert view(f"SELECT a.id, b.id AS i, c.id AS j FROM {text}", FOUR).identity == identity


def test_groups_are_computed_for_the_keys_that_changed_beside_them() -> None:
    plan = changed(joined(f"public.a JOIN {GROUPED} ON x.g = a.g", "a.id, x.m"), "1")
    assert list(looked_up(plan)) == [("3", ("g",))]


def test_a_condition_that_is_no_equality_gives_no_keys() -> None:
    plan = changed(joined(f"public.a JOIN {GROUPED} ON x.v < a.v AND x.g = a.g", "a.id, x.m"), "1")
    assert list(looked_up(plan)) == [("3", ("g",))]
    plan = changed(joined(f"public.a JOIN {GROUPED} ON x.v < a.v", "a.id, x.m"), "1")
    assert list(looked_up(plan)) == []


def test_groups_are_computed_for_keys_that_several_inputs_give() -> None:
    """The keys are expressions over Δb and a, so both are joined before x is restricted."""
    text = f"{GROUPED} JOIN public.a ON x.g = a.g JOIN public.b ON b.id = a.v AND x.v = b.v + a.p"
    plan = changed(joined(text, "a.id, b.id AS i, x.m"), "2")
    assert list(looked_up(plan)) == [("3", ("g", "v"))]
    assert conditions(plan) == {
        "(γ(c) ⋈ a ⋈ Δb)": "g_2 = g_3 AND id_3 = v_3 AND v_2 = v_4 + p_2",
        "(Δb ⋈ a)": "id_3 = v_3",
    }


def test_tables_are_left_to_their_indexes() -> None:
    plan = changed(joined("public.a JOIN public.b ON b.g = a.g", "a.id"), "1")
    assert list(looked_up(plan)) == []


def test_for_spark_tables_are_restricted_as_well() -> None:
    join = joined("public.a JOIN public.b ON b.g = a.g JOIN public.c ON c.v = b.v")
    plan = Differ(["1"], narrow_all=True).delta(join)
    assert plan is not None
    assert sorted(looked_up(plan)) == [("2", ("g",)), ("3", ("v",))]
    plan = Differ(["3"], narrow_all=True).delta(join)
    assert plan is not None
    assert sorted(looked_up(plan)) == [("1", ("g",)), ("2", ("v",))]


def test_keys_are_pushed_into_every_input_that_has_a_column_equal_to_theirs() -> None:
    """string_agg is computed anew for the groups of a that changed, and so for the rows of b that can join them."""
    text = "public.a JOIN public.b ON b.g = a.g JOIN public.c ON c.v = a.v"
    plan = view(f"SELECT a.g, string_agg(b.t, c.t ORDER BY b.t, c.t) AS s FROM {text} GROUP BY a.g", FOUR).plan(["1"])
    assert plan is not None
    assert sorted(looked_up(plan)) == [("1", ("g",)), ("2", ("g",))]


def test_as_sql_its_conditions_are_a_where_and_its_weight_is_a_product() -> None:
    text = delta(f"{TWO} AND b.v > a.v") or ""
    assert """FROM "__pgt_window_1" AS __pgt_q2 CROSS JOIN "public"."b" AS __pgt_q3 WHERE""" in text
    assert """WHERE (__pgt_q3."g" = __pgt_q2."g") AND (__pgt_q3."v" > __pgt_q2."v")""" in text
    assert """SELECT __pgt_q2."__pgt_w", """ in text
    assert """SELECT -__pgt_q6."__pgt_w" * __pgt_q7."__pgt_w" AS "__pgt_w", """ in text


def test_as_sql_its_rows_without_a_change_have_no_weight() -> None:
    assert "__pgt_w" not in view("SELECT a.id, b.id AS i FROM public.a CROSS JOIN public.b").storage_query()


def test_as_sql_it_is_one_item_of_the_join_around_it() -> None:
    outer = "public.c LEFT JOIN (public.a CROSS JOIN public.b) ON a.g = c.g AND b.g = c.g"
    text = view(f"SELECT c.id, a.id AS i, b.id AS j FROM {outer}", FOUR).storage_query()
    assert "LEFT JOIN (SELECT " in text


def test_an_expression_is_computed_at_the_input_that_it_is_about() -> None:
    join = joined("public.a JOIN public.b ON b.g = a.g", "a.id, a.v, b.v AS w")
    a, b = join.relations
    for item, input_of_it in ((("x", column("v") * 2), a), (("y", column("v_2") * 2), b)):
        made = join.computing(item)
        assert isinstance(made, InnerJoin)
        (fresh,) = set(made.relations) - {a, b}
        assert isinstance(fresh, Project)
        assert fresh.child is input_of_it
        assert fresh.names == (*input_of_it.names, item[0])
        assert made.terms == join.terms
        assert [r is f for r, f in zip(made.relations, (a, b), strict=True)] == [input_of_it is b, input_of_it is a]
    assert join.computing(("both", column("v") + column("v_2"))) is None


def test_an_expression_may_be_about_all_columns_of_an_input() -> None:
    join = joined("public.a JOIN public.b ON b.id = a.id", "a.id")
    assert join.computing(("x", column("id") * 2)) is not None


def test_an_expression_over_a_join_within_a_join_goes_down_to_its_relation() -> None:
    inner = joined("public.a JOIN public.b ON b.g = a.g", "a.id, a.v, b.v AS w")
    outer = InnerJoin((inner,))
    made = outer.computing(("x", column("v") * 2))
    assert made is not None
    assert isinstance(made.inputs[0], InnerJoin)


def test_a_recursion_may_step_through_it() -> None:
    text = """WITH RECURSIVE r (id) AS (SELECT a.id FROM public.a UNION
        SELECT b.v AS id FROM r JOIN public.b ON b.g = r.id) SELECT r.id FROM r"""
    assert view(text).sink == "delete and rederive"


def test_a_tree_shows_its_conditions() -> None:
    assert tree(joined("public.a JOIN public.b ON b.g = a.g AND b.v = a.v", "a.id")).splitlines()[0] == (
        'InnerJoin on "g_2" = "g" AND "v_2" = "v"'
    )
    assert tree(joined("public.a CROSS JOIN public.b", "a.id")).splitlines()[0] == "CrossJoin"
