"""Every setting, its default and its meaning.

This is the one source for `[pgtrickle]` in Airflow's configuration, for the keyword options of `PgTrickle(...)`, and
for the reference in the docs.

A value is looked up in this order: the keyword, the environment (`PGTRICKLE_<NAME>`),
Airflow's configuration where Airflow runs, the default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any

from airflow_provider_pgtrickle.engine.errors import UsageError

#: Where changes may be computed.
PLACEMENTS = ("spark", "auto", "database")

_BOOLEANS = {"true": True, "t": True, "1": True, "on": True, "false": False, "f": False, "0": False, "off": False}


def _setting(default: Any, description: str, choices: tuple[str, ...] = (), kind: type | None = None) -> Any:
    return field(
        default=default,
        metadata={"description": description, "choices": choices, "kind": kind or type(default)},
    )


@dataclass(frozen=True)
class Settings:
    """All settings as one frozen value, which is passed down as a whole."""

    min_schedule_seconds: int = _setting(60, "Shortest schedule a stream table may have, in seconds.")
    max_consecutive_errors: int = _setting(3, "Failed refreshes in a row after which a stream table is suspended.")
    differential_max_change_ratio: float | None = _setting(
        None,
        "Changed rows / rows of a source above which a refresh runs FULL; 0.0 never falls back. Unset, mode AUTO runs"
        " FULL where that is predicted to be cheaper, and mode DIFFERENTIAL above 0.15.",
        kind=float,
    )
    halted: str = _setting(
        "fail",
        "What an Airflow task does for a stream table in status SUSPENDED or ERROR: `fail` in each run until somebody"
        " acts, or `warn` in the plan's log and be skipped.",
        ("fail", "warn"),
    )
    cdc_mode: str = _setting(
        "auto",
        "How sources are captured where their stream tables don't say: `trigger`; `wal`, from the log; `auto`, by"
        " triggers until the log can be used without a risk for the disk.",
        ("auto", "trigger", "wal"),
    )
    wal_lag_warning_mb: int = _setting(100, "Log in MB that was not pumped, above which a warning is given.")
    wal_lag_limit_mb: int = _setting(
        1_024, "Log in MB that was not pumped, above which sources are captured by triggers again."
    )
    wal_transition_timeout_seconds: int = _setting(
        10, "Longest wait for older transactions when a replication slot is made."
    )
    change_buffer_warning_rows: int = _setting(
        1_000_000, "Pending rows in a change buffer above which buffer_growth_warning is sent."
    )
    unlogged_buffers: bool = _setting(
        False,
        "Whether change buffers may be UNLOGGED where stream tables don't say: capture then writes no log, and a crash"
        " of the server empties them, after which their readers run FULL once. A buffer is, if all its readers allow"
        " it.",
    )
    refresh_history_days: int = _setting(30, "Days a row of the refresh history is kept.")
    jdbc_jar: str = _setting("", "Path of the PostgreSQL JDBC driver; found by itself when empty.")
    spark_master: str = _setting("local[*]", "Master of the Spark session started when none is given.")
    spark_driver_memory: str = _setting("1g", "Heap of that session's driver, which with a local master is all of it.")
    spark_shuffle_partitions: int = _setting(2, "Shuffle partitions of a small refresh.")
    placement: str = _setting(
        "spark",
        "Where changes are computed: on `spark`; in the `database`, by the session that also writes them, without"
        " Spark; or `auto`, wherever that is cheaper. A stream table's own placement stands above it.",
        PLACEMENTS,
    )
    pushdown_max_changes: int = _setting(
        5_000_000,
        "Changed rows up to which a difference is one statement in PostgreSQL; above it Spark joins and aggregates.",
    )
    pushdown_max_rows: int = _setting(
        100_000,
        "Rows of the largest source up to which a FULL is one statement in PostgreSQL; above it Spark joins and"
        " aggregates.",
    )
    keep_parts: bool = _setting(
        True,
        "Whether an aggregate that another one, a window, DISTINCT or LIMIT gathers is kept by itself, in a hidden"
        " stream table.",
    )
    immediate_topk_max_limit: int = _setting(
        1_000,
        "Rows up to which the window of an ORDER BY with LIMIT may reach in refresh mode IMMEDIATE, because each"
        " statement computes it anew.",
    )
    collect_max_rows: int = _setting(
        50_000, "Changed rows up to which a result comes to the driver; above it executors COPY it themselves."
    )
    read_partition_rows: int = _setting(250_000, "Rows of one JDBC partition of a full table read.")
    max_read_partitions: int = _setting(16, "Most JDBC partitions of one table read.")
    verify_chunk_rows: int = _setting(
        5_000_000,
        "Rows that a verification compares on one snapshot; between two of them it can be stopped, and goes on later.",
    )
    lock_timeout_seconds: int = _setting(30, "Longest wait for a lock while declaring or applying.")
    retry_attempts: int = _setting(5, "Tries of a refresh that fails for a transient reason.")
    retry_base_seconds: float = _setting(1.0, "First back-off of a retry; doubles each time, with jitter.")
    retry_max_seconds: float = _setting(60.0, "Longest back-off of a retry.")
    lease_seconds: int = _setting(3600, "Time after which a run's lease may be taken by another run.")

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """The effective settings; a wrong name or value is a `UsageError`."""
        known = {f.name: f for f in fields(cls)}
        unknown = sorted(set(overrides) - set(known))
        if unknown:
            raise UsageError(f"There is no setting named {unknown[0]!r}", remedy=f"Known: {', '.join(known)}.")
        values = {}
        for name, spec in known.items():
            raw = overrides.get(name)
            if raw is None:
                raw = os.environ.get(f"PGTRICKLE_{name.upper()}")
            if raw is None:
                raw = _from_airflow(name)
            if raw is not None and not (raw == "" and spec.default is None):
                values[name] = _convert(name, raw, spec.metadata["kind"])
                choices = spec.metadata["choices"]
                if choices and values[name] not in choices:
                    raise UsageError(f"Setting {name} can't be {raw!r}", remedy=f"Use one of {', '.join(choices)}.")
        return cls(**values)


def _from_airflow(name: str) -> str | None:
    """Airflow's value, if this process has imported Airflow already."""
    import sys

    if "airflow.configuration" not in sys.modules:
        return None
    from airflow.configuration import conf

    return conf.get("pgtrickle", name, fallback=None)


def _convert(name: str, raw: Any, kind: type) -> Any:
    if kind is bool and not isinstance(raw, bool):
        if str(raw).strip().lower() not in _BOOLEANS:
            raise UsageError(f"Setting {name} must be true or false, not {raw!r}")
        return _BOOLEANS[str(raw).strip().lower()]
    try:
        return kind(raw)
    except (TypeError, ValueError):
        raise UsageError(f"Setting {name} must be a {kind.__name__}, not {raw!r}") from None
