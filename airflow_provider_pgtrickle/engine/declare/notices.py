"""What a declaration does besides what it was asked for: said aloud, after it was committed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

_PACKAGE = __name__.partition(".")[0] + "."


class PgTrickleWarning(UserWarning):
    """Something worth knowing that is no error."""


def announce(notices: Iterable[str]) -> None:
    """Warn of each notice. Called after the commit: a warning turned into an error must undo nothing."""
    for notice in notices:
        warnings.warn(notice, PgTrickleWarning, stacklevel=_level_of_the_caller())


def _level_of_the_caller() -> int:
    """How far up the first frame outside this package is: the line that a warning is about."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
