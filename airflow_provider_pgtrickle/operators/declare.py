"""Create, alter and drop a stream table outside of a `StreamTableGraph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from airflow_provider_pgtrickle.operators import declarer
from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pgtrickle.client import PgTrickle


class _DeclareOperator(BaseOperator):
    """What the three have in common: one stream table of one database."""

    ui_color = "#fff2cc"

    def __init__(self, *, name: str, postgres_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.name = name
        self.postgres_conn_id = postgres_conn_id

    def _client(self) -> PgTrickle:
        return hook_of(self.postgres_conn_id).get_client()


class StreamTableCreateOperator(_DeclareOperator):
    """Creates a stream table, or alters the existing one to be as declared.

    :param query: one SELECT, or the path of a .sql file; templated
    :param options: `schedule`, `refresh_mode` and the other options of a stream table
    :param replace: False fails if the stream table exists already
    :param initialize: fill it in this task, on a local Spark; False leaves that to its first refresh
    """

    template_fields: Sequence[str] = ("name", "query", "options", "postgres_conn_id")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"query": "sql"}

    def __init__(
        self,
        *,
        query: str,
        options: Mapping[str, Any] | None = None,
        replace: bool = True,
        initialize: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.query = query
        self.options = options
        self.replace = replace
        self.initialize = initialize

    def execute(self, context: Context) -> str:
        with as_airflow(), self._client() as client:
            client.install()
            declare = client.create_or_replace_stream_table if self.replace else client.create_stream_table
            owner = declarer.of_task(context)
            made = declare(self.name, self.query, initialize=self.initialize, owner=owner, **(self.options or {}))
        return f"{made.schema}.{made.name}"


class StreamTableAlterOperator(_DeclareOperator):
    """Changes a stream table.

    :param changes: `schedule`, `refresh_mode`, `status`, `query` or any other option; templated
    """

    template_fields: Sequence[str] = ("name", "changes", "postgres_conn_id")

    def __init__(self, *, changes: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.changes = changes

    def execute(self, context: Context) -> str:
        with as_airflow(), self._client() as client:
            altered = client.alter_stream_table(self.name, **self.changes)
        return f"{altered.schema}.{altered.name}"


class StreamTableDropOperator(_DeclareOperator):
    """Drops a stream table, with the triggers and buffers that nothing else needs.

    :param cascade: also the stream tables that read it
    :param if_exists: succeed if it is gone already
    """

    template_fields: Sequence[str] = ("name", "postgres_conn_id")

    def __init__(self, *, cascade: bool = False, if_exists: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cascade = cascade
        self.if_exists = if_exists

    def execute(self, context: Context) -> list[str]:
        with as_airflow(), self._client() as client:
            return [
                str(name)
                for name in client.drop_stream_table(self.name, cascade=self.cascade, if_exists=self.if_exists)
            ]
