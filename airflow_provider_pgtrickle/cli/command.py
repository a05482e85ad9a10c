"""A command: its name, its arguments as data, and a function of a client and these arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


@dataclass(frozen=True)
class Argument:
    """An argument as `argparse.add_argument` and Airflow's `Arg` take it."""

    flags: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def argument(*flags: str, **options: Any) -> Argument:
    """`argument("name", help="…")` reads as `add_argument` does."""
    return Argument(flags, options)


#: The stream table that a command is about.
NAME = argument("name", metavar="NAME", help="the stream table")


@dataclass(frozen=True)
class Answer:
    """What a command found, as rows or as text, for people and for programs."""

    rows: Sequence[Mapping[str, Any]] | None = None
    columns: tuple[str, ...] = ()
    """The columns that a person sees; JSON has all."""
    text: str | None = None
    data: Any = None
    """What JSON shows if that is not the rows."""
    failed: bool = False
    """The command did its work, and its finding is bad: the exit code is 1."""
    notes: tuple[str, ...] = ()
    """What is to be done about it, in sentences."""


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    help: str
    run: Callable[[PgTrickle, argparse.Namespace], Answer]
    arguments: tuple[Argument, ...] = ()
    needs_database: bool = True
    follows: bool = False
    """It shows by itself what goes on."""

    def add_to(self, subparsers: Any) -> argparse.ArgumentParser:
        """Add its parser to the given subparsers."""
        parser = subparsers.add_parser(self.name, help=self.help, description=self.help)
        for given in self.arguments:
            parser.add_argument(*given.flags, **given.options)
        parser.set_defaults(command=self)
        return parser
