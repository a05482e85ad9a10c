"""The options of a stream table: what each may be, checked one by one, in words a user can act on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any, Protocol

from airflow_provider_pgtrickle.engine import schedule as schedules
from airflow_provider_pgtrickle.engine.catalog.records import APPROXIMATE, IGNORE
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.settings import PLACEMENTS, Settings

MODES = ("AUTO", "DIFFERENTIAL", "FULL", "IMMEDIATE")
#: What becomes of a declaration `append_only` when a row of a source is updated or deleted.
BREACHES = ("end", "refuse")
#: What becomes of a change of a frozen row.
FROZEN_BREACHES = ("refuse", IGNORE)
#: How sums of floats are kept: to PostgreSQL's last digit, or by adding.
FLOAT_SUMS = ("exact", APPROXIMATE)
#: `partition_every` of a LIST: each value has a partition of its own.
BY_VALUE = "value"
#: Months in a unit, and the words by which `date_trunc` finds where so many months begin.
MONTHS = {"month": 1, "quarter": 3, "year": 12}
TRUNCATED = {1: "month", 3: "quarter", 12: "year", 120: "decade"}
_LENGTH = re.compile(r"(?i)^\s*(?P<number>\d{1,6})\s*(?P<unit>hour|day|week|month|quarter|year)s?\s*$")
_LONGEST = 100_000
_COLUMN = r'(?:"[^"]*"|[^".:,\s]+)'
_FROZEN = re.compile(rf"\s*(?P<column>{_COLUMN}(?:\.{_COLUMN}){{1,2}})\s*:\s*(?P<bound>[^,]*[^,\s])\s*(?:,|$)")
_INSTANT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?:Z|\+00(?::?00)?)?)?"
)
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")
_PARTITION = re.compile(r"(?i)^\s*(?:(?P<method>range|list|hash)\s*\((?P<keys>[^()]+)\)|(?P<bare>[^()]+))\s*$")


@dataclass(frozen=True)
class Options:
    """Everything about a stream table but its name, its query and its status. Field = column of the catalog."""

    schedule: str | None = None
    """`5m`, a cron expression, or None: calculated from the stream tables that read this one."""
    refresh_mode: str = "AUTO"
    append_only: bool = False
    """Rows of its sources are only ever inserted. It is checked."""
    append_only_breach: str = "end"
    """What an UPDATE, DELETE or TRUNCATE of a source does: `end` the declaration, or be `refuse`d."""
    frozen_before: str | None = None
    """Rows of a source that don't change any more, such as `orders.placed: 90 days`."""
    frozen_breach: str = "refuse"
    """What becomes of a change of such a row: `refuse`d to the writer, or `ignore`d by the stream table."""
    diamond_consistency: str = "atomic"
    diamond_schedule_policy: str = "fastest"
    cdc_mode: str | None = None
    """How its sources are captured: `trigger`, `wal` or `auto`; None means the setting of that name."""
    partition_by: str | None = None
    """`RANGE (day)`, `LIST (region)`, `HASH (id)`; a column alone means RANGE. Set at creation only."""
    partition_every: str | None = None
    """Which partitions a refresh makes as rows come: `1 month`, `1000` for a number, `value` for LIST; None: none."""
    keep: str | None = None
    """Rows of older partitions are not in the content, such as `2 years`; None: all are."""
    tier: str = "hot"
    differential_max_change_ratio: float | None = None
    """None means the setting of that name; 0.0 never falls back to FULL."""
    verify_every: str | None = None
    """How often its DAG verifies the content: `1d` or a cron expression; None means only on request."""
    placement: str | None = None
    """Where its changes are computed: `spark`, `auto` or `database`; None means the setting of that name."""
    timezone: str | None = None
    """The zone by which its query casts times and reads the clock, such as `Europe/Oslo`; None: UTC."""
    unlogged_buffers: bool = False
    """Whether the change buffers that it reads may be UNLOGGED; given as None it is what the setting says now."""
    float_sums: str = "exact"
    """Sums over floats: `exact` to PostgreSQL's last digit, or `approximate`, kept by adding and off by rounding."""
    unit: str | None = None
    """The unit that it is in: tables that name the same one are refreshed on one snapshot and in one commit."""

    @classmethod
    def checked(cls, settings: Settings, given: Mapping[str, Any]) -> Options:
        """The options a user gave, each checked, the others at their default."""
        options = cls(**check(settings, {"unlogged_buffers": None, **given}))
        refuse_partitions(options.refresh_mode, options.partition_by, options.partition_every, options.keep)
        refuse_frozen_by_wal(options, options.cdc_mode)
        refuse_ignored(options.refresh_mode, options)
        refuse_unchecked(options.refresh_mode, options.append_only, options.append_only_breach)
        return options

    @property
    def may_approximate(self) -> bool:
        """Whether its sums over floats may differ from PostgreSQL's by rounding."""
        return self.float_sums == APPROXIMATE

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the author."""
        told: tuple[str, ...] = ()
        if self.partition_by and not self.partition_by.startswith("HASH") and not self.partition_every:
            told += (
                f"its storage is partitioned by {self.partition_by}, and has only a DEFAULT partition until you add"
                " others by pgtrickle.add_partition(name, partition, bounds); with partition_every refreshes make them",
            )
        return told

    def catalog_columns(self) -> dict[str, Any]:
        """The values by the columns of `pgt_stream_tables`."""
        columns = asdict(self)
        columns["requested_cdc_mode"] = columns.pop("cdc_mode")
        return columns


def check(settings: Settings, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given options in their stored form; the first that is wrong is a `UsageError`."""
    names = tuple(f.name for f in fields(Options))
    for name in given:
        if name not in names:
            raise UsageError(f"There is no option named {name!r}", remedy=f"Known: {', '.join(names)}.")
    checked = {name: CHECKS[name](value, settings) for name, value in given.items()}
    refuse_schedule(checked.get("refresh_mode"), checked.get("schedule"))
    refuse_by_wal(checked.get("refresh_mode"), checked.get("cdc_mode"))
    refuse_unit(checked.get("refresh_mode"), checked.get("unit"))
    return checked


def refuse_by_wal(refresh_mode: str | None, cdc_mode: str | None) -> None:
    """Raise if changes are to come from the log to a table that writers maintain."""
    if refresh_mode == "IMMEDIATE" and cdc_mode == "wal":
        raise UsageError(
            "Refresh mode IMMEDIATE and cdc_mode 'wal' exclude each other: writers maintain the table by triggers",
            remedy="Use cdc_mode 'auto' or 'trigger', or another refresh mode.",
        )


class Freezing(Protocol):
    """What the options, as given or as the catalog has them, say of frozen rows."""

    @property
    def frozen_before(self) -> str | None: ...
    @property
    def frozen_breach(self) -> str: ...


def refuse_frozen_by_wal(declared: Freezing, cdc_mode: str | None) -> None:
    """Raise if changes are to be refused to writers, and to be known only after they are committed."""
    if declared.frozen_before is not None and declared.frozen_breach != IGNORE and cdc_mode == "wal":
        raise UsageError(
            f"frozen_before={declared.frozen_before!r} and cdc_mode 'wal' exclude each other: what the log tells is"
            " committed, and can't be refused any more",
            remedy="Use cdc_mode 'auto' or 'trigger', or frozen_breach 'ignore', or leave frozen_before out.",
        )


def refuse_ignored(refresh_mode: str | None, declared: Freezing) -> None:
    """Raise if a table that writers maintain is to read copies, which are refreshed."""
    if refresh_mode == "IMMEDIATE" and declared.frozen_before is not None and declared.frozen_breach == IGNORE:
        raise UsageError(
            "A stream table in refresh mode IMMEDIATE can't ignore changes of frozen rows: its sources' writers"
            " maintain it, and what keeps such rows is refreshed",
            remedy="Use frozen_breach 'refuse', or refresh_mode AUTO.",
        )


def refuse_schedule(refresh_mode: str | None, schedule: str | None) -> None:
    """Raise if a table that writers maintain is given a schedule."""
    if refresh_mode == "IMMEDIATE" and schedule is not None:
        raise UsageError(
            "A stream table in refresh mode IMMEDIATE takes no schedule: its sources' writers maintain it",
            remedy="Leave the schedule out, or use refresh_mode AUTO.",
        )


def refuse_unit(refresh_mode: str | None, unit: str | None) -> None:
    """Raise if a table that writers maintain is to be refreshed together with others."""
    if refresh_mode == "IMMEDIATE" and unit is not None:
        raise UsageError(
            f"A stream table in refresh mode IMMEDIATE can't be in unit {unit!r}: its sources' writers maintain it,"
            " and the others are refreshed",
            remedy="Leave it out of the unit, or use refresh_mode AUTO.",
        )


def refuse_unchecked(refresh_mode: str | None, append_only: bool | None, breach: str) -> None:
    """Raise if a table is to end its declaration when a refresh finds a breach, and has no refreshes."""
    if refresh_mode == "IMMEDIATE" and append_only and breach == "end":
        raise UsageError(
            "No refresh of a stream table in refresh mode IMMEDIATE would notice that a source isn't append-only",
            remedy="Use append_only_breach='refuse', or leave append_only out.",
        )


def refuse_partitions(
    refresh_mode: str | None, partition_by: str | None, partition_every: str | None, keep: str | None
) -> None:
    """Raise if partitions can't be made, or dropped, as the options say."""
    if keep is not None and partition_every is None:
        raise UsageError(
            f"keep={keep!r} needs partition_every: rows leave by whole partitions",
            remedy="Say how long one is, such as partition_every='1 month'.",
        )
    if partition_every is None:
        return
    method, keys = partition_key(partition_by) if partition_by else (None, ())
    wanted = "LIST" if partition_every == BY_VALUE else "RANGE"
    if method != wanted or len(keys) != 1:
        raise UsageError(
            f"partition_every={partition_every!r} needs partition_by of the form '{wanted} (column)', and it is"
            f" {partition_by or 'not given'}",
            remedy="Use a length with RANGE, such as '1 month' or '1000', and 'value' with LIST; HASH has its"
            " partitions from the beginning.",
        )
    if keep is not None and as_length(partition_every) is None:
        raise UsageError(
            f"keep={keep!r} needs partitions of a length of time, and partition_every is {partition_every!r}",
            remedy="Partition by a date or time, such as partition_every='1 month'.",
        )
    if refresh_mode == "IMMEDIATE":
        raise UsageError(
            "A stream table in refresh mode IMMEDIATE takes no partition_every and no keep: its sources' writers, who"
            " maintain it, make and drop no tables",
            remedy="Leave them out, or use refresh_mode AUTO.",
        )


def _schedule(value: Any, settings: Settings) -> str | None:
    if value is not None and not isinstance(value, str):
        raise UsageError(
            f"A schedule must be text, not {type(value).__name__}",
            remedy="Write it as '5m', as a cron expression, or 'calculated'.",
        )
    parsed = schedules.parse(value, settings.min_schedule_seconds)
    return None if value is None or isinstance(parsed, schedules.Calculated) else value.strip()


def _refresh_mode(value: Any, settings: Settings) -> str:
    return _one_of("refresh_mode", MODES, str.upper)(value, settings)


def _cdc_mode(value: Any, settings: Settings) -> str | None:
    return None if value is None else _one_of("cdc_mode", ("auto", "trigger", "wal"), str.lower)(value, settings)


def _one_of(name: str, allowed: tuple[str, ...], fold: Callable[[str], str]) -> Callable[[Any, Settings], str]:
    def checked(value: Any, settings: Settings) -> str:
        if not isinstance(value, str) or fold(value.strip()) not in allowed:
            raise UsageError(f"{name} can't be {value!r}", remedy=f"Use one of {', '.join(allowed)}.")
        return fold(value.strip())

    return checked


def _boolean(name: str) -> Callable[[Any, Settings], bool]:
    def checked(value: Any, settings: Settings) -> bool:
        if not isinstance(value, bool):
            raise UsageError(f"{name} can't be {value!r}", remedy="Use True or False.")
        return value

    return checked


def _unlogged_buffers(value: Any, settings: Settings) -> bool:
    return settings.unlogged_buffers if value is None else _boolean("unlogged_buffers")(value, settings)


def _ratio(value: Any, settings: Settings) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(
            f"differential_max_change_ratio can't be {value!r}",
            remedy="Use a number from 0 (never fall back to FULL) to 1, or None for the setting's.",
        )
    return float(value)


def _verify_every(value: Any, settings: Settings) -> str | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "never"):
        return None
    if not isinstance(value, str) or isinstance(
        schedules.parse(value, settings.min_schedule_seconds), schedules.Calculated
    ):
        raise UsageError(
            f"verify_every can't be {value!r}", remedy="Use a duration such as '1d', a cron expression, or 'never'."
        )
    return value.strip()


def _placement(value: Any, settings: Settings) -> str | None:
    return None if value is None else _one_of("placement", PLACEMENTS, str.lower)(value, settings)


def _timezone(value: Any, settings: Settings) -> str | None:
    """Whether PostgreSQL knows the zone is asked when the table is declared."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"timezone can't be {value!r}", remedy="Use a name from pg_timezone_names, such as 'Europe/Oslo', or 'UTC'."
        )
    return None if value.strip().upper() == "UTC" else value.strip()


def _unit(value: Any, settings: Settings) -> str | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
        return None
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"A unit can't be {value!r}", remedy="Give it a name, such as 'ledger', the same in all of its tables."
        )
    return value.strip()


def _partition_by(value: Any, settings: Settings) -> str | None:
    if value is None:
        return None
    method, keys = partition_key(value)
    return f"{method} ({', '.join(keys)})"


def as_length(text: str) -> tuple[int, str] | None:
    """Number and unit of a length of time, each unit in its plain form; None for anything else.

    >>> as_length("3 Months"), as_length("value")
    ((3, 'month'), None)
    """
    match = _LENGTH.match(text)
    return (int(match["number"]), match["unit"].lower()) if match else None


def _length(name: str, value: Any, example: str) -> tuple[int, str]:
    found = as_length(value) if isinstance(value, str) else None
    if found is None or not 0 < found[0] <= _LONGEST:
        raise UsageError(f"{name} can't be {value!r}", remedy=f"Use a number and a unit: hour to year, {example}.")
    return found


def _partition_every(value: Any, settings: Settings) -> str | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
        return None
    text = value.strip().lower() if isinstance(value, str) else value
    if text == BY_VALUE:
        return BY_VALUE
    if isinstance(text, str) and re.fullmatch(r"0*[1-9]\d{0,17}", text):
        return str(int(text))
    number, unit = _length("partition_every", value, "such as '1 month'; for a number its length, '1000'; or 'value'")
    if unit in MONTHS and number * MONTHS[unit] not in TRUNCATED:
        raise UsageError(
            f"partition_every can't be {value!r}: partitions begin where calendars do",
            remedy="Use 1 month, 1 quarter, 1 year or 10 years, or a number of weeks, days or hours.",
        )
    return spoken_length(number, unit)


def _keep(value: Any, settings: Settings) -> str | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in ("none", "all")):
        return None
    return spoken_length(*_length("keep", value, "such as '2 years', or 'all'"))


def _frozen_before(value: Any, settings: Settings) -> str | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none")):
        return None
    text = ", ".join(f"{column}: {bound}" for column, bound in value.items()) if isinstance(value, Mapping) else value
    found = frozen_bounds(text) if isinstance(text, str) else {}
    if not found:
        raise UsageError(
            f"frozen_before can't be {value!r}",
            remedy="Name a source's column and its bound, such as 'orders.placed: 90 days', or 'none'.",
        )
    return ", ".join(f"{column}: {_frozen_bound(bound)}" for column, bound in found.items())


def frozen_bounds(text: str) -> dict[str, str]:
    """The bounds of a `frozen_before` option by their columns; none if it isn't one.

    >>> frozen_bounds("orders.placed: 90 days, sales.events.id:1000")
    {'orders.placed': '90 days', 'sales.events.id': '1000'}
    """
    found, at = {}, 0
    while at < len(text):
        match = _FROZEN.match(text, at)
        if match is None or match["column"] in found:
            return {}
        found[match["column"]] = match["bound"]
        at = match.end()
    return found


def _frozen_bound(bound: str) -> str:
    """A length of time, an instant in UTC, or a number, each in its plain form."""
    length, instant = as_length(bound), _INSTANT.fullmatch(bound)
    if length is not None and 0 < length[0] <= _LONGEST:
        return spoken_length(*length)
    if instant is not None:
        return f"{instant['day']} {instant['time']}" if instant["time"] else instant["day"]
    if _NUMBER.fullmatch(bound) is None:
        raise UsageError(
            f"frozen_before can't have the bound {bound!r}",
            remedy="Use an age such as '90 days', a date or time in UTC such as '2026-01-01', or a number.",
        )
    return bound


def spoken_length(number: int, unit: str) -> str:
    """A length as it is stored, and as PostgreSQL's `interval` reads it."""
    if unit == "quarter":
        number, unit = number * 3, "month"
    return f"{number} {unit}{'' if number == 1 else 's'}"


def partition_key(text: Any) -> tuple[str, tuple[str, ...]]:
    """Method and column names of a `partition_by` option.

    >>> partition_key("day")
    ('RANGE', ('day',))
    >>> partition_key("list (region)")
    ('LIST', ('region',))
    """
    match = _PARTITION.match(text) if isinstance(text, str) else None
    method = ((match["method"] or "RANGE") if match else "").upper()
    keys = tuple(key.strip() for key in (match["keys"] or match["bare"]).split(",")) if match else ()
    if not match or not all(keys) or (method == "LIST" and len(keys) > 1):
        raise UsageError(
            f"partition_by can't be {text!r}",
            remedy="Name columns of the query: 'RANGE (day)', 'LIST (region)' or 'HASH (id)'.",
        )
    return method, keys


#: One check for each option; a new option is a field above and a line here.
CHECKS: Mapping[str, Callable[[Any, Settings], Any]] = MappingProxyType(
    {
        "schedule": _schedule,
        "refresh_mode": _refresh_mode,
        "append_only": _boolean("append_only"),
        "append_only_breach": _one_of("append_only_breach", BREACHES, str.lower),
        "frozen_before": _frozen_before,
        "frozen_breach": _one_of("frozen_breach", FROZEN_BREACHES, str.lower),
        "diamond_consistency": _one_of("diamond_consistency", ("none", "atomic"), str.lower),
        "diamond_schedule_policy": _one_of("diamond_schedule_policy", ("fastest", "slowest"), str.lower),
        "cdc_mode": _cdc_mode,
        "partition_by": _partition_by,
        "partition_every": _partition_every,
        "keep": _keep,
        "tier": _one_of("tier", ("hot", "warm", "cold", "frozen", "auto"), str.lower),
        "differential_max_change_ratio": _ratio,
        "verify_every": _verify_every,
        "placement": _placement,
        "timezone": _timezone,
        "unlogged_buffers": _unlogged_buffers,
        "float_sums": _one_of("float_sums", FLOAT_SUMS, str.lower),
        "unit": _unit,
    }
)
