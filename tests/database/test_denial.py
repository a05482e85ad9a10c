"""Who may only connect takes the locks of refreshes, and holds nobody up."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.locks import LOCK_SPACE
from airflow_provider_pgtrickle.engine.errors import TransientFault
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

QUERY = "SELECT g, count(*) AS n FROM public.t GROUP BY g"


@pytest.fixture(params=["18", "15"])
def dsns(request: pytest.FixtureRequest) -> tuple[str, str]:
    suffix = "" if request.param == "18" else "15"
    return request.getfixturevalue(f"dsn{suffix}"), request.getfixturevalue(f"admin_dsn{suffix}")


@pytest.fixture
def pt(dsns: tuple[str, str]) -> Iterator[PgTrickle]:
    dsn, _ = dsns
    database = Database(dsn)
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database), lock_timeout_seconds=2) as client:
        with psycopg.connect(dsn) as conn:
            conn.execute("CREATE TABLE public.t AS SELECT i AS id, i % 3 AS g FROM generate_series(1, 30) i")
        client.install()
        yield client


@pytest.fixture
def stranger(dsns: tuple[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """A session of a role that may connect, and no more."""
    dsn, admin = dsns
    role = f"stranger_{secrets.token_hex(4)}"
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'stranger-secret'").format(sql.Identifier(role)))
    with psycopg.connect(make_conninfo(dsn, user=role, password="stranger-secret"), autocommit=True) as conn:
        yield conn
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def _hold(conn: psycopg.Connection[Any]) -> None:
    conn.execute(
        "SELECT pg_advisory_lock(%s, i), pg_advisory_lock(x) FROM generate_series(1, 50) i, unnest(ARRAY[%s, %s]) x",
        [LOCK_SPACE, int.from_bytes(b"pgtrickl") >> 1, 0x7067745F696E7374],
    )


def test_a_stranger_holds_up_nothing_and_is_named(
    pt: PgTrickle, stranger: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    _hold(stranger)
    pt.install()
    assert pt.create_stream_table("public.st", QUERY).is_populated
    with psycopg.connect(pt.database.dsn) as conn:
        conn.execute("INSERT INTO public.t VALUES (31, 1)")
    with caplog.at_level(logging.WARNING):
        assert pt.refresh_stream_table("public.st").action == "DIFFERENTIAL"
    named = f"{stranger.info.backend_pid} of role {stranger.info.user}"
    assert named in caplog.text
    finding = next(finding for finding in pt.health() if finding.check == "locks")
    assert not finding.ok
    assert named in finding.detail
    assert "public.st" in finding.detail
    pt.alter_stream_table("public.st", schedule="10m")
    pt.drop_stream_table("public.st")


def test_who_may_refresh_is_waited_for(pt: PgTrickle, stranger: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("public.st", QUERY)
    with psycopg.connect(pt.database.dsn, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, pgt_id::int) FROM pgtrickle.pgt_stream_tables", [LOCK_SPACE])
        result = pt.refresh_stream_table("public.st")
        assert (result.action, result.fallback_reason) == ("SKIP", "locked")
        with pytest.raises(TransientFault, match="lock"):
            pt.drop_stream_table("public.st")
    assert next(finding for finding in pt.health() if finding.check == "locks").ok


def test_a_refresh_that_overlooked_a_stranger_is_not_overlooked(
    pt: PgTrickle, stranger: psycopg.Connection[Any]
) -> None:
    """Without the lock its lease says that it is at work."""
    pt.create_stream_table("public.st", QUERY)
    _hold(stranger)
    seen: list[tuple[str, str | None]] = []

    class Overlapped(PostgresExecutor):
        def compute(self, *arguments: Any) -> Any:
            result = pt.refresh_stream_table("public.st")
            seen.append((result.action, result.fallback_reason))
            return super().compute(*arguments)

    with psycopg.connect(pt.database.dsn) as conn:
        conn.execute("INSERT INTO public.t VALUES (31, 1)")
    with PgTrickle(pt.database.dsn, executor=lambda: Overlapped(pt.database)) as first:
        assert first.refresh_stream_table("public.st").action == "DIFFERENTIAL"
    assert seen == [("SKIP", "locked")]


def test_create_that_can_not_fill_says_so(pt: PgTrickle) -> None:
    with psycopg.connect(pt.database.dsn, autocommit=True) as other:
        # Whoever may refresh, and does: of the table that comes next.
        other.execute("SELECT pg_advisory_lock(%s, i) FROM generate_series(1, 50) i", [LOCK_SPACE])
        with pytest.raises(TransientFault, match=r"public\.st: It is declared, and empty: .* \(locked\)"):
            pt.create_stream_table("public.st", QUERY)
        assert [(row["name"], row["is_populated"]) for row in pt.status()] == [("public.st", False)]
        with pytest.raises(TransientFault, match="declared, and empty"):
            pt.create_or_replace_stream_table("public.st", QUERY)
    assert pt.create_or_replace_stream_table("public.st", QUERY).is_populated
