"""A task's run of refreshes, fenced by its token: only a process that holds the token's lease can commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_pgtrickle.backends.request import Backend, RefreshRequest
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.operators import outcome
from airflow_provider_pgtrickle.operators.outcome import Outcome
from airflow_provider_pgtrickle.operators.side_by_side import side_by_side

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_pgtrickle.engine.catalog.database import Database
    from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
    from airflow_provider_pgtrickle.operators.unit import Unit

_log = logging.getLogger(__name__)


class FencedRun:
    """One task's refreshes under one token, which its retries share."""

    def __init__(self, hook: PgTrickleHook, context: Context) -> None:
        with hook.get_client() as client:
            self.database: Database = client.database
        self.token = outcome.run_token(context)
        # A try that another one has replaced may be killed long after that one began, so each has its own token.
        self._turn = f"{self.token}#{getattr(context['ti'], 'try_number', 1)}"
        self._initiator = outcome.initiator(context)
        self._dsn, self._settings = hook.dsn, hook.settings
        self.settings = Settings.load(**hook.settings)
        self._backend: Backend | None = None

    def end_earlier_rounds(self, context: Context) -> None:
        """Revoke the leases of this task's runs from before it was cleared. A retry takes over by its token instead."""
        from airflow_provider_pgtrickle.engine.refresh import lease

        with self.database.transaction() as conn:
            for earlier in range(outcome.current_round(context)):
                lease.revoke(conn, outcome.run_token(context, earlier))

    def open(self, spark_conn_id: str, spark_args: Mapping[str, Any]) -> None:
        """Choose the back end. It starts nothing yet."""
        from airflow_provider_pgtrickle.backends.selection import backend_for

        self._backend = backend_for(spark_conn_id, spark_args)

    def refresh(self, units: Sequence[Sequence[str]], *, force_full: bool = False) -> None:
        """Refresh the units on Spark; upstream units come first. What SQL asked for in full is computed in full."""
        assert self._backend is not None, "open() comes first"
        asked = self._asked([QualifiedName.parse(name) for unit in units for name in unit])
        wanted = {name for name, in_full in asked.items() if in_full}
        try:
            for full, some in groupby(
                units, lambda unit: force_full or not wanted.isdisjoint(map(QualifiedName.parse, unit))
            ):
                chosen = tuple(map(tuple, some))
                named = [name for unit in chosen for name in unit] if full and not force_full else []
                along = tuple(name for name in named if QualifiedName.parse(name) not in wanted)
                request = RefreshRequest(chosen, self._turn, self._dsn, full, self._initiator, self._settings, along)
                self._backend.refresh(request)
        finally:
            self._let_writers_maintain()
            self._answer()

    def refresh_without_spark(self, tables: Sequence[QualifiedName], *, force_full: bool = False) -> bool:
        """Refresh a unit in this process; False if something has to be computed on Spark."""
        asked = self._asked(tables)
        done = refresh_without_spark(
            self.database,
            tables,
            self.settings,
            run_token=self._turn,
            initiated_by=self._initiator,
            force_full=force_full or any(asked.values()),
            along=() if force_full else [table for table in tables if not asked.get(table)],
        )
        if done is None:
            return False
        # A task may refresh hundreds of units in this way, and what the history says of its run gets longer with each.
        self._let_writers_maintain([name for name, result in done.items() if result.status == "COMPLETED"])
        if asked:
            self._answer()
        return True

    def refresh_idle(self, units: Sequence[Unit]) -> bool:
        """Move the data timestamps of units without changes in one commit; False if each has to be refreshed itself."""
        tables = [table.qualified for unit in units for table in unit.tables]
        if self._asked(tables):
            return False
        done = move_together(self.database, tables, self.settings, run_token=self._turn, initiated_by=self._initiator)
        if done is None:
            return False
        self._let_writers_maintain([name for name, result in done.items() if result.status == "COMPLETED"])
        return True

    def side_by_side(
        self, order: Sequence[str], reads: Mapping[str, Collection[str]], work: Callable[[str], None]
    ) -> None:
        """Call `work` for each after what it reads, up to `parallel_refreshes` at a time, each with a session."""
        most = max(self.settings.parallel_refreshes, 1)
        self.database.keep_sessions(most)
        # A task that is killed or takes too long waits for no refresh.
        side_by_side(order, reads, most, work, self.kill)

    def _asked(self, tables: Sequence[QualifiedName]) -> dict[QualifiedName, bool]:
        """What SQL asked for; True for in full. A run may ask hundreds of times, so the warm session answers."""
        from airflow_provider_pgtrickle.engine.catalog import requests
        from airflow_provider_pgtrickle.engine.catalog.database import translating

        names = {str(table): table for table in tables}
        with self.database.session() as conn, translating():
            return {names[name]: in_full for name, in_full in requests.asked(conn, names.keys()).items()}

    def _answer(self) -> None:
        """Answer what SQL asked for. What can't be answered now is when the next plan looks."""
        from airflow_provider_pgtrickle.engine.catalog import requests

        try:
            with self.database.transaction() as conn:
                requests.settle(conn, self.outcomes())
        except PgTrickleError as error:
            _log.warning("Requests were not answered: %s", error)

    def _let_writers_maintain(self, done: Sequence[str] | None = None) -> None:
        """IMMEDIATE tables that were refreshed are maintained by their sources' writers from now on.

        If that can't be now, they are as fresh as any other table, and the next run tries again.
        """
        from airflow_provider_pgtrickle.engine.immediate.waiting import enliven

        try:
            if done is None:
                done = [name for name, o in self.outcomes().items() if o.result.status == "COMPLETED"]
            for table in enliven(self.database, self.settings, done):
                _log.info("%s is maintained by its sources' writers from now on", table)
        except PgTrickleError as error:
            _log.warning("Not yet maintained by its sources' writers: %s", error)

    def withdraw(self, tables: Sequence[QualifiedName]) -> None:
        """Let writers no longer maintain IMMEDIATE tables that are to be computed anew."""
        from airflow_provider_pgtrickle.engine.catalog import records
        from airflow_provider_pgtrickle.engine.immediate import live

        if tables:
            with self.database.transaction() as conn:
                live.withdraw(conn, *(records.get(conn, table) for table in tables))

    def outcomes(self, tables: Sequence[str] | None = None) -> dict[str, Outcome]:
        """What the history says of this run."""
        with self.database.transaction() as conn:
            return outcome.read(conn, self.token, tables)

    def close(self) -> None:
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    def kill(self) -> None:
        """Revoke the lease first, so that whatever survives the rest can't commit any more."""
        from airflow_provider_pgtrickle.engine.refresh import lease

        try:
            with self.database.transaction() as conn:
                lease.revoke(conn, self._turn)
        except PgTrickleError as error:
            _log.warning("The lease could not be taken away: %s", error)
        if self._backend is not None:
            self._backend.kill()


#: So many units without changes are refreshed in one commit. One that has to be refreshed after all sends all back.
_IDLE_AT_ONCE = 20


def together(units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
    """Units without changes in the numbers in which they are refreshed."""
    yield from (units[first : first + _IDLE_AT_ONCE] for first in range(0, len(units), _IDLE_AT_ONCE))


def move_together(
    database: Database, tables: Sequence[QualifiedName], settings: Settings, *, run_token: str, initiated_by: str
) -> dict[str, RefreshResult] | None:
    """Move the data timestamps of tables without changes; None if they have to be refreshed unit by unit."""
    from airflow_provider_pgtrickle.engine.refresh.unit import refresh_idle

    return refresh_idle(database, tables, settings=settings, run_token=run_token, initiated_by=initiated_by)


def refresh_without_spark(
    database: Database,
    tables: Sequence[QualifiedName],
    settings: Settings,
    *,
    run_token: str,
    initiated_by: str,
    force_full: bool = False,
    queues: bool = True,
    along: Sequence[QualifiedName] = (),
) -> dict[str, RefreshResult] | None:
    """Refresh a unit by what PostgreSQL computes; None if Spark is needed.

    Even of a unit without changes, whose data timestamp is to be moved, a view or a source may have been altered, or a
    change may just have come in.
    """
    from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor
    from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit

    try:
        return refresh_unit(
            database,
            tables,
            executor=_refuse,
            settings=settings,
            force_full=force_full,
            run_token=run_token,
            initiated_by=initiated_by,
            queues=queues,
            along=along,
        )
    except NoExecutor:
        return None


def _refuse() -> NoReturn:
    from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor

    raise NoExecutor("Something has to be computed", remedy="The Spark task that follows does it.")
