"""What a declaration does besides what it was asked for: said aloud, after it was committed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


class PgTrickleWarning(UserWarning):
    """Something worth knowing that is no error."""


def announce(notices: Iterable[str]) -> None:
    """Warn of each notice. Called after the commit: a warning turned into an error must undo nothing."""
    for notice in notices:
        warnings.warn(notice, PgTrickleWarning, stacklevel=3)
