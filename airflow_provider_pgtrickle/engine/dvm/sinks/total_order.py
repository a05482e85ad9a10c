"""Orders that a query leaves open, made total, so that computing it twice gives the same rows.

The result is one of those PostgreSQL may give. Where even that can't be had the query is refused
for differences (it runs FULL).
"""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import Node, rewritten


def total_order(root: Node, but: Node | None = None) -> Node:
    """The tree with every node `ordered`; `but` may leave its own order open."""
    return rewritten(root, lambda node, fresh: fresh if node is but else fresh.ordered())
