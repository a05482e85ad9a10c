"""init, completion: what stands before the first database."""

from __future__ import annotations

import argparse
import json
import os
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument
from airflow_provider_pgtrickle.engine.errors import UsageError

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle

_EXAMPLE_DSN = "postgresql://me@localhost:5432/shop"


def init(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    """Write the project. Nothing that is there is overwritten."""
    folder: Path = arguments.folder
    template = files("airflow_provider_pgtrickle.cli") / "first_project"
    # Airflow mustn't take the template for a DAG file of its own.
    texts = {name.removesuffix(".txt"): text.read_text(encoding="utf-8") for name, text in _files(template)}
    dsn = getattr(arguments, "dsn", None) or os.environ.get("PGTRICKLE_DSN") or _EXAMPLE_DSN
    texts["README.md"] = texts["README.md"].replace("{dsn}", _without_password(dsn))
    texts["connections.json"] = json.dumps(_connections(dsn), indent=2) + "\n"
    texts[".gitignore"] = "airflow/\nconnections.json\n"
    there = sorted(name for name in texts if (folder / name).exists())
    if there:
        raise UsageError(f"{folder / there[0]} is there already", remedy="Name another folder.")
    for name, text in sorted(texts.items()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # The connections hold the password of the database, if there is one.
        with open(target, "w", encoding="utf-8", opener=_private if name == "connections.json" else None) as file:
            file.write(text)
    return Answer(
        text=f"Wrote {', '.join(sorted(texts))} into {folder}. {folder / 'README.md'} says how to run it.",
        data={"folder": str(folder), "files": sorted(texts)},
    )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def _files(folder: Traversable, prefix: str = "") -> list[tuple[str, Traversable]]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _files(entry, f"{prefix}{entry.name}/")
        else:
            found.append((f"{prefix}{entry.name}", entry))
    return found


def _connections(dsn: str) -> dict[str, dict[str, Any]]:
    """The two Airflow connections, as `airflow connections import` reads them."""
    given = _parameters(dsn)
    fields = ("host", "port", "user", "password", "dbname")
    # Airflow has other names for two of them.
    names = {"user": "login", "dbname": "schema"}
    postgres: dict[str, Any] = {"conn_type": "pgtrickle", **{names.get(k, k): given[k] for k in fields if k in given}}
    extra = {k: v for k, v in given.items() if k not in fields}
    if "port" in postgres:
        postgres["port"] = int(postgres["port"])
    if extra:
        postgres["extra"] = extra
    return {"shop_pg": postgres, "spark_default": {"conn_type": "spark", "host": "local[2]"}}


def _parameters(dsn: str) -> dict[str, Any]:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {name: value for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.Error:
        raise UsageError("The connection string can't be read", remedy=f"Write it as {_EXAMPLE_DSN}.") from None


def _without_password(dsn: str) -> str:
    from urllib.parse import quote

    given = _parameters(dsn)
    if given.keys() - {"host", "port", "user", "password", "dbname"}:
        return _EXAMPLE_DSN
    user = f"{quote(str(given['user']), safe='')}@" if "user" in given else ""
    host, port = given.get("host", "localhost"), given.get("port", 5432)
    return f"postgresql://{user}{quote(str(host), safe='')}:{port}/{quote(str(given.get('dbname', '')), safe='')}"


def completion(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    import argcomplete

    return Answer(text=argcomplete.shellcode(["pgtrickle"], True, arguments.shell))


COMMANDS = (
    Command(
        "init",
        "Write a first project: DAG file, sample tables, connections, compose file.",
        init,
        (argument("folder", type=Path, metavar="FOLDER", help="the new folder of the project"),),
        needs_database=False,
    ),
    Command(
        "completion",
        'Print what lets a shell complete commands: eval "$(pgtrickle completion bash)".',
        completion,
        (argument("shell", choices=("bash", "zsh", "fish"), nargs="?", default="bash", help="the shell"),),
        needs_database=False,
    ),
)
