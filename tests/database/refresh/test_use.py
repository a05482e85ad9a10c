"""Tier auto: what nobody reads cools down, by PostgreSQL's own counts, in which refreshes count for nothing."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from tests.database.declare.conftest import SHOP, TOTALS

LARGE = "SELECT id, amount FROM orders WHERE amount > 1"


@pytest.fixture
def conn(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    conn.execute(SHOP)
    return conn


def read(conn: psycopg.Connection[Any], *tables: str) -> None:
    """A user reads them, and his session tells of it at once."""
    for table in tables:
        conn.execute(f"SELECT * FROM {table}")
    conn.execute("SELECT pg_stat_force_next_flush()")


def passes(conn: psycopg.Connection[Any], how_long: str) -> None:
    """Everything that was noticed was noticed so much earlier."""
    conn.execute(f"UPDATE pgtrickle.pgt_use SET read_at = read_at - interval '{how_long}'")


def tiers(pt: PgTrickle) -> dict[str, str]:
    pt.notice_use()
    return {row["pgt_name"]: row["effective_tier"] for row in pt.status()}


def test_what_nobody_reads_cools_and_what_somebody_reads_is_hot_again(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("large", LARGE, tier="auto", schedule="5m")
    assert tiers(pt) == {"large": "hot"}
    passes(conn, "59 minutes")
    assert tiers(pt) == {"large": "hot"}
    passes(conn, "2 minutes")
    assert tiers(pt) == {"large": "warm"}
    passes(conn, "22 hours")
    assert tiers(pt) == {"large": "warm"}
    passes(conn, "2 hours")
    assert tiers(pt) == {"large": "cold"}
    read(conn, "large")
    assert tiers(pt) == {"large": "hot"}


def test_a_schedule_of_days_takes_days_to_cool(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, tier="auto", schedule="1d")
    assert tiers(pt) == {"large": "hot"}
    for passed, tier in (("47 hours", "hot"), ("2 hours", "warm"), ("142 hours", "warm"), ("2 hours", "cold")):
        passes(conn, passed)
        assert tiers(pt) == {"large": tier}


@pytest.mark.parametrize("query", [LARGE, TOTALS, f"{LARGE} ORDER BY amount DESC LIMIT 3"])
@pytest.mark.parametrize("full", [False, True])
def test_refreshes_and_verifications_are_no_use(
    pt: PgTrickle, conn: psycopg.Connection[Any], query: str, full: bool
) -> None:
    pt.create_stream_table("large", query, tier="auto", schedule="5m", refresh_mode="AUTO")
    tiers(pt)
    passes(conn, "2 hours")
    for _ in range(3):
        conn.execute("UPDATE orders SET amount = amount + 1 WHERE id % 7 = 0")
        assert pt.refresh_stream_table("large", force_full=full).action in ("DIFFERENTIAL", "FULL", "TOPK")
        assert tiers(pt) == {"large": "warm"}
    assert pt.verify("large").differences == 0
    assert tiers(pt) == {"large": "warm"}
    # The counts themselves have moved.
    assert conn.execute("SELECT scans FROM pgtrickle.pgt_use").fetchone() != (0,)
    read(conn, "large")
    assert tiers(pt) == {"large": "hot"}


def test_a_read_between_two_refreshes_is_noticed_without_a_plan(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, tier="auto", schedule="5m")
    tiers(pt)
    passes(conn, "2 hours")
    read(conn, "large")
    pt.refresh_stream_table("large")
    assert tiers(pt) == {"large": "hot"}


def test_partitions_and_indexes_count(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, tier="auto", schedule="5m", partition_by="RANGE (id)")
    conn.execute("SELECT pgtrickle.add_partition('large', 'large_1', 'FROM (0) TO (10)')")
    conn.execute("CREATE INDEX mine ON large (amount)")
    conn.execute("SELECT pg_stat_force_next_flush()")
    tiers(pt)
    passes(conn, "2 hours")
    assert tiers(pt) == {"large": "warm"}
    read(conn, "large_1")
    assert tiers(pt) == {"large": "hot"}
    passes(conn, "2 hours")
    conn.execute("SET enable_seqscan = off")
    read(conn, "large WHERE amount = 5")
    assert tiers(pt) == {"large": "hot"}


def test_a_table_is_no_colder_than_what_reads_it(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, tier="auto")
    pt.create_stream_table("sums", "SELECT sum(amount) AS total FROM large", tier="auto", schedule="5m")
    pt.create_stream_table("alone", LARGE, tier="auto", schedule="5m")
    pt.create_stream_table("hot", "SELECT total FROM sums WHERE total > 5", tier="cold", schedule="5m")
    tiers(pt)
    passes(conn, "2 hours")
    assert tiers(pt) == {"large": "warm", "sums": "warm", "alone": "warm", "hot": "cold"}
    read(conn, "sums")
    assert tiers(pt) == {"large": "hot", "sums": "hot", "alone": "warm", "hot": "cold"}
    passes(conn, "26 hours")
    assert tiers(pt) == {"large": "cold", "sums": "cold", "alone": "cold", "hot": "cold"}
    pt.alter_stream_table("hot", tier="warm")
    assert tiers(pt) == {"large": "warm", "sums": "warm", "alone": "cold", "hot": "warm"}


def test_a_reader_s_refresh_is_no_use_of_what_it_reads(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, tier="auto")
    pt.create_stream_table("sums", "SELECT max(amount) AS most FROM large", tier="auto", schedule="5m")
    tiers(pt)
    passes(conn, "2 hours")
    conn.execute("DELETE FROM orders WHERE id = (SELECT id FROM orders ORDER BY amount DESC LIMIT 1)")
    pt.refresh_stream_table("sums", force_full=True)
    assert tiers(pt) == {"large": "warm", "sums": "warm"}


def test_counts_that_were_reset_are_no_use(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, tier="auto", schedule="5m")
    read(conn, "large")
    tiers(pt)
    passes(conn, "2 hours")
    conn.execute("UPDATE pgtrickle.pgt_use SET scans = scans + 100")
    assert tiers(pt) == {"large": "warm"}
    read(conn, "large")
    assert tiers(pt) == {"large": "hot"}
