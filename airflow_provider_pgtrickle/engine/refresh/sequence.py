"""`refresh_units`: several units, one after the other, so that what is slow to start is started once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.declare import dependencies
from airflow_provider_pgtrickle.engine.errors import SURROUNDINGS, PgTrickleError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import Executor
from airflow_provider_pgtrickle.engine.refresh.result import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from airflow_provider_pgtrickle.engine.settings import Settings

_log = logging.getLogger(__name__)


def refresh_units(
    database: Database,
    units: Sequence[Sequence[QualifiedName]],
    *,
    executor: Callable[[], Executor],
    settings: Settings,
    force_full: bool = False,
    run_token: str | None = None,
    initiated_by: str = "manual",
) -> dict[str, RefreshResult]:
    """Refresh each unit, upstream first, with a snapshot and a commit of its own.

    One that fails stops what reads it and nothing else; the first error is raised when all others are done. What
    is wrong with the surroundings stops everything.
    """
    results: dict[str, RefreshResult] = {}
    faults: list[PgTrickleError] = []
    halted: set[str] = set()
    for number, unit in enumerate(units, 1):
        if halted.intersection(map(str, unit)):
            continue
        try:
            refreshed = refresh_unit(
                database,
                unit,
                executor=executor,
                settings=settings,
                force_full=force_full,
                run_token=run_token,
                initiated_by=initiated_by,
            )
            results |= refreshed
            for name, result in refreshed.items():
                _log.info(
                    "Unit %d of %d: %s %s in %.0f ms", number, len(units), name, result.action, result.duration_ms
                )
        except SURROUNDINGS:
            raise
        except PgTrickleError as error:
            faults.append(error)
            if len(units) > 1:
                _log.error("%s", error)
                halted |= _readers(database, unit)
    if faults:
        raise faults[0]
    return results


def _readers(database: Database, unit: Sequence[QualifiedName]) -> set[str]:
    """Every stream table that a member feeds, as PostgreSQL knows it."""
    with database.transaction() as conn:
        graph = dependencies.graph(conn)
    return {reader for name in unit for reader in graph.downstream(str(name))}
