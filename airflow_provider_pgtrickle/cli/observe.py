"""status, history, tree, sources, buffers: show what there is and what happened."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument
from airflow_provider_pgtrickle.engine.errors import UsageError

_STATUS = (
    "pgt_schema",
    "pgt_name",
    "status",
    "refresh_mode",
    "is_live",
    "schedule",
    "data_timestamp",
    "staleness",
    "stale",
)
_HISTORY = (
    "refresh_id",
    "start_time",
    "action",
    "status",
    "fallback_reason",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "duration_ms",
    "way",
    "candidates",
    "actual_ms",
    "error_message",
)

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def status(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(rows=client.status(), columns=_STATUS)


def history(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    if arguments.number < 1:
        raise UsageError("The number of refreshes must be 1 or more")
    return Answer(rows=client.history(arguments.name, arguments.number), columns=_HISTORY)


def tree(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    nodes = client.tree()
    return Answer(text="\n".join(node["tree_line"] for node in nodes) or "(none)", data=nodes)


def sources(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(rows=client.sources(arguments.name))


def buffers(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(rows=client.buffers())


_NAME = argument("name", metavar="NAME")

COMMANDS = (
    Command("status", "Every stream table, how fresh it is and how it stands.", status),
    Command(
        "history",
        "The last refreshes of a stream table.",
        history,
        (_NAME, argument("-n", "--number", type=int, default=20, metavar="N", help="how many (20)")),
    ),
    Command("tree", "What reads what.", tree),
    Command("sources", "What a stream table reads, and how its changes are captured.", sources, (_NAME,)),
    Command("buffers", "Pending changes and the size of each change buffer.", buffers),
)
