"""`ChangeBufferSensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_pgtrickle.sensors.condition import ConditionSensor
from airflow_provider_pgtrickle.triggers.buffer import ChangeBufferTrigger, PendingChanges


class ChangeBufferSensor(ConditionSensor):
    """Waits until enough captured changes of a stream table's sources are pending.

    It fails at once, without a retry, if the stream table doesn't exist or doesn't read `source_table`. Writers of base
    tables send no NOTIFY, so it may notice them as late as `poke_interval`.

    :param stream_table: name of the stream table, `schema.name` or `name` (then in `public`) (templated)
    :param min_rows: pending rows from which it succeeds
    :param source_table: count only changes of this source (templated)
    """

    template_fields: Sequence[str] = ("stream_table", "source_table", "postgres_conn_id")

    def __init__(self, *, stream_table: str, min_rows: int = 1, source_table: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream_table = stream_table
        self.min_rows = min_rows
        self.source_table = source_table
        # A wrong value is refused while the DAG file is parsed, and not when the task runs.
        self.condition()
        if self.start_from_trigger:
            self.start_trigger_args = self.start_args()

    def condition(self) -> PendingChanges:
        return PendingChanges(self.stream_table, self.min_rows, self.source_table)

    def trigger(self, *, end_from_trigger: bool) -> ChangeBufferTrigger:
        return ChangeBufferTrigger(
            stream_table=self.stream_table,
            postgres_conn_id=self.postgres_conn_id,
            min_rows=self.min_rows,
            source_table=self.source_table,
            poll_interval=self.poke_interval,
            end_from_trigger=end_from_trigger,
        )
