"""What a user may write as a schedule, and when it falls due."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.schedule import (
    Calculated,
    Cron,
    Every,
    canonical_period,
    canonical_timestamp,
    parse,
)
from airflow_provider_pgtrickle.engine.settings import Settings

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def runs(text: str) -> Every | Cron:
    """A schedule that says when by itself."""
    schedule = parse(text)
    assert not isinstance(schedule, Calculated)
    return schedule


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("5m", 300), ("1h30m", 5400), ("1d", 86400), ("1w", 604800), ("1d 12h", 129600), (" 2H ", 7200)],
)
def test_durations_add_up(text: str, seconds: int) -> None:
    assert parse(text) == Every(seconds)


@pytest.mark.parametrize("text", [None, "calculated", "CALCULATED"])
def test_no_schedule_means_calculated(text: str | None) -> None:
    assert parse(text) == Calculated()


@pytest.mark.parametrize(("text", "expression"), [("@daily", "0 0 * * *"), ("*/5  * * * *", "*/5 * * * *")])
def test_cron_and_its_aliases(text: str, expression: str) -> None:
    assert parse(text) == Cron(expression)


@pytest.mark.parametrize("text", ["", "soon", "5", "5x", "30m1h", "-5m", "* * *", "61 * * * *", "0 0 30 2 *", "@never"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match="Write a duration"):
        parse(text)


def test_what_to_write_is_what_the_minimum_allows() -> None:
    with pytest.raises(UsageError) as raised:
        parse("soon")
    offered = re.findall(r"\b(?:\d+[smhdw])+\b|@\w+", str(raised.value))
    assert len(offered) > 3
    assert [parse(text, Settings().min_schedule_seconds) for text in offered]


@pytest.mark.parametrize("text", ["30s", "0s", "59s"])
def test_shorter_than_the_minimum_is_refused_with_the_setting_to_lower(text: str) -> None:
    with pytest.raises(UsageError, match="min_schedule_seconds"):
        parse(text, 60)
    assert parse("30s", 1) == Every(30)


def test_a_cron_that_fires_too_often_is_refused_too() -> None:
    with pytest.raises(UsageError, match="min_schedule_seconds"):
        parse("*/5 * * * *", 600)


def test_canonical_periods_fit_twice_into_the_schedule() -> None:
    for seconds in range(96, 100_000, 37):
        period = canonical_period(seconds)
        assert period * 2 <= seconds < period * 4


def test_boundaries_of_a_long_period_are_boundaries_of_every_shorter_one() -> None:
    assert canonical_timestamp(canonical_timestamp(NOON, 86_400), 60) == canonical_timestamp(NOON, 86_400)


def test_a_table_that_never_ran_is_due() -> None:
    assert runs("1h").is_due(None, NOON)
    assert runs("@daily").is_due(None, NOON)


def test_a_duration_is_due_once_its_canonical_boundary_has_passed() -> None:
    boundary = canonical_timestamp(NOON, 3600)
    assert not Every(3600).is_due(boundary, NOON)
    assert Every(3600).is_due(boundary - timedelta(seconds=1), NOON)


def test_cron_fires_in_utc_whatever_the_zone_of_the_moments() -> None:
    oslo = timezone(timedelta(hours=1))
    last = datetime(2026, 3, 1, 0, 30, tzinfo=oslo)  # 23:30 UTC the day before
    assert runs("@daily").is_due(last, datetime(2026, 3, 1, 1, 0, tzinfo=oslo))
    assert not runs("@daily").is_due(last, datetime(2026, 3, 1, 0, 59, tzinfo=oslo))


@pytest.mark.parametrize(
    ("text", "airflow"),
    [
        ("1m", "* * * * *"),
        ("5m", "*/5 * * * *"),
        ("1h", "0 * * * *"),
        ("2h", "0 */2 * * *"),
        ("1d", "0 0 * * *"),
        ("1w", "0 0 * * 1"),
        ("7m", timedelta(minutes=7)),
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("0 9 * * 1-5", "0 9 * * 1-5"),
    ],
)
def test_airflow_gets_a_cron_where_the_duration_divides_the_clock(text: str, airflow: object) -> None:
    assert runs(text).as_airflow() == airflow


@pytest.mark.parametrize("text", ["1w", "1d", "1h30m", "5m", "90s"])
def test_a_schedule_prints_as_something_that_parses_to_itself(text: str) -> None:
    assert parse(str(parse(text))) == parse(text)


def test_a_rarer_schedule_takes_every_second_firing_or_twice_its_time() -> None:
    hourly = parse("0 * * * *")
    assert isinstance(hourly, Cron)
    last = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    assert hourly.is_due(last, datetime(2026, 1, 1, 13, 0, tzinfo=UTC))
    assert not hourly.rarer(2).is_due(last, datetime(2026, 1, 1, 13, 59, tzinfo=UTC))
    assert hourly.rarer(2).is_due(last, datetime(2026, 1, 1, 14, 0, tzinfo=UTC))
    assert hourly.rarer(2).is_due(None, last)
    assert Every(300).rarer(2) == Every(600)


def test_a_schedule_backs_off_until_a_refresh_fits_between_two_of_its_times() -> None:
    for schedule in (Every(300), parse("*/5 * * * *")):
        assert isinstance(schedule, Every | Cron)
        for seconds in (301, 700, 5_000, 1_000_000):
            times = next(n for n in (2**k for k in range(40)) if schedule.rarer(n).interval >= seconds)
            assert schedule.rarer(times).interval < 4 * seconds
    assert [Every(300).rarer(n).interval for n in (1, 2, 4, 8)] == [96, 192, 384, 768]
