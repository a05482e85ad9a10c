"""What is being done, while a person waits at a terminal for more than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_pgtrickle.engine import progress

_PATIENCE = 1.0
#: The phases of a refresh, as the history calls them, in words.
_WORDS = {
    "queue": "waiting for its turn",
    "lock": "waiting for its lock",
    "schema": "looking at what it reads",
    "capture": "settling how changes are captured",
    "snapshot": "taking a snapshot",
    "decide": "counting changes",
    "spark": "starting Spark",
    "compute": "computing",
    "hand_on": "handing its change on",
    "apply": "writing the difference",
}


@contextmanager
def shown() -> Iterator[None]:
    """On a terminal, show the table, the phase and the time on the last line, and nothing once it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("asking PostgreSQL")
    said = {"subject": "", "phase": "", "tasks": ""}

    def hear(what: str, name: str | None) -> None:
        said[what] = name or ""
        if what != "tasks":
            said["tasks"] = ""
        doing = _WORDS.get(said["phase"], said["phase"])
        if said["tasks"]:
            doing = f"{doing}, {said['tasks']}"
        bar.update(task, description=": ".join(filter(None, (said["subject"], doing))))

    starter = threading.Timer(_PATIENCE, bar.start)
    starter.daemon = True
    starter.start()
    try:
        with progress.heard(hear):
            yield
    finally:
        starter.cancel()
        starter.join()
        bar.stop()
