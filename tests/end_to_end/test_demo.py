"""What a newcomer sees first: `make demo`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(600)
def test_the_demo_shows_every_table_equal_to_its_query_and_leaves_nothing_running(
    spark_alone: None, tmp_path: Path
) -> None:
    before = _servers()
    done = subprocess.run(
        [sys.executable, "-m", "airflow_provider_pgtrickle.demo", "--folder", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = _tables(done.stdout)
    assert "FULL" in first
    assert "DIFFERENTIAL" in second
    assert "NO:" not in first + second
    assert _servers() <= before


def _servers() -> set[int]:
    """Demo servers on this machine; `make up` may have one of its own running."""
    listed = psutil.process_iter(["pid", "cmdline"])
    return {process.info["pid"] for process in listed if "pgtrickle-demo-" in " ".join(process.info["cmdline"] or [])}


def _tables(printed: str) -> list[str]:
    """The two reports, each a block of its own."""
    return [block for block in printed.split("\n\n") if block.startswith("stream table")]
