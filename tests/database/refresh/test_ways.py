"""Ways of Spark compete by what they took. What its tasks would run is run here, or left to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import OutOfTime, PgTrickleWarning
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, PostgresExecutor, Staged, StageTarget
from airflow_provider_pgtrickle.engine.settings import RETIRED, Settings
from tests.ways import prefer

TABLES = """
CREATE TABLE t (id int PRIMARY KEY, g int, v int);
CREATE TABLE names (g int PRIMARY KEY, name text);
INSERT INTO t SELECT i, i % 7, i FROM generate_series(1, 2000) i;
INSERT INTO names SELECT i, 'g' || i FROM generate_series(0, 6) i;
ANALYZE;
"""
TOTALS = "SELECT n.name, count(*) AS n, sum(t.v) AS s FROM t JOIN names n USING (g) GROUP BY n.name"
RANKS = "SELECT id, rank() OVER (ORDER BY v) AS r FROM t"


@dataclass
class Watched:
    """Computes in PostgreSQL, and keeps what it was asked. `slow`: its differences take longer than they may."""

    database: Database
    asked: list[Computation] = field(default_factory=list)
    slow: bool = False

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        self.asked.append(computation)
        if self.slow and computation.limit_ms is not None:
            raise OutOfTime("It takes too long")
        return PostgresExecutor(self.database).compute(snapshot_id, computation, stage)


@pytest.fixture
def watched(any_dsn: str) -> Watched:
    return Watched(Database(any_dsn))


@pytest.fixture
def pt(any_dsn: str, watched: Watched) -> Iterator[PgTrickle]:
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute(TABLES)
    with PgTrickle(any_dsn, executor=lambda: watched, read_partition_rows=100, keep_parts=False) as made:
        made.install()
        yield made


def test_a_content_is_one_statement_unless_spark_was_faster(pt: PgTrickle, watched: Watched, any_dsn: str) -> None:
    pt.create_stream_table("totals", TOTALS)
    (first,) = pt.history("totals", 1)
    assert (first["way"], sorted(first["candidates"])) == ("pushed", ["FULL lowered", "FULL pushed"])
    assert watched.asked[-1].spark is None
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        prefer(conn, "totals", "lowered")
    assert pt.refresh_stream_table("totals", force_full=True).way == "lowered"
    plan = watched.asked[-1].spark
    assert plan is not None
    assert max(len(leaf.statements) for leaf in plan.leaves) > 1


def test_what_spark_cannot_compute_stays_one_statement(pt: PgTrickle, watched: Watched, any_dsn: str) -> None:
    pt.create_stream_table("ranks", RANKS, refresh_mode="FULL")
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        prefer(conn, "ranks", "lowered")
    assert pt.refresh_stream_table("ranks", force_full=True).way == "pushed"
    assert watched.asked[-1].spark is None
    assert pt.history("ranks", 1)[0]["candidates"] is None


def test_a_change_is_never_lowered(pt: PgTrickle, watched: Watched, any_dsn: str) -> None:
    pt.create_stream_table("totals", TOTALS, refresh_mode="DIFFERENTIAL", differential_max_change_ratio=0.0)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        prefer(conn, "totals", "lowered", whole=False)
        conn.execute("UPDATE t SET v = v + 1")
    done = pt.refresh_stream_table("totals")
    assert (done.action, done.way, watched.asked[-1].spark) == ("DIFFERENTIAL", "pushed", None)
    assert pt.verify("totals").differences == 0


def test_a_difference_that_spark_takes_too_long_for_is_given_up_once(
    pt: PgTrickle, watched: Watched, any_dsn: str
) -> None:
    pt.create_stream_table("totals", TOTALS)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute("UPDATE t SET v = v + 1 WHERE id < 20")
        watched.slow = True
        done = pt.refresh_stream_table("totals")
        assert (done.action, done.fallback_reason) == ("FULL", "predicted_cheaper")
        (last,) = pt.history("totals", 1)
        assert last["given_up_way"] == "pushed"
        assert last["given_up_ms"] > 0
        # As if it had taken a minute: then it isn't tried again.
        conn.execute("UPDATE pgtrickle.pgt_refresh_history SET given_up_ms = 60000 WHERE given_up_ms IS NOT NULL")
        conn.execute("UPDATE t SET v = v + 1 WHERE id < 20")
        before = len(watched.asked)
        assert pt.refresh_stream_table("totals").action == "FULL"
        assert len(watched.asked) == before + 1
    assert pt.verify("totals").differences == 0


def test_mode_differential_has_no_limit_on_spark(pt: PgTrickle, watched: Watched, any_dsn: str) -> None:
    pt.create_stream_table("totals", TOTALS, refresh_mode="DIFFERENTIAL")
    watched.slow = True
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute("UPDATE t SET v = v + 1 WHERE id < 20")
    assert pt.refresh_stream_table("totals").action == "DIFFERENTIAL"


@pytest.mark.parametrize("name", sorted(RETIRED))
def test_a_setting_of_an_earlier_release_is_told_and_ignored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(PgTrickleWarning, match=f"^Setting {name} is ignored: .+ Take the setting out.$"):
        assert Settings.load(**{name: 7}) == Settings()
    monkeypatch.setenv(f"PGTRICKLE_{name.upper()}", "5")
    with pytest.warns(PgTrickleWarning, match=name):
        assert Settings.load() == Settings()
