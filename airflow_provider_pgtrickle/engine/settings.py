"""Every setting, its default and its meaning.

This is the one source for `[pgtrickle]` in Airflow's configuration, for the keyword options of `PgTrickle(...)`, and
for the reference in the docs.

A value is looked up in this order: the keyword, the environment (`PGTRICKLE_<NAME>`),
Airflow's configuration where Airflow runs, the default.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from airflow_provider_pgtrickle.engine.errors import PgTrickleWarning, UsageError

#: Where changes may be computed.
PLACEMENTS = ("spark", "auto", "database")

#: Settings of earlier releases: now the learned cost of each way decides.
RETIRED = frozenset({"pushdown_max_changes", "pushdown_max_rows"})

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
    spark_credentials: str = _setting(
        "",
        "How Spark gets into PostgreSQL: empty, by the connection's own credentials, which are sent along; `pgpass`, by"
        " the password file that stands where Spark runs; `service=NAME`, by that entry of the connection service file"
        " there. A Spark Connect server then reads through JDBC, without a Python worker.",
    )
    spark_wait_seconds: float = _setting(
        600.0,
        "Longest wait for an executor: a refresh fails whose tasks nobody has taken for so long, because Spark itself"
        " waits without limit. 0: as Spark does.",
    )
    spark_shuffle_partitions: int = _setting(2, "Shuffle partitions of a small refresh.")
    placement: str = _setting(
        "spark",
        "Where changes are computed: on `spark`; in the `database`, by the session that also writes them, without"
        " Spark; or `auto`, wherever that is cheaper. A stream table's own placement stands above it.",
        PLACEMENTS,
    )
    keep_parts: bool = _setting(
        True,
        "Whether an aggregate that another one, a window, DISTINCT or LIMIT gathers or HAVING filters, and the values"
        " that one takes in once (count(DISTINCT x)), are kept by themselves, in hidden stream tables.",
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
    auto_backoff: bool = _setting(
        False,
        "Whether a stream table whose refresh takes longer than its schedule is refreshed more rarely: each 2nd, 4th, …"
        " time, so that it fits. It follows its schedule again when it does.",
    )
    max_concurrent_refreshes: int = _setting(
        0,
        "Units that may be refreshed at a time in one database, by all graphs and people together; the others wait, and"
        " what is latest relative to its schedule goes first. 0: as many as there are.",
    )
    max_concurrent_refreshes_of_graphs: str = _setting(
        "",
        "The same for the units of one graph, beside the database's limit: `sales=2, stock=4`. Units of graphs that"
        " aren't named, and tables that no graph declares, have the database's limit alone.",
    )
    parallel_refreshes: int = _setting(
        4,
        "Units that one task refreshes side by side at granularity `graph`, where none of them reads another and"
        " PostgreSQL computes them. Each takes a session. 1: one after the other.",
    )
    max_queue_seconds: int = _setting(
        600,
        "Longest wait of a refresh for its turn, after which it is skipped (`queued`) and the next run tries again.",
    )
    lease_seconds: int = _setting(3600, "Time after which a run's lease may be taken by another run.")

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """The effective settings; a wrong name or value is a `UsageError`."""
        known = {f.name: f for f in fields(cls)}
        for name in sorted(RETIRED):
            given = overrides.pop(name, None)
            if given is not None or _around(name) is not None:
                warnings.warn(
                    f"Setting {name} is ignored: what each way costs is learned now. Take the setting out.",
                    PgTrickleWarning,
                    stacklevel=2,
                )
        unknown = sorted(set(overrides) - set(known))
        if unknown:
            raise UsageError(f"There is no setting named {unknown[0]!r}", remedy=f"Known: {', '.join(known)}.")
        values = {}
        for name, spec in known.items():
            raw = overrides.get(name)
            if raw is None:
                raw = _around(name)
            if raw is not None and not (raw == "" and spec.default is None):
                values[name] = _convert(name, raw, spec.metadata["kind"])
                choices = spec.metadata["choices"]
                if choices and values[name] not in choices:
                    raise UsageError(f"Setting {name} can't be {raw!r}", remedy=f"Use one of {', '.join(choices)}.")
        loaded = cls(**values)
        _ = loaded.quotas  # a wrong one is told where it is set, and not by the first refresh
        return loaded

    @cached_property
    def quotas(self) -> Mapping[str, int]:
        """How many units of a graph may be refreshed at a time, by the graph's name."""
        found = {}
        for word in self.max_concurrent_refreshes_of_graphs.replace(",", " ").split():
            graph, _, most = word.rpartition("=")
            if not graph or not most.isdecimal() or not int(most):
                raise UsageError(
                    f"Setting max_concurrent_refreshes_of_graphs has {word!r}",
                    remedy="Write graph=number, and a blank or a comma between two: sales=2, stock=4.",
                )
            found[graph] = int(most)
        return found


def _around(name: str) -> str | None:
    """What the environment says, or Airflow's configuration."""
    raw = os.environ.get(f"PGTRICKLE_{name.upper()}")
    return _from_airflow(name) if raw is None else raw


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
