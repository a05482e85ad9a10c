"""What every operator needs for its database: the hook, and our errors as Airflow's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_pgtrickle.engine.errors import PgTrickleError, caller

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook


def hook_of(postgres_conn_id: str) -> PgTrickleHook:
    """The hook of a connection. It is imported late: DAG files are parsed all the time, and the client is large."""
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook

    return PgTrickleHook(postgres_conn_id=postgres_conn_id)


@contextmanager
def as_airflow() -> Iterator[None]:
    """Turn our errors into Airflow's: a permanent one fails the task at once, any other leaves it to its retries.

    The text holds no credential.
    """
    words = caller.set("dag")
    try:
        yield
    except PgTrickleError as error:
        kind = AirflowFailException if error.permanent else AirflowException
        raise kind(str(error)) from error
    finally:
        caller.reset(words)
