"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_WITH_EXAMPLES = [
    ".".join(path.relative_to(_ROOT).with_suffix("").parts)
    for path in sorted((_ROOT / "airflow_provider_pgtrickle").rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("module", _WITH_EXAMPLES)
def test_examples_give_what_they_show(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted
    assert outcome.failed == 0
