"""gate, ungate: hold a stream table's refreshes back, for example while its sources are loaded."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import NAME, Answer, Command, argument

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def gate(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    client.gate(arguments.name, arguments.why or arguments.reason)
    return Answer(text=f"Gated {arguments.name}: it is not refreshed until ungated.", data={"gated": arguments.name})


def ungate(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    client.ungate(arguments.name)
    return Answer(text=f"Ungated {arguments.name}.", data={"ungated": arguments.name})


COMMANDS = (
    Command(
        "gate",
        "Hold a stream table's refreshes back.",
        gate,
        # As in SQL, or by name.
        (
            NAME,
            argument("why", nargs="?", metavar="REASON", help="why, which status and the page show"),
            argument("--reason", help="the same by name"),
        ),
    ),
    Command("ungate", "Let a gated stream table be refreshed again.", ungate, (NAME,)),
)
