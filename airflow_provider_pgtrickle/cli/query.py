"""explain, validate: show how a query is maintained."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument
from airflow_provider_pgtrickle.cli.declare import query_of
from airflow_provider_pgtrickle.engine.errors import UsageError

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def explain(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(text=str(client.explain_st(arguments.name)))


def validate(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    query = query_of(arguments)
    if query is None:
        raise UsageError("There is no query to validate", remedy="Pass --query or --query-file.")
    return Answer(text=str(client.validate_query(query)))


COMMANDS = (
    Command(
        "explain",
        "How a stream table is maintained: operators, delta SQL, sink, and why it is (not) differentiable.",
        explain,
        (argument("name", metavar="NAME"),),
    ),
    Command(
        "validate",
        "The same for a query, before anything is created.",
        validate,
        (
            argument("--query", help="the SELECT; '-' reads it from standard input"),
            argument("--query-file", type=Path, metavar="FILE", help="a file that holds it"),
        ),
    ),
)
