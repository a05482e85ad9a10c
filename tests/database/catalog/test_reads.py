"""What is asked of the catalog for one stream table doesn't grow with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.lock import _altered, reinit_reason
from airflow_provider_pgtrickle.engine.refresh.snapshot import Frontier
from airflow_provider_pgtrickle.operators import readiness
from tests import servers

_NUMBERS = count()
_OTHERS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)
QUERY = "SELECT g, sum(v) AS v FROM {} GROUP BY g"


def client(dsn: str) -> PgTrickle:
    return PgTrickle(dsn, placement="database", differential_max_change_ratio=0.0)


def declare(dsn: str, names: range) -> None:
    """A source and a chain of two stream tables for each number."""
    with client(dsn) as pt, psycopg.connect(dsn, autocommit=True) as conn:
        for number in names:
            conn.execute(f"CREATE TABLE t{number} (id int PRIMARY KEY, g int, v int)")
            conn.execute(f"INSERT INTO t{number} SELECT i, i % 5, i FROM generate_series(1, 50) i")
            conn.execute(f"ANALYZE t{number}")
            pt.create_stream_table(f"low{number}", QUERY.format(f"t{number}"), schedule="1h")
            pt.create_stream_table(f"high{number}", QUERY.format(f"low{number}"), schedule="1h")


def rows_read(dsn: str, work: Callable[[PgTrickle], object]) -> dict[str, int]:
    """By table, how many rows of the catalog `work` reads in all its sessions, which have ended then."""

    def so_far() -> dict[str, int]:
        with psycopg.connect(dsn, autocommit=True) as conn:
            # A session tells what it has read before it is gone.
            while conn.execute(_OTHERS).fetchall():
                pass
            return dict(
                conn.execute(
                    "SELECT t.relname, t.seq_tup_read + sum(i.idx_tup_read)::bigint FROM pg_stat_user_tables t"
                    " JOIN pg_stat_user_indexes i USING (relid) WHERE t.schemaname = 'pgtrickle' GROUP BY t.relid,"
                    " t.relname, t.seq_tup_read"
                ).fetchall()
            )

    with client(dsn) as pt:
        work(pt)  # once, so that sessions have planned and the statistics of a new table are there
    before = so_far()
    with client(dsn) as pt:
        work(pt)
    return {name: rows - before[name] for name, rows in so_far().items() if rows > before[name]}


def refresh(name: str) -> Callable[[PgTrickle], object]:
    def work(pt: PgTrickle) -> object:
        with psycopg.connect(pt.database.dsn, autocommit=True) as conn:
            conn.execute("UPDATE t0 SET v = v + 1 WHERE id = 1")
        return pt.refresh_stream_table(name)

    return work


def ask(pt: PgTrickle) -> object:
    with pt.database.transaction() as conn:
        return readiness.read(conn, ["public.high0"])


def declare_another(pt: PgTrickle) -> object:
    number = next(_NUMBERS)
    with psycopg.connect(pt.database.dsn, autocommit=True) as conn:
        conn.execute(f"CREATE TABLE s{number} (g int, v int)")
    return pt.create_stream_table(f"extra{number}", QUERY.format(f"s{number}"), schedule="30m")


WORK: dict[str, Callable[[PgTrickle], object]] = {
    "refresh": refresh("low0"),
    "refresh with upstream": refresh("high0"),
    "what a task asks": ask,
    "declare": declare_another,
}


@pytest.fixture(scope="module")
def read(postgres18: PostgresServer) -> Iterator[tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]]:
    """The rows that each kind of work reads among few stream tables, and among many."""
    # Small tables are scanned as long as that may be. Without these a scan shows that no index would do.
    off = ("seqscan", "hashjoin", "mergejoin")
    with servers.fresh_database(postgres18) as name:
        options = " ".join(f"-cenable_{kind}=off" for kind in off)
        dsn = make_conninfo(servers.ordinary_dsn(postgres18, name), options=options)
        with client(dsn) as pt:
            pt.install()
        declare(dsn, range(2))
        few = {what: rows_read(dsn, work) for what, work in WORK.items()}
        declare(dsn, range(2, 8))
        yield few, {what: rows_read(dsn, work) for what, work in WORK.items()}


@pytest.mark.parametrize("what", WORK)
def test_other_stream_tables_are_not_read(read: tuple[dict, dict], what: str) -> None:
    few, many = (rows[what] for rows in read)
    assert {table: (few.get(table, 0), rows) for table, rows in many.items() if rows > few.get(table, 0) + 3} == {}


def test_what_a_refresh_asks_of_its_own_table_reads_no_other_of_postgresqls_catalog(any_dsn: str) -> None:
    """A condition with OR had all of pg_class read, by each refresh and for each table of what `plan` asks."""
    counted = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_sys_tables WHERE relname = 'pg_class'"
    with client(any_dsn) as pt, psycopg.connect(any_dsn, autocommit=True) as conn:
        pt.install()
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        pt.create_stream_table("plain", "SELECT id, v FROM t")
        pt.create_stream_table("parted", "SELECT id, v FROM t", partition_by="id")
        for st in (records.get(conn, QualifiedName("public", name)) for name in ("plain", "parted")):
            digest = Frontier.from_json(st.frontier).table
            with conn.transaction():
                (before,) = conn.execute(counted).fetchone() or (0,)
                assert conn.execute("SELECT pgtrickle.pgt_table_digest(%s)", (st.id,)).fetchone() == (list(digest),)
                assert reinit_reason(conn, st, _altered(conn, [st])) is None
                (after,) = conn.execute(counted).fetchone() or (0,)
            (relations,) = conn.execute("SELECT count(*) FROM pg_class").fetchone() or (0,)
            assert after - before < 60 < relations
