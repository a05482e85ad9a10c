"""A table's query is answered by the clock and calendar of its own time zone, by everybody who computes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.operators import readiness
from tests.database.reported.conftest import Site, site_at
from tests.database.reported.conftest import refresh as moved
from tests.oracle.harness import at_instant

OSLO, NEW_YORK, KOLKATA, ST_JOHNS = "Europe/Oslo", "America/New_York", "Asia/Kolkata", "America/St_Johns"
ZONES = (OSLO, NEW_YORK, KOLKATA, ST_JOHNS, "Pacific/Apia", "Australia/Lord_Howe")
BEGINS = datetime(2026, 3, 6, 20, tzinfo=UTC)
TABLES = (
    "CREATE TABLE e (id int PRIMARY KEY, g int NOT NULL, v int, at timestamptz, day date, local timestamp)",
    "CREATE TABLE d (at timestamptz PRIMARY KEY, v int)",
    "CREATE INDEX ON e (at)",
)

QUERIES = {
    "today": "SELECT id, v FROM e WHERE at::date = current_date",
    "day": "SELECT id, v FROM e WHERE day >= current_date - 1 AND at < now()",
    "days": "SELECT at::date AS day, count(*) AS n, sum(v) AS s FROM e GROUP BY at::date",
    "truncated": "SELECT id, date_trunc('day', at) AS begins FROM e"
    " WHERE date_trunc('day', at) = date_trunc('day', now())",
    "local": "SELECT id FROM e WHERE local > localtimestamp - interval '30 hours' AND local <= localtimestamp",
    "mixed": "SELECT id FROM e WHERE at > localtimestamp - interval '1 day'",
    "mixed day": "SELECT id FROM e WHERE local < now() AND at >= current_date",
    "cast": "SELECT id, at::timestamp AS local, at::text AS said, at::time AS hour FROM e"
    " WHERE at::date <= now()::date",
    "hours": "SELECT extract(hour FROM at) AS hour, min(at) AS first, array_agg(at ORDER BY at, id) AS all"
    " FROM e GROUP BY 1",
    "by instant": "SELECT at, v, tstzrange(at, at + interval '1 day') AS span FROM d"
    " WHERE at > now() - interval '3 days'",
    "distinct": "SELECT DISTINCT at, ARRAY[at] AS many, ROW(at, at::date)::text AS both FROM e",
    "last": "SELECT id, at FROM e WHERE at < now() ORDER BY at DESC NULLS LAST, id LIMIT 3",
    "join": "SELECT e.id, d.at FROM e JOIN d ON e.day = d.at::date AND d.at < now()",
}


@pytest.fixture
def site(any_dsn: str) -> Iterator[Site]:
    for site in site_at(any_dsn, placement="database"):
        site.run(*TABLES)
        yield site


def declare(site: Site, name: str, query: str, zone: str | None, at: datetime = BEGINS, **options: Any) -> None:
    site.declare(name, query, **{"timezone": zone, "initialize": False, "refresh_mode": "DIFFERENTIAL", **options})
    moved(site, name, at=at)


def differs(site: Site, name: str, query: str, zone: str | None, at: datetime) -> list[tuple[Any, ...]]:
    """Rows that the content and PostgreSQL's answer in the zone don't share."""
    site.conn.execute(sql.SQL("SET TimeZone = {}").format(sql.Literal(zone or "UTC")))
    try:
        return site.differs(name, at_instant(query, at.isoformat()))
    finally:
        site.conn.execute("SET TimeZone = 'UTC'")


def instants(chance: random.Random, number: int) -> Iterator[datetime]:
    """Times around midnights of zones and around the changes of their clocks, which now and then go back."""
    turns = [
        datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York, St John's half an hour before
        datetime(2026, 3, 29, 1, tzinfo=UTC),  # Oslo
        datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe, by half an hour
        datetime(2026, 10, 25, 1, tzinfo=UTC),
        datetime(2026, 11, 1, 6, tzinfo=UTC),
    ]
    at = BEGINS
    for _ in range(number):
        step = chance.random()
        if step < 0.4:
            at += timedelta(minutes=chance.randrange(1, 200))
        elif step < 0.6:
            at = at.replace(minute=0) + timedelta(hours=chance.randrange(1, 30))
        elif step < 0.85:
            at = chance.choice(turns) + timedelta(minutes=chance.choice((-90, -30, -1, 0, 1, 29, 30, 61, 90)))
        else:
            at -= timedelta(hours=chance.randrange(30))
        yield at


def changes(chance: random.Random, at: datetime) -> list[str]:
    """Rows near an instant and near midnights come, go and move."""

    def near() -> str:
        offset = chance.choice(
            ["0 s", "1 day", "-1 day", f"{chance.randrange(-60, 60)} hours", f"{chance.randrange(-900, 900)} minutes"]
        )
        return f"(timestamptz '{at.isoformat()}' + interval '{offset}')"

    def event(number: int) -> str:
        v = chance.choice((*range(6), "NULL"))
        return f"({number}, {chance.randrange(3)}, {v}, {near()}, {near()}::date, {near()}::timestamp)"

    update = "ON CONFLICT (id) DO UPDATE SET at = excluded.at, v = excluded.v, day = excluded.day"
    return chance.sample(
        [
            f"INSERT INTO e VALUES {event(chance.randrange(30))} {update}",
            f"INSERT INTO e VALUES {event(chance.randrange(30))} {update}",
            f"UPDATE e SET at = {near()} WHERE id % 5 = {chance.randrange(5)}",
            f"UPDATE e SET v = v + 1 WHERE id % 3 = {chance.randrange(3)}",
            f"DELETE FROM e WHERE id = {chance.randrange(30)}",
            f"INSERT INTO d VALUES ({near()}, {chance.randrange(9)}) ON CONFLICT (at) DO UPDATE SET v = excluded.v",
            "UPDATE d SET v = v + 1",
            f"DELETE FROM d WHERE at > {near()}",
        ],
        chance.randrange(1, 5),
    )


def filled(site: Site, chance: random.Random) -> None:
    for _ in range(20):
        site.run(*changes(chance, BEGINS))


@pytest.mark.parametrize("what", QUERIES)
def test_each_zone_has_its_own_days(site: Site, what: str) -> None:
    query, chance = QUERIES[what], random.Random(what)
    filled(site, chance)
    zone = chance.choice(ZONES)
    placement = chance.choice(("database", "spark"))
    declare(site, "st", query, zone, placement=placement)
    assert differs(site, "st", query, zone, BEGINS) == []
    for at in instants(chance, 15):
        site.run(*changes(chance, at))
        result = moved(site, "st", at=at)["st"]
        assert differs(site, "st", query, zone, at) == [], (zone, at)
        assert result.action in ("DIFFERENTIAL", "NO_DATA") or (result.action, what) == ("TOPK", "last")
    verified = site.client.verify("st")
    assert (verified.differences, verified.skipped) == (0, {})


WEEK = (
    "SELECT id, g, at, at::date AS day, ARRAY[at] AS many, tstzrange(at, NULL) AS since FROM e"
    " WHERE at::date > current_date - 7"
)
UNIT: Mapping[str, tuple[str, str | None]] = {
    "week": (WEEK, OSLO),
    "here": ("SELECT id, g, at FROM week WHERE at::date = current_date", NEW_YORK),
    "days": ("SELECT at::date AS day, count(*) AS n, min(lower(since)) AS first FROM week GROUP BY 1", KOLKATA),
    "instants": ("SELECT at, many, count(*) AS n, max(at::text) AS said FROM week GROUP BY at, many", ST_JOHNS),
    "seen": ("SELECT many, since, said FROM instants JOIN week USING (at, many)", None),
    "both": ("SELECT h.id, w.at::date AS day, w.many FROM here h JOIN week w USING (id) WHERE w.at < now()", OSLO),
}


@pytest.mark.parametrize(
    ("most", "placement"),
    [(10_000, "database"), (3, "database"), (10_000, "spark")],
    ids=["as text", "in a table", "by an executor"],
)
def test_tables_of_one_unit_have_zones_of_their_own(site: Site, any_dsn: str, most: int, placement: str) -> None:
    with PgTrickle(
        any_dsn,
        placement=placement,
        differential_max_change_ratio=0.0,
        collect_max_rows=most,
        executor=lambda: PostgresExecutor(client.database),
    ) as client:
        site = Site(site.conn, client)
        chance = random.Random(most)
        filled(site, chance)
        for name, (query, zone) in UNIT.items():
            declare(site, name, query, zone)
        names = set[str]()
        for number, at in enumerate(instants(chance, 25)):
            site.run(*changes(chance, at))
            results = moved(site, *UNIT, at=at, force_full=number % 13 == 12)
            for name, (query, zone) in UNIT.items():
                assert differs(site, name, query, zone, at) == [], (name, at)
                names |= {name} if results[name].action == "DIFFERENTIAL" else set()
        assert names == set(UNIT)
        assert site.client.verify().differences == 0


def test_parts_have_the_zone_of_their_table(site: Site) -> None:
    query = (
        "SELECT n, count(*) AS days FROM (SELECT at::date AS day, count(*) AS n FROM e WHERE at > current_date - 5"
        " GROUP BY at::date) AS c GROUP BY n"
    )
    chance = random.Random(1)
    filled(site, chance)
    declare(site, "spread", query, NEW_YORK)
    assert site.rows("SELECT timezone FROM pgtrickle.pgt_stream_tables WHERE is_hidden") == [(NEW_YORK,)]
    for at in instants(chance, 15):
        site.run(*changes(chance, at))
        assert moved(site, "spread", at=at)["spread"].action in ("DIFFERENTIAL", "NO_DATA")
        assert differs(site, "spread", query, NEW_YORK, at) == []
    site.client.alter_stream_table("spread", timezone=KOLKATA)
    assert site.rows("SELECT timezone FROM pgtrickle.pgt_stream_tables WHERE is_hidden") == [(KOLKATA,)]
    now = site.client.verify("spread").tables[0].data_timestamp
    assert now is not None
    assert differs(site, "spread", query, KOLKATA, now) == []
    site.run("UPDATE e SET at = now() - id * interval '1 hour'")
    refreshed = site.refresh("spread")
    assert refreshed.action == "DIFFERENTIAL"
    assert differs(site, "spread", query, KOLKATA, refreshed.data_timestamp or now) == []
    assert site.client.verify("spread").differences == 0


PARTITIONED = {
    "RANGE (at)": ("SELECT id, at, v, at::date AS day FROM e WHERE {} AND at <= current_date + 2", "at"),
    "RANGE (day)": ("SELECT at::date AS day, count(*) AS n, sum(v) AS s FROM e WHERE {} GROUP BY at::date", "at::date"),
    "RANGE (begins)": ("SELECT id, at::timestamp AS begins, at FROM e WHERE {}", "at::timestamp"),
}


@pytest.mark.parametrize("by", PARTITIONED)
@pytest.mark.parametrize("keep", [None, "2 days"])
def test_partitions_are_utc_s_days_in_every_zone(site: Site, by: str, keep: str | None) -> None:
    """And so is what is kept, while the query's own days are the zone's."""
    query, column = PARTITIONED[by]
    chance = random.Random(f"{by} {keep}")
    filled(site, chance)
    options: dict[str, Any] = {"partition_by": by, "partition_every": "1 day", "keep": keep}
    declare(site, "st", query.format("true"), NEW_YORK, placement=chance.choice(("database", "spark")), **options)
    bound = f"date_trunc('day', (now() AT TIME ZONE 'UTC') - interval '{keep}')"
    bound = f"({bound} AT TIME ZONE 'UTC')" if column == "at" else bound
    kept = query.format("true" if keep is None else f"{column} >= {bound}")
    for number, at in enumerate(instants(chance, 25)):
        site.run(*changes(chance, at))
        result = moved(site, "st", at=at, force_full=number % 6 == 5)["st"]
        assert result.action in ("DIFFERENTIAL", "NO_DATA") or number % 6 == 5
        assert differs(site, "st", kept, NEW_YORK, at) == [], at
    assert site.client.verify("st").differences == 0


def test_another_zone_is_another_query(site: Site) -> None:
    chance = random.Random(2)
    filled(site, chance)
    site.run(*(f"INSERT INTO d VALUES (now() + {n} * interval '1 hour', {n})" for n in range(-30, 31)))
    query = "SELECT at, v, at::date AS day FROM d WHERE at::date >= current_date"
    reader = "SELECT day, count(*) AS n, array_agg(at ORDER BY at) AS all FROM st GROUP BY day"
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    site.declare("reader", reader, refresh_mode="DIFFERENTIAL", timezone=ST_JOHNS)
    for zone in (OSLO, "Pacific/Kiritimati", None, NEW_YORK):
        before = site.rows("SELECT oid FROM pg_class WHERE relname = 'st'")
        table = site.client.alter_stream_table("st", timezone=zone or "UTC")
        assert (table.timezone, table.kept_query) == (zone, None)
        assert site.rows("SELECT oid FROM pg_class WHERE relname = 'st'") == before
        at = table.data_timestamp
        assert at is not None
        assert differs(site, "st", query, zone, at) == []
        assert site.client.verify("st").differences == 0
        result = site.refresh("reader")
        assert differs(site, "reader", reader, ST_JOHNS, result.data_timestamp or at) == []
        site.run("UPDATE d SET v = v + 1 WHERE v % 2 = 0", "DELETE FROM d WHERE at = (SELECT max(at) FROM d)")
        result = site.refresh("st")
        assert result.action == "DIFFERENTIAL"
        assert differs(site, "st", query, zone, result.data_timestamp or at) == []
        assert site.refresh("reader").action == "DIFFERENTIAL"


def test_nothing_is_kept_of_a_table_whose_zone_changes_with_its_query(site: Site) -> None:
    filled(site, random.Random(3))
    site.declare("st", "SELECT id, at::date AS day FROM e WHERE g < 2", refresh_mode="DIFFERENTIAL")
    narrow = "SELECT id, at::date AS day FROM e WHERE g < 1"
    table = site.client.alter_stream_table("st", query=narrow, timezone="Pacific/Kiritimati")
    assert table.timezone == "Pacific/Kiritimati"
    assert differs(site, "st", narrow, "Pacific/Kiritimati", BEGINS) == []
    site.client.alter_stream_table("st", timezone=NEW_YORK, status="SUSPENDED")
    site.client.alter_stream_table("st", query=f"{narrow} AND id > 3", status="ACTIVE")
    assert differs(site, "st", f"{narrow} AND id > 3", NEW_YORK, BEGINS) == []


def test_a_declaration_says_whether_its_zone_is_there_already(site: Site) -> None:
    query = "SELECT id FROM e WHERE at > timestamptz '2026-03-29 03:30' AND day < '2026-05-01'"
    site.declare("st", query, timezone=OSLO, refresh_mode="DIFFERENTIAL")
    assert "2026-03-29 03:30:00+02" in site.rows("SELECT defining_query FROM pgtrickle.pgt_stream_tables")[0][0]
    assert site.client.changes("st", query, timezone=OSLO, refresh_mode="DIFFERENTIAL") == {}
    there = site.client.changes("st", query, timezone=KOLKATA, refresh_mode="DIFFERENTIAL")
    assert there == {"timezone": KOLKATA, "query": query}
    site.client.create_or_replace_stream_table("st", query, timezone=KOLKATA, refresh_mode="DIFFERENTIAL")
    assert "2026-03-28 22:00:00+00" not in site.rows("SELECT defining_query FROM pgtrickle.pgt_stream_tables")[0][0]
    assert "2026-03-29 03:30:00+05:30" in site.rows("SELECT defining_query FROM pgtrickle.pgt_stream_tables")[0][0]


def test_a_change_behind_the_query_keeps_the_zone(site: Site) -> None:
    filled(site, random.Random(4))
    query = "SELECT id, at::date AS day FROM e WHERE at >= '2026-03-07'"
    site.declare("st", query, timezone=NEW_YORK)
    site.run("ALTER TABLE e ALTER v TYPE bigint", "ALTER TABLE e ALTER id TYPE bigint")
    assert site.refresh("st").action == "REINITIALIZE"
    assert differs(site, "st", query, NEW_YORK, BEGINS) == []
    assert site.client.verify("st").differences == 0


def test_other_rules_of_a_zone_are_noticed_by_who_follows_it(site: Site) -> None:
    filled(site, random.Random(4))
    query = "SELECT id, at::date AS day FROM e"
    site.declare("own", query, timezone=NEW_YORK)
    site.declare("named", "SELECT id, (at AT TIME ZONE 'America/New_York')::date AS day FROM e")
    site.declare("neither", query, timezone=OSLO)
    names = ("own", "named", "neither")

    def suspects() -> set[str]:
        with site.client.database.transaction() as conn:
            return {name for name, state in readiness.read(conn).items() if state.has_work}

    assert suspects() == set()
    # As if the rules had been others when the tables were declared.
    for name in names:
        (known,) = site.rows(f"SELECT fingerprint FROM pgtrickle.pgt_stream_tables WHERE pgt_name = '{name}'")[0]
        taken = json.loads(known)
        if NEW_YORK in taken["zones"]:
            taken["zones"][NEW_YORK] = "others"
            text = json.dumps(taken, sort_keys=True, separators=(",", ":"))
            site.conn.execute(
                "UPDATE pgtrickle.pgt_stream_tables SET fingerprint = %s WHERE pgt_name = %s", [text, name]
            )
    assert suspects() == {"public.own", "public.named"}
    assert [site.refresh(name).action for name in names] == ["REINITIALIZE", "REINITIALIZE", "NO_DATA"]
    assert [site.refresh(name).action for name in names] == ["NO_DATA"] * 3
    assert suspects() == set()
    assert differs(site, "own", query, NEW_YORK, BEGINS) == []


@pytest.mark.parametrize("placement", ["database", "spark"])
@pytest.mark.parametrize("server_row_ids", [True, False], ids=["by the server", "as an earlier release"])
def test_a_row_with_an_instant_in_its_key_is_found_again(site: Site, server_row_ids: bool, placement: str) -> None:
    chance = random.Random(5)
    filled(site, chance)
    query = "SELECT at, ARRAY[at, NULL] AS many, count(*) AS n, sum(v) AS s FROM d GROUP BY at, ARRAY[at, NULL]"
    declare(site, "st", query, "America/Caracas", placement=placement)
    if not server_row_ids:
        site.run("UPDATE pgtrickle.pgt_stream_tables SET server_row_ids = false")
        moved(site, "st", at=BEGINS, force_full=True)
    for number, at in enumerate(instants(chance, 10)):
        old = f"INSERT INTO d VALUES ('1850-01-01 00:00:{number:02}', 1), ('00{number + 10}-01-01 BC', 1)"
        site.run(*changes(chance, at), old)
        assert moved(site, "st", at=at)["st"].action == "DIFFERENTIAL"
        assert differs(site, "st", query, "America/Caracas", at) == []
        whole = moved(site, "st", at=at, force_full=True)["st"]
        assert (whole.action, whole.rows_inserted + whole.rows_updated + whole.rows_deleted) == ("FULL", 0)
        assert site.client.verify("st").differences == 0


def test_a_time_that_the_zone_skips_is_between_no_two_others(site: Site) -> None:
    """Yesterday's 02:30 was skipped in Oslo and means 03:30, so it comes after yesterday's 03:10."""
    times = "timestamptz '2026-03-29 00:00+00' + n * interval '5 min' FROM generate_series(1, 36) n"
    site.run(f"INSERT INTO e SELECT n, 0, n, {times}")
    query = QUERIES["mixed"]
    at = datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    declare(site, "st", query, OSLO, at)
    for minutes in (40, -40, 10, 55, -20, 95):
        at += timedelta(minutes=minutes)
        moved(site, "st", at=at)
        assert differs(site, "st", query, OSLO, at) == [], at


def test_plan_asks_by_the_zone_whether_the_day_has_changed(site: Site) -> None:
    site.run("INSERT INTO e SELECT n, 0, n, now() + n * interval '1 hour' FROM generate_series(-60, 60) n")
    query = "SELECT id FROM e WHERE at::date = current_date"
    east, west = "Pacific/Kiritimati", "Pacific/Pago_Pago"  # at each instant it is another day, or just after midnight
    for name, zone in {"east": east, "west": west, "utc": None}.items():
        site.declare(name, query, timezone=zone, refresh_mode="DIFFERENTIAL")
    now = site.rows("SELECT clock_timestamp()")[0][0]

    def work(*names: str) -> set[str]:
        with site.client.database.transaction() as conn:
            found = readiness.read(conn, [f"public.{name}" for name in names])
        return {name for name in names if found[f"public.{name}"].has_work}

    for hours in range(0, 49, 4):
        at = now - timedelta(hours=hours)
        wanted = set()
        for name, zone in {"east": east, "west": west, "utc": None}.items():
            moved(site, name, at=at)
            before, after = (differs(site, name, query, zone, t) for t in (at, site.rows("SELECT now()")[0][0]))
            assert before == []
            wanted |= {name} if after else set()
        assert work("east", "west", "utc") == wanted


def test_rows_that_the_clock_moves_are_found_by_the_index_in_a_zone(site: Site) -> None:
    site.run(
        "INSERT INTO e SELECT n, 0, n, now() + n * interval '1 min' FROM generate_series(-9999, 9999) n", "ANALYZE e"
    )
    declare(site, "st", "SELECT id FROM e WHERE at > now() - interval '3 days'", OSLO, datetime.now(UTC))
    (probe,) = site.rows("SELECT clock_probe FROM pgtrickle.pgt_stream_tables")[0]
    clock = "(SELECT now() - interval '5 min' AS old, now() AS new) AS \"__pgt_clock\""
    probed = "\n".join(line for (line,) in site.rows(f"EXPLAIN SELECT {probe} FROM {clock}"))
    moved(site, "st", at=datetime.now(UTC) + timedelta(minutes=5))
    history = records.history(site.conn, records.get(site.conn, QualifiedName("public", "st")).id, 1)
    statement = str(history[0].plan).split(":\n", 1)[1]
    computed = "\n".join(line for (line,) in site.rows(f"EXPLAIN {statement}"))
    assert history[0].action == "DIFFERENTIAL"
    for plan in (probed, computed):
        assert "Index Scan" in plan
        assert "Seq Scan on e" not in plan


def test_writers_maintain_by_the_zone_and_not_by_their_own(site: Site) -> None:
    query = "SELECT at::date AS day, count(*) AS n, sum(v) AS s FROM e GROUP BY at::date"
    keyed = "SELECT id, at, date_trunc('day', at) AS begins, to_char(at, 'DD HH24') AS said FROM e"
    counted = "SELECT day, n FROM sums WHERE n > 1"
    chance = random.Random(6)
    filled(site, chance)
    found = {"sums": (query, OSLO), "rows": (keyed, ST_JOHNS), "utc": (query, None), "many": (counted, NEW_YORK)}
    for name, (text, zone) in found.items():
        site.declare(name, text, refresh_mode="IMMEDIATE", timezone=zone)

    def is_right() -> None:
        for name, (text, zone) in found.items():
            assert differs(site, name, text, zone, BEGINS) == [], name

    for number, at in enumerate(instants(chance, 30)):
        site.run(f"SET TimeZone = '{chance.choice(ZONES)}'", *changes(chance, at))
        if number % 10 == 9:
            site.run("BEGIN", *changes(chance, at), *changes(chance, at), "COMMIT", "TRUNCATE e", *changes(chance, at))
        is_right()
    found["sums"] = (query, KOLKATA)
    assert site.client.alter_stream_table("sums", timezone=KOLKATA).is_live
    is_right()
    site.run(*changes(chance, BEGINS))
    is_right()
    assert site.client.verify().differences == 0


@pytest.mark.parametrize(
    ("zone", "sentence"),
    [
        ("Europe/Olso", r"PostgreSQL knows no time zone 'Europe/Olso'. Did you mean Europe/Oslo\?"),
        ("europe/oslo", "Did you mean Europe/Oslo"),
        ("UTC+2", "PostgreSQL knows no time zone 'UTC\\+2'"),
        ("'; DROP TABLE e; --", "Use a name from its view pg_timezone_names, such as Europe/Oslo"),
    ],
)
def test_a_zone_that_postgresql_does_not_know_is_refused(site: Site, zone: str, sentence: str) -> None:
    for declare_ in (
        lambda: site.declare("st", "SELECT id FROM e", timezone=zone),
        lambda: site.client.validate_query("SELECT id FROM e", timezone=zone),
    ):
        with pytest.raises(UsageError, match=sentence):
            declare_()
    site.declare("st", "SELECT id FROM e", timezone="utc")
    with pytest.raises(UsageError, match=sentence):
        site.client.alter_stream_table("st", timezone=zone)
    assert site.rows("SELECT timezone FROM pgtrickle.pgt_stream_tables") == [(None,)]


def test_a_time_of_day_has_the_present_day_s_offset_in_a_zone(site: Site) -> None:
    """The cast asks for today's date behind the query's back, so no difference could follow it."""
    query = "SELECT id FROM e WHERE local::time::timetz < current_time"
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    with pytest.raises(NotDifferentiable, match="clock or the session"):
        site.declare("zoned", query, refresh_mode="DIFFERENTIAL", timezone=OSLO)


def test_explain_says_the_zone(site: Site) -> None:
    site.declare("st", QUERIES["today"], timezone=OSLO)
    told = site.client.explain_st("st")
    assert ("times", f"by {OSLO}") in told.facts
    assert f"times: by {OSLO}" in str(told)
    assert "times" not in dict(site.client.validate_query(QUERIES["today"]).facts)
    assert dict(site.client.validate_query(QUERIES["today"], timezone=OSLO).facts)["times"] == f"by {OSLO}"
    assert site.rows("SELECT summary LIKE '%%by Europe/Oslo%%' FROM pgtrickle.pgt_stream_tables") == [(True,)]
    assert site.rows("SELECT timezone FROM pgtrickle.stream_tables_info") == [(OSLO,)]


def test_sessions_are_left_as_they_were(site: Site) -> None:
    """The session that a refresh keeps has UTC again, also after a query that fails; a zone in a zone ends alone."""
    site.run("INSERT INTO e VALUES (1, 0, 1, now())")
    site.declare("st", "SELECT id, 1 / v AS x, at::date AS d FROM e", timezone=OSLO, refresh_mode="FULL")
    site.run("UPDATE e SET v = 0")
    with pytest.raises(PgTrickleError, match="ivision by zero"):
        site.refresh("st")
    with site.client.database.session() as conn:
        assert shown(conn) == "UTC"
        with conn.transaction(), in_zone(conn, OSLO):
            with in_zone(conn, KOLKATA):
                assert shown(conn) == KOLKATA
            assert shown(conn) == OSLO
            with in_zone(conn, None):
                assert shown(conn) == "UTC"
            with suppress(psycopg.Error), conn.transaction(), in_zone(conn, KOLKATA):
                conn.execute("SELECT 1 / 0")
            assert shown(conn) == OSLO
        with in_zone(conn, OSLO):
            assert shown(conn) == OSLO
        assert shown(conn) == "UTC"


def shown(conn: psycopg.Connection[Any]) -> str:
    row = conn.execute("SHOW TimeZone").fetchone()
    assert row is not None
    return str(row[0])
