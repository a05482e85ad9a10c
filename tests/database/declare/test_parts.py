"""Parts: aggregates that something gathers are kept by themselves, in hidden stream tables."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.declare import parts
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, RefreshError, UsageError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.database.declare.conftest import NO_TRACES, difference, traces

SPREAD = (
    "SELECT n, count(*) AS customers FROM"
    " (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS c GROUP BY n"
)
UNDEFINED = SPREAD.replace("count(*) AS n", "count(('o' || customer_id)::int) AS n")
CHANGES = (
    "INSERT INTO orders SELECT i, i % 4 + 1, i, date '2026-03-01', NULL FROM generate_series(101, 106) i",
    "DELETE FROM orders WHERE customer_id = 7",
    "UPDATE orders SET customer_id = 2, amount = amount + 1 WHERE id BETWEEN 20 AND 23",
    "UPDATE orders SET amount = NULL WHERE customer_id = 5",
    "INSERT INTO customers VALUES (11, 'new', NULL), (12, 'newer', 'north')",
)
# What is gathered, and how many parts that makes.
GATHERED = {
    "another aggregate": (SPREAD, 1),
    "two levels": (
        "SELECT max(t) AS most FROM (SELECT region, sum(s) AS t FROM customers c JOIN (SELECT customer_id,"
        " count(*) AS s FROM orders GROUP BY customer_id) o ON o.customer_id = c.id GROUP BY region) x",
        2,
    ),
    "groups that are counted again": (
        "SELECT n, count(*) AS c FROM (SELECT count(DISTINCT placed) AS n, avg(amount::float8) AS mean"
        " FROM orders GROUP BY customer_id) x GROUP BY n",
        1,
    ),
    "a window over what it groups by": (
        "SELECT customer_id, sum(customer_id) AS s, sum(customer_id) OVER () AS t FROM orders GROUP BY customer_id",
        1,
    ),
    "a window": (
        "SELECT customer_id, sum(amount) AS s, rank() OVER (ORDER BY sum(amount) DESC) AS place,"
        " sum(sum(amount)) OVER () AS total FROM orders GROUP BY customer_id",
        1,
    ),
    "LIMIT": (
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY customer_id"
        " ORDER BY sum(amount) DESC, customer_id LIMIT 3",
        1,
    ),
    "DISTINCT": ("SELECT DISTINCT count(*) AS n FROM orders GROUP BY customer_id", 1),
    "a total in HAVING": (
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY customer_id"
        " HAVING sum(amount) > (SELECT avg(amount) * 5 FROM orders)",
        2,
    ),
    "a total for each row": ("SELECT id, amount FROM orders WHERE amount > (SELECT avg(amount) FROM orders)", 1),
    "totals of one table, each by its own condition": (
        "SELECT CASE WHEN (SELECT count(*) FROM orders WHERE customer_id < 4) > 12"
        " THEN (SELECT avg(amount) FROM orders WHERE customer_id < 4) ELSE (SELECT sum(amount) FROM orders) END AS v,"
        " (SELECT count(amount) FILTER (WHERE id > 9) FROM orders WHERE customer_id = 5) AS w",
        1,
    ),
    "totals of one table that aren't all kept by adding": (
        "SELECT (SELECT sum(amount) FROM orders WHERE customer_id < 4) AS s, (SELECT max(amount) FROM orders) AS m",
        1,
    ),
    "a filter over groups": (
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY customer_id HAVING count(*) > 5 AND max(id) < 104",
        1,
    ),
    "a filter over groups of a derived table": (
        "SELECT x.c + 1 AS c FROM (SELECT customer_id AS c, count(amount) AS n FROM orders GROUP BY customer_id) x"
        " WHERE x.n <> 5",
        1,
    ),
    "a filter over all rows": ("SELECT count(*) AS n FROM orders HAVING count(amount) > 54", 1),
    "values": ("SELECT customer_id, count(DISTINCT placed) AS n FROM orders GROUP BY customer_id", 1),
    "values of all rows": ("SELECT count(DISTINCT customer_id) AS n, sum(DISTINCT customer_id) AS s FROM orders", 1),
    "values, beside sums, under a filter": (
        "SELECT customer_id, count(DISTINCT placed) FILTER (WHERE id > 9) AS n, sum(DISTINCT amount) AS d,"
        " sum(amount) AS s, count(*) AS c FROM orders GROUP BY customer_id HAVING count(DISTINCT placed) > 0",
        4,
    ),
    "values that are gathered": (
        "SELECT n, count(*) AS c FROM (SELECT count(DISTINCT placed) AS n FROM orders GROUP BY customer_id) x"
        " GROUP BY n",
        2,
    ),
    "values over a join": (
        "SELECT c.region, count(DISTINCT o.placed) AS n, avg(o.amount) AS mean FROM orders o"
        " LEFT JOIN customers c ON c.id = o.customer_id GROUP BY c.region",
        1,
    ),
    "a CTE that is read twice": (
        "WITH t AS (SELECT customer_id, sum(amount) AS s FROM orders GROUP BY customer_id)"
        " SELECT c.name, t.s FROM customers c JOIN t ON t.customer_id = c.id WHERE t.s = (SELECT max(s) FROM t)",
        1,
    ),
    "equal ones, kept once, and what gathers them": (
        "SELECT (SELECT max(n) FROM (SELECT count(*) AS n FROM orders GROUP BY customer_id) a) AS most,"
        " (SELECT min(n) FROM (SELECT count(*) AS n FROM orders GROUP BY customer_id) b) AS least, region"
        " FROM customers",
        3,
    ),
}
# What reads its groups by key, or can't be added to: in one piece.
WHOLE = {
    "nothing gathers it": "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY customer_id",
    "joined by its key": (
        "SELECT c.name, o.n FROM customers c JOIN (SELECT customer_id, count(*) AS n FROM orders GROUP BY 1) o"
        " ON o.customer_id = c.id"
    ),
    "looked up by its key": (
        "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders GROUP BY customer_id"
        " HAVING count(*) > 4)"
    ),
    "correlated": (
        "SELECT id FROM orders o WHERE amount > (SELECT avg(amount) FROM orders i WHERE i.customer_id = o.customer_id)"
    ),
    "a total that can't be added to": (
        "SELECT id FROM orders WHERE placed = (SELECT mode() WITHIN GROUP (ORDER BY placed) FROM orders)"
    ),
    "values of floats": "SELECT customer_id, count(DISTINCT amount::float8) AS n FROM orders GROUP BY customer_id",
    "values that look different": "SELECT customer_id AS c, count(DISTINCT amount / 3) AS n FROM orders GROUP BY 1",
    "values beside what reads its groups": (
        "SELECT customer_id, count(DISTINCT placed) AS n, string_agg(note, ',' ORDER BY id) AS notes"
        " FROM orders GROUP BY customer_id"
    ),
    "a filter over groups that are read": (
        "SELECT customer_id, string_agg(note, ',' ORDER BY id) AS notes FROM orders GROUP BY customer_id"
        " HAVING count(*) > 4"
    ),
    "values read by key": (
        "SELECT c.name, o.n FROM customers c JOIN (SELECT customer_id, count(DISTINCT placed) AS n FROM orders"
        " GROUP BY 1) o ON o.customer_id = c.id"
    ),
    "over columns beside the keys": (
        "SELECT id, name, count(*) AS n, rank() OVER (ORDER BY name) AS place FROM customers GROUP BY id"
    ),
    "under a collation of its own": (
        'SELECT count(*) AS n FROM (SELECT note COLLATE "C" AS k FROM orders GROUP BY note COLLATE "C") x'
    ),
}

FOREST = """
    CREATE TABLE node (id int PRIMARY KEY, parent int, label text);
    INSERT INTO node SELECT i, CASE WHEN i > 3 THEN i / 3 END, 'n' || i % 4 FROM generate_series(1, 60) i;
"""
GROWTH = (
    "INSERT INTO node SELECT i, i - 40, 'n9' FROM generate_series(61, 66) i",
    "UPDATE node SET parent = 2 WHERE id IN (9, 30)",
    "DELETE FROM node WHERE id IN (5, 61)",
    "UPDATE node SET label = 'x' WHERE id BETWEEN 10 AND 14",
    "INSERT INTO node VALUES (5, 2, 'again')",
)
RECURSION = (
    "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM node WHERE parent IS NULL"
    " UNION ALL SELECT n.id, r.depth + 1 FROM node n JOIN r ON n.parent = r.id)"
)
# What stands above a recursion, and how many parts that makes.
ABOVE = {
    "a filter": (" SELECT id FROM r WHERE depth > 1", 1),
    "a join": (" SELECT n.label, r.depth FROM node n LEFT JOIN r ON r.id = n.id", 1),
    "a join with itself": (" SELECT a.id, b.id AS other FROM r AS a JOIN r AS b ON b.id = a.id + a.depth", 1),
    "an aggregate": (" SELECT depth, count(*) AS n FROM r GROUP BY depth", 1),
    "an aggregate of one": (
        " SELECT m, count(*) AS n FROM (SELECT count(*) AS m FROM r GROUP BY depth) x GROUP BY m",
        2,
    ),
    "a window": (" SELECT id, rank() OVER (PARTITION BY depth ORDER BY id) AS place FROM r", 1),
    "a LIMIT": (" SELECT id, depth FROM r ORDER BY depth DESC, id LIMIT 5", 1),
    "a subquery": (" SELECT id, label FROM node WHERE id IN (SELECT id FROM r WHERE depth = 2)", 1),
    "a subquery for each row": (
        " SELECT n.id, (SELECT max(r.depth) FROM r WHERE r.id >= n.id) AS deepest FROM node n",
        1,
    ),
    "another, which begins where it ends": (
        ", up(id) AS (SELECT id FROM r WHERE depth = 2 UNION SELECT n.parent FROM node n JOIN up ON n.id = up.id)"
        " SELECT r.id, up.id IS NULL AS is_off FROM r LEFT JOIN up ON up.id = r.id",
        2,
    ),
    "a set operation": (" SELECT id FROM r EXCEPT SELECT parent FROM node", 1),
    "a filter, of CYCLE": (" CYCLE id SET looped USING way SELECT id, way::text AS way FROM r WHERE NOT looped", 1),
    "an aggregate, of CYCLE": (" CYCLE id SET looped USING way SELECT max(cardinality(way)) AS far FROM r", 1),
    # The names are those that the statement that deletes once had for its own columns.
    "a window, of SEARCH": (
        " SEARCH DEPTH FIRST BY id SET place"
        " SELECT id AS wanted, depth AS twins, row_number() OVER (ORDER BY place) AS nth FROM r",
        1,
    ),
    "a LIMIT, of SEARCH": (" SEARCH BREADTH FIRST BY id SET place SELECT id FROM r ORDER BY place LIMIT 5", 1),
}


def _parts(conn):
    return [name for (name,) in conn.execute("SELECT pgt_name FROM pgtrickle.pgt_stream_tables WHERE is_hidden")]


def _actions_of_parts(conn) -> set[str]:
    """What refreshes did with parts, where nothing forced them."""
    rows = conn.execute(
        "SELECT DISTINCT action FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
        " WHERE is_hidden AND fallback_reason IS NULL"
    )
    return {action for (action,) in rows}


@pytest.mark.parametrize(("query", "count"), GATHERED.values(), ids=GATHERED)
def test_what_is_gathered_is_kept_by_itself(pt, conn, query, count):
    pt.create_stream_table("kept", query, schedule="5m")
    assert len(_parts(conn)) == count
    assert difference(conn, "kept", query) == 0
    for change in CHANGES:
        conn.execute(change)
        result = pt.refresh_stream_table("kept")
        assert result.action in ("DIFFERENTIAL", "TOPK", "NO_DATA")
        assert difference(conn, "kept", query) == 0
    assert _actions_of_parts(conn) <= {"DIFFERENTIAL", "NO_DATA"}
    pt.drop_stream_table("kept")
    assert traces(conn) == NO_TRACES


@pytest.fixture
def pt(pt: PgTrickle) -> PgTrickle:
    """Fifty orders are few: any change of them would be a large one."""
    pt.settings = type(pt.settings).load(differential_max_change_ratio=0.0)
    return pt


@pytest.mark.parametrize("query", WHOLE.values(), ids=WHOLE)
def test_what_is_read_by_key_or_can_not_be_added_to_stays_whole(pt, conn, query):
    pt.create_stream_table("whole", query, schedule="5m")
    assert _parts(conn) == []
    for change in CHANGES:
        conn.execute(change)
    assert pt.refresh_stream_table("whole").action == "DIFFERENTIAL"
    assert difference(conn, "whole", query) == 0


def test_a_part_that_can_not_be_filled_halts_its_table(pt, conn):
    """And not itself, or the table would go stale with nobody able to resume it."""
    pt.create_stream_table("kept", SPREAD, schedule="5m")
    pt.create_or_replace_stream_table("kept", UNDEFINED, schedule="5m", initialize=False)
    for _ in range(3):
        with pytest.raises(RefreshError, match="part_"):
            pt.refresh_stream_table("kept")
    states = conn.execute(
        "SELECT is_hidden, status, consecutive_errors FROM pgtrickle.pgt_stream_tables WHERE status = 'SUSPENDED'"
    ).fetchall()
    assert states == [(False, "SUSPENDED", 3)]
    skipped = pt.refresh_stream_table("kept")
    assert (skipped.action, skipped.fallback_reason, skipped.held_by) == ("SKIP", "suspended", None)
    pt.create_or_replace_stream_table("kept", SPREAD, schedule="5m", initialize=False)
    pt.alter_stream_table("kept", status="ACTIVE")
    assert pt.refresh_stream_table("kept").action == "REINITIALIZE"
    assert difference(conn, "kept", SPREAD) == 0


@pytest.mark.parametrize(("above", "count"), ABOVE.values(), ids=ABOVE)
def test_a_recursion_below_anything_is_kept_by_itself(pt, conn, above, count):
    conn.execute(FOREST)
    query = f"{RECURSION}{above}"
    pt.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL")
    assert len(_parts(conn)) == count
    assert difference(conn, "kept", query) == 0
    for change in GROWTH:
        conn.execute(change)
        assert pt.refresh_stream_table("kept").action in ("DIFFERENTIAL", "TOPK", "NO_DATA")
        assert difference(conn, "kept", query) == 0
    assert _actions_of_parts(conn) <= {"DIFFERENTIAL", "NO_DATA"}
    assert pt.verify("kept").differences == 0
    pt.drop_stream_table("kept")
    conn.execute("DROP TABLE node")
    assert traces(conn) == NO_TRACES


def test_a_recursion_at_the_top_needs_no_part(pt, conn):
    conn.execute(FOREST)
    pt.create_stream_table("kept", f"{RECURSION} SELECT id, depth FROM r", refresh_mode="DIFFERENTIAL")
    assert _parts(conn) == []
    assert pt.explain_st("kept").sink == "delete and rederive"


def test_a_recursion_that_can_not_be_rederived_stays_whole(pt, conn):
    conn.execute(FOREST)
    query = (
        "WITH RECURSIVE r AS (SELECT id, 1.0 AS part FROM node WHERE parent IS NULL UNION SELECT n.id, r.part / 2"
        " FROM node n JOIN r ON n.parent = r.id) SELECT count(*) AS n, sum(part) AS total FROM r"
    )
    pt.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL")
    assert _parts(conn) == []
    for change in GROWTH:
        conn.execute(change)
        assert pt.refresh_stream_table("kept").action in ("DIFFERENTIAL", "NO_DATA")
        assert difference(conn, "kept", query) == 0


def test_a_setting_keeps_queries_whole(dsn, database, pt, conn):
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database), keep_parts=False) as plain:
        plain.create_stream_table("spread", SPREAD, schedule="5m")
    assert _parts(conn) == []


def test_a_full_table_has_no_parts(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m", refresh_mode="FULL")
    assert _parts(conn) == []


def test_parts_are_not_seen(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    pt.create_stream_table("most", "SELECT max(customers) AS m FROM spread", schedule="5m")
    assert [row["pgt_name"] for row in pt.status()] == ["most", "spread"]
    assert [row["depends_on"] for row in pt.status()] == [["public.spread"], ["public.orders"]]
    assert [row["node"] for row in pt.tree()] == ["public.most", "public.spread", "public.orders"]
    assert [row["source_table"] for row in pt.sources("spread")] == ["public.orders"]
    conn.execute("INSERT INTO orders VALUES (100, 1, 1, NULL, NULL)")
    pending = {(row["stream_table"], row["source_table"]): row["pending_rows"] for row in pt.buffers()}
    assert pending == {("public.most", "public.spread"): 0, ("public.spread", "public.orders"): 1}


def test_they_are_explained(pt):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    text = str(pt.explain_st("spread"))
    assert "kept by itself" in text
    assert "GROUP BY" in text.partition("kept by itself")[2]


def test_a_part_is_changed_with_its_owner_alone(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    (part,) = _parts(conn)
    for change in (
        lambda: pt.alter_stream_table(part, schedule="1h"),
        lambda: pt.drop_stream_table(part),
        lambda: pt.drop_stream_table(part, cascade=True),
    ):
        with pytest.raises(UsageError, match=r"part of public\.spread"):
            change()


def test_a_new_query_has_new_parts(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    before = _parts(conn)
    other = SPREAD.replace("count(*) AS n", "sum(amount) AS n")
    pt.alter_stream_table("spread", query=other)
    after = _parts(conn)
    assert len(after) == 1
    assert after != before
    assert difference(conn, "spread", other) == 0
    conn.execute(CHANGES[0])
    assert pt.refresh_stream_table("spread").action == "DIFFERENTIAL"
    assert difference(conn, "spread", other) == 0
    pt.alter_stream_table("spread", query="SELECT customer_id AS n, count(*) AS customers FROM orders GROUP BY 1")
    assert _parts(conn) == []


def test_a_new_query_that_fails_leaves_the_old_parts(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    before = traces(conn)
    with pytest.raises(PgTrickleError):
        pt.alter_stream_table("spread", query=UNDEFINED)
    assert traces(conn) == before
    conn.execute(CHANGES[0])
    assert pt.refresh_stream_table("spread").action == "DIFFERENTIAL"
    assert difference(conn, "spread", SPREAD) == 0


def test_a_table_that_can_not_be_filled_leaves_no_parts(pt, conn):
    with pytest.raises(PgTrickleError):
        pt.create_stream_table("spread", UNDEFINED, schedule="5m")
    assert traces(conn) == NO_TRACES


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders ALTER COLUMN customer_id TYPE bigint",
        "ALTER TABLE orders ALTER COLUMN amount TYPE numeric(14, 4)",
        "ALTER TABLE orders ADD COLUMN more int DEFAULT 3",
        "TRUNCATE orders",
    ],
)
@pytest.mark.parametrize("name", ["another aggregate", "a window", "a CTE that is read twice", "two levels"])
def test_a_source_that_changes_its_shape_is_followed(pt, conn, name, change):
    query, count = GATHERED[name]
    pt.create_stream_table("kept", query, schedule="5m")
    conn.execute(change)
    pt.refresh_stream_table("kept")
    assert difference(conn, "kept", query) == 0
    assert len(_parts(conn)) == count
    conn.execute(CHANGES[0])
    assert pt.refresh_stream_table("kept").action == "DIFFERENTIAL"
    assert difference(conn, "kept", query) == 0
    pt.drop_stream_table("kept")
    assert traces(conn) == NO_TRACES


def test_parts_of_parts_are_their_owners_when_a_source_changes_its_shape(pt, conn):
    query, count = GATHERED["values, beside sums, under a filter"]
    pt.create_stream_table("kept", query)
    for column, kind in (("customer_id", "bigint"), ("amount", "numeric(14, 4)")):
        conn.execute(f"ALTER TABLE orders ALTER COLUMN {column} TYPE {kind}")
        pt.refresh_stream_table("kept")
        assert len(_parts(conn)) == count
        conn.execute("DELETE FROM orders WHERE id IN (SELECT min(id) FROM orders)")
        assert pt.refresh_stream_table("kept").action == "DIFFERENTIAL"
        assert difference(conn, "kept", query) == 0
    assert pt.verify("kept").differences == 0
    pt.drop_stream_table("kept")
    assert traces(conn) == NO_TRACES


SMALL_GROUPS = (
    "INSERT INTO orders SELECT i, i / 3, i, date '2026-01-01' + i % 5, NULL FROM generate_series(1000, 7000) i;"
    " ANALYZE orders"
)
FILTERED = "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY customer_id HAVING sum(amount) > 20"
COUNTED = "SELECT customer_id, count(DISTINCT placed) AS n FROM orders GROUP BY customer_id"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (FILTERED, SMALL_GROUPS),
        (COUNTED.replace("customer_id", "id", 1).replace("BY customer_id", "BY id"), "ANALYZE orders"),
    ],
)
def test_small_groups_are_read_and_not_kept(pt, conn, query, rows, monkeypatch):
    conn.execute(rows)
    with monkeypatch.context() as patched:
        # Parts that don't pay aren't even looked at.
        patched.setattr(parts, "define", lambda *_, **__: pytest.fail("a part was read"))
        pt.create_stream_table("read", query)
    assert _parts(conn) == []
    conn.execute(CHANGES[0])
    assert pt.refresh_stream_table("read").action == "DIFFERENTIAL"
    assert difference(conn, "read", query) == 0


@pytest.mark.parametrize(("query", "small_first"), [(FILTERED, True), (COUNTED, False)])
def test_what_is_kept_stays_as_it_was_declared_whatever_its_groups_become(pt, conn, query, small_first):
    if small_first:
        conn.execute(SMALL_GROUPS)
    pt.create_stream_table("kept", query)
    before = len(_parts(conn))
    assert before == (0 if small_first else 1)
    conn.execute("DELETE FROM orders WHERE id > 50; ANALYZE orders" if small_first else SMALL_GROUPS)
    for change in ("ALTER TABLE orders ALTER COLUMN amount TYPE numeric(14, 4)", "TRUNCATE orders", CHANGES[0]):
        conn.execute(change)
        pt.refresh_stream_table("kept")
        assert difference(conn, "kept", query) == 0
        assert len(_parts(conn)) == before


COLLECTED = (
    "SELECT customer_id, string_agg(DISTINCT note, '; ' ORDER BY note DESC) AS notes, count(DISTINCT note) AS n"
    " FROM orders GROUP BY customer_id HAVING count(DISTINCT note) <> 3"
)


@pytest.mark.parametrize(("values", "parts"), [(20, 1), (2000, 0)])
def test_collected_values_are_kept_if_they_are_few(pt, conn, values, parts):
    filled = f"INSERT INTO orders SELECT i, i % 5, i, NULL, 'n' || i / 5 % {values} FROM generate_series(1000, 5000) i"
    conn.execute(f"{filled}; ANALYZE orders")
    pt.create_stream_table("kept", COLLECTED)
    assert len(_parts(conn)) == parts
    for change in (*CHANGES, "UPDATE orders SET note = 'n1' WHERE note = 'n2' AND customer_id < 3"):
        conn.execute(change)
        assert pt.refresh_stream_table("kept").action in ("DIFFERENTIAL", "NO_DATA")
        assert difference(conn, "kept", COLLECTED) == 0
    assert pt.verify("kept").differences == 0


def test_a_group_of_many_rows_is_not_read_for_one(dsn, pt, conn):
    """Neither for its sum nor for its values."""
    conn.execute(
        "INSERT INTO orders SELECT i, 3, i % 90, date '2026-01-01' + i % 9, NULL FROM generate_series(100, 5000) i"
    )
    query = (
        "SELECT customer_id, count(DISTINCT placed) AS n, sum(amount) AS s FROM orders GROUP BY customer_id"
        " HAVING sum(amount) > 9"
    )
    others = "datname = current_database() AND backend_type = 'client backend'"
    there = [pid for (pid,) in conn.execute(f"SELECT pid FROM pg_stat_activity WHERE {others}")]
    with PgTrickle(dsn, placement="database") as client:
        client.create_stream_table("kept", query)
    conn.execute("CREATE INDEX ON orders (customer_id); ANALYZE orders; DELETE FROM orders WHERE id = 700")

    def read():
        # A session tells what it has read before it is gone.
        while conn.execute(f"SELECT FROM pg_stat_activity WHERE {others} AND pid <> ALL(%s)", [there]).fetchall():
            pass
        conn.execute("SELECT pg_stat_force_next_flush()")
        return conn.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'orders'"
        ).fetchone()[0]

    before = read()
    with PgTrickle(dsn, placement="database") as client:
        assert client.refresh_stream_table("kept").action == "DIFFERENTIAL"
    assert read() - before < 100
    assert difference(conn, "kept", query) == 0


def test_a_part_whose_table_is_gone_is_made_again(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    before = _parts(conn)
    conn.execute(f"DROP TABLE {before[0]}")
    pt.refresh_stream_table("spread")
    assert _parts(conn) == before
    assert difference(conn, "spread", SPREAD) == 0
    conn.execute(CHANGES[1])
    assert pt.refresh_stream_table("spread").action == "DIFFERENTIAL"
    assert difference(conn, "spread", SPREAD) == 0


def test_forced_it_computes_its_parts_anew_too(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    with conn.transaction():
        conn.execute("SET LOCAL pgtrickle.refreshing = 'on'")
        conn.execute(f"UPDATE {_parts(conn)[0]} SET a1 = 77")
    assert pt.refresh_stream_table("spread", force_full=True).action == "FULL"
    assert difference(conn, "spread", SPREAD) == 0


def test_a_part_that_fails_is_its_owners_failure(pt, conn):
    query = SPREAD.replace("count(*) AS n", "count(note::int) AS n")
    pt.create_stream_table("spread", query, schedule="5m")
    conn.execute("INSERT INTO orders VALUES (0, 1, 1, NULL, 'one')")
    for _ in range(pt.settings.max_consecutive_errors):
        with pytest.raises(RefreshError):
            pt.refresh_stream_table("spread")
    states = dict(conn.execute("SELECT is_hidden, status FROM pgtrickle.pgt_stream_tables").fetchall())
    assert states == {False: "SUSPENDED", True: "ACTIVE"}
    conn.execute("DELETE FROM orders WHERE id = 0")
    pt.alter_stream_table("spread", status="ACTIVE")
    assert pt.refresh_stream_table("spread", force_full=True).status == "COMPLETED"
    assert difference(conn, "spread", query) == 0


def test_several_in_one_unit_keep_theirs(pt, conn):
    names = {"spread": SPREAD, "most": GATHERED["LIMIT"][0], "above": GATHERED["a total for each row"][0]}
    for name, query in names.items():
        pt.create_stream_table(name, query, schedule="5m")
    for change in CHANGES:
        conn.execute(change)
        assert set(pt.refresh(list(names))) == set(names)
        assert [difference(conn, name, query) for name, query in names.items()] == [0, 0, 0]


def test_nobody_else_may_read_a_part(pt, conn):
    """Row-level security on the stream table would not hold for it."""
    conn.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO PUBLIC")
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    conn.execute(f"DROP TABLE {_parts(conn)[0]}")
    pt.refresh_stream_table("spread")
    granted = "SELECT count(*) FROM information_schema.table_privileges WHERE grantee = 'PUBLIC' AND table_name = %s"
    assert [conn.execute(granted, [name]).fetchone()[0] for name in ("spread", _parts(conn)[0])] == [1, 0]


def test_nobody_declares_a_stream_table_over_a_part(pt, conn):
    pt.create_stream_table("spread", SPREAD, schedule="5m")
    with pytest.raises(UsageError, match=r"is a part of public\.spread, and for it alone"):
        pt.create_stream_table("other", f"SELECT k1, a1 FROM {_parts(conn)[0]}", schedule="5m")


def test_parts_of_tables_that_read_each_other_are_filled_together(pt, conn):
    ranks = "SELECT customer_id, rank() OVER (ORDER BY count(*) DESC) AS place FROM orders GROUP BY customer_id"
    ties = "SELECT place, n, rank() OVER (ORDER BY n) AS r FROM (SELECT place, count(*) AS n FROM ranks GROUP BY 1) x"
    pt.create_stream_table("ranks", ranks, initialize=False)
    pt.create_stream_table("ties", f"SELECT n, sum(place) AS s FROM ({ties}) y GROUP BY n", initialize=False)
    for change in ("SELECT", *CHANGES):
        conn.execute(change)
        pt.refresh(["ties", "ranks"])
        assert difference(conn, "ranks", ranks) == 0
        assert difference(conn, "ties", f"SELECT n, sum(place) AS s FROM ({ties}) y GROUP BY n") == 0
    assert len(_parts(conn)) == 2
    assert pt.history("ties")[0]["action"] in ("DIFFERENTIAL", "NO_DATA")
