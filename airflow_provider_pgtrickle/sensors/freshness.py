"""`StreamTableFreshnessSensor`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_pgtrickle.sensors.condition import ConditionSensor
from airflow_provider_pgtrickle.triggers.freshness import Freshness, FreshnessTrigger


class StreamTableFreshnessSensor(ConditionSensor):
    """Waits until a stream table shows its sources as of a point in time, or is fresh enough.

    It fails at once, without a retry, if the stream table doesn't exist or is suspended.

    :param stream_table: name of the stream table, `schema.name` or `name` (then in `public`) (templated)
    :param at_least: its data timestamp must have reached this; `"{{ data_interval_end }}"` waits until
        everything of the run's interval is in (templated)
    :param max_staleness: seconds (or a `timedelta`) by which it may lie behind the present
    """

    template_fields: Sequence[str] = ("stream_table", "at_least", "postgres_conn_id")

    def __init__(
        self,
        *,
        stream_table: str,
        at_least: str | datetime | None = None,
        max_staleness: float | timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream_table = stream_table
        self.at_least = at_least
        self.max_staleness = max_staleness.total_seconds() if isinstance(max_staleness, timedelta) else max_staleness
        # A wrong value is refused while the DAG file is parsed, and not when the task runs.
        self.condition()
        if self.start_from_trigger:
            self.start_trigger_args = self.start_args()

    def condition(self) -> Freshness:
        return Freshness(self.stream_table, self.at_least, self.max_staleness)

    def trigger(self, *, end_from_trigger: bool) -> FreshnessTrigger:
        return FreshnessTrigger(
            stream_table=self.stream_table,
            postgres_conn_id=self.postgres_conn_id,
            at_least=self.at_least,
            max_staleness=self.max_staleness,
            poll_interval=self.poke_interval,
            end_from_trigger=end_from_trigger,
        )
