"""Which stream table an error is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_pgtrickle.engine.catalog.faults import translating
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, QueryError
from airflow_provider_pgtrickle.engine.names import QualifiedName


@contextmanager
def about(name: QualifiedName) -> Iterator[None]:
    """Errors raised inside name the stream table, where they don't name one already; psycopg's become ours."""
    try:
        with translating(str(name), otherwise=QueryError):
            yield
    except PgTrickleError as error:
        if error.stream_table is None:
            error.stream_table = str(name)
        raise
