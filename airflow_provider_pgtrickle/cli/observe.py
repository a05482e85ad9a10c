"""status, watch, history, tree, sources, buffers: show what there is and what happened."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.cli import output
from airflow_provider_pgtrickle.cli.command import NAME, Answer, Command, argument
from airflow_provider_pgtrickle.engine.catalog.alerts import CHANNEL
from airflow_provider_pgtrickle.engine.errors import UsageError

_STATUS = (
    "name",
    "status",
    "refresh_mode",
    "is_live",
    "schedule",
    "last_action",
    "last_rows",
    "staleness",
    "stale",
    "gate",
    "error",
)
_HISTORY = ("refresh_id", "start_time", "did", "rows", "duration_ms", "notes")

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def status(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(rows=[_told(row) for row in client.status()], columns=_STATUS)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """With the gate and the last error as one word or sentence each."""
    gate = (row["gated_reason"] or "yes") if row["is_gated"] else None
    return {**row, "gate": gate, "error": row["last_error"]}


def watch(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    """Show the status anew when PostgreSQL tells of a refresh, and at least every few seconds."""
    if arguments.interval <= 0:
        raise UsageError("The interval must be more than 0 seconds")
    if not sys.stdout.isatty():
        return status(client, arguments)
    from rich.live import Live

    with client.database.connect(autocommit=True) as conn, Live(screen=True, auto_refresh=False) as live:
        conn.execute(f"LISTEN {CHANNEL}")
        with suppress(KeyboardInterrupt):
            while True:
                live.update(output.grid(status(client, arguments)), refresh=True)
                # What is heard is only a reason to look.
                for _ in conn.notifies(timeout=arguments.interval, stop_after=1):
                    pass
    return status(client, arguments)


def history(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    if arguments.number < 1:
        raise UsageError("The number of refreshes must be 1 or more")
    return Answer(rows=[_read(row) for row in client.history(arguments.name, arguments.number)], columns=_HISTORY)


def _read(row: dict[str, Any]) -> dict[str, Any]:
    """With what was done and why, the rows written, and what else there is to say, each in one column."""
    done = row["status"] == "COMPLETED"
    did = (row["action"], row["fallback_reason"]) if done else (row["status"], row["action"])
    changed = f"+{row['rows_inserted']} ~{row['rows_updated']} -{row['rows_deleted']}"
    return {
        **row,
        "did": f"{did[0]} ({did[1]})" if did[1] else did[0],
        "rows": changed if done else None,
        "notes": row["error_message"] or _computed(row["way"], row["actual_ms"], row["candidates"]),
    }


def _computed(way: str | None, took: float | None, candidates: dict[str, float] | None) -> str | None:
    """Where it was computed and in what time, and what each possible way was predicted to take, the shortest first.

    >>> _computed("database", 57.2, {"FULL pushed": 1204.6, "difference database": 8.2})
    'database 57 ms; predicted: difference database 8 ms, FULL pushed 1,205 ms'
    """
    known = f"{way} {took:,.0f} ms" if way and took is not None else way
    ways = sorted((candidates or {}).items(), key=lambda one: one[1])
    predicted = ", ".join(f"{name} {ms:,.0f} ms" for name, ms in ways)
    return "; ".join(filter(None, (known, predicted and f"predicted: {predicted}"))) or None


def tree(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    nodes = client.tree()
    return Answer(text="\n".join(node["tree_line"] for node in nodes) or "(none)", data=nodes)


def sources(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(rows=client.sources(arguments.name))


def buffers(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(rows=client.buffers())


COMMANDS = (
    Command("status", "Every stream table, how fresh it is and how it stands.", status),
    Command(
        "watch",
        "The status, followed live on a terminal until Ctrl-C.",
        watch,
        (argument("--interval", type=float, default=5.0, metavar="SECONDS", help="look at least so often (5)"),),
        follows=True,
    ),
    Command(
        "history",
        "The last refreshes of a stream table.",
        history,
        (NAME, argument("-n", "--number", type=int, default=20, metavar="N", help="how many (20)")),
    ),
    Command("tree", "What reads what.", tree),
    Command("sources", "What a stream table reads, and how its changes are captured.", sources, (NAME,)),
    Command("buffers", "Pending changes and the size of each change buffer.", buffers),
)
