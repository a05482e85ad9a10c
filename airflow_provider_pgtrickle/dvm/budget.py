"""How large a plan may grow: what unfolds without end is refused, not waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.dvm.node import Node

MAX_NODES = 50_000
"""Nodes made while a query is built and differentiated."""
COPY = 50
"""What a WITH item written out once more counts for."""
MAX_SELECTS = 10_000
"""SELECTs in one statement."""
MAX_DEPTH = 320
"""SELECTs inside each other: rendering them recurses, two frames each, and Python stops at a thousand."""

_left: ContextVar[int | None] = ContextVar("nodes_left", default=None)


@contextmanager
def budget(nodes: int = MAX_NODES) -> Iterator[None]:
    """Within it, making more than `nodes` nodes raises `Refused`."""
    token = _left.set(nodes)
    try:
        yield
    finally:
        _left.reset(token)


def spend(nodes: int = 1) -> None:
    left = _left.get()
    if left is None:
        return
    if left < nodes:
        raise too_large("nodes", MAX_NODES)
    _left.set(left - nodes)


def check_size(root: Node) -> None:
    """Refuse a plan whose statement has too many SELECTs: what is shared is written once, all else where it is read."""
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    parents: dict[int, int] = {}
    order: list[Node] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
            continue
        parents[id(node)] = parents.get(id(node), 0) + 1
        if parents[id(node)] == 1:
            stack.append((node, True))
            stack.extend((child, False) for child in node.inputs)
    apart = 0
    for node in order:
        size = 1 + sum(sizes[id(child)] for child in node.inputs)
        if node.shared or (node.weighted and parents[id(node)] > 1 and not node.in_place):
            apart, size = apart + size, 1
        sizes[id(node)] = size
        depths[id(node)] = 1 + max((depths[id(child)] for child in node.inputs), default=0)
    if sizes[id(root)] + apart > MAX_SELECTS:
        raise too_large("SELECTs in one statement", MAX_SELECTS)
    if depths[id(root)] > MAX_DEPTH:
        raise too_large("SELECTs inside each other", MAX_DEPTH)


def too_large(what: str, limit: int) -> Refused:
    return Refused(
        Reason.TOO_LARGE,
        f"more than {limit:,} {what}".replace(",", " "),
        "Make a part of it, such as a CTE that is used often, a stream table of its own; until then it runs FULL.",
    )
