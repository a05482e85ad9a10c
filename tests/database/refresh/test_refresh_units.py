"""Stream tables that read stream tables: through buffers between refreshes, through pending changes in a unit."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.settings import Settings
from tests.database.refresh.handwritten import HandWritten, changes, filtered, grouped, state
from tests.database.refresh.workshop import Workshop

TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
RICH = f"SELECT customer, total FROM ({TOTALS}) t WHERE total > 500"
COUNTS = "SELECT customer, count(*) AS orders FROM orders GROUP BY customer"


@pytest.fixture
def chain(any_workshop: Workshop) -> Workshop:
    """`rich` reads `totals`, which reads `orders`."""
    orders = any_workshop.source("orders")
    any_workshop.stream_table(
        "totals",
        "customer int, total numeric",
        grouped(orders, "customer", "sum(amount)", "total", ("customer", "amount")),
        key=["customer"],
    )
    totals = any_workshop.source("totals")
    any_workshop.stream_table(
        "rich",
        "customer int, total numeric",
        filtered(totals, ("customer", "total"), "total > 500"),
        key=["customer"],
    )
    return any_workshop


def actions(workshop: Workshop, *names: str, **options: object) -> list[tuple[str, str | None]]:
    results = workshop.refresh(*names, **options)
    return [(results[name].action, results[name].fallback_reason) for name in names]


def test_changes_flow_from_table_to_table_one_refresh_after_the_other(chain: Workshop) -> None:
    chain.refresh("totals")
    chain.refresh("rich")
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id = 7")
    assert actions(chain, "totals") == [("DIFFERENTIAL", None)]
    assert actions(chain, "rich") == [("DIFFERENTIAL", None)]
    assert chain.differs("rich", RICH) == []
    assert actions(chain, "rich") == [("NO_DATA", None)]


def test_a_full_upstream_hands_on_only_its_true_difference(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id = 7")
    assert actions(chain, "totals", force_full=True) == [("FULL", "forced")]
    buffer = f"pgtrickle_changes.changes_{chain.record('totals').key}"
    assert chain.rows(f"SELECT action, new_customer FROM {buffer} ORDER BY change_id DESC LIMIT 2") in (
        [("D", 7), ("I", 7)],
        [("I", 7), ("D", 7)],
    )
    (result,) = chain.refresh("rich").values()
    assert (result.action, result.source_changes) == ("DIFFERENTIAL", 2)
    assert chain.differs("rich", RICH) == []


def test_a_full_that_changes_nothing_hands_on_nothing(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    chain.refresh("totals", force_full=True)
    assert actions(chain, "rich") == [("NO_DATA", None)]


def test_a_chain_as_one_unit_becomes_new_at_once(chain: Workshop) -> None:
    assert actions(chain, "totals", "rich") == [("FULL", "never_populated"), ("FULL", "never_populated")]
    assert chain.differs("rich", RICH) == []
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id IN (7, 18)")
    chain.run("DELETE FROM orders WHERE customer = 9")
    assert actions(chain, "totals", "rich") == [("DIFFERENTIAL", None), ("DIFFERENTIAL", None)]
    assert chain.differs("totals", TOTALS) == []
    assert chain.differs("rich", RICH) == []
    assert chain.record("totals").data_timestamp == chain.record("rich").data_timestamp


def test_the_order_in_which_members_are_named_does_not_matter(chain: Workshop) -> None:
    results = chain.refresh("rich", "totals")
    assert list(results) == ["totals", "rich"]
    assert chain.differs("rich", RICH) == []


def test_what_a_unit_consumed_inside_is_not_consumed_again(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id = 7")
    chain.refresh("totals", "rich")
    # The buffer's rows lie beyond the snapshot, and are remembered by their transaction.
    (xid,) = chain.rows(f"SELECT xid::text FROM pgtrickle_changes.changes_{chain.record('totals').key}"
                        " WHERE new_customer = 7 ORDER BY xid DESC LIMIT 1")[0]  # fmt: skip
    frontier = chain.record("rich").frontier or {}
    assert int(xid) in frontier["sources"][chain.record("totals").key]["also"]
    assert actions(chain, "rich") == [("NO_DATA", None)]
    assert "also" not in (chain.record("rich").frontier or {})["sources"][chain.record("totals").key]
    chain.run("UPDATE orders SET amount = amount + 1 WHERE id = 7")
    assert actions(chain, "totals") == [("DIFFERENTIAL", None)]
    assert actions(chain, "rich") == [("DIFFERENTIAL", None)]
    assert chain.differs("rich", RICH) == []


def test_a_unit_after_a_lone_upstream_refresh_sees_both_changes(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id = 7")
    chain.refresh("totals")
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id IN (7, 8)")
    (result,) = [r for name, r in chain.refresh("totals", "rich").items() if name == "rich"]
    assert (result.action, result.source_changes) == ("DIFFERENTIAL", 6)
    assert chain.differs("rich", RICH) == []


def test_a_full_member_hands_its_true_difference_to_a_differential_one(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    chain.run("TRUNCATE orders; INSERT INTO orders SELECT i, i % 10, i * 2, NULL FROM generate_series(1, 100) i")
    chain.run("UPDATE orders SET amount = i.a FROM (SELECT id, id AS a FROM orders WHERE customer > 2) i"
              " WHERE orders.id = i.id")  # fmt: skip
    results = chain.refresh("totals", "rich")
    assert (results["totals"].fallback_reason, results["totals"].rows_updated) == ("truncate_detected", 3)
    assert (results["rich"].action, results["rich"].source_changes) == ("DIFFERENTIAL", 6)
    assert chain.differs("rich", RICH) == []


def test_a_pending_change_too_large_for_text_is_read_in_the_coordinators_session(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    asked = len(chain.executor.computed)
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id IN (7, 8)")
    few = Settings(collect_max_rows=2, retry_attempts=1)
    assert actions(chain, "totals", "rich", settings=few) == [("DIFFERENTIAL", None), ("DIFFERENTIAL", None)]
    assert len(chain.executor.computed) == asked + 1
    assert "coordinator's session" in (chain.history("rich")[0].plan or "")
    assert chain.differs("rich", RICH) == []


def test_a_unit_commits_all_or_nothing(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    chain.run("UPDATE orders SET amount = amount + 1000 WHERE id = 7")
    chain.run("ALTER TABLE rich ADD CHECK (total < 1000) NOT VALID")
    before = chain.rows("SELECT * FROM totals ORDER BY customer")
    with pytest.raises(Exception, match="check constraint"):
        chain.refresh("totals", "rich")
    assert chain.rows("SELECT * FROM totals ORDER BY customer") == before
    assert [chain.history(name)[0].status for name in ("totals", "rich")] == ["FAILED", "FAILED"]


def test_a_diamond_shows_one_instant(any_workshop: Workshop) -> None:
    orders = any_workshop.source("orders")
    for name, aggregate, column in (("totals", "sum(amount)", "total"), ("counts", "count(*)", "orders")):
        query = grouped(orders, "customer", aggregate, column, ("customer", "amount"))
        any_workshop.stream_table(name, f"customer int, {column} numeric", query, key=["customer"])
    totals, counts = any_workshop.source("totals"), any_workshop.source("counts")
    left, right = ("customer", "total"), ("customer", "orders")

    def joined(b) -> str:
        sides = state(totals, b.sources[totals.key], left), state(counts, b.sources[counts.key], right)
        return "SELECT customer, total, orders FROM ({}) t JOIN ({}) c USING (customer)".format(*sides)

    def delta(b) -> str:
        touched = " UNION ALL ".join(
            f"SELECT customer FROM ({part}) x"
            for part in (
                changes(totals, b.sources[totals.key], left),
                changes(counts, b.sources[counts.key], right),
            )
        )
        return (
            f"SELECT 1 AS __pgt_w, * FROM ({joined(b)}) n WHERE customer IN ({touched})"
            f" UNION ALL SELECT -1, customer, total, orders FROM public.report WHERE customer IN ({touched})"
        )

    query = HandWritten(joined, delta, {totals.key: totals, counts.key: counts})
    any_workshop.stream_table("report", "customer int, total numeric, orders numeric", query, key=["customer"])
    unit = ("totals", "counts", "report")
    any_workshop.refresh(*unit)
    for cycle in range(3):
        any_workshop.run("INSERT INTO orders VALUES (%s, %s, 5, NULL)", 500 + cycle, cycle)
        any_workshop.run("DELETE FROM orders WHERE id = %s", 20 + cycle)
        assert [action for action, _ in actions(any_workshop, *unit)] == ["DIFFERENTIAL"] * 3
        report = f"SELECT customer, total, orders FROM ({TOTALS}) t JOIN ({COUNTS}) c USING (customer)"
        assert any_workshop.differs("report", report) == []


def test_a_stream_tables_instant_is_that_of_the_stalest_it_reads(chain: Workshop) -> None:
    chain.refresh("totals", "rich")
    stale = chain.record("totals").data_timestamp
    (result,) = chain.refresh("rich").values()
    assert result.data_timestamp == stale


def test_rows_that_differ_in_hidden_columns_only_are_not_handed_on(any_workshop: Workshop) -> None:
    orders = any_workshop.source("orders")
    counted = 'SELECT customer, count(*) > 0 AS "any", count(*) AS __pgt_count FROM public.orders GROUP BY 1'
    query = HandWritten(
        lambda b: counted,
        lambda b: (
            f"SELECT 1 AS __pgt_w, c.* FROM ({counted}) c"
            ' UNION ALL SELECT -1, customer, "any", __pgt_count FROM public.seen'
        ),
        {orders.key: orders},
    )
    any_workshop.stream_table(
        "seen", 'customer int, "any" bool, __pgt_count bigint', query, key=["customer"], hidden=["__pgt_count"]
    )
    seen = any_workshop.source("seen")
    any_workshop.stream_table("reader", "customer int", filtered(seen, ("customer",), "true"), key=["customer"])
    any_workshop.refresh("seen", "reader")
    any_workshop.run("INSERT INTO orders VALUES (201, 3, 1, NULL)")
    assert any_workshop.refresh_one("seen").rows_updated == 1
    assert actions(any_workshop, "reader") == [("NO_DATA", None)]


def test_a_pending_change_survives_the_text(workshop: Workshop) -> None:
    workshop.run("""CREATE TABLE odd (id int PRIMARY KEY, a int[], t text, j jsonb);
        INSERT INTO odd VALUES (1, '{1,2}', 'a"b\\c', '{"x": [1]}'), (2, '{}', '', NULL), (3, NULL, NULL, '"{,}"'),
                               (4, '{3}', 'NULL', 'null')""")
    columns = ("id", "a", "t", "j")
    workshop.stream_table("one", "id int, a int[], t text, j jsonb", filtered(workshop.source("odd"), columns, "true"))
    workshop.stream_table("two", "id int, a int[], t text, j jsonb", filtered(workshop.source("one"), columns, "true"))
    workshop.refresh("one", "two")
    assert workshop.differs("two", "TABLE odd") == []
    workshop.run("UPDATE odd SET a = a || 9, t = t || '''%'; DELETE FROM odd WHERE id = 2")
    assert actions(workshop, "one", "two") == [("DIFFERENTIAL", None), ("DIFFERENTIAL", None)]
    assert workshop.differs("two", "TABLE odd") == []
