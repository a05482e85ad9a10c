"""Wait until enough changes are pending for a stream table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_pgtrickle.engine.errors import UnknownStreamTable, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.triggers.condition import Condition, ConditionTrigger

# One row for each source, or one row without a source if none is captured. No row means that the table doesn't exist.
_QUESTION = """
SELECT b.source_table, coalesce(b.pending_rows, 0) AS pending_rows
FROM pgtrickle.pgt_stream_tables st
LEFT JOIN LATERAL pgtrickle.pgt_buffer_sizes(ARRAY[st.pgt_id]) b ON true
WHERE st.pgt_schema = %s AND st.pgt_name = %s
ORDER BY b.source_table
"""


@dataclass(frozen=True)
class PendingChanges(Condition):
    """At least `min_rows` changes of `source_table` (of all sources together where it is None) are pending."""

    stream_table: str
    min_rows: int = 1
    source_table: str | None = None

    def __post_init__(self) -> None:
        if self.min_rows < 1:
            raise UsageError(f"min_rows must be at least 1, not {self.min_rows}", stream_table=self.stream_table)

    def question(self) -> tuple[str, Sequence[Any]]:
        name = QualifiedName.parse(self.stream_table)
        return _QUESTION, (name.schema, name.name)

    def met(self, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        if not rows:
            raise UnknownStreamTable(f"There is no stream table named {self.stream_table}")
        sources = {row["source_table"]: row["pending_rows"] for row in rows if row["source_table"]}
        if self.source_table is not None:
            source = str(QualifiedName.parse(self.source_table))
            if source not in sources:
                raise UsageError(
                    f"Changes of {source} are not captured for it",
                    remedy=f"Captured: {', '.join(sources) or 'none'}.",
                    stream_table=self.stream_table,
                )
            sources = {source: sources[source]}
        pending_rows = sum(sources.values())
        if pending_rows < self.min_rows:
            return None
        return {"pending_rows": pending_rows, "sources": sources}


class ChangeBufferTrigger(ConditionTrigger):
    """The trigger of a deferred `ChangeBufferSensor`, with its parameters."""

    def __init__(
        self,
        *,
        stream_table: str,
        postgres_conn_id: str,
        min_rows: int = 1,
        source_table: str | None = None,
        poll_interval: float = 60.0,
        end_from_trigger: bool = False,
    ) -> None:
        super().__init__(
            postgres_conn_id=postgres_conn_id, poll_interval=poll_interval, end_from_trigger=end_from_trigger
        )
        self.stream_table = stream_table
        self.min_rows = min_rows
        self.source_table = source_table

    def condition(self) -> Condition:
        return PendingChanges(self.stream_table, self.min_rows, self.source_table)
