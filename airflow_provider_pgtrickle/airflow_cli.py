"""`airflow pgtrickle …`: the commands of `pgtrickle` on an Airflow connection instead of a DSN."""

from __future__ import annotations

import argparse
import functools
import os
import sys

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand

from airflow_provider_pgtrickle.cli import commands, output
from airflow_provider_pgtrickle.cli.command import Command
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

_CONN_ID = Arg(
    ("--conn-id",),
    help=f"the Airflow connection of the database; {DEFAULT_CONN_ID} when not given",
    default=DEFAULT_CONN_ID,
)
_JSON = Arg(("--json",), help="print JSON", action="store_true")


def get_pgtrickle_cli_commands() -> list[CLICommand]:
    """What Airflow's command line asks a provider for."""
    return [
        GroupCommand(
            name="pgtrickle",
            help="Declare, refresh and inspect stream tables",
            description="The commands of `pgtrickle`, on the database of an Airflow connection.",
            subcommands=tuple(_action(command) for command in commands() if command.needs_database),
        )
    ]


def _action(command: Command) -> ActionCommand:
    own = tuple(Arg(given.flags, **given.options) for given in command.arguments)
    return ActionCommand(
        name=command.name,
        help=command.help,
        func=functools.partial(_run, command),
        args=(*own, _CONN_ID, _JSON),
    )


def _run(command: Command, arguments: argparse.Namespace) -> None:
    """Run one command and leave with its exit code: 0 done, 1 failed, 2 misused."""
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook

    # Airflow's command line may read the metadata database; the SDK must be told that this process does.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    try:
        with PgTrickleHook(postgres_conn_id=arguments.conn_id).get_client() as client:
            answer = command.run(client, arguments)
    except PgTrickleError as error:
        print(f"pgtrickle: {error}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, UsageError) else 1) from None
    print(output.render(answer, arguments.json), flush=True)
    if answer.failed:
        raise SystemExit(1)
