"""A difference that takes far longer than FULL would is given up, once, and the content is right all the same."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh import cost, plan

ROWS = 40_000
TOTALS = "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g"


@pytest.fixture
def client(any_dsn: str) -> Iterator[PgTrickle]:
    with PgTrickle(any_dsn, placement="database", keep_parts=False) as pt:
        pt.install()
        with psycopg.connect(any_dsn, autocommit=True) as conn:
            conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
            conn.execute("INSERT INTO t SELECT i, i %% 5000, i FROM generate_series(1, %s) i", (ROWS,))
            conn.execute("ANALYZE t")
        yield pt


def _change(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("UPDATE t SET v = v + 1 WHERE id % 8 = 0")


def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No difference of thousands of rows is there within a millisecond."""
    monkeypatch.setattr(cost, "_GIVEN_UP_MS", 0.5)
    monkeypatch.setattr(cost, "_GIVEN_UP_BY", 0.0)


def _given_up(dsn: str, name: str) -> list[float | None]:
    with psycopg.connect(dsn) as conn:
        found = conn.execute(
            "SELECT given_up_ms FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
            " WHERE pgt_name = %s ORDER BY refresh_id",
            (name,),
        )
        return [ms for (ms,) in found]


def test_it_is_given_up_for_full_and_the_history_says_so(
    client: PgTrickle, any_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_stream_table("totals", TOTALS)
    _change(any_dsn)
    with monkeypatch.context() as hurried:
        _hurry(hurried)
        done = client.refresh_stream_table("totals")
    assert (done.action, done.fallback_reason) == ("FULL", "predicted_cheaper")
    assert client.verify("totals").differences == 0
    first, last = _given_up(any_dsn, "totals")
    assert first is None
    assert last is not None
    assert last > 0


def test_what_was_given_up_is_not_tried_again_soon(client: PgTrickle, any_dsn: str) -> None:
    client.create_stream_table("totals", TOTALS)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET given_up_ms = 600000, source_changes = 10000, candidates = '{}'"
        )
    _change(any_dsn)
    done = client.refresh_stream_table("totals")
    assert (done.action, done.fallback_reason) == ("FULL", "predicted_cheaper")
    assert _given_up(any_dsn, "totals")[-1] is None
    assert client.verify("totals").differences == 0


def test_a_later_table_of_the_unit_reads_the_change_all_the_same(
    client: PgTrickle, any_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_stream_table("totals", TOTALS)
    client.create_stream_table("large", "SELECT g, s FROM totals WHERE n > 1 AND s % 2 = 0")
    _change(any_dsn)
    with monkeypatch.context() as hurried:
        _hurry(hurried)
        done = client.refresh(["totals", "large"])
    assert done["totals"].action == "FULL"
    assert client.verify("large").differences == client.verify("totals").differences == 0


def test_what_postgresql_expects_far_more_of_than_of_full_is_not_even_tried(
    client: PgTrickle, any_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("totals", "tried"):
        client.create_stream_table(name, TOTALS)
    _change(any_dsn)
    assert client.refresh_stream_table("tried").action == "DIFFERENTIAL"
    _change(any_dsn)
    monkeypatch.setattr(cost, "_ASKED_MS", 0.0)
    monkeypatch.setattr(cost, "_ESTIMATED_BY", 1e-6)
    monkeypatch.setattr(plan, "LARGE_ESTIMATE", 0.0)
    done = client.refresh_stream_table("totals")
    assert (done.action, done.fallback_reason) == ("FULL", "predicted_cheaper")
    assert _given_up(any_dsn, "totals") == [None, None]
    assert client.history("totals", 1)[0]["doubt"] > 0
    # What was measured counts more than any estimate.
    assert client.refresh_stream_table("tried").action == "DIFFERENTIAL"
    assert client.verify("totals").differences == client.verify("tried").differences == 0


def test_mode_differential_gives_nothing_up(client: PgTrickle, any_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create_stream_table("totals", TOTALS, refresh_mode="DIFFERENTIAL")
    _change(any_dsn)
    _hurry(monkeypatch)
    assert client.refresh_stream_table("totals").action == "DIFFERENTIAL"
    assert client.verify("totals").differences == 0
