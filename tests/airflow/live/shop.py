"""The database that the live DAGs keep: its tables, what changes them, and what must hold of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.alerts import CHANNEL
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.airflow.live.running import wait_for

_PATIENCE = 90.0


def query(case: str) -> str:
    """What every case keeps."""
    return f"SELECT k, sum(v) AS total, count(*) AS n FROM {case}_rows GROUP BY k"


class Case:
    """One source table and the stream table on it."""

    def __init__(self, dsn: str, name: str) -> None:
        self._dsn, self.name = dsn, name
        self.rows, self.totals = sql.Identifier(f"{name}_rows"), sql.Identifier(f"{name}_totals")

    def create(self) -> None:
        self.run("CREATE TABLE {rows} (id int PRIMARY KEY, k int, v int)")
        self.run("INSERT INTO {rows} SELECT n, n % 10, n FROM generate_series(1, 1000) n")
        self.run("ANALYZE {rows}")

    def fill(self) -> None:
        """Declare and fill the stream table as its DAG would, in PostgreSQL alone."""
        with PgTrickle(self._dsn) as client:
            database = client.database
        with PgTrickle(self._dsn, executor=lambda: PostgresExecutor(database)) as client:
            client.install()
            client.create_stream_table(f"{self.name}_totals", query(self.name))

    def change(self) -> None:
        """One transaction that touches three of the ten groups and adds one."""
        self.run("UPDATE {rows} SET v = v + 1 WHERE id IN (1, 2, 11)")
        self.run("DELETE FROM {rows} WHERE id = 3")
        self.run("INSERT INTO {rows} SELECT max(id) + 1, max(k) + 1, 7 FROM {rows}")

    def run(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            composed = sql.SQL(statement).format(rows=self.rows, totals=self.totals, name=f"{self.name}_totals")
            cursor = conn.execute(composed)
            return cursor.fetchall() if cursor.description else []

    @property
    def differences(self) -> list[tuple[object, ...]]:
        """What tells the stream table from its query, both ways."""
        return self.run(
            "WITH q AS (SELECT k, sum(v) AS total, count(*) AS n FROM {rows} GROUP BY k),"
            " s AS (SELECT k, total, n FROM {totals})"
            " (SELECT * FROM s EXCEPT ALL SELECT * FROM q) UNION ALL (SELECT * FROM q EXCEPT ALL SELECT * FROM s)"
        )

    @property
    def history(self) -> list[tuple[object, ...]]:
        """Status and action of each refresh, oldest first."""
        return self.run(
            "SELECT h.status, h.action FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables st"
            " USING (pgt_id) WHERE st.pgt_name = {name} ORDER BY h.refresh_id"
        )

    @property
    def committed(self) -> list[object]:
        """The actions of the refreshes that changed rows."""
        found = self.run(
            "SELECT h.action FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)"
            " WHERE st.pgt_name = {name} AND h.status = 'COMPLETED'"
            " AND h.rows_inserted + h.rows_updated + h.rows_deleted > 0 ORDER BY h.refresh_id"
        )
        return [action for (action,) in found]

    @property
    def leases(self) -> int:
        found = self.run(
            "SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE pgt_name = {name} AND lease_token IS NOT NULL"
        )
        return int(str(found[0][0]))

    @contextmanager
    def commits_held(self) -> Iterator[None]:
        """While this lasts, a refresh gets as far as its commit and waits there."""
        with psycopg.connect(self._dsn) as conn:
            conn.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(self.totals))
            yield

    @contextmanager
    def alerts(self) -> Iterator[Callable[[str, str], dict[str, Any]]]:
        """Listen from now on; what is yielded waits for an alert of a kind about a table."""

        def heard(event: str, table: str) -> dict[str, Any]:
            for notice in conn.notifies(timeout=_PATIENCE):
                alert: dict[str, Any] = json.loads(notice.payload)
                if (alert["event"], alert["stream_table"]) == (event, table):
                    return alert
            raise AssertionError(f"Not within {_PATIENCE:.0f} s: the alert {event} about {table}")

        with psycopg.connect(self._dsn, autocommit=True) as conn:
            conn.execute(f"LISTEN {CHANNEL}")
            yield heard

    def waiting_session(self, other_than: int = 0) -> int:
        """The session of a refresh that waits in its commit, once there is one."""

        def found() -> int | None:
            rows = self.run(
                "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND relation = {name}::regclass"
            )
            pids = [int(str(pid)) for (pid,) in rows]
            return next((pid for pid in pids if pid != other_than), None)

        return wait_for(found, f"a refresh of {self.name}_totals in its commit")
