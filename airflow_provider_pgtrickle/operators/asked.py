"""What a person who triggered the run asked for: the DAG's params `full_refresh` and `tables`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph import Graph, selection
from airflow_provider_pgtrickle.operators.unit import Unit

if TYPE_CHECKING:
    from airflow.sdk import Context


@dataclass(frozen=True)
class Asked:
    """What is asked for beyond what is due and changed."""

    full_refresh: bool = False
    tables: str | None = None
    """Terms that select tables; None means all."""
    beside_others: bool = False
    """The DAG may have tables of other graphs, which the terms may mean, too."""

    @classmethod
    def of(cls, context: Context) -> Asked:
        """The params of the run; a DAG without them asks for nothing."""
        params: Any = context.get("params") or {}
        tables = params.get("tables") or None
        if tables is not None and not isinstance(tables, str):
            raise UsageError("The param tables must be text", remedy="Write totals, +totals, totals+ or tag:sales.")
        group = getattr(context.get("task"), "task_group", None)
        return cls(is_true(params.get("full_refresh")), tables, group is not None and not group.is_root)

    def selected(self, units: Iterable[Unit]) -> frozenset[str] | None:
        """The task ids of the units that have a selected table; None for all.

        A term that means none of these tables is an error, except in a task group: its DAG may have another one.
        """
        if self.tables is None:
            return None
        known = list(units)
        graph = Graph.build(table.node for unit in known for table in unit.tables)
        tags = {str(table.qualified): table.tags for unit in known for table in unit.tables}
        chosen = selection.select(graph, tags, self.tables, whole=not self.beside_others)
        return frozenset(unit.task_id for unit in known if chosen & set(unit.names))


def is_true(value: Any) -> bool:
    """Whether a value means yes. A template gives text where the param was a boolean."""
    return value.strip().lower() in ("true", "1", "yes", "on") if isinstance(value, str) else bool(value)
