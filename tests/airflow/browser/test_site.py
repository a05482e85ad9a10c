"""The documentation's site in a browser that has no network: its diagrams are drawn all the same."""

from __future__ import annotations

from pathlib import Path

from tests.airflow.browser.browser import Browser
from tests.unit.docs.test_site import build

ROOT = Path(__file__).parents[3]

# The theme puts what it drew into a closed tree; its place has the drawing's height.
_DRAWN = """
return document.querySelectorAll('pre.mermaid').length === 0
  && [...document.querySelectorAll('div.mermaid')].every((e) => e.getBoundingClientRect().height > 50)
"""


def test_every_diagram_is_drawn_without_a_network(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    pages = [page for page in tmp_path.rglob("*.html") if 'class="mermaid"' in page.read_text(encoding="utf-8")]
    assert len(pages) > 1
    with Browser(tmp_path.as_uri(), tmp_path) as browser:
        browser.driver.execute_cdp_cmd("Network.enable", {})
        browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["http://*", "https://*"]})
        for page in pages:
            browser.driver.get(page.as_uri())
            browser.wait(lambda: browser.script(_DRAWN), f"the diagrams of {page.name}")
