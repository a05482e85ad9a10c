"""Δstored = Δquery. The change that the algebra derives is the change of the stored rows.

The old rows of that change are computed and not read, so they must come out as they were stored. Therefore orders that
the query leaves open are made total first.
"""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink, total_order, visible


class Difference(Sink):
    """Every other query: scans, projections, filters, joins and unions, with anything below them."""

    title = "difference"

    @classmethod
    def take(cls, query: Query) -> Sink:
        return cls(query, visible(total_order(query.root), query.outputs), ())

    def delta(self, d: Differ) -> Node | None:
        return d.delta(self.storage)
