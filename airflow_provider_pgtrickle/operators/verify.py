"""Verifies contents: compares them with their queries' answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_pgtrickle.engine import schedule
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    import psycopg
    from airflow.sdk import Context

    from airflow_provider_pgtrickle.engine.refresh.verify import Verified

#: An XCom holds no more names; the catalog has the rest.
_MOST_NAMES = 50

# A verification that was skipped counts as done; one that was stopped has no end and is due at once.
_LAST = """
SELECT t.pgt_schema || '.' || t.pgt_name, t.verify_every,
       (SELECT v.ended_at FROM pgtrickle.pgt_verifications v
         WHERE v.pgt_id = t.pgt_id ORDER BY v.verification_id DESC LIMIT 1)
  FROM pgtrickle.pgt_stream_tables t
 WHERE t.verify_every IS NOT NULL AND t.is_populated AND NOT t.is_hidden
   AND t.pgt_schema || '.' || t.pgt_name = ANY(%s)
 ORDER BY 1
"""


class StreamTableVerifyOperator(BaseOperator):
    """Compares stream tables with their queries' answers, each on one snapshot, and fails if one differs.

    Large tables are compared on the task's own Spark, by ranges: after a kill the next task goes on where it was.

    :param tables: names, templated; None: every stream table of the database
    :param sample: the share of the rows to compare, picked at random; None: all
    :param refresh: first refresh tables that can't be compared as they are because they have no delta; False skips them
    :param repair: compute tables that differ anew, and fail only if that didn't help
    :param on_difference: `fail`, or `warn` in the log alone; the alert `content_differs` is sent either way
    :param only_due: only those whose `verify_every` has passed since they were last verified
    """

    template_fields: Sequence[str] = ("tables", "postgres_conn_id")
    ui_color = "#d9d2e9"

    def __init__(
        self,
        *,
        tables: Sequence[str] | None = None,
        sample: float | None = None,
        refresh: bool = True,
        repair: bool = False,
        on_difference: str = "fail",
        only_due: bool = False,
        postgres_conn_id: str = DEFAULT_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if on_difference not in ("fail", "warn"):
            raise UsageError(f"on_difference can't be {on_difference!r}", remedy="Use 'fail' or 'warn'.")
        self.tables = tables
        self.sample = sample
        self.refresh = refresh
        self.repair = repair
        self.on_difference = on_difference
        self.only_due = only_due
        self.postgres_conn_id = postgres_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        with as_airflow(), hook_of(self.postgres_conn_id).get_client() as client:
            names: Sequence[str | None] = [None] if self.tables is None else list(self.tables)
            if self.only_due:
                with client.database.transaction() as conn:
                    names = due(conn, [name for name in names if name is not None])
                if not names:
                    raise AirflowSkipException("no verification is due")
            found = [
                verified
                for name in names
                for verified in client.verify(name, sample=self.sample, refresh=self.refresh, repair=self.repair).tables
            ]
        for verified in found:
            self._log(verified)
        wrong = [verified for verified in found if verified.differences]
        if wrong and self.on_difference == "fail":
            # A retry would find the same.
            raise AirflowFailException(" ".join(map(_sentence, wrong)))
        return {verified.name: _summary(verified) for verified in islice(found, _MOST_NAMES)}

    def _log(self, verified: Verified) -> None:
        if verified.differences:
            self.log.error("%s", _sentence(verified))
        elif verified.repaired:
            self.log.warning("%s differed from its query and was computed anew", verified.name)
        elif verified.status == "SKIPPED":
            self.log.warning("%s was not verified: %s", verified.name, verified.reason)
        elif verified.frozen is not None:
            self.log.info(
                "%s is as it must be: %d rows; %d differ from its table's, because they are frozen",
                verified.name,
                verified.rows_compared,
                verified.frozen,
            )
        else:
            self.log.info("%s is its query's answer: %d rows", verified.name, verified.rows_compared)


def due(conn: psycopg.Connection[Any], names: Sequence[str]) -> list[str]:
    """Those of the tables, by `schema.name`, whose `verify_every` has passed."""
    now = datetime.now(UTC)
    return [name for name, every, last in conn.execute(_LAST, (list(names),)) if _is_due(every, last, now)]


def _is_due(every: str, last: datetime | None, now: datetime) -> bool:
    """Whether a verification is due. A duration counts from the last one; there are no canonical periods."""
    parsed = schedule.parse(every, 1)
    if last is None or isinstance(parsed, schedule.Calculated):
        return True
    if isinstance(parsed, schedule.Cron):
        return parsed.is_due(last, now)
    return (now - last).total_seconds() >= parsed.seconds


def _sentence(verified: Verified) -> str:
    return (
        f"{verified.name} differs from its query in {verified.differences} rows;"
        " pgtrickle.pgt_verification_rows has the first of them. Compute it anew: pgtrickle verify"
        f" {verified.name} --repair."
    )


def _summary(verified: Verified) -> dict[str, Any]:
    return {
        "status": verified.status,
        "reason": verified.reason,
        "rows_compared": verified.rows_compared,
        "differences": verified.differences,
        "undecided": verified.undecided,
        "repaired": verified.repaired,
        "data_timestamp": verified.data_timestamp.isoformat() if verified.data_timestamp else None,
    }
