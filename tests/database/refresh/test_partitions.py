"""Partitions: refreshes make them as values come and drop them as they leave; the content is the query's all along."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.declare.partitions import Partitions
from airflow_provider_pgtrickle.engine.errors import RefreshError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import stage
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from tests.database.reported.conftest import Site, refresh, site_at

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
E = "CREATE TABLE e (id int PRIMARY KEY, g int, v numeric, at timestamptz, day date, region text)"
FILL = """
INSERT INTO e SELECT n, n % 5, n, t, t::date, (ARRAY['eu', 'us', 'a b', '', NULL])[1 + n % 5]
  FROM generate_series(1, 60) n, LATERAL (SELECT timestamptz '2026-03-28 12:00+00' - n * interval '3 days' AS t) AS x
"""
ROWS = "SELECT id, at, v FROM e"
DAYS = "SELECT day, count(*) AS n, sum(v) AS s FROM e GROUP BY day"
MONTHS: dict[str, Any] = {"partition_by": "RANGE (at)", "partition_every": "1 month"}


HEAR = """
CREATE TABLE heard (what text, id int);
CREATE FUNCTION hear() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO public.heard VALUES (TG_OP, coalesce(NEW.id, OLD.id)); RETURN NULL; END $$;
CREATE TRIGGER hear AFTER INSERT OR DELETE ON st FOR EACH ROW EXECUTE FUNCTION public.hear()
"""


def _with_rows(dsn: str) -> Iterator[Site]:
    for site in site_at(dsn, placement="database"):
        site.run(E, FILL)
        yield site


@pytest.fixture
def site(dsn: str) -> Iterator[Site]:
    yield from _with_rows(dsn)


@pytest.fixture
def both(any_dsn: str) -> Iterator[Site]:
    yield from _with_rows(any_dsn)


def members(site: Site, name: str = "st") -> dict[str, str]:
    """The partitions and their bounds."""
    rows = site.rows(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        f" WHERE i.inhparent = '{name}'::regclass ORDER BY 1"
    )
    return dict(rows)


def declare(site: Site, name: str, query: str, at: datetime = NOON, **options: Any) -> None:
    site.declare(name, query, **{"refresh_mode": "DIFFERENTIAL", "initialize": False, **options})
    refresh(site, name, at=at)


def test_partitions_are_made_for_the_values_that_come(both: Site) -> None:
    declare(both, "st", ROWS, **MONTHS)
    assert list(members(both)) == [
        f"st_{month}" for month in ("2025_09", "2025_10", "2025_11", "2025_12", "2026_01", "2026_02", "2026_03")
    ]
    assert members(both)["st_2026_03"] == "FOR VALUES FROM ('2026-03-01 00:00:00+00') TO ('2026-04-01 00:00:00+00')"
    both.run("INSERT INTO e VALUES (100, 1, 1, '9999-12-31 23:59+00'), (101, 1, 1, '2026-04-01'), (102, 1, 1, NULL)")
    both.run("UPDATE e SET at = at + interval '1 year' WHERE id = 7", "DELETE FROM e WHERE id = 8")
    assert refresh(both, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert both.differs("st", ROWS) == []
    assert {"st_9999_12", "st_2026_04", "st_2027_03", "st_default"} <= set(members(both))
    assert both.rows("SELECT count(*) FROM st_default") == [(1,)]
    for member in members(both):
        for statement in (
            f"DELETE FROM {member}",
            f"INSERT INTO {member} SELECT * FROM {member}",
            f"TRUNCATE {member}",
        ):
            with pytest.raises(psycopg.Error, match="stream table"):
                both.run(statement)


def test_kept_by_the_month(both: Site) -> None:
    declare(both, "st", ROWS, **MONTHS, keep="3 months")
    within = f"{ROWS} WHERE at >= '2025-12-01 00:00+00'"
    assert both.differs("st", within) == []
    assert list(members(both)) == ["st_2025_12", "st_2026_01", "st_2026_02", "st_2026_03"]
    both.declare("above", "SELECT count(*) AS n, sum(v) AS s FROM st")
    later = NOON + timedelta(days=4)
    result = refresh(both, "st", at=later)["st"]
    assert (result.action, result.rows_deleted) == ("DIFFERENTIAL", 11)
    assert both.differs("st", f"{ROWS} WHERE at >= '2026-01-01 00:00+00'") == []
    assert list(members(both)) == ["st_2026_01", "st_2026_02", "st_2026_03"]
    assert refresh(both, "above", at=later)["above"].action == "DIFFERENTIAL"
    assert both.differs("above", "SELECT count(*), sum(v) FROM e WHERE at >= '2026-01-01 00:00+00'") == []


def test_each_value_of_a_list_has_a_partition(both: Site) -> None:
    query = "SELECT region, g, count(*) AS n FROM e GROUP BY region, g"
    declare(both, "st", query, partition_by="LIST (region)", partition_every="value")
    assert set(members(both)) == {"st_eu", "st_us", "st_a_b", "st_empty", "st_default"}
    both.run("CREATE TABLE own PARTITION OF st FOR VALUES IN ('x', 'y')", 'CREATE TABLE "st_it_s {}" ()')
    both.run(
        "INSERT INTO e SELECT 100 + n, n, 1, NULL, NULL, (ARRAY['x', 'it''s {}', 'EU'])[n] FROM generate_series(1, 3) n"
    )
    both.run("UPDATE e SET region = NULL WHERE region = 'us'")
    assert refresh(both, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert both.differs("st", query) == []
    assert members(both)["st_it_s_"] == "FOR VALUES IN ('it''s {}')"
    assert both.rows("SELECT count(*) FROM own") == [(1,)]


@pytest.mark.parametrize("kind", ["smallint", "numeric"])
def test_numbers_are_cut_at_multiples(site: Site, kind: str) -> None:
    query = f"SELECT id, v::{kind} AS k FROM e"
    declare(site, "st", query, partition_by="k", partition_every="10")
    site.run(
        "INSERT INTO e VALUES (100, 1, -1), (101, 1, -10), (102, 1, -11), (103, 1, 32767), (104, 1, -32768),"
        " (105, 1, NULL)"
    )
    if kind == "numeric":
        site.run(
            "INSERT INTO e VALUES (110, 1, 'NaN'), (111, 1, 'Infinity'), (112, 1, -0.5), (113, 1, 1e30), (114, 1, 9.99)"
        )
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", query) == []
    found = members(site)
    assert found["st_0"].replace("'", "") == "FOR VALUES FROM (0) TO (10)"
    assert found["st_minus_20"].replace("'", "") == "FOR VALUES FROM (-20) TO (-10)"
    if kind == "smallint":
        assert found["st_32760"] == "FOR VALUES FROM ('32760') TO (MAXVALUE)"
        assert found["st_minus_32770"] == "FOR VALUES FROM (MINVALUE) TO ('-32760')"
    site.run("UPDATE e SET v = -v WHERE id <> 104", "DELETE FROM e WHERE id IN (101, 103)")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", query) == []


@pytest.mark.parametrize("every", ["36 hours", "2 weeks", "1 quarter", "10 years"])
def test_times_are_cut_where_the_calendar_is(site: Site, every: str) -> None:
    query = "SELECT id, at AT TIME ZONE 'UTC' AS t FROM e"
    site.run("DELETE FROM e WHERE id > 20")
    declare(site, "st", query, partition_by="t", partition_every=every)
    site.run(
        "INSERT INTO e VALUES (100, 1, 1, 'infinity'), (101, 1, 1, '-infinity'), (102, 1, 1, '0044-03-15 BC'),"
        " (103, 1, 1, '0001-01-01+00'), (104, 1, 1, '0005-06-01+00'), (105, 1, 1, '10000-01-01+00'), (106, 1, 1, NULL)",
        "UPDATE e SET at = '-infinity' WHERE id = 3",
    )
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", query) == []
    assert site.rows("SELECT count(*) FROM st_default") == [(6,)]
    site.run("DELETE FROM e WHERE id IN (101, 104, 105)", "UPDATE e SET at = '2026-01-01' WHERE id IN (100, 102)")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", query) == []


def test_the_users_own_partitions_narrow_those_that_are_made(site: Site) -> None:
    declare(site, "st", "SELECT id, day FROM e", partition_by="day", partition_every="1 month")
    site.run(
        "CREATE TABLE early PARTITION OF st FOR VALUES FROM (MINVALUE) TO ('2020-01-10')",
        "CREATE TABLE middle PARTITION OF st FOR VALUES FROM ('2020-01-12') TO ('2020-01-20')",
        "INSERT INTO e (id, day) VALUES (100, '2020-01-09'), (101, '2020-01-11'), (102, '2020-01-31'),"
        " (103, '2020-01-12')",
    )
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", "SELECT id, day FROM e") == []
    assert members(site)["st_2020_01"] == "FOR VALUES FROM ('2020-01-10') TO ('2020-01-12')"
    assert members(site)["st_2020_01_2"] == "FOR VALUES FROM ('2020-01-20') TO ('2020-02-01')"


def test_rows_of_the_default_partition_move_into_the_one_that_is_made(both: Site) -> None:
    declare(both, "st", ROWS, partition_by="at")
    assert list(members(both)) == ["st_default"]
    both.client.alter_stream_table("st", partition_every="1 month")
    both.run(HEAR)
    both.run("UPDATE e SET v = v + 1 WHERE id = 1", "INSERT INTO e VALUES (100, 1, 1, '2026-03-01 00:00+00')")
    assert refresh(both, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert both.differs("st", ROWS) == []
    assert list(members(both)) == ["st_2026_03", "st_default"]
    assert both.rows("SELECT count(*), count(*) FILTER (WHERE at >= '2026-03-01 00:00+00') FROM st_default") == [
        (51, 0)
    ]
    # Whoever follows the rows has seen those that moved leave and come.
    assert both.rows("SELECT what, count(*), count(DISTINCT id) FROM heard GROUP BY 1 ORDER BY 1") == [
        ("DELETE", 9, 9),
        ("INSERT", 10, 10),
    ]


@pytest.mark.parametrize(
    ("done", "action"),
    [
        ("CREATE TABLE more PARTITION OF st FOR VALUES FROM ('2030-01-01') TO ('2031-01-01')", "DIFFERENTIAL"),
        ("DROP TABLE st_2026_01", "REINITIALIZE"),
        ("ALTER TABLE st DETACH PARTITION st_2026_01", "REINITIALIZE"),
        ("ALTER TABLE st DETACH PARTITION st_2026_01; ALTER TABLE st_2026_01 DISABLE TRIGGER ALL;"
         " UPDATE st_2026_01 SET v = 0; ALTER TABLE st ATTACH PARTITION st_2026_01"
         " FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-02-01 00:00+00')", "REINITIALIZE"),
        ("CREATE TABLE more (LIKE st); INSERT INTO more SELECT 0, 7, '2030-02-01', 7;"
         " ALTER TABLE st ATTACH PARTITION more FOR VALUES FROM ('2030-01-01') TO ('2031-01-01')", "REINITIALIZE"),
    ],
)  # fmt: skip
def test_what_users_do_to_partitions_is_noticed(site: Site, done: str, action: str) -> None:
    """A partition that went, or came with rows, has changed the content; an empty one has not."""
    declare(site, "st", ROWS, **MONTHS)
    site.declare("above", "SELECT count(*) AS n, sum(v) AS s FROM st")
    site.run(*done.split(";"))
    site.run("UPDATE e SET v = v + 1 WHERE id < 30", "INSERT INTO e VALUES (100, 1, 1, '2030-05-01')")
    assert refresh(site, "st", at=NOON)["st"].action == action
    assert site.differs("st", ROWS) == []
    assert refresh(site, "above", at=NOON)["above"].action in ("DIFFERENTIAL", "FULL")
    assert site.differs("above", "SELECT count(*), sum(v) FROM e") == []
    for member in members(site):
        with pytest.raises(psycopg.Error, match="stream table"):
            site.run(f"UPDATE {member} SET v = 1")
        with pytest.raises(psycopg.Error, match="stream table"):
            site.run(f"TRUNCATE {member}")
    assert refresh(site, "st", at=NOON)["st"].action == "NO_DATA"


def test_partitions_by_hand_are_known_to_the_next_refresh(site: Site) -> None:
    declare(site, "st", ROWS, partition_by="at")
    site.declare("above", "SELECT count(*) AS n FROM st")
    moved = site.rows("SELECT pgtrickle.add_partition('st', 'march', 'FROM (''2026-03-01'') TO (''2026-04-01'')')")
    assert moved == [(9,)]
    site.run("UPDATE e SET v = v + 1 WHERE id < 30")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", ROWS) == []
    assert refresh(site, "above", at=NOON)["above"].action in ("DIFFERENTIAL", "NO_DATA")


def test_readers_neither_wait_nor_are_waited_for(site: Site) -> None:
    declare(site, "st", ROWS, **MONTHS, keep="3 months")
    later = NOON + timedelta(days=4)
    within = f"{ROWS} WHERE at >= '2026-01-01 00:00+00'"
    with psycopg.connect(site.client.database.dsn) as reader:
        assert reader.execute("SELECT count(*) FROM st").fetchone() == (39,)
        site.run("INSERT INTO e VALUES (100, 1, 1, '2026-04-01 00:00+00')", "UPDATE e SET v = 0 WHERE id = 9")
        result = refresh(site, "st", at=later)["st"]
        assert (result.action, result.rows_deleted) == ("DIFFERENTIAL", 11)
        # The reader holds what is to be dropped: it was emptied, and is dropped later.
        assert "st_2025_12" in members(site)
        assert site.differs("st", within) == []
        assert reader.execute("SELECT count(*) FROM st").fetchone() == (29,)
    site.run("UPDATE e SET v = 1 WHERE id = 9")
    assert refresh(site, "st", at=later)["st"].action == "DIFFERENTIAL"
    assert "st_2025_12" not in members(site)
    assert site.differs("st", within) == []


def test_whoever_hears_of_deletions_hears_of_those_that_are_dropped(site: Site) -> None:
    declare(site, "st", ROWS, **MONTHS, keep="3 months")
    site.run(HEAR)
    assert refresh(site, "st", at=NOON + timedelta(days=4))["st"].rows_deleted == 11
    assert site.rows("SELECT count(*) FROM heard") == [(11,)]
    assert "st_2025_12" not in members(site)


def test_the_window_moves_with_months_that_are_not_monotone(site: Site) -> None:
    """One month before 28 March, 23 h is later than one month before 29 March, 0 h."""
    site.run(
        "INSERT INTO e SELECT 1000 + n, 1, 1, timestamptz '2026-02-27 00:00+00' + n * interval '1 hour'"
        " FROM generate_series(0, 72) n"
    )
    query = "SELECT date_trunc('hour', at, 'UTC') AS h, count(*) AS n FROM e GROUP BY 1"
    first = datetime(2026, 3, 28, 20, tzinfo=UTC)
    declare(site, "st", query, at=first, partition_by="h", partition_every="1 hour", keep="1 month")
    for hours in (0, 3, 4, 5, 3, 30, 27, 28, 100):
        at = first + timedelta(hours=hours)
        result = refresh(site, "st", at=at)["st"]
        assert result.action in ("DIFFERENTIAL", "NO_DATA")
        cut = f"date_trunc('hour', timestamp '{at:%Y-%m-%d %H:%M}' - interval '1 month') AT TIME ZONE 'UTC'"
        assert site.differs("st", f"SELECT * FROM ({query}) AS q WHERE h >= {cut}") == [], hours
        assert site.client.verify("st", refresh=False).differences == 0


@pytest.mark.parametrize(
    ("query", "key", "is_early"),
    [
        (DAYS, "day", True),
        ("SELECT g, max(day) AS day, count(*) AS n FROM e GROUP BY g", "day", False),
        ("SELECT DISTINCT at::date AS day, g FROM e WHERE g > 0 OR g IS NULL", "day", True),
        ("SELECT day, g FROM e UNION ALL SELECT day, 7 FROM e WHERE g = 1", "day", False),
        ("SELECT day, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM e", "day", False),
        ("SELECT a.id, b.id AS other, b.day FROM e a LEFT JOIN e b ON b.id = a.id + 30", "day", True),
    ],
)
def test_a_query_is_kept_within_wherever_its_column_comes_from(
    site: Site, query: str, key: str, is_early: bool
) -> None:
    declare(site, "st", query, partition_by=key, partition_every="1 month", keep="2 months")
    (kept,) = site.rows("SELECT defining_query FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'st'")
    assert (" kept" not in kept[0]) == is_early
    months = iter(("2026-01-01", "2026-02-01", "2026-01-01", "2026-06-01"))
    steps = {
        "UPDATE e SET v = v + 1 WHERE id % 3 = 0": 0,
        "DELETE FROM e WHERE id IN (20, 25)": 5,
        "UPDATE e SET day = day + 40 WHERE id % 4 = 0": 1,
        "INSERT INTO e (id, day) VALUES (100, '2026-02-01')": 130,
    }
    for change, days in steps.items():
        site.run(change)
        result = refresh(site, "st", at=NOON + timedelta(days=days))["st"]
        assert result.action in ("DIFFERENTIAL", "NO_DATA")
        assert site.differs("st", f"SELECT * FROM ({query}) AS q WHERE {key} >= '{next(months)}'") == []
    assert site.client.verify("st", refresh=False).differences == 0


def test_keep_and_length_can_be_altered(site: Site) -> None:
    now = datetime.now(UTC)
    site.run("UPDATE e SET at = now() - id * interval '3 days'")
    declare(site, "st", ROWS, at=now, **MONTHS)
    for keep, every in (
        ("2 months", None),
        ("1 month", "1 month"),
        ("4 months", "1 year"),
        ("20 days", "1 day"),
        ("all", None),
    ):
        changes = {"keep": keep} | ({"partition_every": every} if every else {})
        site.client.alter_stream_table("st", **changes)
        (every,) = site.rows("SELECT partition_every FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'st'")[0]
        unit = every.split()[1]
        within = "" if keep == "all" else f" WHERE at >= date_trunc('{unit}', now() - interval '{keep}', 'UTC')"
        assert site.differs("st", ROWS + within) == []
        site.run("UPDATE e SET v = v + 1 WHERE id < 40")
        assert site.refresh("st").action == "DIFFERENTIAL"
        assert site.differs("st", ROWS + within) == []
    assert (
        site.client.changes("st", ROWS, refresh_mode="DIFFERENTIAL", partition_by="at", partition_every="1 day") == {}
    )
    assert set(site.client.changes("st", ROWS, refresh_mode="DIFFERENTIAL", **MONTHS, keep="1 year")) == {
        "partition_every",
        "keep",
        "query",
    }
    site.client.alter_stream_table("st", partition_every="none")
    site.run("INSERT INTO e VALUES (100, 1, 1, '2035-01-01')")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", ROWS) == []


def test_too_many_partitions_are_one_sentence_and_nothing_is_written(site: Site) -> None:
    declare(site, "st", ROWS, partition_by="at", partition_every="1 hour")
    site.run(
        "INSERT INTO e SELECT 100 + n, 1, 1, timestamptz '2020-01-01' + n * interval '1 day'"
        " FROM generate_series(1, 990) n"
    )
    with pytest.raises(RefreshError, match=r"need 990 partitions besides the 60 .* at most 1,000"):
        refresh(site, "st", at=NOON)
    assert len(members(site)) == 60
    site.client.alter_stream_table("st", partition_every="1 month")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", ROWS) == []


REFUSED = [
    ({"partition_every": "1 month"}, "needs partition_by of the form 'RANGE"),
    ({"partition_by": "HASH (id)", "partition_every": "10"}, "HASH has its partitions"),
    ({"partition_by": "region", "partition_every": "1 month"}, "needs a date or a timestamp, and region is text"),
    ({"partition_by": "LIST (region)", "partition_every": "1 month"}, "form 'RANGE"),
    ({"partition_by": "at", "partition_every": "value"}, "form 'LIST"),
    ({"partition_by": "day", "partition_every": "6 hours"}, "shorter than a day"),
    ({"partition_by": "at", "partition_every": "5 months"}, "begin where calendars do"),
    ({"partition_by": "at", "partition_every": "0 days"}, "can't be '0 days'"),
    ({"partition_by": "at", "keep": "1 year"}, "needs partition_every"),
    ({"partition_by": "id", "partition_every": "10", "keep": "1 year"}, "a length of time"),
    ({**MONTHS, "keep": "long"}, "keep can't be 'long'"),
    ({**MONTHS, "refresh_mode": "IMMEDIATE"}, "make and drop no tables"),
]


def test_what_can_not_be_is_refused_in_a_sentence(site: Site) -> None:
    for options, sentence in REFUSED:
        with pytest.raises(UsageError, match=sentence):
            site.declare("st", "SELECT id, at, day, region FROM e", **options)
    assert site.rows("SELECT to_regclass('st')") == [(None,)]


WIDE = """
CREATE TABLE w (id int PRIMARY KEY, day date NOT NULL, v int);
INSERT INTO w SELECT n, date '2026-01-01' + n % 300, n FROM generate_series(1, 9000) n;
CREATE INDEX ON w (day);
ANALYZE w
"""


def _touched(site: Site, name: str) -> set[str]:
    """The partitions that the last refresh scanned; the server has all counts once its session has ended."""
    site.rows(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user"
    )
    site.run("SELECT pg_stat_clear_snapshot()")
    rows = site.rows(
        "SELECT s.relname, s.seq_scan + coalesce(s.idx_scan, 0) FROM pg_stat_user_tables s"
        f" JOIN pg_inherits i ON i.inhrelid = s.relid WHERE i.inhparent = '{name}'::regclass"
    )
    before = site.__dict__.setdefault("scans", {})
    found = {member for member, scans in rows if scans != before.get(member, 0)}
    before.update(rows)
    return found


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT id, day, v FROM w", "id"),
        ("SELECT day, v FROM w", "none"),
        ("SELECT day, id / 10 AS k, count(*) AS n, sum(v) AS s FROM w GROUP BY day, id / 10", "day, k"),
        ("SELECT day, id / 10 AS k, max(v) AS m FROM w GROUP BY day, id / 10", "day, k"),
    ],
)
def test_a_difference_and_its_writing_touch_only_their_partitions(site: Site, query: str, key: str) -> None:
    site.run(*WIDE.split(";"))
    declare(site, "st", query, partition_by="day", partition_every="1 month")
    site.run("ANALYZE st")
    assert len(_touched(site, "st")) == 10
    site.run("UPDATE w SET v = v + 1 WHERE day = '2026-03-05'", "DELETE FROM w WHERE day = '2026-04-06' AND id < 1000")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert _touched(site, "st") == {"st_2026_03", "st_2026_04"}
    assert site.differs("st", query) == []


@pytest.mark.parametrize("by_hand", [True, False], ids=["RANGE", "LIST"])
def test_stored_groups_are_looked_up_in_their_partitions_whoever_made_these(site: Site, by_hand: bool) -> None:
    site.run(*WIDE.split(";"), "ALTER TABLE w ADD region text NOT NULL DEFAULT ''")
    site.run("UPDATE w SET region = 'r' || to_char(day, 'MM')", "ANALYZE w")
    key = "day" if by_hand else "region"
    query = f"SELECT {key}, id / 10 AS k, count(*) AS n, sum(v) AS s FROM w GROUP BY {key}, id / 10"
    if by_hand:
        declare(site, "st", query, partition_by="day")
        for n in range(1, 11):
            bounds = f"FROM (''2026-{n:02}-01'') TO (''2026-{n + 1:02}-01'')"
            site.run(f"SELECT pgtrickle.add_partition('st', 'st_r{n:02}', '{bounds}')")
    else:
        declare(site, "st", query, partition_by="LIST (region)", partition_every="value")
    site.run("ANALYZE st")
    assert len(members(site)) == (11 if by_hand else 10)
    _touched(site, "st")
    site.run("UPDATE w SET v = v + 1 WHERE day = '2026-03-05'", "DELETE FROM w WHERE day = '2026-04-06' AND id < 1000")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert _touched(site, "st") == {"st_r03", "st_r04"}
    assert site.differs("st", query) == []


def test_the_plans_name_only_the_partitions_that_are_touched(both: Site) -> None:
    declare(both, "st", ROWS, **MONTHS)
    with both.client.database.connect(autocommit=True) as conn:
        st = records.get(conn, QualifiedName("public", "st"))
        columns = describe(conn, st.qualified.sql, tuple(c.name for c in st.storage))
        conn.execute(
            "CREATE TEMPORARY TABLE d AS SELECT CASE WHEN o = 'U' THEN 1 ELSE -1 END::bigint AS __pgt_w,"
            ' s.__pgt_row_id, s.id, s.at, s.v, o::"char" AS __pgt_op FROM public.st s'
            " JOIN (VALUES (1, 'D'), (2, 'O'), (2, 'U'), (35, 'D'), (36, 'I')) AS w(id, o) USING (id)"
        )
        rows = sql.Identifier("pg_temp", "d")
        partitions = Partitions.of(st, st.qualified, {c.name: c.type for c in columns})
        assert partitions is not None
        held = partitions.touched(conn, stage.rows_that(rows, "D", "O"))
        for keyed in (True, False):
            target = stage.Target(st.qualified, columns, st.identity, keyed)
            for statement in (stage.deletion(target, rows, held), stage.replacement(target, rows, held)):
                told = conn.execute(sql.SQL("EXPLAIN ") + statement).fetchall()
                named = set(re.findall(r"st_2\d{3}_\d\d(?!_)", "\n".join(line for (line,) in told)))
                assert named == {"st_2025_12", "st_2026_03"}
