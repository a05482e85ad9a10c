"""refresh: bring stream tables up to date."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument

_COLUMNS = ("name", "action", "fallback_reason", "rows_inserted", "rows_updated", "rows_deleted", "duration_ms")

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def refresh(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    if arguments.unit:
        results = list(client.refresh(arguments.names, force_full=arguments.full).values())
    else:
        results = [client.refresh_stream_table(name, force_full=arguments.full) for name in arguments.names]
    return Answer(
        rows=[asdict(result) for result in results],
        columns=_COLUMNS,
    )


COMMANDS = (
    Command(
        "refresh",
        "Refresh stream tables, those they read first.",
        refresh,
        (
            argument("names", nargs="+", metavar="NAME"),
            argument("--full", action="store_true", help="recompute all of it"),
            argument("--unit", action="store_true", help="all named tables at one instant, in one commit"),
        ),
    ),
)
