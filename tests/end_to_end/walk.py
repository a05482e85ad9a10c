"""Do what a page says, as its reader would: `python walk.py PAGE`, with PGTRICKLE_DSN naming his database.

It runs by the Python of an environment that holds the wheel alone, so it imports nothing of this repository.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psycopg

_BLOCK = re.compile(r"<!-- runs -->\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_EXPECTED = re.compile(r"(?:#|^--) → (.*)$", re.MULTILINE)


def walk(page: Path) -> None:
    namespace: dict[str, Any] = {}
    # The environment is active: its programs come first.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    folder = os.getcwd()
    with psycopg.connect(os.environ["PGTRICKLE_DSN"], autocommit=True) as database:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            text = block["text"]
            expected = _EXPECTED.findall(text)
            match block["language"]:
                case "bash":
                    environment = typed(text, environment, folder)
                    folder = environment["PWD"]
                    continue
                case "sql":
                    printed = answers(database, text)
                case "python":
                    said = io.StringIO()
                    with contextlib.redirect_stdout(said):
                        exec(compile(text, page.name, "exec"), namespace)
                    printed = said.getvalue().splitlines()
            if expected and printed[: len(expected)] != expected:
                sys.exit(f"{page.name} says {expected}, and it was {printed}, after:\n{text}")


def typed(commands: str, environment: dict[str, str], folder: str) -> dict[str, str]:
    """The environment after these commands: what they export stays, and the folder that they went to."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as left:
        leave = f'{commands}\nenv -0 > "$0"'
        subprocess.run(["bash", "-euc", leave, left.name], env=environment, cwd=folder, check=True)
        return dict(line.split("=", 1) for line in left.read().split("\0") if line)


def answers(database: psycopg.Connection[Any], text: str) -> list[str]:
    """The rows of all statements."""
    cursor = database.execute(text.encode())
    rows: list[str] = []
    while True:
        if cursor.description is not None:
            rows += [" | ".join(map(str, row)) for row in cursor.fetchall()]
        if not cursor.nextset():
            return rows


if __name__ == "__main__":
    walk(Path(sys.argv[1]))
