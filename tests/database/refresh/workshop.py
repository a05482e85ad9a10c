"""A database with a catalog, in which stream tables are put together by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.guard import guard
from airflow_provider_pgtrickle.engine.capture.st_buffer import ensure_st_buffer
from airflow_provider_pgtrickle.engine.capture.tracking import track
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StorageColumn, StreamTable
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.dvm import View
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import (
    Computation,
    Executor,
    PostgresExecutor,
    Staged,
    StageTarget,
)
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from airflow_provider_pgtrickle.engine.settings import Settings


class Counting:
    """An executor that counts its computations, and calls a hook before each."""

    def __init__(self, database: Database) -> None:
        self._inner = PostgresExecutor(database)
        self.computed: list[Computation] = []
        self.before: Any = None

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        self.computed.append(computation)
        if self.before is not None:
            hook, self.before = self.before, None
            hook()
        return self._inner.compute(snapshot_id, computation, stage)


@dataclass
class Workshop:
    database: Database
    conn: psycopg.Connection[Any]
    """The user's session, in autocommit."""
    settings: Settings
    queries: dict[int, View] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.executor = Counting(self.database)
        self.asked_for_executor = 0

    def source(self, name: str) -> Source:
        relid = self.one("SELECT %s::regclass::oid::bigint", name)
        return read_sources(self.conn, [relid])[relid]

    def stream_table(
        self,
        name: str,
        columns: str,
        query: View,
        *,
        key: Sequence[str] | None = None,
        mode: str = "AUTO",
        hidden: Sequence[str] = (),
        text: str = "",
        **more: Any,
    ) -> StreamTable:
        """Table, catalog row, capture of its sources; `key` None is a bag."""
        self.conn.execute(
            sql.SQL("CREATE TABLE {} (__pgt_row_id bigint NOT NULL, {})").format(
                sql.Identifier("public", name), sql.SQL(columns)
            )
        )
        self.conn.execute(sql.SQL("CREATE INDEX ON {} (__pgt_row_id)").format(sql.Identifier("public", name)))
        relid = self.one("SELECT %s::regclass::oid::bigint", f'public."{name}"')
        guard(self.conn, relid)
        described = self.conn.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = %s AND attnum > 1 ORDER BY attnum",
            (relid,),
        ).fetchall()
        storage = tuple(StorageColumn(n, t, "hidden" if n in hidden else "visible") for n, t in described)
        st = records.insert(
            self.conn,
            **{
                "relid": relid,
                "schema": "public",
                "name": name,
                "original_query": text,
                "defining_query": text,
                "refresh_mode": mode,
                "storage": storage,
                "identity": tuple(key) if key is not None else tuple(c.name for c in storage if c.role == "visible"),
                "keyed": key is not None,
                "differentiable": True,
                "differential_max_change_ratio": 0.0,
            }
            | more,
        )
        dependencies = []
        for source in query.sources.values():
            kind = "TABLE" if source.pgt_id is None else "STREAM_TABLE"
            dependencies.append(
                Dependency(st.id, source.relid, kind, source.schema, source.name, source.pgt_id, cdc_mode="TRIGGER")
            )
            if source.pgt_id is None:
                track(self.conn, source, [c.name for c in source.columns], st.id)
            else:
                ensure_st_buffer(self.conn, records.by_ids(self.conn, [source.pgt_id])[source.pgt_id])
        records.replace_dependencies(self.conn, st.id, dependencies)
        self.queries[st.id] = query
        return st

    def refresh(self, *names: str, **options: Any) -> dict[str, RefreshResult]:
        """By short name."""
        results = refresh_unit(
            options.pop("database", self.database),
            [QualifiedName("public", name) for name in names],
            executor=self._executor,
            settings=options.pop("settings", self.settings),
            queries=self._query,
            **options,
        )
        return {name.removeprefix("public."): result for name, result in results.items()}

    def refresh_one(self, name: str, **options: Any) -> RefreshResult:
        return self.refresh(name, **options)[name]

    def record(self, name: str) -> StreamTable:
        return records.get(self.conn, QualifiedName("public", name))

    def history(self, name: str) -> list[records.RefreshRecord]:
        """Newest first."""
        return records.history(self.conn, self.record(name).id, 100)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.conn.execute(statement, values or None).fetchall()

    def one(self, statement: str, *values: Any) -> Any:
        return self.rows(statement, *values)[0][0]

    def run(self, statement: str, *values: Any) -> None:
        self.conn.execute(statement, values or None)

    def differs(self, name: str, query: str) -> list[tuple[Any, ...]]:
        """Rows that the stream table has too many or too few, compared with its query now."""
        visible = ", ".join(f'"{c.name}"' for c in self.record(name).visible)
        stored = f'SELECT {visible} FROM public."{name}"'
        return self.rows(
            f"(SELECT 'surplus', * FROM (({stored}) EXCEPT ALL ({query})) a)"
            f" UNION ALL (SELECT 'missing', * FROM (({query}) EXCEPT ALL ({stored})) b)"
        )

    def _executor(self) -> Executor:
        self.asked_for_executor += 1
        return self.executor

    def _query(self, conn: Connection, st: StreamTable) -> View:
        return self.queries[st.id]
