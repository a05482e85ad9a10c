"""Tells whoever waits what is being done now: the command line shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str, str | None], None] | None] = ContextVar("pgtrickle_progress", default=None)


def working_on(subject: str) -> None:
    """The tables that the following phases are about."""
    if (listener := _listener.get()) is not None:
        listener("subject", subject)


def phase(name: str) -> None:
    """What is being done with them."""
    if (listener := _listener.get()) is not None:
        listener("phase", name)


@contextmanager
def heard(listener: Callable[[str, str | None], None]) -> Iterator[None]:
    """In the block the listener is called with `subject` or `phase`, and its name."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
