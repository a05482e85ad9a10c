"""Random histories of writers, owners and refreshes: afterwards equal, or noticed; never different without a word."""

from __future__ import annotations

import os

import pytest

from tests.attack.attack import Tally, Worlds, attack

SOME, FEW = 60, 10
FIRST = int(os.environ.get("PGTRICKLE_ATTACK_FIRST", "1000000"))
SOAK = int(os.environ.get("PGTRICKLE_ATTACKS", "10000"))

pytestmark = pytest.mark.filterwarnings("ignore::airflow_provider_pgtrickle.engine.errors.PgTrickleWarning")


def harmless(tally: Tally) -> None:
    print(tally)
    assert tally.found == []
    # An attack that met nobody proves nothing.
    assert tally.counts["gaps"] >= tally.histories // 3
    assert tally.counts["blocked"] >= tally.histories // 10
    assert tally.counts["statements"] >= tally.histories * 4
    assert tally.judged["DIFFERENTIAL"] >= tally.histories


@pytest.mark.timeout(900)
def test_sixty_attacks(worlds18: Worlds) -> None:
    harmless(attack(worlds18, range(SOME)))


@pytest.mark.timeout(600)
def test_ten_attacks_on_fifteen(worlds15: Worlds) -> None:
    harmless(attack(worlds15, range(SOME, SOME + FEW)))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_ten_thousand_attacks(worlds18: Worlds) -> None:
    harmless(attack(worlds18, range(FIRST, FIRST + SOAK)))
