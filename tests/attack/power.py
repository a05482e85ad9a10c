"""A server whose disk loses what was not synced when the power goes.

`power.c`, preloaded into the server, notes what each write replaces until the file is synced. Losing the power is: stop
all processes at once, kill them, put back what the notes say. What this shows is that nothing rests on a write that was
never synced. What it doesn't: lost names (files made, renamed or removed stay so), torn pages, disks that lie.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests import servers

__all__ = ["lose_power", "powered"]

_NOTE = struct.Struct("=qqq")


@contextmanager
def powered() -> Iterator[PostgresServer]:
    """A server with the ordinary role, in a folder that its user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pgtrickle-power-"))
    folder.chmod(0o755)
    library, undo = folder / "power.so", folder / "undo"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(Path(__file__).with_name("power.c")), "-ldl"],
        check=True,
    )
    options = servers.OPTIONS | {
        "fsync": "on",
        "full_page_writes": "on",
        # What is written between checkpoints is what can be lost.
        "checkpoint_timeout": "30s",
        "bgwriter_delay": "10ms",
        "max_prepared_transactions": "64",
    }
    server = PostgresServer(folder / "server", options=options)
    undo.mkdir(mode=0o777)
    undo.chmod(0o777)
    server.start()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                    sql.Identifier(servers.ORDINARY_ROLE), servers.ORDINARY_PASSWORD
                )
            )
        server.stop()
        with _preloaded(library, server, undo):
            server.start()
            yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _preloaded(library: Path, server: PostgresServer, undo: Path) -> Iterator[None]:
    """For whatever starts the server: each start of it inherits our environment."""
    given = {"LD_PRELOAD": str(library), "POWER_DATA": str(server.data), "POWER_UNDO": str(undo)}
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]


def lose_power(server: PostgresServer) -> int:
    """All processes end at one instant, and the files are as they were last synced; how many writes were lost."""
    postmaster = server.pid
    assert postmaster is not None
    processes = _stopped(postmaster)
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    for pid in processes:
        while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.005)
    # Whoever inherits the dead may leave them unburied for a while, and their number looks alive.
    (server.data / "postmaster.pid").unlink()
    lost = _put_back(server.data, server.folder.parent / "undo")
    server.start()
    return lost


def _stopped(postmaster: int) -> list[int]:
    """The postmaster and its children, none of them running; it forks no more once it is stopped."""
    os.kill(postmaster, signal.SIGSTOP)
    pids = [postmaster, *map(int, Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split())]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return pids


def _put_back(data: Path, undo: Path) -> int:
    """Apply the notes of each file, the last one first."""
    files = {path.stat().st_ino: path for path in data.rglob("*") if path.is_file()}
    lost = 0
    for notes in undo.iterdir():
        path = files.get(int(notes.name))
        kept = notes.read_bytes()
        notes.unlink()
        if path is None:
            continue
        found: list[tuple[int, bytes, int]] = []
        place = 0
        while place < len(kept):
            offset, length, size = _NOTE.unpack_from(kept, place)
            place += _NOTE.size
            found.append((offset, kept[place : place + length], size))
            place += length
        with path.open("r+b") as file:
            for offset, old, size in reversed(found):
                file.seek(offset)
                file.write(old)
                file.truncate(size)
        lost += len(found)
    return lost
