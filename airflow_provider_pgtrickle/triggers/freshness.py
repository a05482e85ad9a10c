"""Wait until a stream table is fresh enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_pgtrickle.engine.catalog.records import HALTED_STATUSES
from airflow_provider_pgtrickle.engine.errors import RefreshError, UnknownStreamTable, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.triggers.condition import Condition, ConditionTrigger

# The server's clock decides, because it wrote the timestamps.
_QUESTION = """
SELECT status, last_error, data_timestamp,
       data_timestamp >= %s::timestamptz AS late_enough,
       data_timestamp > clock_timestamp() AS ahead,
       greatest(extract(epoch FROM now() - data_timestamp)::float8, 0) AS staleness
FROM (
    SELECT t.status, t.last_error, a.data_timestamp
    FROM pgtrickle.pgt_stream_tables t JOIN pgtrickle.pgt_data_timestamps a USING (pgt_id)
    WHERE pgt_schema = %s AND pgt_name = %s
) AS t
"""


@dataclass(frozen=True)
class Freshness(Condition):
    """`data_timestamp >= at_least` and `staleness <= max_staleness`, whichever are given."""

    stream_table: str
    at_least: str | datetime | None = None
    max_staleness: float | None = None

    def __post_init__(self) -> None:
        if self.at_least is None and self.max_staleness is None:
            raise UsageError(
                "Nothing says how fresh the stream table must be",
                remedy="Give at_least (a point in time) or max_staleness (seconds).",
                stream_table=self.stream_table,
            )

    def question(self) -> tuple[str, Sequence[Any]]:
        name = QualifiedName.parse(self.stream_table)
        return _QUESTION, (self.at_least, name.schema, name.name)

    def met(self, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        if not rows:
            raise UnknownStreamTable(f"There is no stream table named {self.stream_table}")
        row = rows[0]
        if row["status"] in HALTED_STATUSES:
            raise RefreshError(
                f"It is {row['status'].lower()} and won't get fresher"
                + (f": {row['last_error']}" if row["last_error"] else ""),
                remedy="Mend the cause, then set its status to ACTIVE.",
                stream_table=self.stream_table,
            )
        if row["data_timestamp"] is None or row["ahead"]:
            return None  # the timestamp was written while the server's clock was ahead, so it proves nothing
        if self.at_least is not None and not row["late_enough"]:
            return None
        if self.max_staleness is not None and row["staleness"] > self.max_staleness:
            return None
        return {"data_timestamp": row["data_timestamp"].isoformat(), "staleness": round(row["staleness"], 3)}


class FreshnessTrigger(ConditionTrigger):
    """The trigger of a deferred `StreamTableFreshnessSensor`, with its parameters."""

    def __init__(
        self,
        *,
        stream_table: str,
        postgres_conn_id: str,
        at_least: str | datetime | None = None,
        max_staleness: float | None = None,
        poll_interval: float = 60.0,
        end_from_trigger: bool = False,
    ) -> None:
        super().__init__(
            postgres_conn_id=postgres_conn_id, poll_interval=poll_interval, end_from_trigger=end_from_trigger
        )
        self.stream_table = stream_table
        self.at_least = at_least
        self.max_staleness = max_staleness

    def condition(self) -> Condition:
        return Freshness(self.stream_table, self.at_least, self.max_staleness)
