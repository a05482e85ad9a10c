"""`airflow pgtrickle …`: the commands of `pgtrickle` on an Airflow connection instead of a DSN."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import Any

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand

from airflow_provider_pgtrickle.cli import commands, output
from airflow_provider_pgtrickle.cli.command import Command
from airflow_provider_pgtrickle.errors import PgTrickleError, UsageError

DEFAULT_CONN_ID = "pgtrickle_default"

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
            subcommands=tuple(_action(command) for command in commands()),
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
    from airflow_provider_pgtrickle.client import PgTrickle

    try:
        with PgTrickle(_dsn(arguments.conn_id)) as client:
            answer = command.run(client, arguments)
    except PgTrickleError as error:
        print(f"pgtrickle: {error}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, UsageError) else 1) from None
    print(output.render(answer, arguments.json), flush=True)
    if answer.failed:
        raise SystemExit(1)


def _dsn(conn_id: str) -> str:
    # The command line is a server component: it reads the metadata database, where the SDK's hooks may not.
    from airflow.exceptions import AirflowNotFoundException
    from airflow.models import Connection

    from airflow_provider_pgtrickle.triggers.listening import conninfo

    try:
        connection: Any = Connection.get_connection_from_secrets(conn_id)
    except AirflowNotFoundException:
        raise UsageError(
            f"There is no Airflow connection {conn_id!r}",
            remedy=f"Make it with: airflow connections add {conn_id} --conn-type pgtrickle … .",
        ) from None
    return conninfo(connection)
