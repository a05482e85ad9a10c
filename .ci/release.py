"""Print what a tag's release says: its section of CHANGELOG.md.  python3 .ci/release.py v1.2.3

Stops with one sentence where the tag, the version of the package and the changelog don't agree.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<day>\d{4}-\d\d-\d\d))?[ ]*$", re.MULTILINE)
_LINKS = re.compile(r"^\[[^\]]+\]: \S+$\n?", re.MULTILINE)


class NotReady(Exception):
    """The tag can't be released; the message says why."""


def notes(tag: str, pyproject: str, changelog: str) -> str:
    """The text of a tag's release."""
    version = tomllib.loads(pyproject)["project"]["version"]
    if tag != f"v{version}":
        raise NotReady(f"The tag is {tag}, but pyproject.toml has version {version}: its tag would be v{version}.")
    return _section(changelog, version)


def _section(changelog: str, version: str) -> str:
    headings = list(_HEADING.finditer(changelog))
    ends = [*(heading.start() for heading in headings[1:]), len(changelog)]
    for heading, end in zip(headings, ends, strict=True):
        if heading["version"] != version:
            continue
        if heading["day"] is None:
            raise NotReady(f"The section [{version}] of CHANGELOG.md has no day: write '## [{version}] - YYYY-MM-DD'.")
        # The last section is followed by the links of all headings.
        text = _LINKS.sub("", changelog[heading.end() : end]).strip()
        if not text:
            raise NotReady(f"The section [{version}] of CHANGELOG.md is empty.")
        return text + "\n"
    raise NotReady(f"CHANGELOG.md has no section [{version}].")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python3 .ci/release.py TAG", file=sys.stderr)
        return 2
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "CHANGELOG.md")]
    try:
        print(notes(arguments[0], *texts), end="")
    except NotReady as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
