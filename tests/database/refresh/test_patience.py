"""A difference that takes too long is asked for again, another way; nothing else is."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.refresh.executor import Computation, patience_ms, read_arrow

STUCK = (
    "SELECT 1 AS __pgt_w, 'k' AS __pgt_key, 'there' AS v"
    " WHERE current_setting('enable_nestloop') = 'off' OR pg_sleep(600) IS NULL"
)


def test_the_session_goes_on_in_its_transaction_with_its_settings(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("CREATE TEMPORARY TABLE mine ON COMMIT DROP AS SELECT 1 AS n")
        assert read_arrow(conn, Computation(STUCK, ("v",), 1, patience_ms=100))["v"].to_pylist() == ["there"]
        assert conn.execute(
            "SELECT n, current_setting('enable_nestloop'), current_setting('statement_timeout') FROM mine"
        ).fetchone() == (1, "on", "0")


def test_what_fails_in_time_fails(dsn: str) -> None:
    with psycopg.connect(dsn) as conn, pytest.raises(psycopg.errors.DivisionByZero):
        read_arrow(
            conn,
            Computation("SELECT 1 AS __pgt_w, 'k' AS __pgt_key, (1 / 0)::text AS v", ("v",), 1, patience_ms=600_000),
        )


def test_few_changes_may_take_their_time() -> None:
    assert patience_ms(1_999) is None
    assert patience_ms(200_000) == 8_000
