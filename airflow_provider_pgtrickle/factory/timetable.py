"""How often a part's DAG ticks: often enough for its most impatient table, aligned to the clock, in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from airflow.sdk import CronTriggerTimetable, DeltaTriggerTimetable, MultipleCronTriggerTimetable
from airflow.sdk.bases.timetable import BaseTimetable

from airflow_provider_pgtrickle.engine.schedule import Cron, Effective, Every

_DIVISORS = tuple(60 * m for m in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440))


def timetable(schedules: Iterable[Effective]) -> BaseTimetable:
    """The smallest duration, and every cron expression: those tables wait for their own moments."""
    found = set(schedules)
    crons = sorted(s.expression for s in found if isinstance(s, Cron))
    durations = [s.seconds for s in found if isinstance(s, Every)]
    if durations:
        smallest = Every(min(durations))
        if smallest.cron is None and (not crons or smallest.seconds < 60):
            return DeltaTriggerTimetable(timedelta(seconds=smallest.seconds))
        crons = sorted({_clock_aligned(smallest), *crons})
    if len(crons) == 1:
        return CronTriggerTimetable(crons[0], timezone="UTC")
    return MultipleCronTriggerTimetable(*crons, timezone="UTC")


def _clock_aligned(every: Every) -> str:
    """Beside a cron expression it has to be one, too: the next shorter period that divides the day."""
    fitting = every if every.cron else Every(max(period for period in _DIVISORS if period <= every.seconds))
    assert fitting.cron is not None
    return fitting.cron
