"""The options of a stream table: what each may be, checked one by one, in words a user can act on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any

from airflow_provider_pgtrickle.engine import schedule as schedules
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.settings import PLACEMENTS, Settings

MODES = ("AUTO", "DIFFERENTIAL", "FULL", "IMMEDIATE")
APPEND_ONLY = (
    "append_only changes nothing: a difference that only adds rows is one plain INSERT, declared or not, "
    "and what is deleted or updated in a source is followed all the same"
)
_PARTITION = re.compile(r"(?i)^\s*(?:(?P<method>range|list|hash)\s*\((?P<keys>[^()]+)\)|(?P<bare>[^()]+))\s*$")


@dataclass(frozen=True)
class Options:
    """Everything about a stream table but its name, its query and its status. Field = column of the catalog."""

    schedule: str | None = None
    """`5m`, a cron expression, or None: calculated from the stream tables that read this one."""
    refresh_mode: str = "AUTO"
    append_only: bool = False
    """Stored, but without effect: a difference that only adds rows is one plain INSERT anyway."""
    diamond_consistency: str = "atomic"
    diamond_schedule_policy: str = "fastest"
    cdc_mode: str | None = None
    """How its sources are captured: `trigger`, `wal` or `auto`; None means the setting of that name."""
    partition_by: str | None = None
    """`RANGE (day)`, `LIST (region)`, `HASH (id)`; a column alone means RANGE. Set at creation only."""
    tier: str = "hot"
    differential_max_change_ratio: float | None = None
    """None means the setting of that name; 0.0 never falls back to FULL."""
    verify_every: str | None = None
    """How often its DAG verifies the content: `1d` or a cron expression; None means only on request."""
    placement: str | None = None
    """Where its changes are computed: `spark`, `auto` or `database`; None means the setting of that name."""
    unlogged_buffers: bool = False
    """Whether the change buffers that it reads may be UNLOGGED; given as None it is what the setting says now."""

    @classmethod
    def checked(cls, settings: Settings, given: Mapping[str, Any]) -> Options:
        """The options a user gave, each checked, the others at their default."""
        return cls(**check(settings, {"unlogged_buffers": None, **given}))

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the author."""
        told: tuple[str, ...] = (APPEND_ONLY,) if self.append_only else ()
        if self.partition_by and not self.partition_by.startswith("HASH"):
            told += (
                f"its storage is partitioned by {self.partition_by}, and has only a DEFAULT partition until you add"
                " others by pgtrickle.add_partition(name, partition, bounds)",
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
    return checked


def refuse_by_wal(refresh_mode: str | None, cdc_mode: str | None) -> None:
    """Raise if changes are to come from the log to a table that writers maintain."""
    if refresh_mode == "IMMEDIATE" and cdc_mode == "wal":
        raise UsageError(
            "Refresh mode IMMEDIATE and cdc_mode 'wal' exclude each other: writers maintain the table by triggers",
            remedy="Use cdc_mode 'auto' or 'trigger', or another refresh mode.",
        )


def refuse_schedule(refresh_mode: str | None, schedule: str | None) -> None:
    """Raise if a table that writers maintain is given a schedule."""
    if refresh_mode == "IMMEDIATE" and schedule is not None:
        raise UsageError(
            "A stream table in refresh mode IMMEDIATE takes no schedule: its sources' writers maintain it",
            remedy="Leave the schedule out, or use refresh_mode AUTO.",
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


def _partition_by(value: Any, settings: Settings) -> str | None:
    if value is None:
        return None
    method, keys = partition_key(value)
    return f"{method} ({', '.join(keys)})"


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
        "diamond_consistency": _one_of("diamond_consistency", ("none", "atomic"), str.lower),
        "diamond_schedule_policy": _one_of("diamond_schedule_policy", ("fastest", "slowest"), str.lower),
        "cdc_mode": _cdc_mode,
        "partition_by": _partition_by,
        "tier": _one_of("tier", ("hot", "warm", "cold", "frozen"), str.lower),
        "differential_max_change_ratio": _ratio,
        "verify_every": _verify_every,
        "placement": _placement,
        "unlogged_buffers": _unlogged_buffers,
    }
)
