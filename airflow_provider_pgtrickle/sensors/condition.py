"""The base of the sensors, which poke with one query or hand the same query to the triggerer."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.triggers.base import StartTriggerArgs
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine.catalog import migrate
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
from airflow_provider_pgtrickle.triggers.condition import Condition, ConditionTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConditionSensor(BaseSensorOperator):
    """Succeeds when its condition is met; returns what it found.

    :param postgres_conn_id: the connection of the stream table's database
    :param deferrable: wait in the triggerer, where a NOTIFY wakes it; the default is Airflow's `[operators]
    default_deferrable`
    :param start_from_trigger: never use a worker: start in the triggerer and end there. Implies
        `deferrable`. With `soft_fail` a worker still ends the task.
    """

    ui_color = "#d5efe3"

    def __init__(
        self,
        *,
        postgres_conn_id: str = "pgtrickle_default",
        deferrable: bool | None = None,
        start_from_trigger: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.postgres_conn_id = postgres_conn_id
        default = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = start_from_trigger or (default if deferrable is None else deferrable)
        self.start_from_trigger = start_from_trigger

    @abstractmethod
    def condition(self) -> Condition:
        """The condition, which is made when the task runs, after its fields are rendered."""

    @abstractmethod
    def trigger(self, *, end_from_trigger: bool) -> ConditionTrigger:
        """The trigger that waits for the same condition."""

    def start_args(self) -> StartTriggerArgs:
        """Arguments for a start in the triggerer, which a subclass assigns at the end of its constructor."""
        classpath, trigger_kwargs = self.trigger(end_from_trigger=not (self.soft_fail or self.never_fail)).serialize()
        return StartTriggerArgs(
            trigger_cls=classpath,
            trigger_kwargs=trigger_kwargs,
            next_method="execute_complete",
            next_kwargs=None,
            timeout=timedelta(seconds=self.timeout),
        )

    def poke(self, context: Context) -> PokeReturnValue:
        statement, parameters = self.condition().question()
        database = Database(PgTrickleHook(postgres_conn_id=self.postgres_conn_id).dsn)
        try:
            with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
                migrate.require(connection)
                rows = cursor.execute(statement, parameters).fetchall()
            found = self.condition().met(rows)
        except PgTrickleError as hopeless:
            if not hopeless.permanent:
                raise
            raise self._given_up(str(hopeless)) from None
        return PokeReturnValue(is_done=found is not None, xcom_value=found)

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        # If the condition is met already, the triggerer isn't needed.
        if answer := self.poke(context):
            return answer.xcom_value
        self.defer(
            trigger=self.trigger(end_from_trigger=False),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )
        return None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        if event["status"] == "success":
            return event["found"]
        raise self._given_up(event["message"])

    def _given_up(self, message: str) -> AirflowException:
        # Neither waiting nor a retry can help.
        return AirflowSkipException(message) if self.soft_fail or self.never_fail else AirflowFailException(message)
