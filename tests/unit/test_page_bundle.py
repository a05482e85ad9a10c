"""The page's script that the wheel ships is what its source builds."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import airflow_provider_pgtrickle

_WEB = Path(airflow_provider_pgtrickle.__file__).parent / "web"
_UI = _WEB / "ui"
_BUNDLE = (_WEB / "page.js").read_text(encoding="utf-8")


def test_the_bundle_was_built_from_this_source() -> None:
    """As `build.mjs` computes it: run `make page` if this fails."""
    parts = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    parts += [f"src/{file.name}" for file in (_UI / "src").iterdir()]
    digest = hashlib.sha256()
    for part in sorted(parts):
        digest.update(part.encode() + b"\0" + (_UI / part).read_bytes() + b"\0")
    assert re.findall(r"from source (\w+)", _BUNDLE.splitlines()[0]) == [digest.hexdigest()]


def test_the_bundle_brings_no_react_of_its_own() -> None:
    """Two of them on one page don't work together."""
    assert "globalThis.React" in _BUNDLE
    assert "react.production" not in _BUNDLE
    assert len(_BUNDLE) < 200_000


def test_no_text_is_put_into_the_page_as_html() -> None:
    for file in (_UI / "src").iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write|eval\(", text), file


def test_what_is_bundled_is_pinned() -> None:
    asked = json.loads((_UI / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in asked.values())
