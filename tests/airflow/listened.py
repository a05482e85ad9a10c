"""A database with stream tables in its catalog, reached through an Airflow connection; and what happens to them.

The triggers read the catalog only, so these tests write it as a refresh does: row, history and NOTIFY in
one transaction. That real refreshes write the same is shown in `test_real_refresh.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.capture.tracking import track
from airflow_provider_pgtrickle.engine.catalog.alerts import CHANNEL
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources

CONN_ID = "pgtrickle_test"
#: Nothing but a notification or a reconnect may wake a trigger within a test.
NEVER = 3600.0

_Event = TypeVar("_Event")


@dataclass(frozen=True)
class Catalog:
    dsn: str
    connection: psycopg.Connection

    def declare(self, name: str, **columns: Any) -> int:
        columns = {
            "original_query": "SELECT 1 AS a",
            "defining_query": " SELECT 1 AS a",
            "status": "ACTIVE",
            "refresh_mode": "AUTO",
            "schedule": "5m",
            "is_populated": True,
            **columns,
        }
        names = ["pgt_relid", "pgt_schema", "pgt_name", *columns]
        statement = psycopg.sql.SQL(
            "INSERT INTO pgtrickle.pgt_stream_tables ({}) SELECT coalesce(max(pgt_relid::bigint), 1000) + 1, {} "
            "FROM pgtrickle.pgt_stream_tables RETURNING pgt_id"
        ).format(
            psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, names)),
            psycopg.sql.SQL(", ").join(psycopg.sql.Placeholder() * (len(names) - 1)),
        )
        row = self.connection.execute(statement, ["public", name, *columns.values()]).fetchone()
        assert row is not None
        return int(row[0])

    def refresh(self, name: str, *, inserted: int = 1, notify: bool = True, at: str = "now") -> None:
        """A completed refresh: history, the table's row and the notification in one transaction."""
        with self.connection.transaction():
            self.connection.execute(
                "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, start_time, end_time, "
                "data_timestamp, rows_inserted, rows_updated, rows_deleted, initiated_by) "
                "SELECT pgt_id, 'DIFFERENTIAL', 'COMPLETED', now(), now(), %s::timestamptz, %s, 0, 0, 'manual' "
                "FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s",
                [at, inserted, name],
            )
            self.update(name, data_timestamp=at)
            if notify:
                self.notify("refresh_completed", f"public.{name}")

    def capture(self, name: str, *source_tables: str) -> None:
        """Have a stream table read relations; changes of base tables are captured by the real triggers."""
        row = self.connection.execute(
            "SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s", [name]
        ).fetchone()
        assert row is not None
        for table in source_tables:
            found = self.connection.execute("SELECT %s::regclass::oid", [table]).fetchone()
            assert found is not None
            source = read_sources(self.connection, found)[found[0]]
            columns = tuple(column.name for column in source.columns)
            if source.kind == "TABLE":
                track(self.connection, source, columns, row[0])
            self.connection.execute(
                "INSERT INTO pgtrickle.pgt_dependencies (pgt_id, source_relid, source_type, source_schema, "
                "source_name, columns_used, cdc_mode) VALUES (%s, %s, %s, 'public', %s, %s, 'TRIGGER')",
                [row[0], source.relid, source.kind, table, list(columns)],
            )

    def consume(self, name: str, *, notify: bool = False) -> None:
        """As a refresh does: the frontier is now, so nothing is pending."""
        with self.connection.transaction():
            self.connection.execute(
                "UPDATE pgtrickle.pgt_stream_tables st SET data_timestamp = clock_timestamp(), frontier = "
                "jsonb_build_object('sources', (SELECT jsonb_object_agg(source_relid::text, "
                "jsonb_build_object('snapshot', pg_current_snapshot()::text)) "
                "FROM pgtrickle.pgt_dependencies d WHERE d.pgt_id = st.pgt_id)) WHERE pgt_name = %s",
                [name],
            )
            if notify:
                self.notify("refresh_completed", f"public.{name}")

    def update(self, name: str, **columns: Any) -> None:
        self.connection.execute(
            psycopg.sql.SQL("UPDATE pgtrickle.pgt_stream_tables SET {} WHERE pgt_name = %s").format(
                psycopg.sql.SQL(", ").join(
                    psycopg.sql.SQL("{} = %s").format(psycopg.sql.Identifier(column)) for column in columns
                )
            ),
            [*columns.values(), name],
        )

    def notify(self, event: str, stream_table: str | None = None, **details: Any) -> None:
        payload = json.dumps({"event": event, "stream_table": stream_table, **details})
        self.connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])

    def listeners(self) -> list[int]:
        """The process ids of our listeners on this database."""
        rows = self.connection.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'pgtrickle listener'"
        ).fetchall()
        return [row[0] for row in rows]

    def cut_listeners(self) -> int:
        """End their sessions on the server, and wait until they are gone."""
        cut = self.listeners()
        for pid in cut:
            self.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        return len(cut)


@pytest.fixture
def catalog(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        install(connection)
        yield Catalog(dsn, connection)


async def event_of(stream: AsyncIterator[_Event], within: float = 20.0) -> _Event:
    """The next event; the test fails when none comes."""
    return await asyncio.wait_for(anext(stream), within)
