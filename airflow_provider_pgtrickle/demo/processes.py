"""Processes that outlive the command that started them, remembered in a file so that another command ends them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

_GRACE_SECONDS = 10
#: The start time is in wall time, and clocks get adjusted.
_SAME_BIRTH_SECONDS = 5


class Processes:
    """The processes. Each leads a process group of its own, so that ending it ends its children, too."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def start(self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        with log.open("ab") as output:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        # A process id may be used again for another process; with the start time it is unique.
        born = psutil.Process(started.pid).create_time()
        self._write([*self._read(), {"name": name, "pid": started.pid, "born": born}])

    def running(self) -> dict[str, psutil.Process]:
        """The processes that still run, by name."""
        found = {}
        for entry in self._read():
            try:
                process = psutil.Process(int(entry["pid"]))
            except psutil.NoSuchProcess:
                continue
            if (
                abs(process.create_time() - float(entry["born"])) < _SAME_BIRTH_SECONDS
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found[str(entry["name"])] = process
        return found

    def stop(self) -> None:
        """Ask the leaders to end, then what they left behind, and kill what doesn't end."""
        leaders = self.running()
        members = {child for leader in leaders.values() for child in _family(leader)}
        for leader in leaders.values():
            _signal_group(leader.pid, signal.SIGTERM)
        psutil.wait_procs(leaders.values(), timeout=_GRACE_SECONDS)
        _, alive = psutil.wait_procs(members, timeout=0)
        for process in alive:
            process.terminate()
        _, alive = psutil.wait_procs(alive, timeout=_GRACE_SECONDS)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, timeout=_GRACE_SECONDS)
        self._file.unlink(missing_ok=True)

    def _read(self) -> list[dict[str, str | int | float]]:
        if not self._file.exists():
            return []
        entries: list[dict[str, str | int | float]] = json.loads(self._file.read_text())
        return entries

    def _write(self, entries: list[dict[str, str | int | float]]) -> None:
        self._file.write_text(json.dumps(entries, indent=1))


def _family(leader: psutil.Process) -> list[psutil.Process]:
    """The leader and all its descendants, some of which (Airflow's tasks) lead groups of their own."""
    try:
        return [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
