"""serve-requests, dbt-package: what is asked for in SQL, by people and by dbt."""

from __future__ import annotations

import argparse
import sys
from importlib import resources
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def serve_requests(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    from airflow_provider_pgtrickle.requests import serve

    rows = []
    for served in serve(client, wait=arguments.wait):
        # Who waits for more wants to see each as it is done, and nobody reads a table at the end.
        if arguments.wait:
            print(served, file=sys.stderr, flush=True)
        else:
            what, error = served.request, served.error
            done = error is None and served.answer is not None
            rows.append(
                {
                    "request": what.request_id,
                    "kind": what.kind,
                    "stream_table": str(what.table),
                    "status": "DONE" if done else "FAILED" if error else "PENDING",
                    "answer": served.answer,
                    "error": error,
                }
            )
    failed = any(row["error"] for row in rows)
    return Answer(rows=rows, columns=("request", "kind", "stream_table", "status", "error"), failed=failed)


def dbt_package(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return Answer(text=str(resources.files("airflow_provider_pgtrickle") / "dbt_pgtrickle"))


COMMANDS = (
    Command(
        "serve-requests",
        "Carry out what was asked for in SQL: pgtrickle.request_refresh(), request_declare(), dbt's stream tables.",
        serve_requests,
        (argument("--wait", action="store_true", help="then listen for more, until it is ended"),),
    ),
    Command(
        "dbt-package",
        "Print where the dbt package is, for packages.yml: `- local: PATH`.",
        dbt_package,
        needs_database=False,
    ),
)
