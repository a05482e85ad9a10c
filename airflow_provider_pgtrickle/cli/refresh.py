"""refresh: bring stream tables up to date."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument

_COLUMNS = ("name", "action", "fallback_reason", "rows_inserted", "rows_updated", "rows_deleted", "duration_ms")

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def refresh(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    if arguments.unit:
        results = list(client.refresh(arguments.names, force_full=arguments.full).values())
    else:
        results = [r for name in arguments.names for r in client.refresh_with_upstream(name, arguments.full)]
    # A table that several of them read was refreshed before each; what was done first is what is told.
    told = {result.name: result for result in reversed(results)}
    rows = [asdict(told[name]) for name in dict.fromkeys(result.name for result in results)]
    # Of a unit only the table that holds the others back can be acted upon.
    left = {row["name"]: why for row in rows if not row["held_by"] and (why := _reason(row)) in _REMEDIES}
    return Answer(
        rows=rows,
        columns=_COLUMNS,
        failed=any(reason in HALTED for reason in left.values()),
        notes=tuple(
            _left_out(name, reason, [row["name"] for row in rows if row["held_by"] == name], client)
            for name, reason in left.items()
        ),
    )


_RESUME = "Mend the cause, then pgtrickle alter {name} --status active, or pgtrickle refresh {name} --full."
#: The reasons for which nobody refreshes a table until somebody acts.
HALTED = ("suspended", "error")
#: Why a table was not refreshed though somebody asked for it, and what to do.
_REMEDIES = {
    **dict.fromkeys(HALTED, _RESUME),
    "gated": "pgtrickle ungate {name} lets it be refreshed again.",
    "locked": "Another run refreshes it right now: pgtrickle history {name} shows which.",
}


def _reason(row: Mapping[str, Any]) -> str | None:
    """The reason of a SKIP without what somebody said when gating it."""
    return (row["fallback_reason"] or "").partition(":")[0] if row["action"] == "SKIP" else None


def _left_out(name: str, reason: str, beside: Sequence[str], client: PgTrickle) -> str:
    """`beside`: those of its unit that it holds back."""
    state: Mapping[str, Any] = next((row for row in client.status() if row["name"] == name), {})
    why = state.get("gated_reason") if reason == "gated" else state.get("last_error")
    cause = f" ({str(why).rstrip('.')})" if why else ""
    nor = f", nor was what is refreshed together with it ({', '.join(beside)})" if beside else ""
    return f"{name} was not refreshed{nor}: it is {reason}{cause}. {_REMEDIES[reason].format(name=name)}"


COMMANDS = (
    Command(
        "refresh",
        "Refresh stream tables, those they read first.",
        refresh,
        (
            argument("names", nargs="+", metavar="NAME", help="the stream tables"),
            argument("--full", action="store_true", help="recompute all of it"),
            argument("--unit", action="store_true", help="all named tables at one instant, in one commit"),
        ),
    ),
)
