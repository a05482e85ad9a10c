"""The base of the sensors' triggers: waits until one query on the catalog meets a condition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine.catalog.faults import translated
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.triggers.listening import observe


@dataclass(frozen=True)
class Condition(ABC):
    """A condition on the catalog, which a poking worker and the listening triggerer check alike."""

    @abstractmethod
    def question(self) -> tuple[str, Sequence[Any]]:
        """The statement and its parameters."""

    @abstractmethod
    def met(self, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        """What the task returns if the condition is met; None while it isn't.

        A `PgTrickleError` means that waiting can't help.
        """


@dataclass(frozen=True)
class _Answer:
    found: dict[str, Any] | None = None
    error: str | None = None


class ConditionTrigger(BaseTrigger):
    """Fires once: `{"status": "success", …}` if the condition is met, `{"status": "error", …}` if it can't be.

    :param end_from_trigger: end the task here, so that no worker is needed to take the event
    """

    def __init__(self, *, postgres_conn_id: str, poll_interval: float, end_from_trigger: bool = False) -> None:
        super().__init__()
        self.postgres_conn_id = postgres_conn_id
        self.poll_interval = poll_interval
        self.end_from_trigger = end_from_trigger

    @abstractmethod
    def condition(self) -> Condition:
        """The condition. It is made when the trigger runs, and has the trigger's rendered parameters as fields."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {
                **asdict(self.condition()),
                "postgres_conn_id": self.postgres_conn_id,
                "poll_interval": self.poll_interval,
                "end_from_trigger": self.end_from_trigger,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            condition = self.condition()
            async for answer, _ in observe(self.postgres_conn_id, self.poll_interval, _asking(condition)):
                if answer.error is not None:
                    yield self._failed(answer.error)
                    return
                if answer.found is not None:
                    yield self._met(answer.found)
                    return
        except PgTrickleError as error:
            yield self._failed(str(error))
        except psycopg.Error as error:
            yield self._failed(str(translated(error)))

    def _met(self, found: dict[str, Any]) -> TriggerEvent:
        if self.end_from_trigger:
            return TaskSuccessEvent(xcoms={"return_value": found})
        return TriggerEvent({"status": "success", "found": found})

    def _failed(self, message: str) -> TriggerEvent:
        self.log.error("%s", message)
        if self.end_from_trigger:
            return TaskFailedEvent()
        return TriggerEvent({"status": "error", "message": message})


def _asking(condition: Condition) -> Any:
    async def ask(connection: psycopg.AsyncConnection) -> _Answer:
        statement, parameters = condition.question()
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, parameters)
            rows = await cursor.fetchall()
        try:
            return _Answer(found=condition.met(rows))
        except PgTrickleError as hopeless:
            return _Answer(error=str(hopeless))

    return ask
