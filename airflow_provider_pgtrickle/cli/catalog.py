"""install, cleanup, pump: commands for the catalog itself."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def install(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    applied = client.install()
    words = f"Applied {', '.join(applied)}." if applied else "The catalog is up to date."
    return Answer(text=words, data={"applied": applied})


def cleanup(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    removed = client.cleanup()
    return Answer(rows=[{"buffer": buffer, "rows_removed": rows} for buffer, rows in sorted(removed.items())])


def pump(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    rows = client.pump()
    return Answer(text=f"{rows} changes were taken from the log.", data={"rows": rows})


COMMANDS = (
    Command("install", "Create the catalog in the database, or bring it up to date.", install),
    Command("cleanup", "Remove consumed changes, orphaned staging tables and old history.", cleanup),
    Command("pump", "Take the changes of sources that are captured from the WAL into their buffers.", pump),
)
