"""A few words for what the tests of capture do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture import mode, wal
from airflow_provider_pgtrickle.engine.capture.layout import is_by_wal, layout
from airflow_provider_pgtrickle.engine.capture.tracking import go_over, track
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.dvm.buffers import buffer_column
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from tests import servers

#: What only triggers do: hold the old rows of a statement against its new ones. From the log the same change comes as
#: more rows, which cancel out.
_BY_TRIGGERS = {
    "test_an_update_that_swaps_equal_rows_writes_nothing",
    "test_a_key_that_only_looks_different_is_one_update",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "way" in metafunc.fixturenames:
        ways = ["triggers"] if metafunc.function.__name__ in _BY_TRIGGERS else ["triggers", "wal"]
        metafunc.parametrize("way", ways, indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How tables are captured. By the WAL wherever that is possible: the owner has set REPLICA IDENTITY FULL."""
    if request.param == "triggers":
        yield request.param
        return
    conn = request.getfixturevalue("conn" if "conn" in request.fixturenames else "conn18")
    admin = "admin_dsn15" if servers.is_second(conn) else "admin_dsn"
    with servers.user_session(request.getfixturevalue(admin)) as superuser:
        superuser.execute("ALTER ROLE app REPLICATION")
        Captured.by_wal = True
        try:
            yield request.param
        finally:
            Captured.by_wal = False
            superuser.execute("ALTER ROLE app NOREPLICATION")


class Captured:
    """One table under capture, seen by its buffer."""

    by_wal = False

    def __init__(self, conn: Connection, name: str, columns: list[str] | None = None, pgt_id: int = 1) -> None:
        self.conn = conn
        self.source = source(conn, name)
        self.name = QualifiedName(self.source.schema, self.source.name)
        self.columns = [c.name for c in self.source.columns] if columns is None else columns
        self.buffer = track(conn, self.source, self.columns, pgt_id)
        if self.by_wal and not is_by_wal(conn, self.source.relid):
            self._take_from_wal()

    def _take_from_wal(self) -> None:
        for member in layout(self.conn, self.source, self.columns).members:
            self.conn.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(member.name.sql))
        wal.begin(self.conn, 10)
        self.pump()
        with self.conn.transaction():
            go_over(self.conn, self.source)

    def pump(self) -> None:
        """Let the buffer have what the log tells."""
        if self.by_wal:
            mode.drain(self.conn, Settings())

    def changes(self) -> list[tuple[object, ...]]:
        """Each buffer row as (action, new values…, old values…), as text, in any order."""
        self.pump()
        columns = [buffer_column(side, name) for side in ("new", "old") for name in self.columns]
        values = sql.SQL("").join(sql.SQL(", {}::text").format(sql.Identifier(name)) for name in columns)
        query = sql.SQL("SELECT action{} FROM {} ORDER BY change_id").format(values, self.buffer.sql)
        return self.conn.execute(query).fetchall()

    def actions(self) -> str:
        return "".join(sorted(str(row[0]) for row in self.changes()))

    def save(self) -> None:
        """Remember the table's rows as they are, and forget the buffer."""
        self.pump()
        self.conn.execute("DROP TABLE IF EXISTS pg_temp.base")
        self.conn.execute(
            sql.SQL("CREATE TEMP TABLE base AS SELECT {} AS image FROM {} AS t").format(
                self._image([sql.SQL("t.{}").format(sql.Identifier(name)) for name in self.columns]), self.name.sql
            )
        )
        self.conn.execute(sql.SQL("DELETE FROM {}").format(self.buffer.sql))

    def differences(self) -> list[tuple[object, ...]]:
        """Rows of `saved + buffer − table`, as bags: none when the buffer tells the truth."""
        self.pump()
        sides = {
            side: self._image([sql.Identifier(buffer_column(side, name)) for name in self.columns])
            for side in ("new", "old")
        }
        live = self._image([sql.SQL("t.{}").format(sql.Identifier(name)) for name in self.columns])
        query = sql.SQL("""
            SELECT image, sum(weight) FROM (
                SELECT image, 1 FROM pg_temp.base
                UNION ALL SELECT {new}, 1 FROM {buffer} WHERE action IN ('I', 'U')
                UNION ALL SELECT {old}, -1 FROM {buffer} WHERE action IN ('D', 'U')
                UNION ALL SELECT {live}, -1 FROM {table} AS t
            ) AS difference (image, weight) GROUP BY image HAVING sum(weight) <> 0
        """).format(buffer=self.buffer.sql, table=self.name.sql, live=live, **sides)
        return self.conn.execute(query).fetchall()

    @staticmethod
    def _image(columns: list[sql.Identifier] | list[sql.Composed]) -> sql.Composed:
        return sql.SQL("ROW({})::text").format(sql.SQL(", ").join(columns))


def source(conn: Connection, name: str) -> Source:
    row = conn.execute("SELECT %s::regclass::oid::bigint", [name]).fetchone()
    assert row is not None
    return read_sources(conn, [row[0]])[row[0]]
