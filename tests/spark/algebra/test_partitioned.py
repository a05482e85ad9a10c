"""Partitioned stream tables through Spark, by each of its ways: partitions are made, pruned and dropped as ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from tests.database.reported.conftest import Site
from tests.ways import prefer

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
TABLES = """
CREATE TABLE c (id int PRIMARY KEY, name text);
CREATE TABLE e (id int PRIMARY KEY, c int, v numeric, at timestamptz, region text);
INSERT INTO c SELECT n, 'c' || n % 5 FROM generate_series(1, 40) n;
INSERT INTO e SELECT n, n % 41, n % 9, timestamptz '2026-03-28 12:00+00' - n * interval '3 hours',
    (ARRAY['eu', 'us', 'a b', '', NULL])[1 + n % 5] FROM generate_series(1, 1200) n;
ANALYZE
"""
MONTHS: dict[str, Any] = {"partition_by": "RANGE (at)", "partition_every": "1 month"}
#: By name: the query, how it is partitioned, and what of it is kept.
PARTED: dict[str, tuple[str, dict[str, Any]]] = {
    "kept": ("SELECT id, at, v FROM e", {**MONTHS, "keep": "2 months"}),
    "joined": ("SELECT e.id, e.at, c.name, e.v FROM e JOIN c ON c.id = e.c", {**MONTHS, "keep": "2 months"}),
    "regions": ("SELECT id, region, v FROM e", {"partition_by": "LIST (region)", "partition_every": "value"}),
    "hashed": ("SELECT e.id, c.name, e.region FROM e JOIN c ON c.id = e.c", {"partition_by": "HASH (id)"}),
    "sums": (
        "SELECT c.name, e.region, count(*) AS n, sum(e.v) AS s FROM e JOIN c ON c.id = e.c GROUP BY c.name, e.region",
        {"partition_by": "LIST (region)", "partition_every": "value"},
    ),
    "hundreds": ("SELECT id, c, region FROM e", {"partition_by": "id", "partition_every": "300"}),
}
#: How long after the last one a refresh is, and what changed since: more than one reader takes.
CYCLES = (
    (
        timedelta(0),
        "INSERT INTO e SELECT n, n % 40, 1, timestamptz '2026-04-20' + n % 50 * interval '1 day', 'r' || n % 3"
        " FROM generate_series(2001, 2200) n; UPDATE c SET name = 'z' WHERE id % 3 = 0",
    ),
    (
        timedelta(days=4),
        "UPDATE e SET at = at - interval '40 days', region = 'eu', v = v + 1 WHERE id % 3 = 0;"
        "UPDATE e SET at = NULL, region = NULL WHERE id % 41 = 0; DELETE FROM e WHERE region = 'us'",
    ),
    (
        timedelta(days=-1),
        "UPDATE e SET id = id + 5000, at = at + interval '1 year' WHERE id % 5 = 1; DELETE FROM c WHERE id % 2 = 0",
    ),
)


def within(name: str, at: datetime) -> str:
    """The query's rows that are kept, by PostgreSQL alone."""
    query, options = PARTED[name]
    if "keep" not in options:
        return query
    return (
        f"SELECT * FROM ({query}) AS q WHERE q.at >="
        f" date_trunc('month', timestamp '{at:%Y-%m-%d %H:%M}' - interval '{options['keep']}') AT TIME ZONE 'UTC'"
    )


def members(site: Site, name: str) -> set[str]:
    rows = site.rows(f"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = '{name}'::regclass")
    return {member for (member,) in rows}


@pytest.mark.parametrize(
    ("kind", "small"), [("spark", False), ("connect", True)], ids=["to the driver", "to the stage"]
)
def test_partitions_follow_what_spark_computes(
    request: pytest.FixtureRequest, dsn: str, kind: str, small: bool
) -> None:
    limits: dict[str, Any] = {"collect_max_rows": 5, "read_partition_rows": 20, "max_read_partitions": 4}
    settings = limits if small else {}
    spark = request.getfixturevalue(kind)
    ways: dict[str, set[tuple[Any, Any]]] = {name: set() for name in PARTED}
    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        PgTrickle(dsn, spark, differential_max_change_ratio=0.0, placement="spark", **settings) as pt,
    ):
        pt.install()
        site = Site(conn, pt)
        site.run(TABLES)

        def refresh(name: str, at: datetime, **options: Any) -> RefreshResult:
            (result,) = refresh_unit(
                pt.database,
                [QualifiedName("public", name)],
                executor=lambda: pt._usable_executor(),
                settings=pt.settings,
                instant=at,
                **options,
            ).values()
            return result

        def follows(name: str, at: datetime, **options: Any) -> RefreshResult:
            result = refresh(name, at, **options)
            assert site.differs(name, within(name, at)) == [], (name, at)
            ways[name].add((result.action, result.way))
            return result

        at = NOON
        for name, (query, options) in PARTED.items():
            site.declare(name, query, refresh_mode="DIFFERENTIAL", initialize=False, **options)
            assert follows(name, at).action == "FULL"
        site.declare("above", "SELECT count(*) AS n FROM kept", initialize=False)
        refresh("above", at)
        is_january_there = []
        for moves, changes in CYCLES:
            at += moves
            site.run(changes)
            for name in PARTED:
                assert follows(name, at).action == "DIFFERENTIAL", (name, at)
            # It gets what left with a dropped partition, too.
            assert refresh("above", at).action == "DIFFERENTIAL"
            assert site.rows("SELECT n = (SELECT count(*) FROM kept) FROM above") == [(True,)]
            is_january_there.append("kept_2026_01" in members(site, "kept"))
        assert is_january_there == [True, False, True]
        assert pt.verify(refresh=False).differences == 0
        site.run("UPDATE e SET at = at + interval '3 months', region = 'new', v = -v WHERE id % 2 = 0")
        for name in PARTED:
            if not small:
                prefer(conn, name, "lowered")
            assert follows(name, at, force_full=True).action == "FULL"
            # The whole content meets the stored rows, and there is nothing to write.
            same = follows(name, at, force_full=True)
            assert (same.action, same.rows_inserted + same.rows_updated + same.rows_deleted) == ("FULL", 0), name
        assert "kept_2026_06" in members(site, "kept")
        assert "regions_new" in members(site, "regions")
    taken = set().union(*ways.values())
    assert {("DIFFERENTIAL", "pushed"), ("FULL", "pushed")} <= taken
    assert {("DIFFERENTIAL", "sliced"), ("FULL", "sliced")} <= taken if small else ("FULL", "lowered") in ways["joined"]
