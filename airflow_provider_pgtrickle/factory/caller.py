"""The module that calls: the first one up the stack that isn't ours."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def caller() -> Mapping[str, Any]:
    """Its globals, `__name__` and `__file__` among them; empty where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
    return frame.f_globals if frame is not None else {}
