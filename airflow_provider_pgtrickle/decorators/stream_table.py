"""`@task.stream_table`: a function that returns a SELECT becomes a stream table, declared and refreshed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, task_decorator_factory

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
from airflow_provider_pgtrickle.operators import declarer
from airflow_provider_pgtrickle.operators.database import as_airflow
from airflow_provider_pgtrickle.operators.refresh import StreamTableRefreshOperator
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Context


class _StreamTableDecoratedOperator(DecoratedOperator, StreamTableRefreshOperator):
    """Runs the function, declares the stream table with its SELECT, then refreshes it like its base class.

    :param name: of the stream table; the function's name when not given (templated)
    :param options: as `PgTrickle.create_or_replace_stream_table` takes them
    """

    custom_operator_name = "@task.stream_table"
    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        *StreamTableRefreshOperator.template_fields,
        "options",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {**DecoratedOperator.template_fields_renderers}

    def __init__(
        self,
        *,
        python_callable: Callable[..., str],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        postgres_conn_id: str = DEFAULT_CONN_ID,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.options = dict(options or {})
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            tables=[name or python_callable.__name__],
            postgres_conn_id=postgres_conn_id,
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        self.declare(context)
        return super().execute(context)

    def declare(self, context: Context) -> None:
        """Declare the stream table with the query that the function returns now."""
        (name,) = self.tables
        with as_airflow():
            query = self._query(context)
            with PgTrickleHook(postgres_conn_id=self.postgres_conn_id).get_client() as client:
                client.install()
                # The refresh that follows fills it, on the back end that the task names.
                owner = declarer.of_task(context)
                client.create_or_replace_stream_table(name, query, initialize=False, owner=owner, **self.options)

    def _query(self, context: Context) -> str:
        query = self.python_callable(*self.op_args, **self.determine_kwargs({**context, **self.op_kwargs}))
        if not isinstance(query, str) or not query.strip():
            raise UsageError(
                f"{self.python_callable.__name__} must return the SELECT of its stream table, not {query!r}",
                stream_table=self.tables[0],
            )
        return query


def stream_table_task(
    python_callable: Callable[..., str] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """What `@task.stream_table(name=…, options={"schedule": "5m"}, spark_conn_id=…)` calls.

    The function runs in the task, may use its context, and returns the stream table's query. The query should be the
    same in each run, because another one rebuilds the table.
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=_StreamTableDecoratedOperator,
        **kwargs,
    )
