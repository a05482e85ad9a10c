"""`make nightly` writes down what came of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent


def test_a_line_is_recorded_whatever_comes_of_it(tmp_path: Path) -> None:
    record = tmp_path / "nightly.md"
    runs = {
        "passed": ["--collect-only", "-q", "tests/property/test_properties.py"],
        "**failed**": ["--collect-only", "-q", "tests/no_such_folder"],
    }
    for arguments in runs.values():
        subprocess.run(
            [_ROOT / ".ci" / "nightly.sh", *arguments],
            env=os.environ | {"NIGHTLY_RECORD": str(record), "PGTRICKLE_SOAK": "7", "MUTANTS_MINUTES": "0"},
            capture_output=True,
            check=False,
        )
    lines = record.read_text().splitlines()
    assert [line.split(" | ")[2] for line in lines] == ["7", "7"]
    for line, result in zip(lines, runs, strict=True):
        assert line.split(" | ")[3].startswith(f"{result}: ")
    assert "collected" in lines[0]
