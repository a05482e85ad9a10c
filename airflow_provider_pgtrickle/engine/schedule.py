"""When a stream table is due: durations, cron expressions in UTC, and schedules taken from downstream.

Durations follow canonical periods of 48·2ⁿ seconds: every boundary of a long period is one of each
shorter period too, so tables of different schedules share their data timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

from airflow_provider_pgtrickle.engine.errors import UsageError

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
#: The gaps of a cron expression are measured from this moment, so that they are always the same.
_REFERENCE = datetime(2024, 1, 1, tzinfo=UTC)
# What the minimum refuses by default is no example.
_REMEDY = "Write a duration (90s, 5m, 1h30m, 1d, 1w), a 5-field cron expression, @daily, or 'calculated'."


def canonical_period(seconds: float) -> int:
    """The largest 48·2ⁿ that fits twice into `seconds`, so that half of the time is left for the refresh.

    >>> [canonical_period(s) for s in (60, 192, 300, 3600)]
    [48, 96, 96, 1536]
    """
    period = 48
    while period * 4 <= seconds:
        period *= 2
    return period


def canonical_timestamp(now: datetime, seconds: float) -> datetime:
    """The last boundary of the canonical period of `seconds`."""
    period = canonical_period(seconds)
    return datetime.fromtimestamp(now.timestamp() // period * period, UTC)


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@dataclass(frozen=True)
class Every:
    """The table may be `seconds` old. It is due, too, if its data timestamp is in the future: a clock was ahead."""

    seconds: int

    def is_due(self, last: datetime | None, now: datetime) -> bool:
        if last is None:
            return True
        return not canonical_timestamp(_in_utc(now), self.seconds) <= _in_utc(last) <= _in_utc(now)

    @property
    def cron(self) -> str | None:
        """The clock-aligned form, where the duration divides the hour, the day or the week.

        >>> Every(300).cron, Every(7200).cron, Every(420).cron
        ('*/5 * * * *', '0 */2 * * *', None)
        """
        minutes, rest = divmod(self.seconds, 60)
        if rest or not minutes:
            return None
        if 60 % minutes == 0:
            return {1: "* * * * *", 60: "0 * * * *"}.get(minutes, f"*/{minutes} * * * *")
        if 1_440 % minutes == 0 and minutes % 60 == 0:
            return "0 0 * * *" if minutes == 1_440 else f"0 */{minutes // 60} * * *"
        return "0 0 * * 1" if minutes == 10_080 else None

    @property
    def longest(self) -> int:
        """Seconds that may pass between two refreshes."""
        return self.seconds

    @property
    def interval(self) -> int:
        """Seconds from one refresh to the next."""
        return canonical_period(self.seconds)

    def rarer(self, times: int) -> Every:
        """So many times as long."""
        return Every(self.seconds * times)

    def as_airflow(self) -> str | timedelta:
        return self.cron or timedelta(seconds=self.seconds)

    def __str__(self) -> str:
        rest, text = self.seconds, ""
        for letter, size in _UNITS.items():
            count, rest = divmod(rest, size)
            text += f"{count}{letter}" if count else ""
        return text or "0s"


@dataclass(frozen=True)
class Cron:
    """At each firing of a 5-field cron expression, in UTC, or at each n-th one."""

    expression: str
    nth: int = 1

    @property
    def seconds(self) -> int:
        """Its shortest gap, by which it is compared with other schedules."""
        return min(_gaps(self.expression))

    @property
    def longest(self) -> int:
        """Its longest gap: a younger table is not late."""
        return max(_gaps(self.expression))

    def is_due(self, last: datetime | None, now: datetime) -> bool:
        if last is None:
            return True
        if _in_utc(last) > _in_utc(now):
            return True
        following = _firings(self.expression, _in_utc(last))
        return [following() for _ in range(self.nth)][-1] <= _in_utc(now)

    @property
    def interval(self) -> int:
        """Seconds from one refresh to the next, where they are closest."""
        return self.seconds * self.nth

    def rarer(self, times: int) -> Cron:
        """At each n-th of its firings."""
        return Cron(self.expression, self.nth * times)

    def as_airflow(self) -> str:
        return self.expression

    def __str__(self) -> str:
        return self.expression


@dataclass(frozen=True)
class Calculated:
    """The table is refreshed as often as its readers need; `Graph.effective_schedules` resolves it."""

    def __str__(self) -> str:
        return "calculated"


Effective = Every | Cron
Schedule = Every | Cron | Calculated


def parse(text: str | None, min_seconds: int = 60) -> Schedule:
    """What a user wrote as `schedule`; a `UsageError` says what is wrong with it."""
    if text is None or text.strip().lower() == "calculated":
        return Calculated()
    stripped = text.strip()
    schedule = _duration(stripped) or _cron(stripped)
    if schedule is None:
        raise UsageError(f"{text!r} is not a schedule", remedy=_REMEDY)
    if schedule.seconds < min_seconds:
        raise UsageError(
            f"Schedule {text!r} is shorter than the minimum of {min_seconds} seconds",
            remedy="Lengthen it, or lower the setting min_schedule_seconds.",
        )
    return schedule


def _duration(text: str) -> Every | None:
    match = _DURATION.fullmatch(text.lower().replace(" ", ""))
    if not text or match is None:
        return None
    return Every(sum(int(count or 0) * size for count, size in zip(match.groups(), _UNITS.values(), strict=True)))


def _cron(text: str) -> Cron | None:
    expression = _ALIASES.get(text.lower(), " ".join(text.split()))
    if len(expression.split()) != 5:
        return None
    try:
        _gaps(expression)
    except ValueError:  # it isn't well-formed, or never fires: 30 February
        return None
    return Cron(expression)


def _firings(expression: str, after: datetime) -> Callable[[], datetime]:
    """What returns, at each call, the next moment at which the expression fires."""
    # It is imported here because most schedules are durations, and a process from the shell should start quickly.
    from croniter import croniter

    firings = croniter(expression, after)
    return lambda: firings.get_next(datetime)


@cache
def _gaps(expression: str) -> tuple[int, ...]:
    following = _firings(expression, _REFERENCE)
    moments = [following() for _ in range(61)]
    return tuple(int((b - a).total_seconds()) for a, b in pairwise(moments))
