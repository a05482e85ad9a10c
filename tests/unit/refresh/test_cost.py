"""The choice between ways: by constants first, then by what the table's last refreshes took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_pgtrickle.engine.refresh.cost import Candidate, Experience, Sample, Way, limit_ms

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


def test_a_way_never_taken_is_believed_to_take_what_the_others_make_likely() -> None:
    known = Experience((taken(Candidate(Way.PUSHED, whole=True), 8_000),))
    by_ways = {way: known.predicted(Candidate(way, whole=True), 1, MILLION).predicted_ms for way in Way}
    assert 7_900 < by_ways[Way.PUSHED] < 8_100
    assert by_ways[Way.DATABASE] < by_ways[Way.SLICED] < by_ways[Way.PUSHED] < by_ways[Way.LOWERED]


PUSHED, SLICED, LOWERED = (Candidate(way, whole=True) for way in (Way.PUSHED, Way.SLICED, Way.LOWERED))


def test_ways_of_spark_are_measured_apart() -> None:
    both = (PUSHED, LOWERED)
    assert choice(candidates=both).way is choice(taken(PUSHED, 9_000), candidates=both).way is Way.PUSHED
    known = taken(LOWERED, 900, age=1)
    assert choice(taken(PUSHED, 9_000), known, candidates=both).way is Way.LOWERED
    assert choice(taken(PUSHED, 900), taken(LOWERED, 9_000, age=1), candidates=both).way is Way.PUSHED


def test_slices_are_taken_first_and_left_where_they_took_longer() -> None:
    both = (SLICED, PUSHED)
    assert choice(candidates=both).way is Way.SLICED
    slow = [taken(SLICED, 9_000, age=age) for age in (0, 2)]
    assert choice(*slow, taken(PUSHED, 3_000, age=1), candidates=both).way is Way.PUSHED


def test_what_spark_never_computed_is_tried_once_where_it_takes_long() -> None:
    both = (PUSHED, LOWERED)

    def way(ms: float, times: int, *others: Sample) -> Way:
        return choice(*(taken(PUSHED, ms, age=age) for age in range(times)), *others, candidates=both).way

    assert way(60_000, 3) is Way.LOWERED
    assert way(60_000, 2) is Way.PUSHED
    assert way(6_000, 3) is Way.PUSHED
    assert way(60_000, 3, taken(LOWERED, 90_000, age=4)) is Way.PUSHED


def test_postgresql_is_asked_before_the_first_difference_and_not_each_time() -> None:
    first = taken(FULL, 900, age=0, chosen=False)
    both = [Candidate(Way.DATABASE, False, 90.0), Candidate(Way.DATABASE, True, 900.0)]
    assert Experience((first,)).is_in_doubt(both)
    assert Experience((first,)).doubt(1_000) is None
    said = Experience((replace(first, doubt=30.0, changes=1_000), first))
    assert [said.doubt(changes) for changes in (400, 600, 1e6)] == [None, 30.0, 30.0]
    assert Experience((replace(first, doubt=30.0, age=20),)).doubt(1_000) is None
    assert not Experience((taken(DIFFERENCE, 90), first)).is_in_doubt(both)
    assert not Experience((first,)).is_in_doubt(both[:1])
    assert not Experience((first,)).is_in_doubt(both[1:])
    assert not Experience((first,)).is_in_doubt([both[0], Candidate(Way.DATABASE, True, 99.0)])


def test_a_difference_on_spark_has_a_limit_in_time_that_its_first_job_can_meet() -> None:
    difference, nothing = Candidate(Way.PUSHED, False, 300.0), Experience()
    assert limit_ms(difference, [difference, Candidate(Way.PUSHED, True, 200.0)], nothing) == 10_000
    assert limit_ms(difference, [difference, Candidate(Way.LOWERED, True, 9_000.0)], nothing) == 27_000
    assert limit_ms(difference, [difference], nothing) is None
    assert limit_ms(PUSHED, [difference, PUSHED], nothing) is None


def test_a_doubted_difference_is_tried_once_for_as_long_as_full_takes() -> None:
    first = taken(FULL, 900, age=9, chosen=False)
    usual = [replace(taken(FULL, 300, age=age), doubt=9.0) for age in range(4)]
    both = [Candidate(Way.DATABASE, False, 25.0), Candidate(Way.DATABASE, True, 300.0)]
    assert Experience((*usual[:2], first)).is_in_doubt(both)
    assert Experience((*(replace(sample, doubt=30.0) for sample in usual), first)).is_in_doubt(both)
    known = Experience((*usual[:3], first))
    assert not known.is_in_doubt(both)
    assert not known.chosen(both).whole
    assert limit_ms(both[0], both, known) == 300
    vain = replace(taken(DIFFERENCE, 300, age=0, chosen=False), given_up=True)
    again = [replace(sample, age=sample.age + 1) for sample in usual]
    assert choice(vain, *again).whole
    assert choice(replace(vain, age=50), *(replace(sample, age=0) for sample in usual)).whole
    assert limit_ms(both[0], both, Experience((taken(DIFFERENCE, 20, age=0), vain))) == 2_000
