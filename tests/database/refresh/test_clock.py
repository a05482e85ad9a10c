"""Refreshes move the clock: they find what enters and leaves, know when nothing does, and all mean one instant."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.operators import readiness
from tests.database.reported.conftest import Site, refresh, site_at
from tests.oracle.harness import at_instant

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
DAY = timedelta(days=1)
E = """
CREATE TABLE e (id int PRIMARY KEY, g int NOT NULL, v int, at timestamptz, day date);
INSERT INTO e SELECT n, n % 5, n, t, t::date
  FROM generate_series(1, 400) n, LATERAL (SELECT timestamptz '2026-03-28 12:00+00' - n * interval '6 hours' AS t) AS x;
CREATE INDEX ON e (at);
ANALYZE e
"""
LAST_WEEK = "SELECT g, count(*) AS n, sum(v) AS s FROM e WHERE at > now() - interval '7 days' GROUP BY g"


@pytest.fixture
def site(any_dsn: str) -> Iterator[Site]:
    for site in site_at(any_dsn, placement="database"):
        site.run(*E.split(";"))
        yield site


def declare(site: Site, name: str, query: str, at: datetime = NOON, **options: Any) -> None:
    site.declare(name, query, **{"refresh_mode": "DIFFERENTIAL", "initialize": False, **options})
    refresh(site, name, at=at)
    assert site.differs(name, at_instant(query, at.isoformat())) == []


def test_rows_enter_and_leave_while_nobody_writes(site: Site) -> None:
    declare(site, "week", LAST_WEEK)
    for hours in (1, 5, 6, 7, 24, 24 * 8, 24 * 30):
        at = NOON + timedelta(hours=hours)
        result = refresh(site, "week", at=at)["week"]
        assert site.differs("week", at_instant(LAST_WEEK, at.isoformat())) == []
        assert (result.action, result.data_timestamp) in (("DIFFERENTIAL", at), ("NO_DATA", at))
    assert site.rows("SELECT count(*) FROM week") == [(0,)]


def test_only_what_moves_is_counted_and_nothing_is_no_data(site: Site) -> None:
    declare(site, "week", LAST_WEEK)
    still = refresh(site, "week", at=NOON + timedelta(hours=5, minutes=59))["week"]
    assert (still.action, still.source_changes) == ("NO_DATA", 0)
    moved = refresh(site, "week", at=NOON + timedelta(hours=12))["week"]
    assert (moved.action, moved.source_changes, moved.rows_updated) == ("DIFFERENTIAL", 2, 2)


def test_the_clock_may_go_back(site: Site) -> None:
    declare(site, "week", LAST_WEEK)
    refresh(site, "week", at=NOON + 20 * DAY)
    back = refresh(site, "week", at=NOON)["week"]
    assert back.action == "DIFFERENTIAL"
    assert site.differs("week", at_instant(LAST_WEEK, NOON.isoformat())) == []


@pytest.mark.parametrize("placement", ["database", "spark"])
@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
def test_every_way_means_the_data_timestamp(site: Site, mode: str, placement: str) -> None:
    declare(site, "week", LAST_WEEK, refresh_mode=mode, placement=placement)
    for number in range(1, 4):
        site.run(
            f"INSERT INTO e SELECT 1000 + {number}, 1, 1, timestamptz '2026-03-28 12:00+00' + {number} * interval '1 h'"
        )
        at = NOON + number * DAY
        assert refresh(site, "week", at=at)["week"].action == mode
        assert site.differs("week", at_instant(LAST_WEEK, at.isoformat())) == []
        assert site.client.verify("week").differences == 0


@pytest.mark.parametrize(
    "query",
    ["SELECT id, now() AS at FROM e", "SELECT id, now() - at AS age FROM e WHERE at > now() - interval '2 days'"],
)
def test_other_uses_run_full_each_time_as_of_the_data_timestamp(site: Site, query: str) -> None:
    declare(site, "ages", query, refresh_mode="AUTO")
    for at in (NOON + DAY, NOON + DAY):
        result = refresh(site, "ages", at=at)["ages"]
        assert result.action == "FULL"
        assert "computes with the clock" in str(result.fallback_reason)
        assert site.differs("ages", at_instant(query, at.isoformat())) == []
    verified = site.client.verify("ages")
    assert (verified.differences, verified.skipped) == (0, {})


def test_a_unit_has_one_clock_for_all_its_tables(site: Site) -> None:
    recent = "SELECT id, g, at FROM e WHERE at > now() - interval '3 days'"
    late = "SELECT id, g FROM recent WHERE at <= now() - interval '1 day'"
    pair = "SELECT r.id, e.v FROM recent r JOIN e ON e.id = r.id AND e.day = current_date - 1"
    declare(site, "recent", recent)
    for name, query in {"late": late, "pair": pair}.items():
        site.declare(name, query, refresh_mode="DIFFERENTIAL", initialize=False)
    refresh(site, "recent", "late", "pair", at=NOON)
    chance = random.Random(7)
    at = NOON
    for _ in range(25):
        at += timedelta(hours=chance.randrange(1, 20))
        moment = f"'{at.isoformat()}'::timestamptz"
        site.run(
            f"INSERT INTO e SELECT coalesce(max(id), 0) + 1, 1, 1, {moment}, ({moment})::date FROM e",
            f"DELETE FROM e WHERE id = {chance.randrange(400)}",
            f"UPDATE e SET at = {moment} - interval '1 day' WHERE id = {chance.randrange(400)}",
        )
        results = refresh(site, "recent", "late", "pair", at=at)
        assert {r.action for r in results.values()} <= {"DIFFERENTIAL", "NO_DATA"}
        assert {r.data_timestamp for r in results.values()} == {at}
        for name, query in {"recent": recent, "late": late, "pair": pair}.items():
            assert site.differs(name, at_instant(query, at.isoformat())) == [], name
    assert site.client.verify().differences == 0


def test_a_part_follows_the_clock_with_its_owner(site: Site) -> None:
    query = (
        "SELECT n, count(*) AS groups FROM (SELECT g, count(*) AS n FROM e WHERE at > now() - interval '7 days'"
        " GROUP BY g) AS c GROUP BY n"
    )
    declare(site, "spread", query)
    assert site.rows("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE is_hidden") == [(1,)]
    for hours in (7, 13, 60, 300):
        at = NOON + timedelta(hours=hours)
        assert refresh(site, "spread", at=at)["spread"].action == "DIFFERENTIAL"
        assert site.differs("spread", at_instant(query, at.isoformat())) == []
    assert site.client.verify("spread").differences == 0


def test_verify_finds_a_row_that_should_have_left(site: Site, any_dsn: str) -> None:
    query = "SELECT id FROM e WHERE at > now() - interval '7 days'"
    declare(site, "week", query)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute("SET pgtrickle.refreshing = 'on'; UPDATE week SET id = 400 WHERE id = 3")
    assert site.client.verify("week", refresh=False).differences > 0


def test_plan_knows_whether_the_window_moved(site: Site) -> None:
    declare(site, "week", LAST_WEEK)
    declare(site, "spread", f"SELECT n, count(*) AS groups FROM ({LAST_WEEK}) AS c GROUP BY n")
    names = ["public.week", "public.spread"]

    def work() -> list[bool]:
        with site.client.database.transaction() as conn:
            found = readiness.read(conn, names)
        return [found[name].has_work for name in names]

    # The server's clock is what it is: the content is made to be of yesterday's data, or of next year's.
    assert work() == [True, True]
    now = site.rows("SELECT now()")[0][0]
    refresh(site, "week", at=now)
    refresh(site, "spread", at=now)
    assert work() == [False, False]
    (probe,) = site.rows("SELECT clock_probe FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'week'")[0]
    site.run("SET enable_seqscan = off")
    plan = "\n".join(
        line
        for (line,) in site.rows(f'EXPLAIN SELECT {probe} FROM (SELECT now() AS old, now() AS new) AS "__pgt_clock"')
    )
    assert "Index" in plan


def test_explain_shows_the_range_and_the_index_it_wants(site: Site) -> None:
    site.run("DROP INDEX e_at_idx")
    declare(site, "week", LAST_WEEK)
    said = str(site.client.explain_st("week"))
    assert "two values of now() - CAST('7 days' AS interval): rows are looked for" in said
    assert "in public.e by an index on at" in said
    assert 'CREATE INDEX ON "public"."e" ("at")' in said


def test_immediate_refuses_the_clock_in_one_sentence(site: Site) -> None:
    with pytest.raises(UsageError, match="IMMEDIATE can't follow the clock"):
        site.declare("week", LAST_WEEK, refresh_mode="IMMEDIATE")


TODAY = "SELECT id, v FROM e WHERE day = ANY (ARRAY[current_date, current_date - 1])"


@pytest.mark.parametrize(
    ("query", "detail"), [(LAST_WEEK, "now"), (TODAY, "current_timestamp or the like"), (TODAY, "")]
)
def test_a_table_of_an_earlier_release_follows_the_clock_after_the_upgrade(site: Site, query: str, detail: str) -> None:
    """As the release before the clock left it: FULL each time, because the query asks for the clock."""
    declare(site, "week", query, refresh_mode="AUTO")
    refusal = f"the query's answer may change with the clock or the session, not only with its sources ({detail})"
    if not detail:
        # As the release left it that followed comparisons, and no lists.
        refusal = f"{Reason.COMPUTES_WITH_CLOCK.sentence} (CURRENT_DATE)"
    site.run(
        f"UPDATE pgtrickle.pgt_stream_tables SET differentiable = false, steady = false, clock_probe = NULL,"
        f" refusal = $$ {refusal} $$",
        "DELETE FROM pgtrickle.pgt_migrations WHERE number >= 20",
    )
    site.client.install()
    at = NOON + DAY
    result = refresh(site, "week", at=at)["week"]
    assert (result.action, result.fallback_reason) == ("REINITIALIZE", "schema_changed")
    assert site.differs("week", at_instant(query, at.isoformat())) == []
    at += DAY
    assert refresh(site, "week", at=at)["week"].action == "DIFFERENTIAL"
    assert site.differs("week", at_instant(query, at.isoformat())) == []


def test_a_frontier_without_an_instant_is_not_trusted(site: Site) -> None:
    declare(site, "week", LAST_WEEK)
    site.run("UPDATE pgtrickle.pgt_stream_tables SET frontier = jsonb_set(frontier, '{data_timestamp}', '\"soon\"')")
    result = refresh(site, "week", at=NOON + 3 * DAY)["week"]
    assert (result.action, result.fallback_reason) == ("FULL", "buffer_lost")
    assert site.differs("week", at_instant(LAST_WEEK, (NOON + 3 * DAY).isoformat())) == []
