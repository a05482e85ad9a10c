"""`make down` ends what `make up` started, its children too, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from airflow_provider_pgtrickle.demo.processes import Processes

#: A parent whose child leads a session of its own, as Airflow's task processes do.
PARENT = (
    "import subprocess, sys, time;"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
    "print('born', flush=True); time.sleep(600)"
)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path / "processes.json")
    log = tmp_path / "log"
    # A pipe instead of a plain file tells when the child is there.
    os.mkfifo(log)
    # Opened for both, so that it waits for no writer and sees no end.
    with open(os.open(log, os.O_RDWR)) as reader:
        processes.start("parent", [sys.executable, "-c", PARENT], log=log, environment=os.environ)
        try:
            assert reader.readline() == "born\n"
            yield processes
        finally:
            processes.stop()


def test_another_command_sees_what_runs(started: Processes, tmp_path: Path) -> None:
    assert list(Processes(tmp_path / "processes.json").running()) == ["parent"]


def test_stopping_ends_the_whole_family(started: Processes, tmp_path: Path) -> None:
    parent = started.running()["parent"]
    family = [parent, *parent.children(recursive=True)]
    assert len(family) == 2
    Processes(tmp_path / "processes.json").stop()
    assert not any(member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in family)
    assert started.running() == {}


def test_a_process_that_inherited_the_number_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        file = tmp_path / "processes.json"
        file.write_text(json.dumps([{"name": "scheduler", "pid": stranger.pid, "born": 1.0}]))
        Processes(file).stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
