"""The clock is a source: what it lets in and out is found by differences, wherever a value is compared with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_pgtrickle.engine.dvm.split import splits
from tests.oracle.arena import Case
from tests.oracle.declare import declare
from tests.oracle.harness import Maintained, Refused

NewCase = Callable[..., AbstractContextManager[Case]]

RECENT = "SELECT id, g, v, at FROM e WHERE at > now() - interval '3 days'"
TABLES = (
    "CREATE TABLE e (id int PRIMARY KEY, g int, v int, at timestamptz, day date, local timestamp, hour time)",
    "CREATE TABLE o (id int PRIMARY KEY, g int, from_at timestamptz, to_at timestamptz)",
    "CREATE TABLE s (id int PRIMARY KEY, span tstzrange, days daterange, locally tsrange)",
    f"CREATE VIEW recent AS {RECENT}",
    "CREATE INDEX ON e (at)",
)
BEGINS = datetime(2026, 2, 20, tzinfo=UTC)

QUERIES = {
    "window": "SELECT id, at FROM e WHERE at > now() - interval '7 days'",
    "between": "SELECT id FROM e WHERE at BETWEEN now() - interval '1 month' AND now() + interval '2 days'",
    "both bounds": "SELECT id FROM e WHERE at >= current_timestamp - interval '1 month 3 days' AND at < now()",
    "month back": "SELECT id FROM e WHERE at > now() - interval '1 month'",
    "month ahead": "SELECT id FROM e WHERE at <= now() + interval '1 month'",
    "day": "SELECT id, v FROM e WHERE day >= current_date - 3",
    "today": "SELECT id, v FROM e WHERE day = current_date",
    "not today": "SELECT id, v FROM e WHERE day <> current_date OR day IS DISTINCT FROM current_date - 1",
    "local": "SELECT id FROM e WHERE local < localtimestamp AND local > localtimestamp - interval '40 hours'",
    "listed": "SELECT id FROM e WHERE day IN (current_date, current_date - 1, date '2026-03-01') AND v > 1",
    "not listed": "SELECT id, day NOT IN (current_date, current_date + 1) AS other FROM e",
    "listed under case": "SELECT id, CASE WHEN day IN (current_date, NULL) THEN v END AS v FROM e",
    "listed beside a column": "SELECT id FROM e WHERE day = ANY (ARRAY[current_date, local::date])",
    "within a range": "SELECT id FROM s WHERE span @> now()",
    "ranges": "SELECT id, now() - interval '1 month' <@ span AS then, days @> current_date AS today,"
    " NOT locally @> localtimestamp AS out FROM s",
    "overlaps": "SELECT id FROM o"
    " WHERE (from_at, to_at) OVERLAPS (now() - interval '1 day', now() + interval '1 month')",
    "overlaps, shown": "SELECT id, (from_at, to_at) OVERLAPS (now(), now()) AS here,"
    " (now(), interval '-2 days') OVERLAPS (to_at, from_at) AS near, NOT (from_at, interval '36 hours') OVERLAPS"
    " (now(), timestamptz '2026-03-01') AS far FROM o",
    "overlaps, other types": "SELECT id, (day, day + 1) OVERLAPS (current_date, current_date - 2) AS d,"
    " (local, interval '1 month') OVERLAPS (localtimestamp, interval '1 day') AS l,"
    " (hour, time '12:00') OVERLAPS (localtime, time '10:00') AS h FROM e",
    "hour": "SELECT id FROM e WHERE hour < localtime",
    "cast": "SELECT id FROM e WHERE at::date = now()::date",
    "truncated": "SELECT id FROM e WHERE date_trunc('month', at) = date_trunc('month', now())",
    "zone": "SELECT id FROM e"
    " WHERE (at AT TIME ZONE 'Europe/Berlin')::date = (now() AT TIME ZONE 'Europe/Berlin')::date",
    "zone's midnight": "SELECT id FROM e WHERE at >= date_trunc('day', now(), 'America/New_York') - interval '1 day'",
    "mixed types": "SELECT id FROM e WHERE at >= current_date - 2 AND day < now()",
    "number": "SELECT id FROM e WHERE extract(day FROM at) = extract(day FROM now())",
    "constant": "SELECT id FROM e WHERE extract(hour FROM now()) < 12 AND v > 1",
    "or": "SELECT id FROM e WHERE v > 5 OR at > now()",
    "not": "SELECT id FROM e WHERE NOT (at > now() AND v > 3)",
    "case": "SELECT id,"
    " CASE WHEN at > now() THEN 'future' WHEN day = current_date THEN 'today' ELSE 'past' END AS w FROM e",
    "null test": "SELECT id, (at > now()) IS NULL AS unknown, at > now() AS ahead FROM e",
    "filter clause": "SELECT g, count(*) FILTER (WHERE at > now() - interval '1 day') AS n, sum(v) AS s"
    " FROM e GROUP BY g",
    "sum": "SELECT g, sum(v) AS s, count(*) AS n, min(v) AS low, max(v) AS high FROM e"
    " WHERE at > now() - interval '7 days' GROUP BY g",
    "total": "SELECT sum(v) AS s, count(*) AS n FROM e WHERE at > now() - interval '1 month'",
    "group by": "SELECT at > now() AS ahead, count(*) AS n FROM e GROUP BY at > now()",
    "having": "SELECT g, max(at) AS last FROM e GROUP BY g HAVING max(at) > now() - interval '2 days'",
    "distinct": "SELECT DISTINCT g FROM e WHERE at < now()",
    "join": "SELECT e.id, o.id AS o FROM e JOIN o ON o.g = e.g AND e.at > now() AND o.to_at > now()"
    " WHERE o.from_at <= now()",
    "join of two": "SELECT e.id, o.id AS o FROM e JOIN o ON o.g = e.g AND e.at + (o.to_at - o.from_at) > now()",
    "left join": "SELECT e.id, o.id AS o FROM e LEFT JOIN o ON o.g = e.g AND o.to_at > now() AND e.at < now()",
    "left join, then": "SELECT e.id, o.id AS o FROM e LEFT JOIN o ON o.g = e.g WHERE coalesce(o.to_at, e.at) > now()",
    "full join": "SELECT e.id, o.id AS o FROM (SELECT * FROM e WHERE at < now()) e FULL JOIN"
    " (SELECT * FROM o WHERE to_at > now()) o ON o.g = e.g",
    "exists": "SELECT id FROM e WHERE EXISTS (SELECT 1 FROM o WHERE o.g = e.g AND now() BETWEEN o.from_at AND o.to_at)",
    "not exists": "SELECT id FROM e"
    " WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.g = e.g AND o.to_at > now() AND e.at > now())",
    "in": "SELECT id FROM e WHERE g IN (SELECT g FROM o WHERE to_at > now()) AND at > now() - interval '1 month'",
    "scalar": "SELECT id, (SELECT count(*) FROM o WHERE o.g = e.g AND o.to_at > now()) AS n FROM e",
    "subquery under or": "SELECT id FROM e WHERE v > 7 OR EXISTS (SELECT 1 FROM o WHERE o.g = e.g AND o.to_at > now())",
    "union": "SELECT id FROM e WHERE at > now() UNION SELECT id FROM o WHERE to_at < now()",
    "except": "SELECT g FROM e EXCEPT ALL SELECT g FROM o WHERE to_at < now()",
    "with": "WITH r AS (SELECT g, v FROM e WHERE at > now()) SELECT a.g, b.v FROM r a JOIN r b ON a.g = b.g",
    "view": "SELECT r.id, o.id AS o FROM recent r JOIN o ON o.g = r.g WHERE o.to_at > now()",
    "window function": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY at, id) AS n FROM e WHERE at > now()",
    "lateral": "SELECT e.id, x.n FROM e, LATERAL (SELECT count(*) AS n FROM o WHERE o.g = e.g AND o.to_at > now()) x",
    "topk": "SELECT id, at FROM e WHERE at < now() ORDER BY at DESC NULLS LAST, id LIMIT 3",
    "limit below": "SELECT count(*) AS n FROM (SELECT id FROM e WHERE at < now() ORDER BY at, id LIMIT 4) x",
    "recursion": "WITH RECURSIVE r AS (SELECT id, v FROM e WHERE at > now()"
    " UNION SELECT e.id, e.v FROM e JOIN r ON e.id = r.v) SELECT id, v FROM r",
}


def instants(chance: random.Random, number: int) -> list[str]:
    """Times through months of several lengths and both changes of European time; now and then the clock goes back."""
    found, at = [], BEGINS
    for _ in range(number):
        at += chance.choice(
            [
                timedelta(seconds=chance.random()),
                timedelta(minutes=chance.randrange(90)),
                timedelta(hours=chance.randrange(30)),
                timedelta(days=chance.randrange(12)),
                timedelta(days=-chance.randrange(5), hours=-3),
                timedelta(0),
            ]
        )
        found.append(at.isoformat())
    return found


def changes(chance: random.Random, around: str) -> list[str]:
    """A few rows near an instant come, go and move; some are exactly at what a query compares, and some are NULL."""

    def near() -> str:
        if chance.random() < 0.1:
            return "NULL"
        offset = chance.choice(
            ["0 s", "1 day", "-7 days", "1 month", "-1 month", f"{chance.randrange(-800, 800)} hours"]
        )
        return f"('{around}'::timestamptz + interval '{offset}')"

    def event(number: int) -> str:
        at, g, v = near(), chance.randrange(4), chance.randrange(10)
        return f"({number}, {g}, {v}, {at}, {at}::date, {near()}::timestamp, {near()}::time)"

    def span(kind: str) -> str:
        if chance.random() < 0.2:
            return chance.choice([f"'empty'::{kind}range", "NULL", f"{kind}range(NULL, NULL)"])
        cast = {"tstz": "timestamptz", "date": "date", "ts": "timestamp"}[kind]
        bounds = ", ".join(f"{end}({near()}::{cast}, {near()}::{cast})" for end in ("least", "greatest"))
        lower = chance.choice(
            [bounds, bounds, bounds.split(", greatest")[0] + ", NULL", "NULL" + bounds[bounds.index(", gre") :]]
        )
        return f"{kind}range({lower}, '{chance.choice(['[]', '[)', '(]', '()'])}')"

    number = chance.randrange(40)
    return chance.sample(
        [
            f"INSERT INTO e VALUES {event(number)} ON CONFLICT (id) DO UPDATE SET at = excluded.at, v = excluded.v",
            f"INSERT INTO e VALUES {event(chance.randrange(40))} ON CONFLICT DO NOTHING",
            f"UPDATE e SET at = {near()}, g = {chance.randrange(4)} WHERE id % 7 = {chance.randrange(7)}",
            f"UPDATE e SET day = {near()}::date, local = {near()}::timestamp WHERE id = {chance.randrange(40)}",
            f"DELETE FROM e WHERE id = {chance.randrange(40)}",
            f"INSERT INTO o VALUES ({number % 9}, {chance.randrange(4)}, {near()}, {near()})"
            " ON CONFLICT (id) DO UPDATE SET from_at = excluded.from_at, to_at = excluded.to_at",
            f"DELETE FROM o WHERE id = {chance.randrange(9)}",
            f"INSERT INTO s VALUES ({number % 19}, {span('tstz')}, {span('date')}, {span('ts')})"
            " ON CONFLICT (id) DO UPDATE SET span = excluded.span, days = excluded.days, locally = excluded.locally",
            f"DELETE FROM s WHERE id = {chance.randrange(19)}",
        ],
        chance.randrange(4),
    )


@pytest.mark.parametrize("what", QUERIES)
def test_the_clock_moves_through_many_instants(new_case: NewCase, what: str) -> None:
    chance = random.Random(what)
    with new_case(*TABLES) as case:
        for _ in range(12):
            case.change(*changes(chance, BEGINS.isoformat()))
        spelled = QUERIES[what].replace("recent r", f"({RECENT}) r")
        st = Maintained.create(case, QUERIES[what], instant=BEGINS.isoformat(), spelled=spelled)
        for instant in instants(chance, 70):
            case.change(*changes(chance, instant))
            assert st.refresh(instant=instant) == ("TOPK" if what == "topk" else "DIFFERENTIAL")


ZONES = ("Europe/Oslo", "America/New_York", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")


@pytest.mark.parametrize("what", QUERIES)
def test_the_clock_moves_in_a_zone_of_its_own(new_case: NewCase, what: str) -> None:
    chance = random.Random(f"{what} in a zone")
    with new_case(*TABLES) as case:
        case.execute(f"SET LOCAL TimeZone = '{chance.choice(ZONES)}'")
        for _ in range(12):
            case.change(*changes(chance, BEGINS.isoformat()))
        spelled = QUERIES[what].replace("recent r", f"({RECENT}) r")
        st = Maintained.create(case, QUERIES[what], instant=BEGINS.isoformat(), spelled=spelled)
        for instant in instants(chance, 60):
            case.change(*changes(chance, instant))
            assert st.refresh(instant=instant) == ("TOPK" if what == "topk" else "DIFFERENTIAL")


SKIPPED = (
    "SELECT id FROM e WHERE at > localtimestamp - interval '{}'",
    "SELECT id FROM e WHERE at <= localtimestamp - interval '{}' OR at = date_trunc('hour', localtimestamp)",
    "SELECT id FROM e WHERE local > now() - interval '{}'",
    "SELECT g, count(*) AS n FROM e WHERE local BETWEEN now() - interval '{}' AND now() GROUP BY g",
    "SELECT id FROM e WHERE at >= current_date AND local < current_date + 1 AND day < now() - interval '{}'",
)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("query", SKIPPED)
def test_local_times_that_a_zone_skips_or_repeats(new_case: NewCase, query: str, zone: str) -> None:
    """Around each change of a zone's clock, minute by minute, with rows at all times around it."""
    chance, back = random.Random(f"{query} {zone}"), "1 day"
    turns = ["2026-03-08T07", "2026-03-29T01", "2026-04-04T15", "2026-10-25T01", "2026-11-01T06", "2011-12-30T10"]
    with new_case(*TABLES) as case:
        case.execute(f"SET LOCAL TimeZone = '{zone}'")
        turn = datetime.fromisoformat(f"{chance.choice(turns)}:00:00+00:00")
        rows = "SELECT n, n % 3, n, t, t::date, t::timestamp FROM generate_series(-80, 80) n, LATERAL"
        times = f"(SELECT timestamptz '{turn.isoformat()}' + n * interval '5 min' AS t) x"
        case.change(f"INSERT INTO e {rows} {times}")
        case.change(
            "INSERT INTO e SELECT 1000 + n, n % 3, n, NULL, NULL, t FROM generate_series(-80, 80) n, LATERAL"
            f" (SELECT (timestamptz '{turn.isoformat()}')::timestamp + n * interval '5 min' AS t) x"
        )
        at = turn + timedelta(hours=chance.choice((-2, 22)))
        st = Maintained.create(case, query.format(back), instant=at.isoformat())
        for _ in range(25):
            at += timedelta(minutes=chance.choice((1, 7, 20, 35, 61, -25, -90, 1380)))
            assert st.refresh(instant=at.isoformat()) == "DIFFERENTIAL"


IN_PARTS = (
    QUERIES["having"],
    "SELECT g, count(DISTINCT v) FILTER (WHERE at > now() - interval '5 days') AS n, count(*) AS c FROM e GROUP BY g",
    "SELECT g, count(DISTINCT v) AS n, max(at) AS last FROM e WHERE at < now() GROUP BY g"
    " HAVING max(at) > now() - interval '2 days' OR count(DISTINCT v) = (SELECT count(*) FROM o WHERE to_at > now())",
    "SELECT count(DISTINCT g) AS n FROM e WHERE at > now() HAVING min(at) < now() + interval '3 days'",
)


@pytest.mark.parametrize("query", IN_PARTS)
def test_filtered_groups_and_values_are_parts_that_follow_the_clock(new_case: NewCase, query: str) -> None:
    chance, now = random.Random(query), BEGINS.isoformat()
    with new_case(*TABLES) as case:
        case.change(*changes(chance, now))
        maintained: list[Maintained] = []
        rest = query
        while (declared := declare(case.conn, case.schema, rest)) and (
            split := next(splits(declared.canonical, declared.schema), None)
        ):
            names = [f"part_{len(maintained) + number}" for number in range(len(split.parts))]
            for text, name in zip(split.parts, names, strict=True):
                maintained.append(Maintained.create(case, text, name=name, instant=now))
            case.capture()
            rest = split.outer(*((case.schema, name) for name in names))
        outer = Maintained.create(case, rest, name="st_outer", instant=now)
        outer.query = query
        for instant in instants(chance, 25):
            case.change(*changes(chance, instant))
            for part in maintained:
                part.refresh(instant=instant)
            assert outer.refresh(instant=instant) == "DIFFERENTIAL"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, now() AS read_at FROM e",
        "SELECT id FROM e WHERE now() - at < interval '7 days'",
        "SELECT id FROM e WHERE age(now(), at) < interval '7 days'",
        "SELECT id, current_date - day AS days FROM e",
        "SELECT id FROM e WHERE to_char(at, 'YYYY') = to_char(now(), 'YYYY')",
        "SELECT id, CASE WHEN v <> 0 THEN at + interval '1 day' / v > now() END AS late FROM e",
    ],
)
def test_other_uses_are_refused_with_what_they_are(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case, pytest.raises(Refused, match="computes with the clock"):
        Maintained.create(case, query)
