"""Columns that nobody reads are not captured, read or carried."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants, rewritten


def prune(root: Node) -> Node:
    """Return the tree with scans and projections cut to the columns that are read above them."""
    needed = set(root.names)
    size = -1
    while size != len(needed):
        size = len(needed)
        for node in descendants(root):
            needed |= node.reads(needed)
    return rewritten(root, lambda _, fresh: fresh.narrowed(needed))
