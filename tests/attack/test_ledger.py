"""Writers' transactions against the contents of refreshes: each shows exactly the transactions that it says it saw."""

from __future__ import annotations

import os
import random
from collections import Counter

import psycopg
import pytest

from tests import servers
from tests.attack.ledger import KEYS, Transaction, check
from tests.attack.refreshing import refreshing, unhurt
from tests.attack.siege import checked, declared, killed
from tests.attack.writers import Crowd

REFRESHES = 30
MINUTES = float(os.environ.get("PGTRICKLE_LEDGER_MINUTES", "10"))
WRITERS = int(os.environ.get("PGTRICKLE_LEDGER_WRITERS", "32"))


@pytest.mark.timeout(900)
def test_each_content_is_its_query_over_the_transactions_it_saw(any_dsn: str) -> None:
    declared(any_dsn)
    crowd = Crowd(lambda: any_dsn, 8, seed=1)
    counts, chance = Counter[str](), random.Random(1)
    crowd.start()
    with unhurt(any_dsn) as pt:
        for _ in range(REFRESHES):
            # Something has happened between two of them, however slow the machine.
            crowd.wait_for(crowd.ended + 5)
            refreshing(pt, chance, counts)
    crowd.stop()
    crowd.join()
    found = checked(any_dsn, crowd)
    print(found, counts, crowd.counts)
    assert found.wrong == ()
    assert crowd.raised == []
    assert set(counts) <= {"DIFFERENTIAL", "NO_DATA"}
    assert (counts["DIFFERENTIAL"] > REFRESHES, found.late > 5) == (True, True)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        # What would a lost change look like? As a write that the contents know nothing of.
        assert check(conn, [*crowd.transactions, _unheard_of(conn, crowd)]).wrong != ()


@pytest.mark.timeout(900)
def test_contents_are_true_though_sessions_servers_and_drivers_are_killed() -> None:
    with servers.running(18) as server:
        found, crowd, kills = killed(server, writers=8, seed=2, every=50)
    print(found, kills, crowd.counts)
    assert found.wrong == ()
    assert crowd.raised == []
    assert sum(kills.values()) >= 4


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_thirty_two_writers_and_kills_for_ten_minutes() -> None:
    with servers.running(18) as server:
        found, crowd, kills = killed(server, writers=WRITERS, seed=3, every=1000, minutes=MINUTES)
    print(found, kills, crowd.counts)
    assert found.wrong == ()
    assert crowd.raised == []


def _unheard_of(conn: psycopg.Connection, crowd: Crowd) -> Transaction:
    """A transaction in the middle of all others that no content shows."""
    conn.execute("INSERT INTO markers VALUES ('unheard of')")
    xid = sorted(t.xid for t in crowd.transactions)[len(crowd.transactions) // 2]
    return Transaction("unheard of", xid, writes=[("t", KEYS + 1, 1, (3, 33))])
