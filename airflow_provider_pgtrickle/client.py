"""`PgTrickle`: stream tables from Python, with no Airflow and, until something has to be computed, no Spark."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from functools import cache, cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.catalog import migrate, records, zone
from airflow_provider_pgtrickle.engine.catalog.database import REPLANNED, Database, server_default_schema, translating
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path, read_only
from airflow_provider_pgtrickle.engine.declare import dependencies
from airflow_provider_pgtrickle.engine.dvm.budget import deep
from airflow_provider_pgtrickle.engine.errors import (
    EnvironmentFault,
    PgTrickleError,
    PgTrickleWarning,
    TransientFault,
    UnknownStreamTable,
    UsageError,
)
from airflow_provider_pgtrickle.engine.immediate.waiting import enliven
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from airflow_provider_pgtrickle.engine.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_pgtrickle.engine import dvm
    from airflow_provider_pgtrickle.engine.catalog.probe import Probe
    from airflow_provider_pgtrickle.engine.declare import keeping
    from airflow_provider_pgtrickle.engine.declare.owners import Claim, Owner
    from airflow_provider_pgtrickle.engine.refresh.executor import Executor
    from airflow_provider_pgtrickle.engine.refresh.verify import Verification
    from airflow_provider_pgtrickle.health import Finding


_STATUS = """
SELECT i.*, h.action AS last_action, h.fallback_reason AS last_reason, h.status AS last_status,
       h.rows_inserted + h.rows_updated + h.rows_deleted AS last_rows, h.duration_ms AS last_duration_ms,
       o.bundle AS owner_bundle, o.file AS owner_file, o.graph AS owner_graph, o.removed_at
  FROM pgtrickle.stream_tables_info i
  LEFT JOIN pgtrickle.pgt_owners o USING (pgt_id)
  LEFT JOIN LATERAL (SELECT * FROM pgtrickle.pgt_refresh_history r WHERE r.pgt_id = i.pgt_id AND r.status <> 'RUNNING'
                      ORDER BY r.refresh_id DESC LIMIT 1) h ON true
 ORDER BY i.pgt_schema, i.pgt_name
"""


class PgTrickle:
    """Stream tables of one database.

    `spark` is a session of yours, classic or Connect; None starts a local one when a refresh first needs
    it, and stops it at the end. Further keywords are settings.
    """

    def __init__(
        self,
        dsn: str,
        spark: SparkSession | None = None,
        *,
        executor: Callable[[], Executor] | None = None,
        **settings: Any,
    ) -> None:
        self.settings = Settings.load(**settings)
        self.database = Database(dsn, self.settings)
        self._given_spark = spark
        self._given_executor = executor
        self._started_spark: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the Spark session that was started here; one that was given is left running."""
        if self._started_spark is not None:
            from airflow_provider_pgtrickle.engine.spark.session import stop

            stop(self._started_spark)
        self._forget_spark()
        self.database.close()

    def under(self, search_path: str | None) -> PgTrickle:
        """A client of this database and this Spark, whose declarations look names up along another path; None: no path.

        It is to be closed like any other, and before this one.
        """
        given = conninfo_to_dict(self.database.dsn).get("options") or os.environ.get("PGOPTIONS") or ""
        # In this option of libpq a backslash stands before each blank and backslash that is meant.
        escaped = (search_path or "").replace("\\", "\\\\").replace(" ", "\\ ")
        dsn = make_conninfo(self.database.dsn, options=f"{given} -csearch_path={escaped}".strip())
        return PgTrickle(dsn, executor=self._usable_executor, **asdict(self.settings))

    # Declaring

    def install(self) -> list[str]:
        """Create the catalog or bring it to this version; the names of the migrations that were applied.

        Tables that an older version captures are captured by this one's functions from now on.
        """
        from airflow_provider_pgtrickle.engine.capture.renewal import renew

        with self.database.connect() as conn:
            applied = migrate.install(conn)
            conn.commit()
            return applied + renew(conn)

    def create_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        owner: Claim | None = None,
        **options: Any,
    ) -> StreamTable:
        """Declare a stream table and fill it. If anything fails, nothing of it stays.

        `owner` is the file that declares it; nobody else may then declare it otherwise.
        """
        from airflow_provider_pgtrickle.engine.declare import owners
        from airflow_provider_pgtrickle.engine.declare.create import create
        from airflow_provider_pgtrickle.engine.declare.options import Options
        from airflow_provider_pgtrickle.engine.immediate import live

        checked = Options.checked(self.settings, options | {"schedule": schedule, "refresh_mode": refresh_mode})
        with self._transaction() as conn:
            created = create(conn, self.settings, self._name(conn, name), query, checked)
            if checked.refresh_mode == records.IMMEDIATE:
                live.refuse(conn, self.settings, created.stream_table)
            live.settle(conn)
            if owner is not None:
                owners.take(conn, str(created.stream_table.qualified), created.stream_table.id, owner)
        if initialize:
            self._populate(created.stream_table)
        _announce(created.notices)
        return self._record(created.stream_table.qualified)

    def create_stream_table_if_not_exists(self, name: str, query: str, **options: Any) -> StreamTable:
        """Create a stream table, or return the existing one as it is."""
        return self._find(name) or self.create_stream_table(name, query, **options)

    def create_or_replace_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        owner: Claim | None = None,
        **options: Any,
    ) -> StreamTable:
        """Make the stream table as declared: create it, alter what differs, or do nothing.

        With `initialize=False` a new query is left to the next refresh, which shows the old content until then.
        """
        from airflow_provider_pgtrickle.engine.declare import owners
        from airflow_provider_pgtrickle.engine.declare.alter import difference
        from airflow_provider_pgtrickle.engine.declare.options import Options

        given = options | {"schedule": schedule, "refresh_mode": refresh_mode}
        there = self._find(name)
        if there is None:
            return self.create_stream_table(name, query, initialize=initialize, owner=owner, **given)
        checked = Options.checked(self.settings, given)
        with self._transaction() as conn:
            if owner is not None:
                owners.take(conn, str(there.qualified), there.id, owner)
            changes = difference(conn, there, query, checked)
            if changes and owner is None:
                owners.refuse_stranger(conn, str(there.qualified))
            if owner is not None and not changes and query != there.original_query:
                # It means the same, so the next plan need not look into it again.
                records.update(conn, there.id, original_query=query, search_path=own_path(conn))
        if changes:
            there = self._alter(there.qualified, changes, refresh=initialize)
        if initialize and not there.is_populated:
            result = self._refresh([there.qualified], force_full=True, initiated_by="create")[str(there.qualified)]
            self._require_filled(there, result)
        return self._record(there.qualified)

    def changes(self, name: str, query: str, **options: Any) -> dict[str, Any]:
        """The changes that `create_or_replace_stream_table` would make to it: options by name, and `query`."""
        from airflow_provider_pgtrickle.engine.declare.alter import difference
        from airflow_provider_pgtrickle.engine.declare.options import Options

        checked = Options.checked(self.settings, options)
        with self._transaction() as conn:
            return difference(conn, records.get(conn, self._name(conn, name)), query, checked)

    def cost_of_query(self, name: str, query: str) -> keeping.Cost:
        """What it will cost to give the stream table another query: whether its content follows from what is stored."""
        from airflow_provider_pgtrickle.engine.declare import keeping

        with self._transaction() as conn:
            return keeping.cost(conn, self.settings, records.get(conn, self._name(conn, name)), query)

    def alter_stream_table(self, name: str, **changes: Any) -> StreamTable:
        """Change schedule, refresh_mode, status, query or options, all of them or none.

        With a new query readers see the old content until the new one is complete. `accept=True` accepts the functions
        and views of others behind the query as they are now.
        """
        from airflow_provider_pgtrickle.engine.declare import owners

        with self._transaction() as conn:
            qualified = self._name(conn, name)
            owned = owners.owners(conn).get(str(qualified))
        altered = self._alter(qualified, changes)
        if owned is not None and owned.removed_at is None and changes.keys() - {"status", "accept"}:
            _announce((f"{qualified} is declared by {owned.owner}: change it there too, or its next plan undoes this",))
        return altered

    def drop_stream_table(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> tuple[str, ...]:
        """Drop it, with triggers and buffers that nobody else needs; the names of what was dropped."""
        from airflow_provider_pgtrickle.engine.declare.drop import drop
        from airflow_provider_pgtrickle.engine.immediate import live

        with self._transaction() as conn:
            qualified = self._name(conn, name)
            there = records.find(conn, qualified)
            if if_exists and there is None:
                return ()
            if there is not None and (cascade or not dependencies.readers(conn, there)):
                live.withdraw(conn, there)
            dropped = drop(conn, self.settings, qualified, cascade=cascade)
            live.settle(conn)
        self._settle_capture()
        return dropped

    def withdraw(self, *names: str) -> None:
        """Let their sources' writers no longer maintain IMMEDIATE tables, until they are refreshed."""
        from airflow_provider_pgtrickle.engine.immediate import live

        with self._transaction() as conn:
            live.withdraw(conn, *(records.get(conn, self._name(conn, name)) for name in names))

    def gate(self, name: str, reason: str | None = None) -> None:
        """Hold its refreshes back until `ungate`."""
        self._update(name, is_gated=True, gated_reason=reason)

    def ungate(self, name: str) -> None:
        """Let it be refreshed again."""
        self._update(name, is_gated=False, gated_reason=None)

    # Refreshing

    def refresh_stream_table(self, name: str, force_full: bool = False) -> RefreshResult:
        """Refresh it after the stream tables that it reads, each unit on a snapshot of its own.

        Of a unit by declaration all tables are refreshed. `force_full` means this table alone.
        """
        return self.refresh_with_upstream(name, force_full)[-1]

    def refresh_with_upstream(self, name: str, force_full: bool = False) -> list[RefreshResult]:
        """The same, with the results of all tables that were refreshed for it; its own is the last."""
        with self._before_refresh() as conn:
            qualified = self._name(conn, name)
            wanted_table = records.get(conn, qualified)
            is_alone = not (
                wanted_table.is_hidden or wanted_table.together or dependencies.reads_stream_tables(conn, wanted_table)
            )
            if not is_alone and not wanted_table.is_live:
                tables = {str(table.qualified): table for table in records.connected(conn, [wanted_table.id])}
                graph = dependencies.graph(conn, tables.values())
        if wanted_table.is_live:
            return [self._reconcile(wanted_table, force_full=force_full)]
        if is_alone:
            return [self._refresh([qualified], force_full=force_full)[str(qualified)]]
        by_name = {name: table.qualified for name, table in tables.items()}
        mine_too = {name for name, table in tables.items() if table.id in wanted_table.together}
        upstream = {other for name in (str(qualified), *mine_too) for other in graph.upstream(name)}
        wanted = {str(qualified), *mine_too, *(name for name in upstream if not tables[name].is_live)}
        done: dict[str, RefreshResult] = {}
        for unit in graph.units():
            members = [by_name[member] for member in unit if member in wanted]
            if members:
                is_asked = force_full and str(qualified) in unit
                along = [member for member in members if member != qualified] if is_asked else []
                done |= self._refresh(members, force_full=is_asked, along=along)
            if str(qualified) in unit:
                mine = done.pop(str(qualified))
                return [*done.values(), mine]
        raise UnknownStreamTable(f"There is no stream table {name}")

    def refresh(self, names: Sequence[str], force_full: bool = False) -> dict[str, RefreshResult]:
        """Refresh all named tables as one unit, on one snapshot and in one commit. Results have the names as given."""
        if isinstance(names, str) or not names:
            raise UsageError("refresh takes a list of names", remedy='Write refresh(["a", "b"]).')
        with self._before_refresh() as conn:
            schema = cache(lambda: server_default_schema(conn))
            qualified = {name: QualifiedName.parse(name, schema) for name in names}
            named = records.named(conn, list(qualified.values()))
            graph = dependencies.graph(conn, records.connected(conn, [st.id for st in named]))
            order = {member: position for position, member in enumerate(graph.order())}
            alive = [st for st in named if st.is_live]
        results = {str(st.qualified): self._reconcile(st, force_full=force_full) for st in alive}
        members = {target for target in qualified.values() if str(target) not in results}
        if members:
            upstream_first = sorted(members, key=lambda member: order[str(member)])
            results |= self._refresh(upstream_first, force_full=force_full)
        return {name: results[str(target)] for name, target in qualified.items()}

    def verify(
        self,
        name: str | None = None,
        *,
        sample: float | None = None,
        refresh: bool = True,
        repair: bool = False,
        restart: bool = False,
    ) -> Verification:
        """Compare a stream table, or all, with the query's answer; `.differences` is 0 if they are equal.

        The comparison is on one snapshot, for the content's data timestamp, while writers go on. A table without a
        delta and with pending changes is refreshed first; with `refresh=False` it is skipped with the reason. `sample`
        is the share of the rows to compare, by hash ranges picked at random. `repair` computes anew what differs, and
        verifies that. A stopped verification of a large table goes on where it was, unless `restart` is given.
        """
        from airflow_provider_pgtrickle.engine.immediate import live
        from airflow_provider_pgtrickle.engine.refresh import verify as verification

        with self._transaction() as conn:
            tables = [t for t in records.get_all(conn) if not t.is_hidden]
            names = [records.get(conn, self._name(conn, name)).qualified] if name else [t.qualified for t in tables]
        withdrawn: list[QualifiedName] = []

        def withdraw(conn: psycopg.Connection, *wrong: StreamTable) -> None:
            withdrawn.extend(live.withdraw(conn, *wrong))

        request = verification.Request(
            self.database, self._usable_executor, self.settings, sample, refresh, repair, restart, withdraw
        )
        found = verification.verify(request, names)
        enliven(self.database, self.settings, [verified.name for verified in found.tables if verified.repaired])
        self._refresh_readers(withdrawn)
        return found

    def pump(self) -> int:
        """Write what the log tells of sources captured from it into their buffers; the rows written.

        Each refresh does that. Where a database is seldom refreshed, it lets the server remove its log.
        """
        from airflow_provider_pgtrickle.engine.capture import mode

        with self.database.session() as conn, translating():
            migrate.require(conn)
            return mode.drain(conn, self.settings)

    def cleanup(self) -> dict[str, int]:
        """Remove consumed changes, orphaned staging tables and old history; the rows removed per buffer.

        The log is pumped before, and slots that nothing reads any more are dropped.
        """
        from airflow_provider_pgtrickle.engine.capture.cleanup import clean_buffers, drop_orphan_stages, sample_buffers
        from airflow_provider_pgtrickle.engine.catalog import requests
        from airflow_provider_pgtrickle.engine.immediate import live
        from airflow_provider_pgtrickle.engine.refresh import history
        from airflow_provider_pgtrickle.engine.refresh import verify as verification

        self._settle_capture()
        with self._transaction() as conn:
            drop_orphan_stages(conn)
            history.prune(conn, self.settings.refresh_history_days)
            verification.prune(conn, self.settings.refresh_history_days)
            live.prune_samples(conn)
            requests.prune(conn, self.settings.refresh_history_days)
            cleaned = clean_buffers(conn)
            sample_buffers(conn)
        return cleaned

    def sample_buffers(self) -> None:
        """Note how much stands in each change buffer, unless that was noted in the last ten minutes."""
        from airflow_provider_pgtrickle.engine.capture.cleanup import sample_buffers

        with self._transaction() as conn:
            sample_buffers(conn)

    def notice_use(self) -> None:
        """Note which tables in tier `auto` somebody has read since the last look: what isn't read cools down."""
        from airflow_provider_pgtrickle.engine.refresh import use

        with self._transaction() as conn:
            use.notice(conn)

    # Showing

    def explain_st(self, name: str) -> dvm.Explanation:
        """Explain a stream table: operator tree, delta SQL, leaves, sink, and why it is (not) differentiable."""
        from airflow_provider_pgtrickle.engine.immediate import live
        from airflow_provider_pgtrickle.engine.refresh import cost

        with self._transaction() as conn:
            table = records.get(conn, self._name(conn, name))
            parts = tuple(
                (str(part.qualified), part.defining_query, self._explained(conn, part))
                for part in records.parts(conn, table.id)
            )
            writers = live.writers_costs(conn, table) if table.is_live else ()
            ways = cost.told(conn, table.id, self.settings)
            return replace(self._explained(conn, table), parts=parts, ways=ways, writers=writers)

    def validate_query(self, query: str, timezone: str | None = None) -> dvm.Explanation:
        """Explain a query before anything is created, as a table with that time zone would have it."""
        from airflow_provider_pgtrickle.engine.declare.definition import analysed
        from airflow_provider_pgtrickle.engine.declare.options import check

        given = check(self.settings, {"timezone": timezone})["timezone"]
        with self._transaction() as conn:
            zone.require(conn, given)
            with zone.in_zone(conn, given):
                return self._explain(conn, *analysed(conn, query, own_path(conn)))

    def status(self) -> list[dict[str, Any]]:
        """Every stream table with its state, its staleness, its last refresh and who declares it."""
        return self._rows(_STATUS)

    def history(self, name: str, n: int = 20) -> list[dict[str, Any]]:
        """Its last refreshes, newest first."""
        table = self._existing(name)
        return self._rows(
            "SELECT * FROM pgtrickle.pgt_refresh_history WHERE pgt_id = %s ORDER BY refresh_id DESC LIMIT %s",
            table.id,
            n,
        )

    def tree(self) -> list[dict[str, Any]]:
        """What reads what; `tree_line` holds the drawing."""
        return self._rows("SELECT * FROM pgtrickle.dependency_tree()")

    def sources(self, name: str) -> list[dict[str, Any]]:
        """What it reads, and how changes there are captured."""
        return self._rows("SELECT * FROM pgtrickle.list_sources(%s)", self._existing(name).qualified.quoted)

    def buffers(self) -> list[dict[str, Any]]:
        """Pending rows and size of each change buffer."""
        return self._rows("SELECT * FROM pgtrickle.change_buffer_sizes()")

    def estimate(self, query: str) -> tuple[int, float]:
        """The rows that PostgreSQL expects of a query, and the cost of computing all of it in its own unit."""
        from airflow_provider_pgtrickle.engine.catalog.planned import planned

        with self._transaction() as conn, read_only(conn):
            plan = planned(conn, query)
        return int(plan["Plan Rows"]), float(plan["Total Cost"])

    def removed(self, *, graph: str | None = None, root: Path | None = None) -> dict[str, Owner]:
        """The stream tables that no file declares any more, by name, with who declared them.

        They are those that the plan of their graph missed, all of a graph that is gone itself, and those whose file
        isn't below the folder of its bundle.
        """
        from airflow_provider_pgtrickle.engine.declare import owners

        with self._transaction() as conn:
            known = owners.owners(conn)
        return {
            name: owned.owner
            for name, owned in known.items()
            if owned.removed_at is not None
            or owned.owner.graph == graph
            or (root is not None and not (root / owned.owner.file).exists())
        }

    def prune(self, names: Iterable[str]) -> tuple[str, ...]:
        """Drop these stream tables, what reads another one first; the names of what was dropped."""
        wanted = set(names)
        with self._transaction() as conn:
            order = [name for name in reversed(dependencies.graph(conn).order()) if name in wanted]
            tables = {str(table.qualified): table.qualified for table in records.get_all(conn)}
        return tuple(dropped for name in order for dropped in self.drop_stream_table(tables[name].quoted))

    def uninstall(self, *, cascade: bool = False) -> tuple[str, ...]:
        """Drop all stream tables, all capture and the catalog; the names of the tables.

        Objects of yours that read a stream table stop it, or go too with `cascade`.
        """
        from airflow_provider_pgtrickle.engine.capture import wal
        from airflow_provider_pgtrickle.engine.declare.uninstall import uninstall

        with self.database.transaction() as conn:
            if not migrate.is_installed(conn):
                return ()
            dropped = uninstall(conn, cascade=cascade)
        # What is dropped of a slot can't be rolled back.
        with self.database.transaction() as conn:
            wal.leave(conn)
        return dropped

    def health(self) -> list[Finding]:
        """Check everything that a refresh needs."""
        from airflow_provider_pgtrickle.health import examine

        return examine(self.database)

    # Internals

    def _settle_capture(self) -> None:
        """After sources have lost readers: what is left in the log is pumped, and an unused slot is dropped."""
        from airflow_provider_pgtrickle.engine.capture import mode

        with self.database.session() as conn, translating():
            mode.settle(conn, self.settings)

    def _alter(self, name: QualifiedName, changes: dict[str, Any], *, refresh: bool = True) -> StreamTable:
        from airflow_provider_pgtrickle.engine.declare.alter import alter, revert
        from airflow_provider_pgtrickle.engine.immediate import live

        anew = {"query", "refresh_mode", "status", "accept", "keep", "partition_every", "timezone", "float_sums"}
        with self._transaction() as conn:
            there = records.get(conn, name)
            withdrawn = live.withdraw(conn, there) if anew & set(changes) else []
            altered = alter(conn, self.settings, name, changes)
            now = altered.stream_table
            if now.refresh_mode == records.IMMEDIATE and {"query", "refresh_mode"} & set(changes):
                live.refuse(conn, self.settings, now)
            live.settle(conn)
        if {"query", "cdc_mode"} & set(changes):
            self._settle_capture()
        # Writers maintain it no longer, or not yet.
        is_wanted = now.refresh_mode == records.IMMEDIATE and bool(anew & set(changes))
        is_left = not now.is_live and (there.is_live or is_wanted)
        notices = altered.notices
        if altered.needs_refresh and refresh:
            with self._undone_on_failure(lambda conn: revert(conn, altered)):
                # What the new query shares with the old one is kept.
                has_none = now.kept_query is None
                result = self._refresh([name], force_full=has_none, initiated_by="alter")[str(name)]
            if result.action == "SKIP":
                notices += (f"{name} keeps its old content until its next refresh ({result.fallback_reason})",)
        elif is_left and now.is_populated and now.status == "ACTIVE" and refresh:
            self._refresh([name], initiated_by="alter")
        record = self._record(name)
        if record.is_live:
            self._refresh_readers(withdrawn)
        elif withdrawn:
            listed = ", ".join(map(str, withdrawn))
            notices += (f"{name} is not maintained by writers any more, and so what reads it isn't either: {listed}",)
        _announce(notices)
        return record

    def _reconcile(self, st: StreamTable, *, force_full: bool) -> RefreshResult:
        """Compare a table that writers maintain with its query, and compute it anew if they differ."""
        from airflow_provider_pgtrickle.engine.immediate import live
        from airflow_provider_pgtrickle.engine.refresh import verify as verification

        started = time.perf_counter()
        request = verification.Request(self.database, self._usable_executor, self.settings, refresh=False)
        verified = verification.verify(request, [st.qualified]).tables[0]
        if force_full or verified.differences or verified.status == "SKIPPED":
            with self._transaction() as conn:
                withdrawn = live.withdraw(conn, st)
            result = self._refresh([st.qualified], force_full=True)[str(st.qualified)]
            if result.action == "SKIP":
                return result
            self._refresh_readers(withdrawn)
            return replace(result, action=records.IMMEDIATE, fallback_reason=verified.reason or result.fallback_reason)
        return RefreshResult(
            name=str(st.qualified),
            action=records.IMMEDIATE,
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            data_timestamp=verified.data_timestamp,
            rows_read=verified.rows_compared,
        )

    def _refresh_readers(self, withdrawn: Sequence[QualifiedName]) -> None:
        """Refresh what had to be withdrawn with a table that it reads, each after all that it reads."""
        for name in withdrawn:
            if not self._record(name).is_live:
                self.refresh_stream_table(name.quoted)

    def _populate(self, table: StreamTable) -> None:
        from airflow_provider_pgtrickle.engine.declare.drop import drop

        with self._undone_on_failure(lambda conn: drop(conn, self.settings, table.qualified)):
            result = self._refresh([table.qualified], force_full=True, initiated_by="create")[str(table.qualified)]
        self._require_filled(table, result)

    def _require_filled(self, table: StreamTable, result: RefreshResult) -> None:
        """Raise an error if the refresh was skipped and nobody else has filled the table."""
        if result.action == "SKIP" and not self._record(table.qualified).is_populated:
            raise TransientFault(
                f"It is declared, and empty: it could not be filled ({result.fallback_reason})",
                stream_table=str(table.qualified),
                remedy="Refresh it when nobody else does, or drop it.",
            )

    @contextmanager
    def _undone_on_failure(self, undo: Callable[[psycopg.Connection], object]) -> Iterator[None]:
        """Take a declaration back if what follows it in the block fails, also by an interrupt."""
        try:
            yield
        except BaseException as failure:
            try:
                with self._transaction() as conn:
                    undo(conn)
            except PgTrickleError as error:
                # The first failure stays the error; the note says what is left to do.
                failure.add_note(f"It could not be taken back either: {error}")
            raise

    def _refresh(
        self,
        names: Sequence[QualifiedName],
        *,
        force_full: bool = False,
        initiated_by: str = "manual",
        along: Sequence[QualifiedName] = (),
    ) -> dict[str, RefreshResult]:
        progress.working_on(", ".join(map(str, names)))
        try:
            results = refresh_unit(
                self.database,
                names,
                executor=self._usable_executor,
                settings=self.settings,
                force_full=force_full,
                initiated_by=initiated_by,
                along=along,
            )
            enliven(self.database, self.settings, [n for n, result in results.items() if result.action != "SKIP"])
            return results
        except Exception:
            raise
        except BaseException:
            # After an interrupt nobody needs Spark's result, and Spark must stop reading before anything is taken back.
            self._kill_spark()
            raise

    def _usable_executor(self) -> Executor:
        """The executor, on a new Spark session if the one that was started here has ended."""
        if self._started_spark is not None:
            from airflow_provider_pgtrickle.engine.spark.session import has_ended

            if has_ended(self._started_spark):
                self._forget_spark()
        return self._executor

    def _kill_spark(self) -> None:
        if self._started_spark is not None:
            from airflow_provider_pgtrickle.engine.spark.session import kill

            kill(self._started_spark)
        self._forget_spark()

    def _forget_spark(self) -> None:
        self._started_spark = None
        self.__dict__.pop("_executor", None)

    @cached_property
    def _executor(self) -> Executor:
        if self._given_executor is not None:
            return self._given_executor()
        try:
            import pyspark  # noqa: F401 - its absence is to be told before anything else fails for want of it
        except ModuleNotFoundError as error:
            raise EnvironmentFault(
                f"Something is to be computed on Spark, and there is no {error.name}",
                remedy="Install it, or let PostgreSQL compute: placement 'database'.",
            ) from None
        from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
        from airflow_provider_pgtrickle.engine.spark.session import active, obtain

        given = self._given_spark or active()
        session = obtain(given, self.settings)
        if given is None:
            self._started_spark = session
        return SparkExecutor(session, self.database)

    def _explained(self, conn: psycopg.Connection, table: StreamTable) -> dvm.Explanation:
        from airflow_provider_pgtrickle.engine.declare.definition import analysed

        text, accepted = table.maintained_query, table.foreign_code
        with zone.in_zone(conn, table.timezone):
            found = analysed(
                conn,
                text,
                accepted=accepted,
                approximate_floats=table.approximates,
                frozen_rows=table.frozen_rows,
            )
            return self._explain(conn, *found)

    def _explain(self, conn: psycopg.Connection, _: Probe, view: dvm.View) -> dvm.Explanation:
        from airflow_provider_pgtrickle.engine.declare.definition import explained

        return explained(conn, view)

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """One transaction on a database that has the catalog, in the session that refreshes use, too."""
        with self._within(self.database.session()) as conn:
            conn.execute(REPLANNED)
            yield conn

    def _before_refresh(self) -> AbstractContextManager[psycopg.Connection]:
        """One transaction of questions in the session that the refresh will use."""
        return self._within(self.database.glance())

    @contextmanager
    def _within(self, session: AbstractContextManager[psycopg.Connection]) -> Iterator[psycopg.Connection]:
        with session as conn, translating(), conn.transaction(), deep():
            migrate.require(conn)
            yield conn

    def _name(self, conn: psycopg.Connection, text: str) -> QualifiedName:
        """The name with its schema; by default that of new tables under the connection's own path."""
        return QualifiedName.parse(text, lambda: server_default_schema(conn))

    def _find(self, name: str) -> StreamTable | None:
        with self._transaction() as conn:
            return records.find(conn, self._name(conn, name))

    def _existing(self, name: str) -> StreamTable:
        with self._transaction() as conn:
            return records.get(conn, self._name(conn, name))

    def _record(self, name: QualifiedName) -> StreamTable:
        with self._transaction() as conn:
            return records.get(conn, name)

    def _update(self, name: str, **columns: Any) -> None:
        with self._transaction() as conn:
            records.update(conn, records.get(conn, self._name(conn, name)).id, **columns)

    def _rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        with self._transaction() as conn, conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement, values or None).fetchall()


_PACKAGE = __name__.partition(".")[0] + "."


def _announce(notices: Iterable[str]) -> None:
    """Warn of each notice. This is called after the commit, because a warning may be turned into an error."""
    for notice in notices:
        warnings.warn(notice, PgTrickleWarning, stacklevel=_level_of_the_caller())


def _level_of_the_caller() -> int:
    """How far up the stack the first frame outside this package is: the line that a warning is about."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
