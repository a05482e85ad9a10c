"""What the site needs beside its configuration: links that lead out of docs/ lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_DOCS = _ROOT / "docs"
_LINK = re.compile(r"(?<=\]\()(?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """The page with links to files beside docs/ as addresses. One to a file that isn't there stays, and is refused."""
    here = (_DOCS / page.file.src_uri).parent

    def address(link: re.Match[str]) -> str:
        target = (here / link["path"]).resolve()
        if target.is_relative_to(_DOCS) or not target.exists():
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{config['repo_url']}/{kind}/main/{target.relative_to(_ROOT).as_posix()}{link['anchor'] or ''}"

    return _LINK.sub(address, markdown)
