"""The outcome of a run. It is read from the refresh history, because the computation may have run anywhere."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult

if TYPE_CHECKING:
    import psycopg
    from airflow.sdk import Asset, BaseOperator, Context

# All attempts of the run count: one may have committed and died before it could report that.
_HISTORY = """
SELECT h.refresh_id, st.pgt_schema || '.' || st.pgt_name AS name, h.status, h.action, h.fallback_reason,
       h.rows_inserted, h.rows_updated, h.rows_deleted, h.source_changes, h.rows_read, h.reads, h.spark_jobs,
       h.duration_ms, h.data_timestamp, h.run_token, h.error_message, h.phases
  FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)
 WHERE NOT st.is_hidden AND (h.run_token = %s OR starts_with(h.run_token, %s))
 ORDER BY h.refresh_id
"""

#: Phases that took less are left out of a log.
_WORTH_TELLING_MS = 50

_LONGEST_NOTE = 300

_log = logging.getLogger(__name__)

_NAMESPACE = uuid.UUID("6f0c1d3e-5f0b-5c0e-9a55-7f2d7c1b9e21")


@dataclass(frozen=True)
class Outcome:
    """One table's last attempt in a run, with what all of the run's attempts committed."""

    result: RefreshResult
    """Its numbers of rows are those of all attempts together."""
    error: str | None = None
    refresh_id: int = 0
    """The last attempt's id in the history."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of each phase of the last attempt."""

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return self.error is None and self.result.action in ("SKIP", "NO_DATA")

    @property
    def event(self) -> dict[str, Any]:
        """The extra of its asset event."""
        result = self.result
        rows = (result.rows_inserted, result.rows_updated, result.rows_deleted)
        return _event(result.action, rows, result.data_timestamp)

    def __str__(self) -> str:
        """What a log says of it: action, reason, rows, and where the time went."""
        result = self.result
        reason = f" ({result.fallback_reason})" if result.fallback_reason else ""
        longest = sorted(self.phases.items(), key=lambda phase: -phase[1])
        spent = ", ".join(f"{name} {ms / 1000:.1f}" for name, ms in longest if ms >= _WORTH_TELLING_MS)
        return (
            f"{result.name}: {result.action}{reason}, +{result.rows_inserted} ~{result.rows_updated}"
            f" -{result.rows_deleted} rows from {result.source_changes} changes"
            f" in {result.duration_ms / 1000:.1f} s{f' ({spent})' if spent else ''}"
            + (f", as of {result.data_timestamp:%Y-%m-%d %H:%M:%S%z}" if result.data_timestamp else "")
        )

    @property
    def note(self) -> str:
        """What the task's page says of it, beside its name: no more than fits into a line."""
        name = f"{self.result.name}: "
        told = f"FAILED: {self.error.removeprefix(name)}" if self.error else str(self).removeprefix(name)
        return told if len(told) <= _LONGEST_NOTE else f"{told[: _LONGEST_NOTE - 1]}…"

    @property
    def summary(self) -> dict[str, Any]:
        """The summary for an XCom, which is small and holds nothing secret."""
        result = self.result
        return {
            "action": result.action,
            "fallback_reason": result.fallback_reason,
            "rows_inserted": result.rows_inserted,
            "rows_updated": result.rows_updated,
            "rows_deleted": result.rows_deleted,
            "source_changes": result.source_changes,
            "rows_read": result.rows_read,
            "duration_ms": round(result.duration_ms, 1),
            "data_timestamp": result.data_timestamp.isoformat() if result.data_timestamp else None,
        }


def _event(action: str, rows: Sequence[int], data_timestamp: datetime | None) -> dict[str, Any]:
    return {
        "action": action,
        "rows": dict(zip(("inserted", "updated", "deleted"), rows, strict=True)),
        "data_timestamp": data_timestamp.isoformat() if data_timestamp else None,
    }


def written_by_writers(rows: Sequence[int], at: datetime) -> dict[str, Any]:
    """The extra of the asset event of an IMMEDIATE table that writers have changed."""
    return _event("IMMEDIATE", rows, at)


def run_token(context: Context, round_: int | None = None) -> str:
    """The token of a task's run. Its retries share it, so that a retry takes over from an attempt that may be alive.

    After the task was cleared the token is another one.
    """
    ti = context["ti"]
    if round_ is None:
        round_ = current_round(context)
    key = "|".join([ti.dag_id, ti.run_id, ti.task_id, str(getattr(ti, "map_index", -1)), str(round_)])
    return uuid.uuid5(_NAMESPACE, key).hex


def current_round(context: Context) -> int:
    """How many tries there were before the task was last cleared."""
    ti = context["ti"]
    most = getattr(ti, "max_tries", None)
    return max(0, (most or 0) - (ti.task.retries or 0)) if most is not None else 0


def initiator(context: Context) -> str:
    """Who asked for a refresh, for the history."""
    return f"airflow {context['ti'].dag_id}.{context['ti'].task_id}"


def read(conn: psycopg.Connection[Any], token: str, names: Iterable[str] | None = None) -> dict[str, Outcome]:
    """The outcomes of a run by stream table."""
    wanted = None if names is None else set(names)
    from psycopg.rows import dict_row

    outcomes: dict[str, Outcome] = {}
    with conn.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute(_HISTORY, (token, f"{token}/")).fetchall():
            if wanted is None or row["name"] in wanted:
                outcomes[row["name"]] = _after(outcomes.get(row["name"]), row)
    return outcomes


def _after(before: Outcome | None, row: Mapping[str, Any]) -> Outcome:
    result = RefreshResult(
        name=row["name"],
        action=row["action"] or "SKIP",
        fallback_reason=row["fallback_reason"],
        rows_inserted=row["rows_inserted"],
        rows_updated=row["rows_updated"],
        rows_deleted=row["rows_deleted"],
        source_changes=row["source_changes"],
        duration_ms=row["duration_ms"] or 0.0,
        data_timestamp=row["data_timestamp"],
        rows_read=row["rows_read"],
        reads=row["reads"],
        spark_jobs=row["spark_jobs"],
        run_token=row["run_token"],
        status=row["status"],
    )
    if before is not None and before.result.status == "COMPLETED":
        earlier = before.result
        result = replace(
            result,
            # A second attempt that found nothing left to do must not hide the first one's action.
            action=earlier.action if result.action == "NO_DATA" else result.action,
            rows_inserted=earlier.rows_inserted + result.rows_inserted,
            rows_updated=earlier.rows_updated + result.rows_updated,
            rows_deleted=earlier.rows_deleted + result.rows_deleted,
        )
    return Outcome(result, row["error_message"], row["refresh_id"], row["phases"] or {})


def emit(context: Context, operator: BaseOperator, updates: Sequence[tuple[Asset, Mapping[str, Any]]]) -> None:
    """Let the task update these assets, each with its extra, and none of its other outlets.

    Airflow updates all outlets of a task that succeeds, as the task has them at its end. It shows the task as the
    producer of all that the DAG file gave it.
    """
    wanted = {asset.uri for asset, _ in updates}
    operator.outlets = [o for o in operator.outlets if not _is_ours(o) or o.uri in wanted]
    for asset, extra in updates:
        context["outlet_events"][asset].extra = dict(extra)


def note(context: Context, outcomes: Iterable[Outcome]) -> None:
    """Show on the task's page what was done with each table.

    A task can't write Airflow's notes: only its public API takes them, from a logged-in user. What a task can keep is
    its state store, whose values Airflow shows in a tab of their own.
    """
    try:
        store = context["task_state_store"]
        for outcome in outcomes:
            store.set(outcome.result.name, outcome.note)
    except Exception as error:
        # The refresh is committed, and its log and its XCom say the same.
        _log.warning("What was done doesn't show on the task's page: %s", type(error).__name__)


def _is_ours(outlet: Any) -> bool:
    """Whether it is the asset of a stream table, and not one that the user gave the task."""
    return "table" in (getattr(outlet, "extra", None) or {})


def failed(outcomes: Mapping[str, Outcome]) -> Sequence[Outcome]:
    return [outcome for outcome in outcomes.values() if outcome.result.status == "FAILED"]
