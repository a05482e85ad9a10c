"""verify: compare contents with their queries' answers."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument
from airflow_provider_pgtrickle.engine.errors import UsageError

_COLUMNS = (
    "name",
    "status",
    "rows_compared",
    "differences",
    "undecided",
    "frozen",
    "data_timestamp",
    "duration_ms",
    "reason",
)
_SAMPLE = 0.05

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle
    from airflow_provider_pgtrickle.engine.refresh.verify import Verified


def verify(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    if bool(arguments.names) == arguments.all:
        raise UsageError("Which stream table is to be verified?", remedy="Give names, or --all.")
    sample = _SAMPLE if arguments.sample is None else arguments.sample or None
    verified = [
        table
        for name in arguments.names or [None]
        for table in client.verify(
            name,
            sample=sample,
            refresh=arguments.refresh,
            repair=arguments.repair,
            restart=arguments.restart,
        ).tables
    ]
    return Answer(
        rows=[asdict(table) for table in verified],
        columns=_COLUMNS,
        failed=any(table.differences for table in verified),
        notes=tuple(_undecided(table) for table in verified if table.undecided and table.unbounded),
    )


def _undecided(table: Verified) -> str:
    named = ", ".join(table.unbounded)
    return (
        f"{table.name}: {named} is computed from sums of floats, whose rounding has no bound there. A deviation in it"
        " counts as undecided, however large."
    )


COMMANDS = (
    Command(
        "verify",
        "Compare contents with their queries: exit code 1 if one differs.",
        verify,
        (
            argument("names", nargs="*", metavar="NAME", help="the stream tables"),
            argument("--all", action="store_true", help="every stream table"),
            argument(
                "--sample",
                type=float,
                nargs="?",
                # Airflow's commands know no `const`: the flag without a value gives None, and no flag the default.
                default=0.0,
                metavar="SHARE",
                help=f"only some of the rows, picked at random by a hash: a share such as 0.1 ({_SAMPLE})",
            ),
            argument(
                "--refresh",
                action=argparse.BooleanOptionalAction,
                default=True,
                help="refresh first what can't be compared as it stands (the default); else it is skipped",
            ),
            argument("--repair", action="store_true", help="compute anew what differs, and verify that"),
            argument("--restart", action="store_true", help="begin anew where an earlier verification was stopped"),
        ),
    ),
)
