"""A refresh unit as a DAG's task has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from airflow_provider_pgtrickle.stream_table import DEFAULT_SCHEMA, StreamTable


@dataclass(frozen=True)
class Unit:
    """Tables that one task refreshes: one snapshot, one commit."""

    task_id: str
    tables: tuple[StreamTable, ...]
    upstream: tuple[str, ...]
    """Task ids of the units it reads."""
    policy: str
    """`slowest`: the unit waits until all its tables are due; `fastest`: until one is."""

    @property
    def title(self) -> str:
        """Its tables as people name them."""
        return ", ".join(name.removeprefix(f"{DEFAULT_SCHEMA}.") for name in self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(str(table.qualified) for table in self.tables)
