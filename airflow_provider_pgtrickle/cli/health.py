"""health: check whether everything that a refresh needs is there."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def health(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    findings = client.health()
    return Answer(rows=[asdict(finding) for finding in findings], failed=not all(finding.ok for finding in findings))


COMMANDS = (Command("health", "Check the database, capture, Java, the JDBC driver and PySpark.", health),)
