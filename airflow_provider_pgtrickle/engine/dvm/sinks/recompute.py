"""Δstored = query¹ − stored. The query is computed anew if a source has changed. A query with ORDER BY and LIMIT is
computed anew only if a changed row can reach its rows.

The operator `reached` decides that: a changed row can't, if the rows are n and it sorts after all of them.
"""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Touched
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.reached import Reached
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import Recursion
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink, descend, visible


class Recompute(Sink):
    """ORDER BY with LIMIT, and a recursion that the first sink doesn't take. PostgreSQL evaluates them as a whole."""

    title = "recompute"

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        if not isinstance(descend(query.root), Native):
            return None
        return cls(query, visible(query.root, query.outputs), ())

    @property
    def because(self) -> str | None:
        core = descend(self.query.root)
        if isinstance(core, Recursion):
            return "something other than a projection stands above the recursion"
        return core.why or None if isinstance(core, Native) else None

    def delta(self, d: Differ) -> Node | None:
        if not d.is_changed(self.storage):
            return None
        anew, bounds = difference(self.storage, self.stored), self.query.bounds
        if bounds is None:
            return anew
        change = d.delta(bounds.body)
        if change is None:
            return None
        return Touched(anew, ((Reached(change, self.stored, bounds.order, bounds.limit), ()),))
