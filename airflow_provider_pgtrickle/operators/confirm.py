"""A refresh that needs no Spark: nothing changed, and the table's instant moves on all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.catalog.database import Database
    from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult


def confirm(
    database: Database, tables: Sequence[QualifiedName], settings: Settings, *, run_token: str, initiated_by: str
) -> dict[str, RefreshResult] | None:
    """The results, or None where Spark is needed: a view or a source was altered, or a change has just come in."""
    from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor
    from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit

    try:
        return refresh_unit(
            database,
            tables,
            executor=_refuse,
            settings=settings,
            run_token=run_token,
            initiated_by=initiated_by,
        )
    except NoExecutor:
        return None


def _refuse() -> NoReturn:
    from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor

    raise NoExecutor("Something has to be computed", remedy="The Spark task that follows does it.")
