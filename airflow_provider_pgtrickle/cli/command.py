"""What a command is: a name, its arguments as data, and a function of a client and those arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


@dataclass(frozen=True)
class Argument:
    """As `argparse.add_argument` takes it, and Airflow's `Arg` likewise."""

    flags: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def argument(*flags: str, **options: Any) -> Argument:
    """`argument("name", help="…")` reads as `add_argument` does."""
    return Argument(flags, options)


@dataclass(frozen=True)
class Answer:
    """What a command found, for people and for programs: either rows or words."""

    rows: Sequence[Mapping[str, Any]] | None = None
    columns: tuple[str, ...] = ()
    """Which of the rows' values a person sees; all in JSON."""
    text: str | None = None
    data: Any = None
    """What JSON shows where it is not the rows."""
    failed: bool = False
    """The command did its work and the finding is bad: exit code 1."""


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    help: str
    run: Callable[[PgTrickle, argparse.Namespace], Answer]
    arguments: tuple[Argument, ...] = ()

    def add_to(self, subparsers: Any) -> argparse.ArgumentParser:
        """Its parser, under the given subparsers."""
        parser = subparsers.add_parser(self.name, help=self.help, description=self.help)
        for given in self.arguments:
            parser.add_argument(*given.flags, **given.options)
        parser.set_defaults(command=self)
        return parser
