"""The budget says how large a query and its plan may be: a query that would take too long is refused at once."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.errors import QueryError, SyntaxFault, UsageError, unencodable

MAX_CHARACTERS = 1_000_000
"""Characters in a query's text: PostgreSQL reads and prints it some six times, which takes two seconds in all."""
MAX_WORDS = 25_000
"""Words and signs in a query's text: declaring so many takes about two seconds. A long constant counts once."""
MAX_JOINS = 100
"""Joins in a query: a delta combines the change of each join with all the others, so it grows with their square."""
MAX_NODES = 50_000
"""Nodes made while a query is built and differentiated."""
COPY = 50
"""The number of nodes for which each written-out copy of a WITH item counts."""
MAX_SELECTS = 10_000
"""SELECTs in one statement."""
MAX_DEPTH = 320
"""SELECTs inside each other: rendering takes two nested calls for each, and Python stops at a thousand."""

MAX_FRAMES = 20_000
"""Nested calls that Python may make: sqlglot makes twenty for a pair of parentheses, and Python stops at a thousand.
A call from Python to Python takes nothing from the C stack; at this depth a thread with 1 MB of it still has room."""

_WORD = re.compile(r"\w+|[^\w\s]")

_left: ContextVar[int | None] = ContextVar("nodes_left", default=None)


@contextmanager
def budget(nodes: int = MAX_NODES) -> Iterator[None]:
    """Within this context, making more than `nodes` nodes raises `Refused`."""
    token = _left.set(nodes)
    try:
        yield
    finally:
        _left.reset(token)


def spend(nodes: int = 1) -> None:
    left = _left.get()
    if left is None:
        return
    if left < nodes:
        raise too_large("nodes", MAX_NODES)
    _left.set(left - nodes)


def check_text(query: object) -> None:
    """Refuse a query that is no text, that can't be sent to a database, or that is too long."""
    if query is not None and not isinstance(query, str):
        raise UsageError(f"The query is {type(query).__name__} and not text", remedy="Give a SELECT statement as str.")
    if not query or not query.strip():
        raise SyntaxFault("The query is empty", remedy="Give one SELECT statement.")
    if "\0" in query:
        raise SyntaxFault("The query holds a NUL character", remedy="Remove it.")
    if surrogate := unencodable(query):
        raise SyntaxFault(f"The query holds {surrogate}, which is no character", remedy="Decode its text as UTF-8.")
    if len(query) > MAX_CHARACTERS:
        raise QueryError(
            f"The query has {len(query)} characters, more than {MAX_CHARACTERS}",
            remedy="Put its constants into a table, and join that.",
        )


def check_words(text: str) -> None:
    """Refuse a text that would take too long to parse and to write again."""
    # The words of a short text need not be counted, because each has at least one character.
    if len(text) > MAX_WORDS and sum(1 for _ in _WORD.finditer(text)) > MAX_WORDS:
        raise too_large("words and signs in its text", MAX_WORDS, "Write many comparisons as IN (…), or join a table")


class _Deep:
    """The recursion limit holds for all threads, so the first that enters raises it and the last sets it back."""

    lock = threading.Lock()
    within = 0
    before = 0


@contextmanager
def deep() -> Iterator[None]:
    """Within this context queries may nest hundreds deep; a query that nests deeper is refused in a sentence."""
    with _Deep.lock:
        if _Deep.within == 0:
            _Deep.before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_Deep.before, MAX_FRAMES))
        _Deep.within += 1
    try:
        yield
    except RecursionError:
        raise QueryError(
            "The query is nested too deeply to be read",
            remedy="Give its inner part a stream table of its own, or write it with fewer parentheses.",
        ) from None
    finally:
        with _Deep.lock:
            _Deep.within -= 1
            if _Deep.within == 0:
                sys.setrecursionlimit(_Deep.before)


def too_large(
    what: str,
    limit: int,
    advice: str = "Make a part of it, such as a CTE that is used often, a stream table of its own",
) -> Refused:
    return Refused(
        Reason.TOO_LARGE, f"more than {limit:,} {what}".replace(",", " "), f"{advice}; until then it runs FULL."
    )
