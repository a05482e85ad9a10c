"""`frozen_breach='ignore'`: a copy keeps frozen rows as they were, and what is made of it follows the copy.

The oracle is the rule in plain Python over the rows that the source had at each refresh, and PostgreSQL's answer to the
query over the rows that the rule keeps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from tests.database.reported.conftest import Site, refresh, site_at

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
DAY = timedelta(days=1)
AGE = 10
#: The shop's order i was placed i days before noon's day, so 11 and later are frozen from the second refresh on.
SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, region text);
INSERT INTO customers SELECT i, 'region ' || i % 2 FROM generate_series(0, 3) i;
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric, placed date, note text);
INSERT INTO orders SELECT i, i % 4, i, date '2026-03-28' - i, 'note' FROM generate_series(1, 20) i
"""
ROWS = "SELECT id, customer, amount, placed FROM orders"
QUERIES = {
    "plain": ROWS,
    "joined": "SELECT o.id, o.amount, c.region FROM orders o LEFT JOIN customers c ON c.id = o.customer",
    "grouped": "SELECT customer, placed, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer, placed",
    "spread": "SELECT n, count(*) AS c FROM (SELECT customer, count(*) AS n FROM orders GROUP BY 1) AS x GROUP BY n",
    "pairs": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON b.placed = a.placed + 1 WHERE a.amount > 2",
    "latest": "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY placed, id) AS n FROM orders o",
}
OPTIONS: dict[str, Any] = {
    "refresh_mode": "DIFFERENTIAL",
    "differential_max_change_ratio": 0.0,
    "frozen_before": f"orders.placed: {AGE} days",
    "frozen_breach": "ignore",
}
Row = tuple[Any, ...]


@pytest.fixture
def site(dsn: str) -> Iterator[Site]:
    yield from _shop(dsn)


@pytest.fixture
def any_site(any_dsn: str) -> Iterator[Site]:
    """The same on PostgreSQL 18 and 15."""
    yield from _shop(any_dsn)


def _shop(dsn: str) -> Iterator[Site]:
    for site in site_at(dsn, placement="database"):
        site.run(*SHOP.split(";"))
        yield site


class Model:
    """What a copy of orders holds, by the rule. A row is (id, customer, amount, placed)."""

    def __init__(self, site: Site, age: int = AGE) -> None:
        self.site = site
        self.age = age
        self.bound: date | None = None
        self.rows: dict[int, Row] = {}

    def refreshed(self, at: datetime) -> None:
        now = {row[0]: row for row in self.site.rows(ROWS)}
        keys = now.keys() | self.rows.keys()
        held = now if self.bound is None else {key: self._after(self.rows.get(key), now.get(key)) for key in keys}
        self.rows = {key: row for key, row in held.items() if row is not None}
        self.bound = at.date() - timedelta(days=self.age)

    def _after(self, stored: Row | None, new: Row | None) -> Row | None:
        return stored if self._is_frozen(stored) or self._is_frozen(new) else new

    def _is_frozen(self, row: Row | None) -> bool:
        assert self.bound is not None
        return row is not None and row[3] is not None and row[3] < self.bound

    def differs(self, **queries: str) -> list[Any]:
        """The rows in which contents differ from the queries over the rows that the rule keeps."""
        self.site.run(
            "DROP TABLE IF EXISTS modelled",
            "CREATE TEMP TABLE modelled (id int, customer int, amount numeric, placed date)",
        )
        with self.site.conn.cursor() as cursor:
            cursor.executemany("INSERT INTO modelled VALUES (%s, %s, %s, %s)", list(self.rows.values()))
        found = [
            (name, self.site.differs(name, query.replace("orders", "modelled"))) for name, query in queries.items()
        ]
        return [each for each in found if each[1]]


def declare(site: Site, *names: str, at: datetime = NOON, **options: Any) -> Model:
    model = Model(site)
    for name in names:
        site.declare(name, QUERIES[name], **{**OPTIONS, "initialize": False, **options})
    refresh(site, *names, at=at)
    model.refreshed(at)
    assert model.differs(**{name: QUERIES[name] for name in names}) == []
    return model


def copies(site: Site, owner: str) -> list[str]:
    return [
        name
        for (name,) in site.rows(
            "SELECT p.pgt_name FROM pgtrickle.pgt_stream_tables p JOIN pgtrickle.pgt_stream_tables o"
            f" ON o.pgt_id = p.part_of WHERE o.pgt_name = '{owner}' AND p.frozen_rows IS NOT NULL ORDER BY 1"
        )
    ]


def action_of(site: Site, part: str) -> str:
    ((action,),) = site.rows(
        "SELECT h.action FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)"
        f" WHERE t.pgt_name = '{part}' ORDER BY refresh_id DESC LIMIT 1"
    )
    return str(action)


def follows(
    site: Site, model: Model, name: str, at: datetime, action: str = "DIFFERENTIAL", **options: Any
) -> RefreshResult:
    result = refresh(site, name, at=at, **options)[name]
    model.refreshed(at)
    assert model.differs(**{name: QUERIES[name]}) == []
    assert (result.action, result.data_timestamp) == (action, at)
    return result


def test_frozen_rows_stay_whatever_is_done_to_them(any_site: Site) -> None:
    site = any_site
    model = declare(site, "grouped")
    site.run(
        "UPDATE orders SET amount = 1000 WHERE id = 15",
        "DELETE FROM orders WHERE id = 16",
        "INSERT INTO orders VALUES (101, 1, 7, '2026-01-01')",
        "UPDATE orders SET placed = '2026-03-28' WHERE id = 17",
        "UPDATE orders SET placed = '2026-01-01', amount = 9 WHERE id = 3",
        "DELETE FROM orders WHERE id = 18; INSERT INTO orders VALUES (18, 2, 5, '2026-03-27')",
    )
    assert follows(site, model, "grouped", NOON + DAY, "NO_DATA").source_changes == 0
    assert action_of(site, *copies(site, "grouped")) == "DIFFERENTIAL"
    site.run("UPDATE orders SET amount = 1000 WHERE id = 5", "DELETE FROM orders WHERE id = 6")
    site.run("INSERT INTO orders VALUES (102, 1, 7, '2026-03-28'), (103, 2, 8, NULL)")
    follows(site, model, "grouped", NOON + 2 * DAY)
    # What stayed in the place of a row that is below the bound goes when that goes.
    site.run("DELETE FROM orders WHERE id IN (3, 15, 17, 18, 101)", "UPDATE orders SET customer = 3 WHERE id = 103")
    follows(site, model, "grouped", NOON + 3 * DAY)
    assert {row[0] for row in model.rows.values()} & {3, 15, 17, 18, 101} == {15, 17, 18}
    follows(site, model, "grouped", NOON + 4 * DAY, "FULL", force_full=True)
    verified = {v.name.split("__")[0]: v for v in site.client.verify("grouped").tables}
    assert all(v.status == "EQUAL" for v in verified.values())
    (kept,) = [v.frozen for v in site.client.verify("grouped").tables if v.frozen is not None]
    now = {row[0]: row for row in site.rows(ROWS)}
    assert kept == sum(model.rows.get(key) != now.get(key) for key in model.rows.keys() | now.keys()) > 3


def test_a_change_is_never_lost_however_late_the_refresh_is(site: Site) -> None:
    model = declare(site, "grouped")
    # Orders 9 and 10 are above the bound of the last refresh, and long below it at the next.
    site.run("UPDATE orders SET amount = 99 WHERE id = 9", "DELETE FROM orders WHERE id = 10")
    follows(site, model, "grouped", NOON + 30 * DAY)
    assert model.rows[9][2] == 99
    assert 10 not in model.rows
    site.run("UPDATE orders SET amount = 1 WHERE id = 9", "DELETE FROM orders WHERE id = 8")
    follows(site, model, "grouped", NOON + 31 * DAY, "NO_DATA")
    # When a change is committed decides: a transaction may be older than the refresh that has frozen its row.
    site.run("INSERT INTO orders VALUES (200, 1, 1, '2026-04-27')")
    follows(site, model, "grouped", NOON + 32 * DAY)
    with psycopg.connect(site.client.database.dsn) as writer:
        writer.execute("UPDATE orders SET amount = 2 WHERE id = 200")
        follows(site, model, "grouped", NOON + 60 * DAY, "NO_DATA")
    follows(site, model, "grouped", NOON + 61 * DAY, "NO_DATA")
    assert model.rows[200][2] == 1


def test_truncate_takes_what_is_not_frozen(site: Site) -> None:
    model = declare(site, "joined")
    site.run("TRUNCATE orders")
    follows(site, model, "joined", NOON + DAY)
    assert sorted(model.rows) == list(range(11, 21))
    assert action_of(site, *copies(site, "joined")) == "FULL"
    site.run("INSERT INTO orders SELECT i, 0, i, '2026-03-28' FROM generate_series(1, 20) i")
    follows(site, model, "joined", NOON + 2 * DAY)


def test_the_clock_may_go_back_and_nothing_thaws(site: Site) -> None:
    model = declare(site, "plain")
    site.run("UPDATE orders SET note = 'x'")
    refresh(site, "plain", at=NOON + 30 * DAY)
    site.run("UPDATE orders SET amount = 0", "DELETE FROM orders WHERE id = 1")
    for at in (NOON + 31 * DAY, NOON, NOON + DAY):
        refresh(site, "plain", at=at)
        assert model.differs(plain=ROWS) == []
    refresh(site, "plain", at=NOON + 2 * DAY, force_full=True)
    assert model.differs(plain=ROWS) == []
    assert site.client.verify("plain").differences == 0


def change(chance: random.Random, at: datetime) -> str:
    """A statement, or several in one transaction."""
    row, other = chance.randrange(1, 25), chance.randrange(1, 25)
    when = (at - timedelta(days=chance.randrange(-2, 25))).date().isoformat()
    placed = "NULL" if chance.random() < 0.1 else f"'{when}'"
    upsert = f"INSERT INTO orders VALUES ({row}, {row % 4}, {other}, {placed}) ON CONFLICT (id) DO "
    return chance.choice(
        [
            upsert + "NOTHING",
            upsert + f"UPDATE SET placed = {placed}, amount = {other}",
            f"UPDATE orders SET amount = amount + 1, customer = {other % 5} WHERE id = {row}",
            f"UPDATE orders SET placed = {placed} WHERE id BETWEEN {row} AND {row + 3}",
            f"UPDATE orders SET note = 'n{other}' WHERE id > {row}",
            f"DELETE FROM orders WHERE id = {row}",
            f"DELETE FROM orders WHERE id = {other}; UPDATE orders SET id = {other} WHERE id = {row}",
            f"UPDATE customers SET region = 'region {other % 3}' WHERE id = {row % 4}",
            f"BEGIN; DELETE FROM orders WHERE id = {row}; {upsert} NOTHING; COMMIT",
            *(["TRUNCATE orders"] if chance.random() < 0.15 else []),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_histories(any_site: Site, seed: int) -> None:
    site, chance = any_site, random.Random(seed)
    names = chance.sample(sorted(QUERIES), 3)
    mode = ("DIFFERENTIAL", "DIFFERENTIAL", "FULL")[seed]
    model = declare(site, *names, placement=("database", "spark")[seed % 2], refresh_mode=mode)
    at, actions = NOON, set()
    for _ in range(20):
        at += timedelta(hours=chance.choice([1, 5, 30, 100, 400]))
        done = [change(chance, at) for _ in range(chance.choice([0, 1, 1, 3, 8]))]
        for statement in done:
            site.run(statement)
        forced = chance.random() < 0.1
        results = refresh(site, *names, at=at, force_full=forced)
        model.refreshed(at)
        assert model.differs(**{name: QUERIES[name] for name in names}) == [], done
        found = {result.action for result in results.values()}
        assert found <= ({"FULL"} if forced else {mode, "NO_DATA"}), done
        actions |= found | {action_of(site, copy) for name in names for copy in copies(site, name)}
        if chance.random() < 0.2:
            assert site.client.verify().differences == 0, done
    assert {"DIFFERENTIAL", "NO_DATA"} <= actions


def test_each_table_keeps_rows_of_its_own(site: Site) -> None:
    shorter = declare(site, "plain", frozen_before="orders.placed: 2 days")
    shorter.age = 2
    shorter.bound = NOON.date() - 2 * DAY
    longer = declare(site, "grouped")
    site.declare("live", ROWS, **{**OPTIONS, "frozen_before": None})
    site.run("UPDATE orders SET amount = amount + 100")
    for at in (NOON + DAY, NOON + 20 * DAY):
        follows(site, shorter, "plain", at, "DIFFERENTIAL" if at == NOON + DAY else "NO_DATA")
        follows(site, longer, "grouped", at, "DIFFERENTIAL" if at == NOON + DAY else "NO_DATA")
    site.refresh("live")
    assert site.differs("live", ROWS) == []
    assert len({shorter.rows[5], longer.rows[5]}) == 2
    site.client.drop_stream_table("grouped")
    assert copies(site, "plain") != []
    site.client.drop_stream_table("plain")
    assert site.rows("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE is_hidden") == [(0,)]
    assert site.rows("SELECT relname FROM pg_class WHERE relname LIKE '%__copy_%' AND relkind = 'r'") == []


CONSTANT: dict[str, Any] = {**OPTIONS, "frozen_before": "orders.id: 11"}


def sums(site: Site) -> list[tuple[Any, ...]]:
    return site.rows("SELECT id, amount FROM st ORDER BY id")


def test_a_bound_that_is_altered_holds_at_once_and_thaws_what_is_above_it(site: Site) -> None:
    site.declare("st", "SELECT id, amount FROM orders", **CONSTANT)
    site.run("UPDATE orders SET amount = 0")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[0] * 10]
    site.client.alter_stream_table("st", frozen_before="orders.id: 5")
    assert [row[1] for row in sums(site)] == [*range(1, 5), *[0] * 16]
    assert site.client.verify("st").differences == 0
    site.client.alter_stream_table("st", frozen_before="orders.id: 15")
    site.run("UPDATE orders SET amount = -1", "DELETE FROM orders WHERE id = 16")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert [row[1] for row in sums(site)] == [*range(1, 5), *[0] * 10, *[-1] * 5]
    assert site.client.verify("st").differences == 0
    # The same declaration once more changes nothing, and another query over the same columns loses nothing.
    again = {**CONSTANT, "frozen_before": "orders.id : 15"}
    before = site.rows("SELECT pgt_relid, frontier FROM pgtrickle.pgt_stream_tables WHERE NOT is_hidden")
    site.client.create_or_replace_stream_table("st", "SELECT  id, amount FROM public.orders", **again)
    assert site.client.changes("st", "SELECT id, amount FROM orders", **again) == {}
    assert site.rows("SELECT pgt_relid, frontier FROM pgtrickle.pgt_stream_tables WHERE NOT is_hidden") == before
    site.client.alter_stream_table("st", query="SELECT id, amount + 1 AS amount FROM orders WHERE id <> 2")
    assert [row[1] for row in sums(site)] == [2, 4, 5, *[1] * 10, *[0] * 5]
    # Refused from now on, so the content is the query's again, and nothing is left of the copy.
    site.client.alter_stream_table("st", frozen_breach="refuse")
    assert site.differs("st", "SELECT id, amount + 1 AS amount FROM orders WHERE id <> 2") == []
    assert copies(site, "st") == []
    with pytest.raises(psycopg.errors.RestrictViolation):
        site.run("UPDATE orders SET amount = 7")
    site.client.alter_stream_table("st", frozen_breach="ignore")
    site.run("UPDATE orders SET amount = 7")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert {row[1] for row in sums(site) if row[0] > 14} == {8}
    assert {row[1] for row in sums(site) if 4 < row[0] < 15} == {0}


def test_a_column_that_was_not_kept_is_asked_for_in_vain(site: Site) -> None:
    site.declare("st", "SELECT id, amount FROM orders", **CONSTANT)
    for changes in ({"query": "SELECT id, note FROM orders"}, {"frozen_before": "orders.placed: 5 days"}):
        with pytest.raises(UsageError, match=r"keeps frozen rows of public\.orders as they were, and not"):
            site.client.alter_stream_table("st", **changes)
    site.run("UPDATE orders SET amount = 0")
    site.refresh("st")
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[0] * 10]
    site.client.alter_stream_table("st", frozen_before="none")
    assert site.differs("st", "SELECT id, amount FROM orders") == []
    site.client.alter_stream_table("st", query="SELECT id, note FROM orders", frozen_before="orders.id: 11")
    site.run("UPDATE orders SET note = 'later'")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert len(site.rows("SELECT FROM st WHERE note = 'later'")) == 10


def test_what_happens_to_the_table_is_followed_or_told(site: Site) -> None:
    site.run("ALTER TABLE orders ADD code varchar(5) DEFAULT 'a', ADD extra int")
    site.declare("st", "SELECT id, amount, code FROM orders", **CONSTANT)
    site.run(
        "UPDATE orders SET code = 'b', amount = 0",
        "ALTER TABLE orders ALTER code TYPE varchar(9), ALTER amount TYPE int",
    )
    result = site.refresh("st")
    assert (result.action, result.fallback_reason) == ("REINITIALIZE", "schema_changed")
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[0] * 10]
    assert set(site.rows("SELECT code, id > 10 FROM st")) == {("a", False), ("b", True)}
    assert site.client.verify("st").differences == 0
    # Columns that it doesn't read may come and go.
    site.run("ALTER TABLE orders DROP extra, ADD another int", "UPDATE orders SET amount = 5")
    assert site.refresh("st").action == "DIFFERENTIAL"
    site.run("ALTER TABLE orders ALTER amount TYPE date USING '2026-01-01'")
    with pytest.raises(
        UsageError, match=r"keeps frozen rows of a table that is another one now: a column has another type"
    ):
        site.refresh("st")
    site.run("ALTER TABLE orders ALTER amount TYPE int USING 6")
    site.refresh("st")
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[6] * 10]
    site.run("ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id, code)")
    with pytest.raises(UsageError, match=r"its primary key was \(id\) when they were taken"):
        site.refresh("st")
    site.run("ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id)")
    site.refresh("st")
    site.run("ALTER TABLE orders DROP code")
    with pytest.raises(PgTrickleError):
        site.refresh("st")
    site.client.alter_stream_table("st", query="SELECT id, amount FROM orders")
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[6] * 10]
    site.run("ALTER TABLE orders RENAME TO purchases", "UPDATE purchases SET amount = 8")
    site.client.alter_stream_table("st", query="SELECT id, amount FROM purchases", frozen_before="purchases.id: 11")
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[8] * 10]
    assert site.client.verify("st").differences == 0


def test_a_lost_buffer_and_a_lost_copy(site: Site) -> None:
    site.declare("st", "SELECT id, amount FROM orders", **CONSTANT)
    ((relid,),) = site.rows("SELECT 'orders'::regclass::oid")
    site.run("UPDATE orders SET amount = 0", f"DROP TABLE pgtrickle_changes.changes_{relid}")
    site.refresh("st")
    (copy,) = copies(site, "st")
    assert action_of(site, copy) == "FULL"
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[0] * 10]
    site.run("SET client_min_messages = error", f"DROP TABLE {copy}")
    with pytest.raises(PgTrickleError, match="The copy that kept frozen rows was dropped"):
        site.refresh("st")
    site.refresh("st", force_full=True)
    assert site.differs("st", "SELECT id, amount FROM orders") == []
    site.run("UPDATE orders SET amount = 1")
    site.refresh("st")
    assert [row[1] for row in sums(site)] == [*[0] * 10, *[1] * 10]


def test_it_reads_through_views_rows_and_aliases(site: Site) -> None:
    site.run("CREATE VIEW recent AS SELECT * FROM orders WHERE amount > 0")
    queries = {
        "viewed": "SELECT r.id, r.note FROM recent r",
        "top": "SELECT id, note FROM orders ORDER BY note, id DESC LIMIT 12",
        "whole": "SELECT id, row_to_json(o.*)::text AS j FROM orders o",
        "renamed": "SELECT x.a, x.b, c.region FROM orders AS x(a, b) JOIN customers c ON c.id = x.b",
        "within": "SELECT id FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer = c.id AND o.id < 5)",
        "starred": "SELECT * FROM orders WHERE amount > 3",
    }
    for name, query in queries.items():
        site.declare(name, query, **CONSTANT)
        assert site.differs(name, query) == []
    site.run("CREATE TEMP TABLE kept AS SELECT * FROM orders WHERE id < 11")
    site.run("UPDATE orders SET note = 'new', customer = 0", "DELETE FROM orders WHERE id = 3")
    site.run("CREATE TEMP TABLE modelled AS SELECT * FROM kept UNION ALL SELECT * FROM orders WHERE id > 10")
    for name, query in queries.items():
        # A whole row keeps the type of the table.
        expected = query.replace("recent", "modelled").replace("o.*", "ROW(o.*)::orders")
        assert site.refresh(name).action == ("TOPK" if name == "top" else "DIFFERENTIAL")
        assert site.differs(name, expected.replace("FROM orders", "FROM modelled")) == [], name
    assert site.client.verify().differences == 0


def test_a_view_that_is_another_one_is_read_over_the_copy(site: Site) -> None:
    site.run("CREATE VIEW recent AS SELECT id, customer, amount FROM orders WHERE amount > 2")
    spread = "SELECT n, count(*) AS c FROM (SELECT customer, count(*) AS n FROM recent GROUP BY 1) AS x GROUP BY n"
    site.declare("st", "SELECT id, amount FROM recent", **CONSTANT)
    site.declare("spread", spread, **CONSTANT)
    site.run("CREATE TEMP TABLE kept AS SELECT * FROM orders WHERE id < 11", "UPDATE orders SET amount = 9")
    site.run("DELETE FROM orders WHERE id = 5", "CREATE SCHEMA other; CREATE TABLE other.orders (LIKE orders)")
    site.run(
        "CREATE OR REPLACE VIEW recent AS SELECT o.id, o.customer, o.amount FROM orders o, customers c"
        " WHERE c.id = o.customer AND o.amount > 4"
    )
    for name in ("st", "spread"):
        assert site.refresh(name).action == "REINITIALIZE"
    assert [row[1] for row in sums(site)] == [*range(5, 11), *[9] * 10]
    groups = "SELECT customer FROM kept WHERE amount > 4 UNION ALL SELECT customer FROM orders WHERE id > 10"
    assert site.differs("spread", spread.replace("recent", f"({groups}) AS r")) == []
    for change in (
        "CREATE OR REPLACE VIEW recent AS SELECT id, customer, amount FROM other.orders",
        "DROP VIEW recent",
    ):
        site.run(change)
        for name in ("st", "spread"):
            with pytest.raises(PgTrickleError):
                site.refresh(name)
    assert len(copies(site, "st") + copies(site, "spread")) == 2
    assert [row[1] for row in sums(site)] == [*range(5, 11), *[9] * 10]


def test_old_partitions_of_the_table_may_go(site: Site) -> None:
    site.run(
        "CREATE TABLE events (id int, at date, v int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
        "CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
        "INSERT INTO events SELECT i, date '2026-01-01' + i, i FROM generate_series(0, 57) i",
    )
    options = {**OPTIONS, "frozen_before": "events.at: 2026-02-01"}
    site.declare("st", "SELECT date_trunc('month', at) AS month, sum(v) AS total FROM events GROUP BY 1", **options)
    before = site.rows("SELECT total FROM st ORDER BY month")
    # A change of the key is a deletion and an insertion, wherever the row goes.
    site.run("UPDATE events SET at = '2026-02-05' WHERE id = 3", "UPDATE events SET at = '2026-01-05' WHERE id = 40")
    assert site.refresh("st").action == "DIFFERENTIAL"
    (january, february) = (total for (total,) in before)
    assert site.rows("SELECT total FROM st ORDER BY month") == [(january,), (february + 3 - 40,)]
    site.run("ALTER TABLE events DETACH PARTITION events_1", "DROP TABLE events_1")
    site.refresh("st")
    assert site.rows("SELECT total FROM st ORDER BY month") == [(january,), (february + 3 - 40,)]
    site.run("DELETE FROM events WHERE id = 41")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.rows("SELECT total FROM st ORDER BY month") == [(january,), (february + 3 - 40 - 41,)]
    assert site.client.verify("st").differences == 0


def test_what_fails_is_taken_back_and_what_was_written_by_hand_is_mended(site: Site) -> None:
    query = "SELECT id, amount FROM orders"
    site.declare("st", query, **{**CONSTANT, "frozen_breach": "refuse"})
    with pytest.raises(PgTrickleError, match="Division by zero"):
        site.client.alter_stream_table(
            "st", frozen_breach="ignore", query="SELECT id, 1 / (amount - 5) AS x FROM orders"
        )
    assert copies(site, "st") == []
    with pytest.raises(psycopg.errors.RestrictViolation):
        site.run("UPDATE orders SET amount = 7 WHERE id = 1")
    site.client.alter_stream_table("st", frozen_breach="ignore")
    with pytest.raises(PgTrickleError, match="Division by zero"):
        site.client.alter_stream_table(
            "st", frozen_before="orders.id: 15", query="SELECT id, 1 / (amount - 5) AS x FROM orders"
        )
    site.run("UPDATE orders SET amount = 0")
    assert site.refresh("st").action in ("DIFFERENTIAL", "REINITIALIZE")
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[0] * 10]
    (copy,) = copies(site, "st")
    site.run(f"BEGIN; SET LOCAL pgtrickle.refreshing = 'on'; UPDATE {copy} SET amount = 5 WHERE id = 17; COMMIT")
    assert {v.name: v.differences > 0 for v in site.client.verify("st", refresh=False).tables}[f"public.{copy}"]
    site.client.verify("st", repair=True)
    assert [row[1] for row in sums(site)] == [*range(1, 11), *[0] * 10]
    assert site.client.verify("st").differences == 0


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("SELECT v FROM keyless", {"frozen_before": "keyless.v: 5"}, "by its primary key, and it has none"),
        ("SELECT id FROM ONLY orders", {}, "it reads ONLY a table"),
        ("SELECT id, note, count(*) AS n FROM orders GROUP BY id", {}, "must appear in the GROUP BY clause"),
        ("SELECT id FROM orders", {"refresh_mode": "IMMEDIATE"}, "IMMEDIATE can't ignore changes of frozen rows"),
        ("SELECT id FROM orders", {"frozen_breach": "forget"}, "frozen_breach can't be 'forget'"),
        ("SELECT id FROM customers", {}, "reads no captured table of that name"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_one_sentence(
    site: Site, query: str, options: dict[str, Any], message: str
) -> None:
    site.run("CREATE TABLE keyless (v int)")
    with pytest.raises(UsageError, match=message):
        site.declare("st", query, **{**CONSTANT, **options})
    assert site.rows("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == [(0,)]


def test_a_frozen_change_costs_a_lookup_and_nothing_above_it(site: Site) -> None:
    """Of 20,000 rows 300 frozen ones change: each is looked for by its key, and no join and no group hears of it."""
    site.run(
        "INSERT INTO orders SELECT i, i % 4, i, '2026-01-01' FROM generate_series(21, 20000) i",
        "ANALYZE orders",
    )
    model = declare(site, "joined")
    site.declare("live", QUERIES["joined"], **{**OPTIONS, "frozen_before": None, "initialize": True})
    site.run("UPDATE orders SET amount = amount + 1 WHERE id BETWEEN 1000 AND 1299")
    assert site.refresh("live").rows_updated == 300
    result = follows(site, model, "joined", NOON + DAY, "NO_DATA")
    assert (result.rows_read, result.source_changes) == (0, 0)
    (copy,) = copies(site, "joined")
    ((read, action),) = site.rows(
        "SELECT h.rows_read, h.action FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables t"
        f" USING (pgt_id) WHERE t.pgt_name = '{copy}' ORDER BY refresh_id DESC LIMIT 1"
    )
    assert (read, action) == (0, "DIFFERENTIAL")


def test_people_are_told(site: Site) -> None:
    with pytest.warns(UserWarning, match=r"public\.orders is copied, as far as the query reads it"):
        site.client.create_stream_table("st", QUERIES["spread"], **OPTIONS)
    (row,) = [row for row in site.client.status() if row["pgt_name"] == "st"]
    assert (row["frozen_before"], row["frozen_breach"]) == (f"orders.placed: {AGE} days", "ignore")
    told = str(site.client.explain_st("st"))
    (copy,) = copies(site, "st")
    assert copy in told
    assert "keep frozen rows" in told
    assert [row["source_table"] for row in site.client.sources("st")] == ["public.orders"]
    assert {row["pgt_name"] for row in site.client.status()} == {"st"}
    with pytest.raises(UsageError, match="is a part of"):
        site.declare("reader", f"SELECT * FROM {copy}")
