"""A tag becomes a release only where tag, version and changelog agree."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from airflow_provider_pgtrickle import __version__

_ROOT = Path(__file__).parents[2]
_RELEASE = runpy.run_path(str(_ROOT / ".ci" / "release.py"))
notes, NotReady = _RELEASE["notes"], _RELEASE["NotReady"]

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- What comes next.

## [1.10.0] - 2026-11-20

### Added

- Verification, see [operations](docs/operations.md).

### Fixed

- A [link]: that is none.

## [1.1.0] - 2026-10-01

- The first.

[Unreleased]: https://example.com/compare/v1.10.0...main
[1.10.0]: https://example.com/compare/v1.1.0...v1.10.0
"""


def _notes(version: str, changelog: str = CHANGELOG, tag: str = "") -> str:
    return notes(tag or f"v{version}", f'[project]\nversion = "{version}"\n', changelog)


def test_the_text_is_the_versions_section_without_its_heading() -> None:
    text = (
        "### Added\n\n- Verification, see [operations](docs/operations.md).\n\n### Fixed\n\n- A [link]: that is none.\n"
    )
    assert _notes("1.10.0") == text


def test_the_last_section_ends_before_the_links() -> None:
    assert _notes("1.1.0") == "- The first.\n"


@pytest.mark.parametrize(
    ("version", "changed", "words"),
    [
        ("1.2.0", {}, "has no section"),
        # A point is not any character.
        ("1.1x0", {}, "has no section"),
        ("1.10.0", {"## [1.10.0] - 2026-11-20": "## [1.10.0]"}, "has no day"),
        ("1.1.0", {"- The first.": ""}, "is empty"),
    ],
)
def test_a_changelog_that_is_not_ready_is_told(version: str, changed: dict[str, str], words: str) -> None:
    changelog = CHANGELOG
    for old, new in changed.items():
        changelog = changelog.replace(old, new)
    with pytest.raises(NotReady, match=words):
        _notes(version, changelog)


@pytest.mark.parametrize("tag", ["v1.1.0", "1.10.0", "v1.10.0-rc1"])
def test_a_tag_of_another_version_is_refused(tag: str) -> None:
    with pytest.raises(NotReady, match=r"its tag would be v1\.10\.0"):
        _notes("1.10.0", tag=tag)


def test_what_is_not_released_is_no_release() -> None:
    with pytest.raises(NotReady, match="has no day"):
        _notes("Unreleased")


def test_the_changelog_here_has_a_place_for_what_comes_next() -> None:
    changelog = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\n## [Unreleased]\n" in changelog
    assert re.search(r"^\[Unreleased\]: https://\S+$", changelog, re.MULTILINE)


def test_the_package_says_the_version_that_is_released() -> None:
    assert tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
