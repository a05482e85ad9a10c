"""A way for which memory was too short gives way to another one, and is not taken again for that size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import RoomFault
from airflow_provider_pgtrickle.engine.refresh import cost
from tests.servers import ORDINARY_ROLE

#: Its difference sorts the partitions as they were and as they are, FULL only as they are.
RANKS = "SELECT g, max(r) AS r FROM (SELECT g, rank() OVER (PARTITION BY g ORDER BY p) AS r FROM t) q GROUP BY g"
ROWS = 20_000
Limit = Callable[[str], None]


@pytest.fixture
def limit(dsn: str, admin_dsn: str) -> Iterator[Limit]:
    """Give the refreshing role this much for temporary files; what fits into little memory goes there soon."""
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(admin_dsn, autocommit=True) as admin:
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int, p text)")
        conn.execute(
            "INSERT INTO t SELECT i, i %% 4, md5(i::text) || repeat('x', 100) FROM generate_series(1, %s) i", (ROWS,)
        )
        conn.execute("ANALYZE t")
        role = [sql.Identifier(ORDINARY_ROLE), sql.Identifier(conn.info.dbname)]
        admin.execute(sql.SQL("ALTER ROLE {} IN DATABASE {} SET work_mem = '256kB'").format(*role))

        def given(amount: str) -> None:
            admin.execute(sql.SQL("ALTER ROLE {} IN DATABASE {} SET temp_file_limit = {}").format(*role, amount))

        yield given


@pytest.fixture(autouse=True)
def undoubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The difference is tried, whatever PostgreSQL expects of it, because it is to lack memory."""
    monkeypatch.setattr(cost, "_ASKED_MS", float("inf"))


@pytest.fixture
def client(dsn: str, limit: Limit) -> Iterator[PgTrickle]:
    with PgTrickle(dsn, placement="database", keep_parts=False, retry_attempts=1) as pt:
        pt.install()
        yield pt


def _change(dsn: str, rows: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("UPDATE t SET g = (g + 1) %% 4 WHERE id <= %s", (rows,))


def _refreshed(dsn: str, **options: Any) -> tuple[str, str | None, dict[str, float] | None]:
    """By a session that has the role's settings of now."""
    with PgTrickle(dsn, placement="database", keep_parts=False, retry_attempts=1, **options) as pt:
        done = pt.refresh_stream_table("st")
        return done.action, done.fallback_reason, pt.history("st", 1)[0]["lacked"]


def _exact(dsn: str) -> None:
    stored = "SELECT g, r FROM st"
    with psycopg.connect(dsn) as conn:
        for one, other in ((stored, RANKS), (RANKS, stored)):
            assert conn.execute(f"({one}) EXCEPT ALL ({other})").fetchall() == []


def test_full_takes_over_in_the_same_refresh_and_from_that_size_on(client: PgTrickle, dsn: str, limit: Limit) -> None:
    client.create_stream_table("st", RANKS)
    limit("3MB")
    _change(dsn, 400)
    assert _refreshed(dsn) == ("FULL", "out_of_memory", {"difference database": 400})
    _exact(dsn)
    # At once now: nothing is tried in vain.
    for rows in (400, 500):
        _change(dsn, rows)
        assert _refreshed(dsn) == ("FULL", "out_of_memory", None)
        _exact(dsn)
    with PgTrickle(dsn, placement="database", keep_parts=False) as now:
        (line,) = [line for line in now.explain_st("st").ways if "memory" in line]
    assert line == "difference database: memory was too short for 400 changed rows, so it is not taken from there on"
    # A smaller change is another matter.
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("DELETE FROM t WHERE g <> 1")
    limit("-1")
    assert client.refresh_stream_table("st").action in ("FULL", "DIFFERENTIAL")
    limit("3MB")
    _change(dsn, 40)
    assert _refreshed(dsn) == ("DIFFERENTIAL", None, None)
    _exact(dsn)


@pytest.mark.parametrize("what", ["settings", "index", "query"])
def test_it_is_forgotten_with_what_it_depends_on(client: PgTrickle, dsn: str, limit: Limit, what: str) -> None:
    client.create_stream_table("st", RANKS)
    limit("3MB")
    _change(dsn, 400)
    assert _refreshed(dsn)[0] == "FULL"
    if what == "settings":
        limit("1GB")
    elif what == "index":
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("CREATE INDEX ON t (p)")
    else:
        # It yields the same.
        client.alter_stream_table("st", query=RANKS.replace("FROM t", "FROM t WHERE id > 0"))
        limit("-1")
        _refreshed(dsn)
        limit("3MB")
    _change(dsn, 400)
    action, reason, lacked = _refreshed(dsn)
    if what == "settings":
        assert (action, reason, lacked) == ("DIFFERENTIAL", None, None)
    else:
        # It was tried again, and memory is as short as before.
        assert (action, reason, lacked) == ("FULL", "out_of_memory", {"difference database": 400})
    _exact(dsn)


def test_where_there_is_no_other_way_it_fails_in_one_sentence_and_later_works(
    client: PgTrickle, dsn: str, limit: Limit
) -> None:
    client.create_stream_table("st", RANKS, refresh_mode="DIFFERENTIAL")
    limit("3MB")
    _change(dsn, 400)
    with pytest.raises(RoomFault, match="temp_file_limit") as raised:
        _refreshed(dsn)
    assert "\n" not in str(raised.value)
    assert client.history("st", 1)[0]["lacked"] == {"difference database": 400}
    limit("-1")
    assert _refreshed(dsn)[0] == "DIFFERENTIAL"
    _exact(dsn)


def test_a_given_ratio_does_not_keep_a_table_of_mode_auto_in_a_difference_that_fails(
    client: PgTrickle, dsn: str, limit: Limit
) -> None:
    client.create_stream_table("st", RANKS, differential_max_change_ratio=0.0)
    limit("3MB")
    _change(dsn, 400)
    assert _refreshed(dsn) == ("FULL", "out_of_memory", {"difference database": 400})
    _exact(dsn)
