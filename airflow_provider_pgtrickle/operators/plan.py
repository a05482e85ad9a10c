"""The first task of a stream table DAG: declare, then skip what has nothing to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches, unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import DownstreamTasksSkipped

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.declare import dependencies, owners
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.schedule import Effective
from airflow_provider_pgtrickle.operators import declarer, outcome, readiness
from airflow_provider_pgtrickle.operators.asked import Asked
from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.operators.fenced_run import move_together, refresh_without_spark, together
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.operators.verify import due
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID, DEFAULT_SCHEMA, StreamTable

if TYPE_CHECKING:
    import psycopg
    from airflow.sdk import Context

    from airflow_provider_pgtrickle.client import PgTrickle
    from airflow_provider_pgtrickle.engine.catalog.database import Database
    from airflow_provider_pgtrickle.engine.declare.owners import Claim, Owned, Owner
    from airflow_provider_pgtrickle.engine.settings import Settings
    from airflow_provider_pgtrickle.operators.readiness import TableState, Verdict

#: An XCom holds no more names; the log has the rest.
MOST_NAMES = 50
#: Lines of a query's difference in the log.
_MOST_LINES = 60
#: Why a table is gated that no file declares any more.
REMOVED = "no file declares it any more"


class StreamTablePlanOperator(BaseOperator):
    """Creates or replaces what is declared, then asks PostgreSQL in one query what is due and changed.

    With `skips` it skips the tasks of units that have nothing to do, so that they start no worker and no Spark. It
    skips the task `verifies`, too, if no verification is due. What it is about to change stands in its log first.

    :param graph: the graph's name, which owns the tables together with `file`
    :param declared: all tables of the graph by `schema.name`, those of its other DAGs included
    :param on_removed: `keep`, `gate` or `drop` tables that the graph declared and declares no more
    :param moved_from: the file or the graph that declared its tables until now
    :param due_only: whether tables wait until they are due; None: in scheduled runs
    """

    ui_color = "#cfe8fc"

    def __init__(
        self,
        *,
        tables: Sequence[StreamTable],
        units: Sequence[Unit],
        schedules: Mapping[str, Effective],
        graph: str,
        file: str = "",
        declared: Sequence[str] = (),
        on_removed: str = "keep",
        moved_from: str | None = None,
        due_only: bool | None = None,
        skips: bool = True,
        verifies: str | None = None,
        postgres_conn_id: str = DEFAULT_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tuple(tables)
        self.units = tuple(units)
        self.schedules = dict(schedules)
        self.graph = graph
        self.file = file
        self.declared = tuple(declared) or tuple(str(table.qualified) for table in self.tables)
        self.on_removed = on_removed
        self.moved_from = moved_from
        self.due_only = due_only
        self.skips = skips
        self.verifies = verifies
        self.postgres_conn_id = postgres_conn_id

    def execute(self, context: Context) -> dict[str, Any] | None:
        with as_airflow(), hook_of(self.postgres_conn_id).get_client() as client:
            client.install()
            self._see_requests(client)
            claim = declarer.of_graph(context, self.graph, self.file, self.moved_from)
            # Pending changes are counted in the buffers.
            client.pump()
            client.notice_use()
            states = self._altered(client, self._declared(client, claim))
            self._handle_removed(client, claim.owner)
            states = self._withdraw_suspect(client, states)
            self._compare_with_postgres(states)
            self._tell_of_stale(client, states)
            self._tell_of_slow(client, states)
            client.sample_buffers()
            verdict = _judged(self.units, states, self.schedules, context, client.settings, self.due_only)
            if self.skips:
                verdict = self._refresh_idle(client, verdict, context)
            self._answer_requests(client, states)
            idle = [] if self._has_to_verify(client) else [self.verifies]
            if any(state.is_live for state in states.values()):
                # No refresh of its reads what writers have captured and maintained.
                client.cleanup()
            # At the end, because a plan that fails after it would tell nobody.
            self._tell_of_written(client, states, context)
        for reason in verdict.halted.values():
            self.log.warning("%s", reason)
        for task_id, reason in verdict.skip.items():
            self.log.info("%s: %s", task_id, reason)
        self.log.info("To refresh: %s", ", ".join(verdict.run) or "nothing")
        summary = {
            "run": len(verdict.run),
            "units": list(verdict.run[:MOST_NAMES]),
            "skipped": dict(sorted(Counter(_kind(reason) for reason in verdict.skip.values()).items())),
            "pending_rows": sum(state.pending_rows for state in states.values()),
        }
        skipped = sorted([*(verdict.skip if self.skips else ()), *filter(None, idle)])
        if not skipped:
            return summary
        # A task that ends with this exception pushes no return value by itself.
        context["ti"].xcom_push(key="return_value", value=summary)
        raise DownstreamTasksSkipped(tasks=skipped)

    def _declared(self, client: PgTrickle, claim: Claim) -> dict[str, TableState]:
        """The states, after declarations that changed were carried out. Mostly none did, and this only reads."""
        names = [str(table.qualified) for table in self.tables]
        with client.database.transaction() as conn:
            states, owned = readiness.read(conn, names), owners.owners(conn)
            self._check_edges(conn)
        transfers = {name: claim.judged(name, owned.get(name)) for name in names}
        changed = [table for table in self.tables if not _is_as_declared(table, states.get(str(table.qualified)))]
        # All of it is told before any of it is done.
        for transfer in filter(None, transfers.values()):
            self.log.info("%s", transfer)
        for table in changed:
            self._tell(client, table, states.get(str(table.qualified)))
        for table in changed:
            # Its task fills it, because that has Spark, unless a declaration that follows reads its new columns.
            is_read = any(table.qualified in other.reads for other in changed if other is not table)
            is_new = str(table.qualified) not in states
            client.create_or_replace_stream_table(
                _spelled(table),
                table.query,
                **{**table.options, "owner": claim, "initialize": is_read and not is_new},
            )
        self._take_over(client, claim, owned, states)
        return self._read(client, names) if changed or any(transfers.values()) else states

    def _tell(self, client: PgTrickle, table: StreamTable, state: TableState | None) -> None:
        """Log what declaring the table will change."""
        name = str(table.qualified)
        if state is None:
            self.log.info("%s is new: it is created now and filled by its task", name)
            return
        try:
            changes = client.changes(_spelled(table), table.query, **table.options)
        except PgTrickleError:
            # It may read columns that another declaration is about to bring. If not, declaring it raises this, too.
            changes = {"query": table.query}
        for option in sorted(changes.keys() - {"query"}):
            self.log.info("%s: %s changes from %s to %s", name, option, state.options[option], changes[option])
        if "query" in changes:
            lines = islice(_difference(state.query, table.query), _MOST_LINES)
            self.log.info(
                "%s: its query changes; readers see the old content until its task has computed the new one\n%s",
                name,
                "\n".join(lines),
            )
            # If PostgreSQL refuses it, so will declaring it.
            with suppress(PgTrickleError):
                self.log.info("%s: %s", name, client.cost_of_query(_spelled(table), table.query))
        if not changes:
            self.log.info("%s is written otherwise and means the same: nothing is computed anew", name)

    def _take_over(
        self, client: PgTrickle, claim: Claim, owned: Mapping[str, Owned], states: Mapping[str, TableState]
    ) -> None:
        """Become the owner of tables that have none, or that were moved here."""
        for table in self.tables:
            name = str(table.qualified)
            there = owned.get(name)
            if name not in states or not claim.replaces(there):
                continue
            with client.database.transaction() as conn:
                owners.take(conn, name, records.get(conn, table.qualified).id, claim)
            if there is not None and there.removed_at and states[name].gated_reason == REMOVED:
                client.ungate(_spelled(table))

    def _handle_removed(self, client: PgTrickle, owner: Owner) -> None:
        """Keep, gate or drop the tables that this graph declared and declares no more."""
        with client.database.transaction() as conn:
            gone = owners.removed(owners.owners(conn), owner, self.declared)
            if any(owned.removed_at is None for owned in gone.values()):
                owners.mark_removed(conn, [owned.pgt_id for owned in gone.values()])
            order = dependencies.graph(conn).order() if gone else []
        # What reads another one is dropped before it.
        for name in sorted(gone, key=lambda name: order.index(name) if name in order else -1, reverse=True):
            self._handle(client, name, gone[name])

    def _handle(self, client: PgTrickle, name: str, owned: Owned) -> None:
        quoted = QualifiedName(*name.split(".", 1)).quoted
        if self.on_removed == "drop":
            try:
                client.drop_stream_table(quoted, if_exists=True)
                self.log.warning("%s is declared by no file any more and was dropped (on_removed='drop')", name)
            except PgTrickleError as error:
                self.log.warning("%s is declared by no file any more, and stays: %s", name, error)
            return
        if self.on_removed == "gate" and owned.removed_at is None:
            client.gate(quoted, REMOVED)
        self.log.warning(
            "%s is declared by no file any more, and %s. Declare it again, or drop it: pgtrickle prune.",
            name,
            "is gated (on_removed='gate')" if self.on_removed == "gate" else "nothing refreshes it",
        )

    def _check_edges(self, conn: psycopg.Connection[Any]) -> None:
        """Raise if `depends_on` names something that is no stream table, which a misspelt name would be."""
        edges = {
            (table.name, QualifiedName.parse(n, DEFAULT_SCHEMA)) for table in self.tables for n in table.depends_on
        }
        unknown = sorted((name, read) for name, read in edges if str(read) not in self.declared)
        for name, read in unknown:
            if records.find(conn, read) is None:
                close = get_close_matches(str(read), self.declared, n=1)
                raise UsageError(
                    f"depends_on names {read}, which is no stream table",
                    stream_table=name,
                    remedy=f"Did you mean {close[0]}?" if close else "Name the stream table behind the view.",
                )

    def _withdraw_suspect(self, client: PgTrickle, states: dict[str, TableState]) -> dict[str, TableState]:
        """Tables whose writers may have missed something are computed anew, and then maintained by writers again."""
        suspect = [table for table in self.tables if states[str(table.qualified)].has_to_be_withdrawn]
        if not suspect:
            return states
        for table in suspect:
            self.log.warning("%s may have missed changes of its sources, and is computed anew", table.qualified)
        client.withdraw(*map(_spelled, suspect))
        return self._read(client, list(states))

    def _refresh_idle(self, client: PgTrickle, verdict: Verdict, context: Context) -> Verdict:
        """Move the data timestamps of units without changes, which takes milliseconds and no Spark."""
        idle = [unit for unit in self.units if verdict.skip.get(unit.task_id) == readiness.NO_CHANGE]
        token, initiator = outcome.run_token(context), outcome.initiator(context)
        needs_spark = []
        for batch in together(idle):
            tables = [table.qualified for unit in batch for table in unit.tables]
            if move_together(client.database, tables, client.settings, run_token=token, initiated_by=initiator):
                continue
            needs_spark += [
                unit.task_id
                for unit in batch
                if refresh_without_spark(
                    client.database,
                    [table.qualified for table in unit.tables],
                    client.settings,
                    run_token=token,
                    initiated_by=initiator,
                    # They have no changes, and the plan of a graph must not wait for the refreshes of others.
                    queues=False,
                )
                is None
            ]
        return verdict.with_also(needs_spark, self.units)

    def _see_requests(self, client: PgTrickle) -> None:
        """What SQL has asked for is answered by the refreshes from now on."""
        from airflow_provider_pgtrickle.engine.catalog import requests

        with client.database.transaction() as conn:
            requests.see(conn, [str(table.qualified) for table in self.tables])

    def _altered(self, client: PgTrickle, states: dict[str, TableState]) -> dict[str, TableState]:
        """The states, after requests to alter these tables were carried out: what they resume may be due now."""
        from airflow_provider_pgtrickle.engine.catalog import requests
        from airflow_provider_pgtrickle.requests import serve

        wanted = requests.Wanted((requests.ALTER,), tuple(states))
        with client.database.transaction() as conn:
            if not requests.waits(conn, wanted):
                return states
        for served in serve(client, wanted=wanted):
            self.log.info("%s", served)
        return self._read(client, list(states))

    def _answer_requests(self, client: PgTrickle, states: Mapping[str, TableState]) -> None:
        """Answer what SQL asked for and was done, or won't be, in this run. The tasks answer what they do."""
        from airflow_provider_pgtrickle.engine.catalog import requests

        with client.database.transaction() as conn:
            requests.settle(conn, states)
            for unit in self.units:
                members = [states[name] for name in unit.names]
                for state in members:
                    if state.asked_full is not None and (why := readiness.unavailable(state, members)):
                        requests.refuse_refreshes(conn, [state.name], why)

    def _has_to_verify(self, client: PgTrickle) -> bool:
        if self.verifies is None:
            return False
        with client.database.transaction() as conn:
            return bool(due(conn, [str(table.qualified) for table in self.tables]))

    def _read(self, client: PgTrickle, names: Sequence[str]) -> dict[str, TableState]:
        with client.database.transaction() as conn:
            return readiness.read(conn, names)

    def _tell_of_written(self, client: PgTrickle, states: Mapping[str, TableState], context: Context) -> None:
        """Update the assets of live tables that writers have changed since the last plan."""
        from airflow_provider_pgtrickle.engine.immediate import live

        live_ones = [name for name, state in states.items() if state.is_live]
        written = {}
        if live_ones:
            with client.database.transaction() as conn:
                written = live.written(conn, live_ones)
        assets = {str(table.qualified): table.asset for table in self.tables}
        updates = []
        for name, rows in sorted(written.items()):
            extra = outcome.written_by_writers(rows, states[name].asked_at)
            self.log.info("%s: %s", name, extra)
            updates.append((assets[name], extra))
        outcome.emit(context, self, updates)

    def _tell_of_stale(self, client: PgTrickle, states: Mapping[str, TableState]) -> None:
        """Send the alert for tables that are too old. A plan notices them even if no refresh task runs."""
        from airflow_provider_pgtrickle.engine.catalog import alerts

        with client.database.transaction() as conn:
            stale = alerts.tell_of_stale(conn, list(states))
        for name in stale:
            self.log.warning("%s is older than twice its schedule", name)

    def _tell_of_slow(self, client: PgTrickle, states: Mapping[str, TableState]) -> None:
        """Warn of tables whose refresh takes longer than their schedule, which no schedule can keep."""
        for name, state in sorted(states.items()):
            schedule = self.schedules[name]
            if state.is_live or (times := state.rarer(schedule)) == 1:
                continue
            self.log.warning(
                "The last refresh of %s took %.0f s, longer than its schedule (%s). %s",
                name,
                state.last_seconds,
                schedule,
                f"Until it fits it is refreshed {times} times as rarely (auto_backoff)."
                if client.settings.auto_backoff
                else "Lengthen the schedule, or switch auto_backoff on.",
            )

    def _compare_with_postgres(self, states: Mapping[str, TableState]) -> None:
        """Warn of reads through views, which PostgreSQL knows and the queries' text, and so the DAG, doesn't show."""
        if not self.skips:
            return  # One task refreshes all tables, in PostgreSQL's order.
        above: dict[str, set[str]] = {}
        for unit in self.units:
            above[unit.task_id] = set(unit.upstream).union(*(above[upstream] for upstream in unit.upstream))
        home = {name: unit.task_id for unit in self.units for name in unit.names}
        declared = {str(table.qualified): {str(name) for name in table.reads} for table in self.tables}
        for state in states.values():
            mine = home[state.name]
            for source in state.stream_tables:
                # A source in another DAG is hidden, too: if the edge were declared, the two would be one DAG.
                if source not in declared[state.name] and home.get(source) not in {mine, *above[mine]}:
                    self.log.warning(
                        "%s reads %s through a view, which its query doesn't show: they may be refreshed in any order. "
                        "Declare it: StreamTable(%r, depends_on=[%r], ...).",
                        state.name,
                        source,
                        state.name,
                        source,
                    )


def due_units(
    database: Database,
    units: Sequence[Unit],
    schedules: Mapping[str, Effective],
    context: Context,
    due_only: bool | None = None,
) -> tuple[dict[str, TableState], Verdict]:
    """The states and what there is to do now, by PostgreSQL and not by an earlier task's answer."""
    with database.transaction() as conn:
        states = readiness.read(conn, [name for unit in units for name in unit.names])
    return states, _judged(units, states, schedules, context, database.settings, due_only)


def _judged(
    units: Sequence[Unit],
    states: Mapping[str, TableState],
    schedules: Mapping[str, Effective],
    context: Context,
    settings: Settings,
    due_only: bool | None,
) -> Verdict:
    run_type = getattr(context.get("dag_run"), "run_type", None)
    # In a run by hand or by `dags test` every table is due; in one by an asset, unless a task group says otherwise.
    scheduled = run_type == "scheduled" if due_only is None else due_only and run_type != "manual"
    asked = Asked.of(context)
    return readiness.judge(
        units,
        states,
        schedules,
        scheduled=scheduled and asked.tables is None,
        halted_fail=settings.halted == "fail",
        selected=asked.selected(units),
        full=asked.full_refresh,
        backs_off=settings.auto_backoff,
    )


def _is_as_declared(table: StreamTable, state: TableState | None) -> bool:
    if state is None or state.query != table.query:
        return False
    return state.options == table.options


def _spelled(table: StreamTable) -> str:
    """The name with its schema, because a declaration means `public`, whatever the session's search_path."""
    return table.qualified.quoted


def _kind(reason: str) -> str:
    known = (readiness.NOT_DUE, readiness.NO_CHANGE, readiness.HALTED, readiness.LIVE, readiness.NOT_SELECTED)
    return reason if reason in known else "held"


def _difference(before: str, after: str) -> Iterator[str]:
    """The lines that go and come, with those around them."""
    lines = unified_diff(before.strip().splitlines(), after.strip().splitlines(), lineterm="", n=2)
    return islice(lines, 2, None)
