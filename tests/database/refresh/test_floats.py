"""`float_sums = "approximate"`: sums over floats are kept by adding, within a bound that `verify` knows."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import PgTrickleWarning, UsageError
from airflow_provider_pgtrickle.engine.refresh.verify import Verified
from tests.database.declare.conftest import difference

FILL = """
CREATE TABLE m (id int PRIMARY KEY, g int, x float8, r real, i int);
INSERT INTO m SELECT n, n % 7, (n * 7919 % 1009) / 7.0 * 10.0 ^ (n % 7 * 3), n / 3.0, n FROM generate_series(1, 700) n;
"""
TOTALS = (
    "SELECT g, sum(x) AS total, avg(x) AS mean, stddev(x) AS spread, sum(r) AS rs, corr(x, r) AS c, count(*) AS n,"
    " sum(i) AS whole FROM m GROUP BY g"
)
APPROXIMATE = ("total", "mean", "spread", "rs", "c")
HISTORY = (
    "UPDATE m SET x = x / 3, r = r * 1.1 WHERE id % 5 = 0",
    "DELETE FROM m WHERE id % 3 = 0; INSERT INTO m SELECT n, n % 9, n / 7.0, n, n FROM generate_series(701, 800) n",
    "UPDATE m SET x = 'NaN' WHERE id = 701; UPDATE m SET x = 'Infinity' WHERE id = 702",
    "UPDATE m SET x = '-Infinity' WHERE id = 711; UPDATE m SET r = NULL WHERE g = 3",
    "UPDATE m SET x = 1.5 WHERE id IN (701, 702); DELETE FROM m WHERE g = 4",
    "INSERT INTO m VALUES (9001, 4, 1e150, 1, 0), (9002, 4, 1, 1, 0)",
    "INSERT INTO m VALUES (9003, 4, -1e150, 1, 0)",
    "UPDATE m SET g = g + 1, x = -0.0 WHERE id % 11 = 0",
    "TRUNCATE m; INSERT INTO m VALUES (1, 1, 0.1, 0.1, 1), (2, 1, 0.2, 0.2, 2)",
)


@pytest.fixture
def m(pt: PgTrickle, conn: psycopg.Connection) -> psycopg.Connection:
    conn.execute(FILL)
    return conn


def declare(pt: PgTrickle, query: str = TOTALS, name: str = "totals", **options: Any) -> None:
    given: dict[str, Any] = {
        "refresh_mode": "DIFFERENTIAL",
        "placement": "database",
        "differential_max_change_ratio": 0.0,
    }
    given |= {"float_sums": "approximate", **options}
    pt.create_stream_table(name, query, **given)


def verified(pt: PgTrickle, name: str = "totals") -> Verified:
    (found,) = pt.verify(name).tables
    return found


def rows(conn: psycopg.Connection, query: str) -> list[tuple]:
    return conn.execute(query).fetchall()


def test_a_history_stays_within_its_bounds_and_full_changes_nothing(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt)
    for changes in HISTORY:
        m.execute(changes)
        is_truncated = changes.startswith("TRUNCATE")
        assert pt.refresh_stream_table("totals").action == ("FULL" if is_truncated else "DIFFERENTIAL"), changes
        found = verified(pt)
        assert (found.status, found.differences, found.undecided) == ("EQUAL", 0, 0), (changes, found)
        assert found.approximate == APPROXIMATE
        before = rows(m, "SELECT t::text FROM totals t ORDER BY g")
        full = pt.refresh_stream_table("totals", force_full=True)
        assert (full.action, full.rows_inserted, full.rows_updated, full.rows_deleted) == ("FULL", 0, 0, 0), changes
        assert rows(m, "SELECT t::text FROM totals t ORDER BY g") == before


def test_what_cancels_is_as_exact_as_the_values(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt, "SELECT g, sum(x) AS total FROM m WHERE g > 100 GROUP BY g")
    for value in ("1e300", "1", "-1e300", "0.1", "0.2"):
        m.execute(f"INSERT INTO m SELECT max(id) + 1, 101, {value}, 0, 0 FROM m")
        assert pt.refresh_stream_table("totals").action == "DIFFERENTIAL"
        assert verified(pt).status == "EQUAL"
    assert rows(m, "SELECT g, total FROM totals") == [(101, 1.3)]


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("total", "total * (1 + 1e-11)"),
        ("total", "NULL"),
        ("mean", "'NaN'"),
        ("spread", "spread + 1e-3 * spread"),
        ("rs", "rs * 1.01"),
        ("whole", "whole + 1"),
        ("__pgt_sum", "__pgt_sum + 1"),
    ],
)
def test_what_is_beyond_its_bound_is_found(pt: PgTrickle, m: psycopg.Connection, column: str, wrong: str) -> None:
    declare(pt)
    m.execute("DELETE FROM m WHERE id = 77")
    with m.transaction():
        m.execute("SET LOCAL pgtrickle.refreshing = 'on'")
        m.execute(f"UPDATE totals SET {column} = {wrong} WHERE g = 2")
    assert (verified(pt).status, verified(pt).differences) == ("DIFFERENT", 2)
    assert pt.verify("totals", repair=True).tables[0].repaired
    assert verified(pt).status == "EQUAL"


def test_unless_it_is_asked_for_sums_have_postgresqls_last_digit(pt: PgTrickle, m: psycopg.Connection) -> None:
    m.execute("CREATE INDEX ON m (g)")
    declare(pt, float_sums="exact")
    for changes in HISTORY[:5]:
        m.execute(changes)
        assert pt.refresh_stream_table("totals").action == "DIFFERENTIAL"
        # In the order in which the rows lie there is one answer.
        m.execute("SET enable_hashagg = off")
        assert (
            rows(
                m,
                "SELECT t::text FROM (SELECT g, n, whole FROM totals) t EXCEPT ALL SELECT t::text FROM"
                f" (SELECT g, n, whole FROM ({TOTALS}) q) t",
            )
            == []
        )
        assert (verified(pt).differences, verified(pt).approximate) == (0, ())
    m.execute("DELETE FROM m WHERE id > 2; UPDATE m SET g = 1, x = id / 10.0")
    pt.refresh_stream_table("totals")
    assert rows(m, "SELECT total = 0.1::float8 + 0.2::float8 FROM totals") == [(True,)]
    (explained,) = [pt.explain_st("totals")]
    assert (explained.sink, explained.approximate) == ("replace by key", ())


#: Sums that are read again. What each column of their values may be off by has a bound.
READ_AGAIN = {
    "alone": "SELECT g, sum(x) AS total, avg(x) AS mean, stddev(x) AS spread, sum(r) AS rs, corr(x, r) AS c FROM m"
    " GROUP BY g",
    "beside what reads the group": "SELECT g, sum(x) AS total, array_agg(i ORDER BY i) AS ids, avg(x) AS mean FROM m"
    " GROUP BY g",
    "beside what is computed of it": "SELECT g, sum(x) AS total, sum(x) * 2 AS twice FROM m GROUP BY g"
    " HAVING count(*) > 3",
    "some rows": "SELECT g AS key, sum(x) FILTER (WHERE i > 40) AS total, regr_slope(x, i) AS slope FROM m GROUP BY g",
    "all rows": "SELECT sum(x) AS total, var_pop(r) AS v FROM m",
    "joined": "SELECT m.g, sum(m.x * n.r) AS total FROM m JOIN m AS n ON n.id = m.i + 1 GROUP BY m.g",
}


@pytest.mark.parametrize("name", READ_AGAIN)
def test_a_sum_that_is_read_again_is_held_within_the_bound_of_its_rounding(
    pt: PgTrickle, m: psycopg.Connection, name: str
) -> None:
    query = READ_AGAIN[name]
    m.execute("INSERT INTO m VALUES (9000, NULL, 0.1, 0.3, 9000), (9001, NULL, 0.2, NULL, 9001)")
    declare(pt, query, "st", float_sums="exact")
    for changes in HISTORY[1:4]:
        m.execute(changes)
        # Rows that lie elsewhere are added up in another order.
        m.execute("UPDATE m SET i = i WHERE id % 3 = 1")
        assert verified(pt, "st").differences == 0, changes
        assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
        found = verified(pt, "st")
        assert (found.differences, found.approximate) == (0, ())
        assert found.unbounded == (("twice",) if name == "beside what is computed of it" else ())
    m.execute("UPDATE m SET x = i / 7.0, r = i / 3.0; DELETE FROM m WHERE id > 800")
    pt.refresh_stream_table("st")
    for factor, differences, undecided in (("1 + 4e-16", 0, 1), ("1 + 1e-9", 2, 0), ("'NaN'", 2, 0)):
        with m.transaction():
            m.execute("SET LOCAL pgtrickle.refreshing = 'on'")
            place = "ctid = (SELECT ctid FROM st ORDER BY total DESC NULLS LAST LIMIT 1)"
            m.execute(f"UPDATE st SET total = total * ({factor}) WHERE {place}")
        found = verified(pt, "st")
        assert (found.differences, found.undecided >= undecided) == (differences, True), (factor, found)
        assert pt.refresh_stream_table("st", force_full=True).action == "FULL"


def test_what_is_computed_of_a_sum_is_undecided_and_said_to_be(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt, "SELECT g, round(sum(x)) AS total FROM m GROUP BY g", "st", float_sums="exact")
    with m.transaction():
        m.execute("SET LOCAL pgtrickle.refreshing = 'on'")
        m.execute("UPDATE st SET total = total + 1000 WHERE g = 2")
    found = verified(pt, "st")
    assert (found.status, found.undecided, found.unbounded) == ("EQUAL", 1, ("total",))


@pytest.mark.parametrize(("float_sums", "least", "most"), [("exact", 100_000, 400_000), ("approximate", 0, 10)])
def test_one_changed_row_is_read_and_not_its_group(
    any_dsn: str, m: psycopg.Connection, float_sums: str, least: int, most: int
) -> None:
    m.execute("INSERT INTO m SELECT n, 1, n / 7.0, n, n FROM generate_series(1001, 101000) n; CREATE INDEX ON m (g)")
    m.execute("ANALYZE m")
    others = "datname = current_database() AND backend_type = 'client backend'"
    there = [pid for (pid,) in m.execute(f"SELECT pid FROM pg_stat_activity WHERE {others}")]

    def read() -> int:
        # A session tells what it has read before it is gone.
        while m.execute(f"SELECT FROM pg_stat_activity WHERE {others} AND pid <> ALL(%s)", [there]).fetchall():
            pass
        m.execute("SELECT pg_stat_force_next_flush()")
        return rows(m, "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'm'")[0][0]

    with PgTrickle(any_dsn) as client:
        declare(client, float_sums=float_sums)
    m.execute("UPDATE m SET x = x + 1 WHERE id = 50000")
    before = read()
    with PgTrickle(any_dsn) as client:
        assert client.refresh_stream_table("totals").action == "DIFFERENTIAL"
    assert least <= read() - before <= most


def test_readers_follow_the_stored_values(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt)
    reader = "SELECT g, total, mean, total * 2 AS twice FROM totals WHERE total > 10"
    counted = "SELECT total > 1000 AS is_large, count(*) AS n, max(mean) AS most FROM totals GROUP BY 1"
    declare(pt, reader, "reader", float_sums="exact")
    declare(pt, counted, "counted", float_sums="exact")
    for changes in HISTORY[:-1]:
        m.execute(changes)
        for name, query in (("reader", reader), ("counted", counted)):
            assert pt.refresh_stream_table(name).action in ("DIFFERENTIAL", "NO_DATA")
            assert difference(m, name, query) == 0
        assert [v.differences for name in ("totals", "reader", "counted") for v in pt.verify(name).tables] == [0] * 3
    # What was handed on was the true change: a FULL of the readers finds nothing to change.
    for name in ("reader", "counted"):
        full = pt.refresh_stream_table(name, force_full=True)
        assert full.rows_inserted + full.rows_updated + full.rows_deleted == 0


def test_it_is_altered_there_and_back(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt, float_sums="exact")
    reader = "SELECT g, n, whole FROM totals"
    declare(pt, reader, "reader", float_sums="exact")
    options = {"refresh_mode": "DIFFERENTIAL", "placement": "database", "differential_max_change_ratio": 0.0}
    for float_sums, sink in (("approximate", "merge by adding"), ("exact", "replace by key")):
        assert pt.changes("totals", TOTALS, **options, float_sums=float_sums) == {"float_sums": float_sums}
        pt.alter_stream_table("totals", float_sums=float_sums)
        explained = pt.explain_st("totals")
        assert explained.sink == sink
        assert ("approximate: " in str(explained)) is (float_sums == "approximate")
        assert {row["name"]: row["float_sums"] for row in pt.status()}["public.totals"] == float_sums
        m.execute("UPDATE m SET x = x + 1 WHERE id % 13 = 0; DELETE FROM m WHERE id % 17 = 0")
        for action in (("FULL", "DIFFERENTIAL"), ("DIFFERENTIAL",)):
            m.execute("UPDATE m SET x = x + 1 WHERE id % 13 = 0; DELETE FROM m WHERE id = (SELECT max(id) FROM m)")
            assert pt.refresh_stream_table("reader").action in action
            assert difference(m, "reader", reader) == 0
            assert verified(pt).differences == 0
    pt.alter_stream_table("totals", float_sums="approximate")
    # Nothing follows from approximate values.
    with pytest.warns(PgTrickleWarning, match="no column is"):
        pt.alter_stream_table("totals", query=TOTALS.replace("sum(x) AS total", "sum(x) * 2 AS total"))
    assert pt.explain_st("totals").approximate == ()
    assert pt.explain_st("totals").sink == "replace by key"
    assert verified(pt).differences == 0


def test_what_is_no_kind_of_sum_is_refused(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt, float_sums="exact")
    with pytest.raises(UsageError, match="float_sums can't be 'roughly'"):
        pt.alter_stream_table("totals", float_sums="roughly")
    assert pt.explain_st("totals").approximate == ()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, sum(x) AS total FROM m GROUP BY g HAVING sum(x) > 100",
        "SELECT total, count(*) AS n FROM (SELECT g, sum(x) AS total FROM m GROUP BY g) q GROUP BY total",
        "SELECT d, sum(most) AS total FROM (SELECT g, i % 5 AS d, max(x) AS most FROM m GROUP BY 1, 2) q GROUP BY d",
        "SELECT g, count(DISTINCT i) AS n, sum(x) AS total FROM m GROUP BY g HAVING count(*) > 3",
    ],
)
def test_what_decides_about_rows_is_exact(pt: PgTrickle, m: psycopg.Connection, query: str) -> None:
    with pytest.warns(PgTrickleWarning, match="float_sums is 'approximate', and no column is"):
        declare(pt, query)
    for changes in HISTORY[:4]:
        m.execute(changes)
        assert pt.refresh_stream_table("totals").action in ("DIFFERENTIAL", "NO_DATA")
        assert all(v.differences == 0 and v.approximate == () for v in pt.verify("totals").tables)
    assert pt.explain_st("totals").approximate == ()
    (table,) = [row for row in pt.status() if row["name"] == "public.totals"]
    assert table["float_sums"] == "approximate"


def test_writers_maintain_it(pt: PgTrickle, m: psycopg.Connection) -> None:
    declare(pt, refresh_mode="IMMEDIATE")
    m.execute("SET extra_float_digits = -10")
    for changes in HISTORY:
        m.execute(changes)
        assert verified(pt).status == "EQUAL", changes
    assert rows(m, "SELECT g, total FROM totals") == [(1, 0.3)]
    full = pt.refresh_stream_table("totals", force_full=True)
    assert full.rows_inserted + full.rows_deleted == 0
