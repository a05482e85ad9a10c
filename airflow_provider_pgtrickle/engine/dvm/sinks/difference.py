"""Δstored = Δquery: the change that the algebra derives, as it is.

The old rows of that change are computed and not read, so they must come out as they were stored. Therefore orders that
the query leaves open are made total first.
"""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink, total_order, visible


class Difference(Sink):
    """Scans, projections, filters, joins, unions and whatever stands below them."""

    title = "difference"

    @classmethod
    def take(cls, query: Query) -> Sink:
        return cls(query, visible(total_order(query.root), query.outputs), ())

    def delta(self, d: Differ) -> Node | None:
        return d.delta(self.storage)
