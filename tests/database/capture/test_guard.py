"""Nobody but a refresh writes a stream table, and whoever tries is told what to do."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.capture.guard import guard


@pytest.fixture
def totals(conn):
    conn.execute("CREATE TABLE totals (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)")
    conn.execute("CREATE TABLE totals_1 PARTITION OF totals FOR VALUES FROM (0) TO (100)")
    conn.execute("INSERT INTO totals VALUES (1, 1)")
    (relid,) = conn.execute("SELECT 'totals'::regclass::oid::bigint").fetchone()
    guard(conn, relid)
    guard(conn, relid)
    return conn


def run(conn, statement):
    if statement.startswith("COPY"):
        with conn.cursor().copy(statement):
            pass
    else:
        conn.execute(statement)


@pytest.mark.parametrize(
    ("statement", "action"),
    [
        ("INSERT INTO totals VALUES (2, 2)", "INSERT"),
        ("UPDATE totals SET n = 2", "UPDATE"),
        ("DELETE FROM totals", "DELETE"),
        ("TRUNCATE totals", "TRUNCATE"),
        ("DELETE FROM totals WHERE false", "DELETE"),
        ("COPY totals FROM STDIN", "INSERT"),
        ("MERGE INTO totals t USING (VALUES (1)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE", "DELETE"),
    ],
)
def test_a_direct_change_is_refused(totals, statement, action):
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
        run(totals, statement)
    assert refused.value.diag.message_primary == f"table public.totals is a stream table: {action} on it is refused"
    assert "refresh" in str(refused.value.diag.message_hint)


def test_a_change_of_a_partition_is_refused(totals):
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="totals_1 is a stream table"):
        totals.execute("DELETE FROM totals_1")


def test_a_refresh_may_write_in_its_own_transaction_only(totals):
    with totals.transaction():
        totals.execute("SELECT set_config('pgtrickle.refreshing', 'on', true)")
        totals.execute("UPDATE totals SET n = 5")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        totals.execute("UPDATE totals SET n = 6")
    assert totals.execute("SELECT n FROM totals").fetchall() == [(5,)]
