"""Tells whoever waits what is being done now: the command line shows it, and a task's log has what takes long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_EVERY_SECONDS = 5.0

_listener: ContextVar[Callable[[str, str | None], None] | None] = ContextVar("pgtrickle_progress", default=None)


def working_on(subject: str) -> None:
    """The tables that the following phases are about."""
    if (listener := _listener.get()) is not None:
        listener("subject", subject)


def phase(name: str) -> None:
    """What is being done with them."""
    if (listener := _listener.get()) is not None:
        listener("phase", name)


def tasks(done: int, of: int, running: int) -> None:
    """How far Spark is with it."""
    if (listener := _listener.get()) is not None:
        listener("tasks", f"{done} of {of} tasks done, {running} running")


def is_heard() -> bool:
    """Whether anybody waits: asking Spark how far it is costs something."""
    return _listener.get() is not None


class Logged:
    """A listener that logs how far Spark is, every few seconds: a small refresh ends before its first line."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._due = 0.0

    def __call__(self, what: str, name: str | None) -> None:
        now = self._clock()
        if what != "tasks":
            self._due = now + _EVERY_SECONDS
        elif now >= self._due:
            self._due = now + _EVERY_SECONDS
            self._log.info("Spark: %s", name)


@contextmanager
def heard(listener: Callable[[str, str | None], None]) -> Iterator[None]:
    """In the block the listener is called with `subject`, `phase` or `tasks`, and what there is to say of it."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
