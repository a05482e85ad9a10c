"""The choice between ways: by constants first, then by what the table's last refreshes took."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.refresh.cost import Candidate, Experience, Sample, Way

DIFFERENCE, FULL = Candidate(Way.DATABASE, whole=False), Candidate(Way.DATABASE, whole=True)
ON_SPARK = Candidate(Way.PUSHED, whole=False)
MILLION = 1_000_000.0


def taken(candidate: Candidate, ms: float, changes: float = 1_000, age: int = 0, chosen: bool = True) -> Sample:
    return Sample(str(candidate.way), candidate.whole, changes, MILLION, ms, age, chosen)


def choice(
    *samples: Sample, changes: float = 1_000, candidates: tuple[Candidate, ...] = (DIFFERENCE, FULL)
) -> Candidate:
    known = Experience(tuple(sorted(samples, key=lambda s: s.age)))
    return known.chosen([known.predicted(candidate, changes, MILLION) for candidate in candidates])


@pytest.mark.parametrize(("changes", "whole"), [(1, False), (100_000, False), (500_000, True)])
def test_without_experience_the_share_of_changed_rows_decides(changes: float, whole: bool) -> None:
    assert choice(changes=changes).whole is whole


def test_what_was_measured_counts_more_than_a_constant() -> None:
    assert choice(taken(DIFFERENCE, 4_000), taken(FULL, 300, chosen=False)).whole
    assert not choice(taken(DIFFERENCE, 400, changes=800_000), changes=800_000).whole


def test_a_measurement_is_scaled_to_the_number_of_changes() -> None:
    known = Experience((taken(DIFFERENCE, 100, changes=10_000),))
    assert 900 < known.predicted(DIFFERENCE, 100_000, MILLION).predicted_ms < 1_000


def test_one_slow_refresh_among_five_changes_nothing() -> None:
    usual = [taken(DIFFERENCE, 100, age=age) for age in range(1, 5)]
    assert not choice(taken(DIFFERENCE, 60_000, age=0), *usual, taken(FULL, 900, age=5, chosen=False)).whole


def test_two_ways_that_are_about_equal_take_no_turns() -> None:
    full, difference = taken(FULL, 1_000, age=0), taken(DIFFERENCE, 900, age=1)
    assert choice(full, difference).whole
    assert not choice(taken(DIFFERENCE, 1_000, age=0), taken(FULL, 900, age=1)).whole


def test_small_tables_keep_to_the_difference() -> None:
    forced = taken(FULL, 3, age=0, chosen=False)
    assert not choice(forced, taken(DIFFERENCE, 25, age=1)).whole


def test_what_was_not_taken_for_long_is_tried_again_if_it_is_not_much_slower() -> None:
    usual = [taken(DIFFERENCE, 1_000, age=age) for age in range(60)]
    assert not choice(*usual[:10], taken(FULL, 1_200, age=10)).whole
    assert choice(*usual, taken(FULL, 1_200, age=60)).whole
    assert not choice(*usual, taken(FULL, 2_000, age=60)).whole


def test_what_only_the_first_content_took_is_tried_once() -> None:
    first = taken(FULL, 1_500, age=3, chosen=False)
    usual = [taken(DIFFERENCE, 1_000, age=age) for age in range(3)]
    assert not choice(*usual[:2], first).whole
    assert choice(*usual, first).whole
    assert not choice(taken(FULL, 1_300, age=0), *(taken(DIFFERENCE, 1_000, age=n) for n in (1, 2, 3))).whole
    assert not choice(*usual, taken(FULL, 2_000, age=3, chosen=False)).whole


@pytest.mark.parametrize("ms", [0.0, 1e-9, 1e15])
def test_absurd_measurements_lead_to_a_choice_all_the_same(ms: float) -> None:
    assert choice(taken(DIFFERENCE, ms), taken(FULL, ms)) is not None


def test_spark_has_to_be_worth_its_start() -> None:
    assert choice(candidates=(DIFFERENCE, ON_SPARK)).way is Way.DATABASE


def test_what_spark_took_counts_for_each_of_its_ways() -> None:
    known = Experience((taken(Candidate(Way.PUSHED, whole=True), 8_000),))
    lowered = known.predicted(Candidate(Way.LOWERED, whole=True), 1, MILLION)
    assert 7_900 < lowered.predicted_ms < 8_100
