"""Units by declaration: whoever refreshes one of their tables refreshes all, on one snapshot and in one commit."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from tests.database.declare.conftest import TOTALS, difference

NAMES = "SELECT id, name FROM customers WHERE region = 'north'"
#: By table; nothing connects the two but the declaration.
LEDGER = {"totals": TOTALS, "names": NAMES}
_TOGETHER = "SELECT pgt_name, cardinality(together) FROM pgtrickle.pgt_stream_tables WHERE NOT is_hidden ORDER BY 1"


@pytest.fixture
def ledger(pt: PgTrickle) -> PgTrickle:
    for name, query in LEDGER.items():
        pt.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", unit="ledger")
    return pt


def change(conn: psycopg.Connection[Any]) -> None:
    with conn.transaction():
        conn.execute("UPDATE orders SET amount = amount + 1 WHERE id < 4")
        conn.execute("UPDATE customers SET name = name || '!' WHERE id = 3")


def instants(conn: psycopg.Connection[Any], *names: str) -> set[Any]:
    return {
        row[0]
        for row in conn.execute(
            "SELECT data_timestamp FROM pgtrickle.pgt_stream_tables WHERE pgt_name = ANY(%s)", [list(names)]
        )
    }


def test_whoever_refreshes_one_table_refreshes_all_in_one_commit(
    ledger: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    change(conn)
    assert ledger.refresh_stream_table("totals").action == "DIFFERENTIAL"
    assert [difference(conn, name, query) for name, query in LEDGER.items()] == [0, 0]
    assert len(instants(conn, *LEDGER)) == 1
    assert [sorted(row["unit"]) for row in ledger.history("names", 1)] == [["public.names", "public.totals"]]
    change(conn)
    assert set(ledger.refresh(["names"])) == {"names"}
    assert [difference(conn, name, query) for name, query in LEDGER.items()] == [0, 0]
    change(conn)
    assert [r.name for r in ledger.refresh_with_upstream("names")] == ["public.totals", "public.names"]


def test_a_table_that_joins_is_filled_and_the_others_are_brought_to_its_instant_by_differences(
    ledger: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    change(conn)
    ledger.create_stream_table("large", "SELECT id FROM orders WHERE amount > 40", unit="ledger")
    assert [ledger.history(name, 1)[0]["action"] for name in ("large", *LEDGER)] == [
        "FULL",
        "DIFFERENTIAL",
        "DIFFERENTIAL",
    ]
    assert len(instants(conn, "large", *LEDGER)) == 1


def test_what_fails_holds_all_of_them_back(ledger: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    ledger.create_stream_table("shares", "SELECT id, 100 / (id - 11) AS share FROM customers", unit="ledger")
    change(conn)
    before = instants(conn, *LEDGER)
    conn.execute("INSERT INTO customers VALUES (11, 'eleven', 'north')")
    with pytest.raises(PgTrickleError, match="Division by zero"):
        ledger.refresh_stream_table("totals")
    assert instants(conn, *LEDGER) == before
    assert difference(conn, "totals", TOTALS) > 0
    conn.execute("DELETE FROM customers WHERE id = 11")
    ledger.refresh_stream_table("totals")
    assert [difference(conn, name, query) for name, query in LEDGER.items()] == [0, 0]


def test_a_gated_table_holds_all_of_them_back(ledger: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    ledger.gate("names")
    change(conn)
    assert ledger.refresh_stream_table("totals").action == "SKIP"
    ledger.ungate("names")
    assert ledger.refresh_stream_table("totals").action == "DIFFERENTIAL"


def test_who_asks_for_one_table_in_full_means_that_one(ledger: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    change(conn)
    ledger.refresh_stream_table("totals", force_full=True)
    assert [ledger.history(name, 1)[0]["action"] for name in LEDGER] == ["FULL", "DIFFERENTIAL"]
    conn.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = 'names'")
    change(conn)
    left = ledger.refresh_stream_table("totals", force_full=True)
    assert (left.action, left.fallback_reason, left.held_by) == ("SKIP", "suspended: public.names", "public.names")
    assert ledger.refresh_stream_table("names", force_full=True).action == "FULL"
    assert [ledger.history(name, 1)[0]["action"] for name in LEDGER] == ["DIFFERENTIAL", "FULL"]
    assert [difference(conn, name, query) for name, query in LEDGER.items()] == [0, 0]
    # Who names both means both.
    assert {r.action for r in ledger.refresh(["totals", "names"], force_full=True).values()} == {"FULL"}


def test_a_second_way_of_a_source_is_taken_along_and_left_with_the_unit(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("base", "SELECT id, customer_id, amount FROM orders")
    pt.create_stream_table("sums", "SELECT customer_id, sum(amount) AS total FROM base GROUP BY customer_id")
    pt.create_stream_table("counts", "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id")
    for name in ("sums", "counts"):
        pt.alter_stream_table(name, unit="ledger")
    assert dict(conn.execute(_TOGETHER).fetchall()) == {"base": 3, "sums": 3, "counts": 3}
    change(conn)
    pt.refresh_stream_table("counts")
    assert len(instants(conn, "base", "sums", "counts")) == 1
    pt.alter_stream_table("counts", unit=None)
    assert dict(conn.execute(_TOGETHER).fetchall()) == {"base": 0, "sums": 0, "counts": 0}
    pt.alter_stream_table("counts", unit="ledger")
    pt.drop_stream_table("counts")
    assert dict(conn.execute(_TOGETHER).fetchall()) == {"base": 0, "sums": 0}


def test_what_a_changed_view_leads_to_is_taken_along(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("base", "SELECT id, customer_id, amount FROM orders", schedule="1h")
    conn.execute("CREATE VIEW seen AS SELECT id AS customer_id, id::numeric AS amount FROM customers")
    sums = "SELECT customer_id, sum(amount) AS total FROM seen GROUP BY customer_id"
    pt.create_stream_table("sums", sums, unit="ledger", schedule="5m")
    counts = "SELECT customer_id, max(amount) AS n FROM orders GROUP BY customer_id"
    pt.create_stream_table("counts", counts, unit="ledger", schedule="5m", refresh_mode="DIFFERENTIAL")
    assert dict(conn.execute(_TOGETHER).fetchall()) == {"base": 0, "sums": 2, "counts": 2}
    for view, together in (
        ("SELECT customer_id, amount::numeric AS amount FROM base", {"base": 3, "sums": 3, "counts": 3}),
        ("SELECT id AS customer_id, id::numeric AS amount FROM customers", {"base": 0, "sums": 2, "counts": 2}),
    ):
        conn.execute(f"CREATE OR REPLACE VIEW seen AS {view}")
        change(conn)
        assert pt.refresh_stream_table("sums").action == "REINITIALIZE"
        assert dict(conn.execute(_TOGETHER).fetchall()) == together
        change(conn)
        assert pt.refresh_stream_table("counts").action == "DIFFERENTIAL"
        assert len(instants(conn, *(name for name, number in together.items() if number))) == 1
        assert [difference(conn, name, query) for name, query in (("sums", sums), ("counts", counts))] == [0, 0]


def test_writers_cannot_maintain_a_table_of_a_unit(ledger: PgTrickle) -> None:
    with pytest.raises(UsageError, match="can't be in unit 'ledger'"):
        ledger.create_stream_table("x", TOTALS, refresh_mode="IMMEDIATE", unit="ledger")
    with pytest.raises(UsageError, match="can't be in unit 'ledger'"):
        ledger.alter_stream_table("totals", refresh_mode="IMMEDIATE")


def test_the_same_declaration_again_changes_nothing(ledger: PgTrickle) -> None:
    assert ledger.changes("totals", TOTALS, refresh_mode="DIFFERENTIAL", unit="ledger") == {}
    assert ledger.changes("totals", TOTALS, refresh_mode="DIFFERENTIAL") == {"unit": None}


@pytest.mark.parametrize("seed", range(6))
def test_random_units_show_each_source_at_one_instant(seed: int, pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """Each source's only row is its version, and each stream table holds all versions that reach it."""
    rng = random.Random(seed)
    bases = ["s0", "s1", "s2"]
    for base in bases:
        conn.execute(f"CREATE TABLE {base} (src text PRIMARY KEY, v int); INSERT INTO {base} VALUES ('{base}', 0)")
    reads: dict[str, list[str]] = {}
    members = []
    for number in range(8):
        name = f"t{number}"
        reads[name] = rng.sample([*bases, *reads], rng.choice((1, 1, 2, 2, 3)))
        is_member = rng.random() < 0.4
        members += [name] * is_member
        pt.create_stream_table(
            name,
            " UNION ".join(f"SELECT src, v FROM {source}" for source in reads[name]),
            refresh_mode="DIFFERENTIAL",
            unit="ledger" if is_member else None,
            differential_max_change_ratio=0,
            diamond_consistency=rng.choice(("none", "atomic")),
        )
    for step in range(1, 8):
        with conn.transaction():
            for base in bases:
                conn.execute(f"UPDATE {base} SET v = {step}")
        name = rng.choice(list(reads))
        if rng.random() < 0.5:
            results = [pt.refresh_stream_table(name)]
        else:
            results = list(pt.refresh(rng.sample(list(reads), 2)).values())
        assert {r.action for r in results} <= {"DIFFERENTIAL", "NO_DATA"}
        seen = [row for member in members for row in conn.execute(f"SELECT DISTINCT src, v FROM {member}").fetchall()]
        assert len({source for source, _ in seen}) == len(set(seen)), (reads, members)
    for name in reads:
        pt.refresh_stream_table(name)
        assert pt.verify(name).differences == 0
