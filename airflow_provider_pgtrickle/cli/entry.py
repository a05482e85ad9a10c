"""The entry point: parse, run, print, and turn every failure into one sentence and an exit code."""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from types import FrameType
from typing import Any, NoReturn

from airflow_provider_pgtrickle import __version__
from airflow_provider_pgtrickle.cli import (
    calibration,
    catalog,
    declare,
    gates,
    health,
    observe,
    output,
    progress,
    project,
    query,
    refresh,
    serve,
    verify,
)
from airflow_provider_pgtrickle.cli.command import Command
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, PgTrickleWarning, UsageError, caller, redact
from airflow_provider_pgtrickle.engine.spark import jvm

OK, FAILED, USAGE = 0, 1, 2
#: A process that a signal ended has the exit code 128 plus its number, as in shells.
_SIGNALLED = 128

#: What usage messages call the first word.
_COMMAND = "COMMAND"


def parser(first: str | None = None) -> argparse.ArgumentParser:
    """The whole command line. If `first`, its first word, is a command, then with that command alone.

    Making all of them takes as long as a small refresh.
    """
    # `--dsn` and `--json` are understood before and after the command's name.
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument(
        "--dsn", help="the database, postgresql://…; PGTRICKLE_DSN in the environment keeps a password out of `ps`"
    )
    shared.add_argument("--json", action="store_true", help="print JSON")
    top = Parser(
        prog="pgtrickle",
        description="Stream tables for any PostgreSQL, computed by PostgreSQL and Spark.",
        parents=[shared],
    )
    top.add_argument("--version", action="version", version=f"pgtrickle {__version__}")
    subparsers = top.add_subparsers(metavar=_COMMAND, required=True, parser_class=_parser_class(shared))
    known = commands()
    for command in [command for command in known if command.name == first] or known:
        command.add_to(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. The exit code is 0 done, 1 failed, 2 misused, or 128 plus the signal that ended it."""
    try:
        given = sys.argv[1:] if argv is None else argv
        if "_ARGCOMPLETE" in os.environ:
            import argcomplete

            argcomplete.autocomplete(parser())
        arguments = parser(next(iter(given), None)).parse_args(given)
    except SystemExit as left:
        return int(left.code or 0)
    warnings.showwarning = _show_warning
    words = caller.set("cli")
    try:
        with _signals_heard():
            return run(arguments.command, arguments)
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return _complain("Interrupted; what was not committed is undone.", _SIGNALLED + signal.SIGINT)
    except _Ended as ended:
        name = signal.Signals(ended.number).name
        return _complain(f"Ended by {name}; what was not committed is undone.", _SIGNALLED + ended.number)
    except UsageError as error:
        return _complain(str(error), USAGE)
    except PgTrickleError as error:
        return _complain(str(error), FAILED)
    except Exception as error:
        if os.environ.get("PGTRICKLE_DEBUG"):
            print(redact(traceback.format_exc()), file=sys.stderr)
        return _complain(
            f"Unexpected {type(error).__name__}: {redact(_first_line(error))} "
            "Set PGTRICKLE_DEBUG=1 to see where it happened.",
            FAILED,
        )
    finally:
        caller.reset(words)


def run(command: Command, arguments: argparse.Namespace) -> int:
    """Run a command on the database it names and print its answer."""
    from airflow_provider_pgtrickle.client import PgTrickle

    gc.freeze()
    gc.enable()
    dsn = getattr(arguments, "dsn", None) or os.environ.get("PGTRICKLE_DSN")
    if not dsn and command.needs_database:
        raise UsageError("No database is named", remedy="Set PGTRICKLE_DSN, or pass --dsn.")
    with nullcontext() if command.follows else progress.shown(), PgTrickle(dsn or "") as client:
        answer = command.run(client, arguments)
    output.show(answer, getattr(arguments, "json", False))
    return FAILED if answer.failed else OK


class _Ended(BaseException):
    """A signal asks this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _signals_heard() -> Iterator[None]:
    """In the block Ctrl-C and other ending signals become exceptions, so that unfinished work is taken back."""
    wanted = [s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) != signal.SIG_IGN]

    def hear(number: int, _: FrameType | None) -> None:
        # A second Ctrl-C must not interrupt the clean-up that follows.
        for other in wanted:
            signal.signal(other, signal.SIG_IGN)
        # The JVM is ended because PySpark would wait for its answer even during an exception.
        jvm.end()
        raise KeyboardInterrupt if number == signal.SIGINT else _Ended(number)

    before = {wish: signal.signal(wish, hear) for wish in wanted}
    try:
        yield
    finally:
        for wish, handler in before.items():
            signal.signal(wish, handler)


class Parser(argparse.ArgumentParser):
    """One that tells what was probably meant."""

    def error(self, message: str) -> NoReturn:
        chosen = re.search(
            r"argument (?P<what>\S+): invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)", message
        )
        unknown = re.search(r"unrecognized arguments: (?P<words>.*)", message)
        if chosen is not None:
            known = re.findall(r"[\w-]+", chosen["known"])
            if chosen["what"] == _COMMAND:
                message = f"There is no command {chosen['word']!r}.{_meant(chosen['word'], known)}"
            else:
                message = f"{chosen['what']} can't be {chosen['word']!r}: it is one of {', '.join(known)}."
        elif unknown is not None:
            word = unknown["words"].split()[0]
            message = f"{word} is not understood here.{_meant(word, self._options())}"
        self.exit(USAGE, f"pgtrickle: {message}\nTry: {self.prog} --help\n")

    def _options(self) -> list[str]:
        """All options of this parser and of those below it."""
        found = [option for action in self._actions for option in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += [option for below in action.choices.values() for option in below._option_string_actions]
        return found


def _meant(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _parser_class(shared: argparse.ArgumentParser) -> type[argparse.ArgumentParser]:
    class Subparser(Parser):
        def __init__(self, **options: object) -> None:
            super().__init__(**options, parents=[shared])  # type: ignore[arg-type]

    return Subparser


def _complain(sentence: str, code: int) -> int:
    print(f"pgtrickle: {sentence}", file=sys.stderr)
    return code


def _first_line(error: Exception) -> str:
    line = (str(error).strip() or "no message").splitlines()[0]
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    # Warnings of the libraries underneath mean nothing to whoever typed the command.
    if issubclass(category, PgTrickleWarning):
        print(f"pgtrickle: warning: {redact(str(message))}", file=sys.stderr)


#: In the order the help shows them. A new command is one line in its group's file.
_GROUPS = (project, catalog, declare, refresh, verify, observe, query, calibration, health, gates, serve)


def commands() -> tuple[Command, ...]:
    """The commands of all groups."""
    return tuple(command for group in _GROUPS for command in group.COMMANDS)
