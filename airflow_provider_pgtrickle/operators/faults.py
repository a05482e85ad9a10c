"""Our errors in Airflow's words: what can't succeed is not tried again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_pgtrickle.engine.errors import PgTrickleError


@contextmanager
def as_airflow() -> Iterator[None]:
    """Permanent errors fail the task at once, the others leave it to its retries. The text holds no credential."""
    try:
        yield
    except PgTrickleError as error:
        kind = AirflowFailException if error.permanent else AirflowException
        raise kind(str(error)) from error
