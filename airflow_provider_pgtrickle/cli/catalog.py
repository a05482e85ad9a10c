"""install, cleanup, pump, prune, uninstall: commands for the catalog itself."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument
from airflow_provider_pgtrickle.engine.errors import UsageError

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


def prune(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    found = client.removed(graph=arguments.graph, root=arguments.dags)
    rows = [{"name": name, "was_declared_by": str(owner)} for name, owner in found.items()]
    if not arguments.yes:
        notes = ("Nothing was dropped. pgtrickle prune --yes drops them.",) if found else ()
        return Answer(rows=rows, notes=notes)
    dropped = client.prune(found)
    return Answer(text=f"Dropped {', '.join(dropped) or 'nothing'}.", data={"dropped": dropped})


def uninstall(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    if not arguments.yes:
        names = [str(row["name"]) for row in client.status()]
        listed = ", ".join(names) or "no stream table"
        raise UsageError(
            f"This would drop {listed}, all captured changes and the catalog", remedy="Add --yes to do so."
        )
    dropped = client.uninstall(cascade=arguments.cascade)
    return Answer(
        text=f"Dropped {', '.join(dropped) or 'no stream table'}, and the schemas pgtrickle and pgtrickle_changes.",
        data={"dropped": dropped},
    )


_YES = argument("--yes", action="store_true", help="do it, and ask no more")

COMMANDS = (
    Command("install", "Create the catalog in the database, or bring it up to date.", install),
    Command("cleanup", "Remove consumed changes, orphaned staging tables and old history.", cleanup),
    Command("pump", "Take the changes of sources that are captured from the WAL into their buffers.", pump),
    Command(
        "prune",
        "List the stream tables that no DAG file declares any more, or drop them.",
        prune,
        (
            argument("--graph", metavar="NAME", help="and all tables of this StreamTableGraph, which is gone itself"),
            argument("--dags", type=Path, metavar="FOLDER", help="and those whose file is not in this DAG folder"),
            _YES,
        ),
    ),
    Command(
        "uninstall",
        "Drop all stream tables, their triggers, the captured changes and the catalog.",
        uninstall,
        (argument("--cascade", action="store_true", help="drop what reads a stream table too"), _YES),
    ),
)
