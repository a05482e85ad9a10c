"""`pgtrickle`: stream tables from the command line.

`commands()` lists the whole interface; `airflow pgtrickle …` is made from the same list.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.cli.command import Command

__all__ = ["commands", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    # What is imported stays: nothing of it is ever garbage, and to look for some takes a tenth of the time. So all of
    # it is imported here, and where a command begins its work garbage is looked for again.
    gc.disable()
    try:
        from airflow_provider_pgtrickle.cli import entry

        return entry.main(argv)
    finally:
        gc.enable()


def commands() -> tuple[Command, ...]:
    """The commands of all groups."""
    from airflow_provider_pgtrickle.cli import entry

    return entry.commands()
