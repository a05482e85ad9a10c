"""One stream table as the graph sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """`sources` names everything the table reads; those that are no nodes themselves are base tables."""

    name: str
    sources: frozenset[str] = frozenset()
    schedule: str | None = None
    diamond_consistency: str = "atomic"
    diamond_schedule_policy: str = "fastest"
    unit: str | None = None
    """The unit by declaration: tables that name the same one are refreshed together."""
