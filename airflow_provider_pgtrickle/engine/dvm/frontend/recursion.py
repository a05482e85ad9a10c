"""A recursive WITH item is split into its base and its step, if the proof in `rederive` holds for both.

    WITH RECURSIVE r AS (B UNION ALL S(r))  →  Recursion(base=B, step=S(Itself))

SEARCH and CYCLE are spelled out before. If the proof doesn't hold, the item stays as it is and says why.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import is_aggregate
from airflow_provider_pgtrickle.engine.dvm.expressions import tables_of
from airflow_provider_pgtrickle.engine.dvm.frontend.bind import bind_nested
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import item_names
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_unwatched import expressions_of, refuse_unwatched
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import CommonTable
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_keys import spell_keys
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_walk import Spelled, Unfit, spell_walk
from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import Itself, Recursion, path, settle
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused

#: The clauses of a subquery that may leave open which rows, or which of equal values, it gives.
_OPEN = ("with_", "distinct", "group", "having", "order", "limit", "offset", "sample")


def recursion(builder: Builder, name: str, cte: CommonTable) -> tuple[Native, list[str]]:
    """Return the item as a `Recursion`, or as it was with the reason why it isn't one; and its columns' names."""
    form, walk, native = cte, None, None
    try:
        if cte.walk is not None:
            form, walk = _spelled(name, cte)
        native = _as_written(builder, name, form)
        return _apart(builder, name, form, native, walk), form.names
    except Unfit as unfit:
        why = str(unfit)
    except Refused as refused:
        if refused.refusal.reason is Reason.TOO_LARGE:
            raise
        why = refused.refusal.message
    if native is None or form is not cte:
        native = _as_written(builder, name, cte)
    return replace(native, why=why), cte.names


def _as_written(builder: Builder, name: str, cte: CommonTable) -> Native:
    bound = bind_nested(cte.alone(name), cte.scope)
    spell_keys(bound, builder.own_aggregates)
    builder.note_reads(bound)
    return Native(bound, tuple(builder.name(o) for o in cte.names), tables_of(bound))


def _spelled(name: str, cte: CommonTable) -> tuple[CommonTable, Spelled]:
    """Return the item with SEARCH and CYCLE spelled out."""
    assert cte.recursive_with is not None
    clause = cte.recursive_with.copy()
    item = next(item for item in clause.expressions if item.alias == name)
    spelled = spell_walk(item, cte.asked)
    item.replace(spelled.item)
    return replace(cte, query=spelled.item.this, outputs=tuple(item_names(spelled.item)), recursive_with=clause,
                   walk=None, built=None), spelled  # fmt: skip


def _apart(builder: Builder, name: str, cte: CommonTable, native: Native, walk: Spelled | None) -> Recursion:
    union, clause = cte.query, cte.recursive_with
    if not isinstance(union, exp.Union) or any(union.args.get(c) for c in ("with_", "order", "limit", "offset")):
        raise Unfit("the item is not one UNION of where it begins and its step")
    is_all = union.args.get("distinct") is False
    base, outputs = builder.query(union.this, cte.scope.child())
    itself = Itself(tuple(replace(c, name=builder.name(c.name)) for c in base.columns))
    scope = cte.scope.child()
    named = tuple(cte.outputs or ()) + tuple(outputs[len(cte.outputs or ()) :])
    scope.ctes[name] = CommonTable(union, None, cte.scope, clause, built=(itself, list(named)))
    step, _ = builder.query(union.expression, scope)
    refuse_unwatched(base)
    refuse_unwatched(step)
    _require_linear(base, step, itself, builder.own_aggregates)
    itself, step = settle(base, step, itself)
    made, compared = (walk.made, walk.compared) if walk else ((), ())
    for held, output in zip(itself.columns, named, strict=True):
        asking = "CYCLE" if output in compared else "UNION" if not is_all and output not in made else ""
        if asking and not held.is_image:
            raise Unfit(f"under {asking}, values of {output} may be equal and look different, or may not be known to")
    kept = {f.name: getattr(native, f.name) for f in fields(Native)}
    return Recursion(**kept, base=base, step=step, itself=itself, is_all=is_all)


def _require_linear(base: Node, step: Node, itself: Itself, own_aggregates: frozenset[str]) -> None:
    """Raise `Unfit` unless the step takes each row by itself and all else looks the same whenever it is computed."""
    along = path(step, itself)
    if along is None:
        raise Unfit("the step does not refer to it where it can be followed")
    for node, child in pairwise(along):
        if not node.steps_from(child):
            raise Unfit(f"its step reaches it through {node.label()}")
    for node in (*descendants(base), *descendants(step)):
        if node.shared and node in along:
            raise Unfit(f"it holds {node.label()}")
        if (why := node.unsettled()) is not None and not _is_plain(node, own_aggregates):
            raise Unfit(why)
        if isinstance(node, Project) and node.makes_sets and node in along:
            raise Unfit(f"its step makes several rows of one: {node.label()}")


def _is_plain(node: Node, own_aggregates: frozenset[str]) -> bool:
    """Whether what makes it unsettled is subqueries that leave nothing open: FROM, WHERE and counts alone."""
    if not isinstance(node, Dependent):
        return False
    queries = [query for x in expressions_of(node) for query in x.find_all(exp.Query)]
    if any(not isinstance(q, (exp.Select, exp.Subquery)) or any(map(q.args.get, _OPEN)) for q in queries):
        return False
    calls = (call for query in queries for call in query.find_all(exp.Func, exp.Window, exp.Dot))
    return not any(
        isinstance(c, exp.Window) or (is_aggregate(c, own_aggregates) and not isinstance(c, exp.Count)) for c in calls
    )
