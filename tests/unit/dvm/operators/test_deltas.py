"""What a change reads: each operator's delta, by its shape. That it is right is the oracle's to say."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import DeltaScan, Scan
from tests.unit.dvm.shop import delta, schema, table, view

JOIN = "SELECT a.id, b.t FROM public.a JOIN public.b ON b.id = a.g"


def _nodes(root: Node | None) -> list[Node]:
    found: dict[int, Node] = {}
    stack = [root] if root is not None else []
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack.extend(node.inputs)
    return list(found.values())


def _plan(query: str, changed: str) -> list[Node]:
    return _nodes(view(query).plan(changed.split()))


def test_nothing_changes_where_no_source_changed() -> None:
    assert delta(JOIN, changed=()) is None


def test_a_row_by_row_query_reads_nothing_but_the_changes() -> None:
    nodes = _plan("SELECT a.id, a.v + 1 AS v FROM public.a WHERE a.g > 1", "1")
    assert any(isinstance(n, DeltaScan) for n in nodes)
    assert not any(isinstance(n, Scan) for n in nodes)


@pytest.mark.parametrize(("changed", "read"), [("1", {"b"}), ("2", {"a"})])
def test_a_join_reads_the_other_side_of_what_changed(changed: str, read: set[str]) -> None:
    assert {n.source.name for n in _plan(JOIN, changed) if isinstance(n, Scan)} == read


def test_a_join_reads_no_old_state() -> None:
    assert not any(n.is_old for n in _plan(JOIN, "1 2") if isinstance(n, Scan))


def test_union_all_reads_nothing_but_the_changes() -> None:
    nodes = _plan("SELECT a.id FROM public.a UNION ALL SELECT b.id FROM public.b", "1 2")
    assert not any(isinstance(n, Scan) for n in nodes)


def test_running_sums_read_no_table() -> None:
    nodes = _plan("SELECT a.g, count(*) AS n, sum(a.v) AS s, avg(a.v) AS m FROM public.a GROUP BY a.g", "1")
    assert not any(isinstance(n, Scan) for n in nodes)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.g, string_agg(a.t, ',' ORDER BY a.id) AS s FROM public.a GROUP BY a.g",
        "SELECT a.id, rank() OVER (PARTITION BY a.g ORDER BY a.v) AS r FROM public.a",
        "SELECT a.g FROM public.a EXCEPT SELECT b.g FROM public.b",
        "SELECT x.g, y.n FROM public.b x JOIN (SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g) y ON y.g = x.id",
    ],
)
def test_a_table_below_a_group_is_read_by_the_keys_that_changed(query: str) -> None:
    nodes = _plan(query, "1 2")
    restricted = {id(n.child) for n in nodes if isinstance(n, Restrict)}
    below = [n for n in nodes if isinstance(n, Scan) and n.source.name == "a"]
    assert below
    assert all(id(n) in restricted for n in below)


@pytest.mark.parametrize(
    ("query", "identity", "keyed"),
    [
        ("SELECT a.id, a.v FROM public.a", ("id",), True),
        ("SELECT a.v FROM public.a", ("v",), False),
        ("SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g", ("g",), True),
        ("SELECT DISTINCT a.g, a.v FROM public.a", ("g", "v"), True),
        (JOIN, ("id",), True),
        ("SELECT a.id, b.id AS i FROM public.a JOIN public.b ON b.g = a.g", ("id", "i"), True),
        ("SELECT a.id, b.t FROM public.a LEFT JOIN public.b ON b.id = a.g", ("id",), True),
        ("SELECT count(*) AS n FROM public.a", (), True),
        ("SELECT a.id FROM public.a UNION ALL SELECT b.id FROM public.b", ("id",), False),
        ("SELECT a.id, generate_series(1, a.v) AS n FROM public.a", ("id", "n"), False),
        ("SELECT x.id, y.id AS i FROM public.a x FULL JOIN public.b y ON y.id = x.id", ("id", "i"), True),
    ],
)
def test_the_identity_is_the_smallest_key_there_is(query: str, identity: tuple[str, ...], keyed: bool) -> None:
    made = view(query)
    assert (made.identity, made.keyed) == (identity, keyed)


@pytest.mark.parametrize(
    ("query", "sink"),
    [
        ("SELECT a.id FROM public.a", "difference"),
        ("SELECT a.g, sum(a.v) AS s FROM public.a GROUP BY a.g", "merge by adding"),
        ("SELECT DISTINCT a.g FROM public.a", "merge by adding"),
        ("SELECT a.g, stddev(a.v) AS s, bool_or(a.v > 1) AS o FROM public.a GROUP BY a.g", "merge by adding"),
        ("SELECT a.g, count(DISTINCT a.v) AS s FROM public.a GROUP BY a.g", "replace by key"),
        ("SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g HAVING count(*) > 1", "replace by key"),
        ("SELECT a.g, generate_series(1, count(*)) AS n FROM public.a GROUP BY a.g", "replace by key"),
        ("SELECT a.id FROM public.a ORDER BY a.v LIMIT 3", "recompute"),
    ],
)
def test_the_sink_is_the_cheapest_that_is_exact(query: str, sink: str) -> None:
    assert view(query).sink == sink


def test_a_delta_computed_once_is_the_same_node() -> None:
    made = view("SELECT x.id FROM public.a x JOIN public.a y ON y.id = x.g")
    d = Differ(["1"])
    assert made.tree is not None
    assert d.delta(made.tree) is d.delta(made.tree)


def test_names_that_need_quotes_are_quoted() -> None:
    known = schema(table('se"lect', ("id", "a B")))
    text = delta('SELECT x."a B" FROM public."se""lect" x', known)
    assert text is not None
    assert '"new_a B" AS "a B"' in text
