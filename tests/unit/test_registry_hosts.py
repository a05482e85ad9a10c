"""No file of the repository names a package registry's host: whoever installs brings their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
# In pieces, or this file would name them.
_HOSTS = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("anaconda", "org"),
    ("repo1", "maven"),
    ("repo", "maven"),
    ("maven", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("yarnpkg", "com"),
    ("crates", "io"),
    ("rubygems", "org"),
    ("docker", "io"),
    ("ghcr", "io"),
    ("quay", "io"),
)


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, check=True, capture_output=True).stdout
    return [_ROOT / name for name in listed.decode().split("\0") if name and (_ROOT / name).is_file()]


@pytest.mark.parametrize("host", _HOSTS, ids="_".join)
def test_no_tracked_file_names_the_host(host: tuple[str, str]) -> None:
    name = ".".join(host).encode()
    assert [str(path.relative_to(_ROOT)) for path in _tracked() if name in path.read_bytes().lower()] == []
