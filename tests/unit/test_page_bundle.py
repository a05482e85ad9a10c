"""The page's script that the wheel ships is what its source builds, and knows what the engine may tell it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import airflow_provider_pgtrickle
from airflow_provider_pgtrickle.cli import progress
from airflow_provider_pgtrickle.engine.declare import keeping
from airflow_provider_pgtrickle.engine.refresh import verify
from airflow_provider_pgtrickle.engine.refresh.decision import Fallback

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


def test_each_phase_of_a_refresh_has_its_colour_and_its_words() -> None:
    engine = _WEB.parent / "engine" / "refresh"
    named = {phase for file in engine.glob("*.py") for phase in re.findall(r'\.phase\("(\w+)"\)', _text(file))}
    assert _listed("plots.tsx", r"PHASES = \[(.*?)\]", r'"(\w+)"') == named
    assert set(progress._WORDS) == named
    style = _text(_UI / "src" / "style.css")
    colours = [re.findall(rf"\.pgt-fill-{phase} {{ fill: (#\w+); }}", style) for phase in named]
    assert all(len(found) == 1 for found in colours)
    assert len({colour for (colour,) in colours}) == len(named)


def test_each_content_that_could_have_been_avoided_has_its_remedy() -> None:
    (listed,) = re.findall(r"fallback_reason NOT IN \((.*?)\)", _text(_WEB / "state.py"), re.DOTALL)
    not_counted = set(re.findall(r"'(\w+)'", listed))
    reasons = {*map(str, Fallback), keeping.REASON, verify.REASON}
    assert not_counted < reasons
    assert _listed("fleet.tsx", r"REMEDIES: .*? = \{(.*?)\n\}", r"^  (\w+):") == reasons - not_counted


def _listed(file: str, block: str, each: str) -> set[str]:
    (found,) = re.findall(block, _text(_UI / "src" / file), re.DOTALL)
    return set(re.findall(each, found, re.MULTILINE))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
