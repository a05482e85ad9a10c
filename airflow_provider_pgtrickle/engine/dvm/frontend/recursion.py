"""A recursive WITH item is split into its base and its step, if the proof in `rederive` holds for both.

    WITH RECURSIVE r AS (B UNION ALL S(r))  →  Recursion(base=B, step=S(Itself))

If the proof doesn't hold, the item stays as it is and says why.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_unwatched import refuse_unwatched
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import CommonTable
from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import Itself, Recursion, path, settle
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


class _Unfit(Exception):
    """The item can't be split; the message says why."""


def recursion(builder: Builder, name: str, cte: CommonTable, native: Native) -> Native:
    """Return the item as a `Recursion`, or as it was with the reason why it isn't one."""
    try:
        return _apart(builder, name, cte, native)
    except _Unfit as unfit:
        return replace(native, why=str(unfit))
    except Refused as refused:
        if refused.refusal.reason is Reason.TOO_LARGE:
            raise
        return replace(native, why=refused.refusal.message)


def _apart(builder: Builder, name: str, cte: CommonTable, native: Native) -> Recursion:
    union, clause = cte.query, cte.recursive_with
    if clause is None or cte.walk_columns:
        raise _Unfit("SEARCH and CYCLE add columns that depend on the whole walk")
    if not isinstance(union, exp.Union) or any(union.args.get(c) for c in ("with_", "order", "limit", "offset")):
        raise _Unfit("the item is not one UNION of where it begins and its step")
    is_all = union.args.get("distinct") is False
    base, outputs = builder.query(union.this, cte.scope.child())
    itself = Itself(tuple(replace(c, name=builder.name(c.name)) for c in base.columns))
    scope = cte.scope.child()
    named = tuple(cte.outputs or ()) + tuple(outputs[len(cte.outputs or ()) :])
    scope.ctes[name] = CommonTable(union, None, cte.scope, clause, built=(itself, list(named)))
    step, _ = builder.query(union.expression, scope)
    refuse_unwatched(base)
    refuse_unwatched(step)
    _require_linear(base, step, itself)
    itself, step = settle(base, step, itself)
    if not is_all:
        for held, output in zip(itself.columns, named, strict=True):
            if not held.is_image:
                raise _Unfit(f"under UNION, values of {output} may be equal and look different, or may not be known to")
    kept = {f.name: getattr(native, f.name) for f in fields(Native)}
    return Recursion(**kept, base=base, step=step, itself=itself, is_all=is_all)


def _require_linear(base: Node, step: Node, itself: Itself) -> None:
    """Raise `_Unfit` unless the step takes each row by itself and all else looks the same whenever it is computed."""
    along = path(step, itself)
    if along is None:
        raise _Unfit("the step does not refer to it where it can be followed")
    for node, child in pairwise(along):
        if not node.steps_from(child):
            raise _Unfit(f"its step reaches it through {node.label()}")
    for node in (*descendants(base), *descendants(step)):
        if node.shared:
            raise _Unfit(f"it holds {node.label()}")
        if (why := node.unsettled()) is not None:
            raise _Unfit(why)
        if isinstance(node, Project) and node.makes_sets and node in along:
            raise _Unfit(f"its step makes several rows of one: {node.label()}")
