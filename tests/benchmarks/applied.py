"""A large difference is applied, against PostgreSQL's bare statements that write as many rows in the same way.

The bare statements find rows by their key, check nothing, and write a table and a buffer with the stream table's own
indexes and constraints. Both commit; they take turns, so that each has its share of full pages in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import matrix, place
from tests.benchmarks.measure import Goal, Measured, median, timed

_SHARE = 1 / 3
_CYCLES = 3
_WANTED = 500_000
_COPIES = """
CREATE TABLE bare (LIKE st INCLUDING ALL);
INSERT INTO bare SELECT * FROM st;
CREATE TABLE bare_buffer (LIKE pgtrickle_changes.{buffer} INCLUDING ALL);
CREATE TABLE d (op "char", LIKE st);
VACUUM ANALYZE bare
"""
# As `matrix.change` changes them: a third each, spread over the table, other rows in each cycle.
_DIFFERENCE = """
INSERT INTO d SELECT 'D', * FROM bare WHERE (hashint4(id + {salt}) & 2147483647) %% 1000 < {third} * 1000;
INSERT INTO d SELECT 'U', * FROM bare WHERE (hashint4(id - {salt}) & 2147483647) %% 1000 < {third} * 1000
    AND id NOT IN (SELECT id FROM d);
INSERT INTO d SELECT 'I', __pgt_row_id # 1, id + {beyond}, customer, amount, label FROM d WHERE op = 'D';
ANALYZE d
"""
_BARE = (
    "DELETE FROM bare USING d WHERE d.op = 'D' AND bare.id = d.id",
    "UPDATE bare SET amount = d.amount + 1 FROM d WHERE d.op = 'U' AND bare.id = d.id",
    "INSERT INTO bare (__pgt_row_id, id, customer, amount, label)"
    " SELECT __pgt_row_id, id, customer, amount, label FROM d WHERE op = 'I'",
    "INSERT INTO bare_buffer (action, pk_hash, new_id, new_customer, new_amount, new_label)"
    " SELECT n.action, __pgt_row_id, id, customer, amount, label"
    " FROM d JOIN (VALUES ('D'::\"char\", 'D'), ('U', 'D'), ('U', 'I'), ('I', 'I')) AS n (op, action) USING (op)",
)


def run(dsn: str, sizes: Iterable[int]) -> Iterator[Measured]:
    for size in sizes:
        with (
            place.database(dsn) as url,
            PgTrickle(url, placement="database", differential_max_change_ratio=0.0) as pt,
            psycopg.connect(url, autocommit=True) as conn,
        ):
            pt.install()
            matrix.fill(conn, size)
            pt.create_stream_table("st", matrix.QUERIES["scan"], schedule="1h", refresh_mode="DIFFERENTIAL")
            pt.create_stream_table("reader", "SELECT count(*) AS n FROM st", schedule="1h")
            yield from _in_turns(pt, conn, size)


def _in_turns(pt: PgTrickle, conn: psycopg.Connection, size: int) -> Iterator[Measured]:
    _each(
        conn,
        _COPIES.format(
            buffer=_scalar(
                conn, "SELECT 'changes_pgt_' || pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'st'"
            )
        ),
    )
    for cycle in range(_CYCLES):
        matrix.change(conn, size, int(size * _SHARE), cycle)
        result = pt.refresh(["st"])["st"]
        ms = _scalar(
            conn, "SELECT phases ->> 'apply' FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 1"
        )
        facts = {"rows": size, "cycle": cycle, "changed": result.source_changes, "action": result.action}
        yield Measured("applied", "refresh", float(ms) / 1000, facts)
        pt.refresh(["reader"])
        _each(conn, _DIFFERENCE.format(third=_SHARE / 3, beyond=10 * size * (cycle + 1), salt=cycle + 1))
        changed = int(_scalar(conn, "SELECT count(*) FROM d"))
        seconds, _ = timed(lambda: _committed(conn))
        yield Measured("applied", "bare", seconds, {"rows": size, "cycle": cycle, "changed": changed})
        _each(conn, "TRUNCATE d; TRUNCATE bare_buffer")


def _committed(conn: psycopg.Connection) -> None:
    with conn.transaction():
        for statement in _BARE:
            conn.execute(statement.encode())


def _each(conn: psycopg.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        conn.execute(statement.replace("%%", "%").encode())


def _scalar(conn: psycopg.Connection, query: str) -> str:
    row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def goals(rows: list[Measured]) -> Iterator[Goal]:
    for size in sorted({row.facts["rows"] for row in rows}):
        speed = {
            name: median([r.facts["changed"] / r.seconds for r in rows if (r.name, r.facts["rows"]) == (name, size)])
            for name in ("refresh", "bare")
        }
        yield Goal(f"rows a second applied of {size:,}", _WANTED, speed["refresh"], at_most=False)
        yield Goal(f"{size:,} rows: bare statements' rows a second, times ours", 1.25, speed["bare"] / speed["refresh"])
