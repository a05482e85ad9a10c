"""requirements.lock has what pyproject.toml asks for, so that an installation from it is whole."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_ROOT = Path(__file__).parents[2]
_PYPROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())
_ASKED = [
    Requirement(line)
    for line in (
        *_PYPROJECT["project"]["dependencies"],
        *_PYPROJECT["project"]["optional-dependencies"]["embedded"],
        *_PYPROJECT["dependency-groups"]["dev"],
    )
]


def _locked() -> dict[str, list[Requirement]]:
    """The pins of each package: more than one where Pythons differ."""
    found: dict[str, list[Requirement]] = {}
    for line in (_ROOT / "requirements.lock").read_text().splitlines():
        pin = Requirement(line)
        found.setdefault(canonicalize_name(pin.name), []).append(pin)
    return found


@pytest.mark.parametrize("asked", _ASKED, ids=lambda asked: asked.name)
def test_what_is_asked_for_is_locked_at_a_version_that_will_do(asked: Requirement) -> None:
    versions = [next(iter(pin.specifier)).version for pin in _locked().get(canonicalize_name(asked.name), [])]
    assert versions
    assert all(asked.specifier.contains(version) for version in versions)
