"""What the site needs beside its configuration: links out of docs/ lead to the repository, diagrams need no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).resolve().parent.parent
_DOCS = _ROOT / "docs"
_MERMAID = _ROOT / ".tools" / "mermaid" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
_SCRIPT = "javascripts/mermaid.min.js"
_LINK = re.compile(r"(?<=\]\()(?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """The site's files with mermaid among them, which draws the diagrams."""
    if not _MERMAID.exists():
        raise PluginError(f"{_MERMAID} is missing. Run .ci/setup.sh --docs.")
    files.append(File.generated(config, _SCRIPT, abs_src_path=str(_MERMAID)))
    return files


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """A page with a diagram loads mermaid from the site. Without it the theme would fetch it from elsewhere."""
    if 'class="mermaid"' not in output:
        return output
    return output.replace("</head>", f'<script src="{"../" * page.url.count("/")}{_SCRIPT}"></script></head>', 1)


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
