"""CALCULATED schedules: a table has the shortest schedule of the tables that read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import networkx as nx

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph.node import Node
from airflow_provider_pgtrickle.engine.schedule import Calculated, Effective, Every, parse


def effective_schedules(
    tables: nx.DiGraph, nodes: Mapping[str, Node], order: Sequence[str], min_seconds: int, least: int
) -> dict[str, Effective]:
    """Each table's schedule: its own, else the shortest downstream, else as often as its sources change.

    If no table of a graph has a schedule, all have the minimum. A schedule below `least` is refused.
    """
    explicit = {name: _parsed(nodes[name], least) for name in order}
    resolved: dict[str, Effective] = {}
    _from_downstream(tables, reversed(order), explicit, resolved)
    for name in order:
        if name not in resolved and not tables.succ[name]:
            resolved[name] = _from_upstream(tables, nodes[name], resolved) or Every(min_seconds)
    _from_downstream(tables, reversed(order), explicit, resolved)
    return {name: resolved[name] for name in order}


def _parsed(node: Node, least: int) -> Effective | None:
    try:
        schedule = parse(node.schedule, least)
    except UsageError as error:
        raise UsageError(error.message, remedy=error.remedy, stream_table=node.name) from None
    return None if isinstance(schedule, Calculated) else schedule


def _from_downstream(
    tables: nx.DiGraph,
    downstream_first: Iterable[str],
    explicit: Mapping[str, Effective | None],
    resolved: dict[str, Effective],
) -> None:
    for name in downstream_first:
        if name in resolved:
            continue
        readers = [resolved[reader] for reader in tables.succ[name] if reader in resolved]
        schedule = explicit[name] or (min(readers, key=_impatience) if readers else None)
        if schedule is not None:
            resolved[name] = schedule


def _from_upstream(tables: nx.DiGraph, node: Node, resolved: Mapping[str, Effective]) -> Effective | None:
    known = [resolved[source] for source in tables.pred[node.name] if source in resolved]
    if not known:
        return None
    choose = max if node.diamond_schedule_policy == "slowest" else min
    return choose(known, key=_impatience)


@cache
def _impatience(schedule: Effective) -> tuple[int, str]:
    return schedule.seconds, str(schedule)
