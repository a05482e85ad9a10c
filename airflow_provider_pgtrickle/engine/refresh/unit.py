"""`refresh_unit`: stream tables that become new together, on one snapshot and in one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from airflow_provider_pgtrickle.engine.catalog.database import Database, translating
from airflow_provider_pgtrickle.engine.dvm.budget import deep
from airflow_provider_pgtrickle.engine.errors import LeaseLost, PgTrickleError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import failure
from airflow_provider_pgtrickle.engine.refresh.executor import Executor
from airflow_provider_pgtrickle.engine.refresh.failure import Verdict, judge
from airflow_provider_pgtrickle.engine.refresh.history import Trace
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.query import analysed
from airflow_provider_pgtrickle.engine.refresh.result import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.walk import Queries, Request, Separately, attempt
from airflow_provider_pgtrickle.engine.settings import Settings


def refresh_unit(
    database: Database,
    names: Sequence[QualifiedName],
    *,
    executor: Callable[[], Executor],
    settings: Settings,
    force_full: bool = False,
    run_token: str | None = None,
    initiated_by: str = "manual",
    queries: Queries = analysed,
) -> dict[str, RefreshResult]:
    """Refresh the named stream tables; the results by their full names, upstream first.

    `executor` is called only when something has to be computed. `run_token` names the run: a retry with the same
    token takes the tables over from the attempt before it, another token finds them locked and is skipped. What
    follows a # in it names the turn: see `lease.revoke`.
    Transient failures are tried again here; a failure that remains is recorded and raised.
    """
    run = RunToken.of(run_token)
    request = Request(database, tuple(dict.fromkeys(names)), executor, queries, settings, force_full, run, initiated_by)
    results = _refreshed(request)
    # Its parts' own results are in the history.
    return {name: results[name] for name in results if name in request.unit}


def _refreshed(request: Request) -> dict[str, RefreshResult]:
    try:
        return _persistently(request)
    except Separately as apart:
        again = replace(request, token=RunToken.of(request.token.given))
        first = _refreshed(replace(again, names=apart.first))
        rest = tuple(name for name in request.names if name not in apart.first)
        done = (*request.done, *apart.first)
        return {**first, **_refreshed(replace(again, names=rest, done=done))}


def _persistently(request: Request) -> dict[str, RefreshResult]:
    tries = max(request.settings.retry_attempts, 1)
    subject = str(request.names[0]) if len(request.names) == 1 else None
    for number in range(1, tries + 1):
        trace = Trace()
        try:
            with translating(subject), deep():
                return attempt(request, trace)
        except Separately:
            raise
        except BaseException as error:
            again = judge(error) is Verdict.RETRY and number < tries
            kept = True
            with suppress(PgTrickleError):  # where the database can't be reached, the first error says so
                kept = failure.record(
                    request.database,
                    request.names,
                    request.token,
                    error,
                    trace,
                    request.settings,
                    final=not again,
                )
            if not again:
                raise
            if not kept:
                # Whoever ended this attempt's session meant the run, not this one try of it.
                raise LeaseLost(
                    "Another run took this refresh over, or it was killed; it is not tried again",
                    stream_table=subject,
                    remedy="Look at that run's result instead.",
                ) from error
        time.sleep(failure.back_off(number, request.settings))
        request = replace(request, token=request.token.again(), takes_over=False)
    raise AssertionError("the last try returns or raises")
