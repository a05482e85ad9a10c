"""The documentation's site builds, and a link that leads nowhere stops it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MKDOCS = ROOT / ".tools" / "docs" / "bin" / "mkdocs"


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    assert MKDOCS.exists(), f"{MKDOCS} is missing: make setup brings it"
    command = [str(MKDOCS), "build", "--config-file", str(root / ".ci" / "mkdocs.yml"), "--site-dir", str(site)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        command, capture_output=True, text=True, env={**environment, "NO_MKDOCS_2_WARNING": "1"}, timeout=120
    )


def test_it_builds_with_search_diagrams_and_links_into_the_repository(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "leaderboard" in (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")
    # A diagram is drawn by the site's own script, and a page without one doesn't load it.
    for page, drawn in (("index.html", True), ("architecture.html", True), ("security.html", False)):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert ('class="mermaid"' in text) is drawn
        assert ('src="javascripts/mermaid.min.js"' in text) is drawn
    assert (tmp_path / "javascripts" / "mermaid.min.js").stat().st_size > 1_000_000
    outside = re.findall(
        r'href="https://github\.com/[^"]*/blob/main/([^"#]*)', (tmp_path / "security.html").read_text()
    )
    assert "SECURITY.md" in outside
    # Nothing of it is fetched from elsewhere before it is shown.
    assert re.findall(r'<(?:script|link)[^>]*(?:src|href)="https?://', (tmp_path / "index.html").read_text()) == []


@pytest.mark.parametrize("link", ["nowhere.md", "concepts.md#nowhere", "../nowhere.md"])
def test_a_link_that_leads_nowhere_stops_it(tmp_path: Path, link: str) -> None:
    for folder in (".ci", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / ".tools").symlink_to(ROOT / ".tools")
    with (tmp_path / "docs" / "first-table.md").open("a", encoding="utf-8") as page:
        page.write(f"\n[a link]({link})\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert link.partition("#")[2] or link in done.stderr
