"""Write reference and support matrix from the code: `python docs/generate.py`, or `--check` to fail where stale.

The SQL page is read from an installed catalog; without `--dsn` an embedded PostgreSQL is started for it.
"""

from __future__ import annotations

import argparse
import inspect
import re
import secrets
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.cli.command import Argument

REFERENCE = Path(__file__).parent / "reference"

_GENERATED = "<!-- Written by docs/generate.py from the code; changes belong there. -->\n"


def settings() -> str:
    """Every setting with its default."""
    from airflow_provider_pgtrickle.engine.settings import Settings

    rows = [
        (f"`{spec.name}`", f"`{spec.default!r}`", f"`{type(spec.default).__name__}`", spec.metadata["description"])
        for spec in fields(Settings)
    ]
    return _page(
        "Settings",
        "Looked up in this order: the keyword of `PgTrickle(…)`, `PGTRICKLE_<NAME>` in the environment,\n"
        "`[pgtrickle]` in Airflow's configuration (`AIRFLOW__PGTRICKLE__<NAME>`), the default. An extra of the\n"
        "Airflow connection with a setting's name counts as the keyword.",
        _table(("setting", "default", "type", "meaning"), rows),
    )


def cli() -> str:
    """Every command with its arguments."""
    from airflow_provider_pgtrickle.cli import commands

    parts = []
    for command in commands():
        rows = [
            (" ".join(f"`{form}`" for form in _forms(given)), _default(given.options), _meaning(given.options))
            for given in command.arguments
        ]
        arguments = _table(("argument", "default", "meaning"), rows) if rows else ""
        parts.append(f"## `{command.name}`\n\n{command.help}\n\n{arguments}".rstrip())
    return _page(
        "Command line",
        "`pgtrickle COMMAND …` takes the database from `PGTRICKLE_DSN` or `--dsn`; `airflow pgtrickle COMMAND …`\n"
        "takes it from an Airflow connection, `--conn-id` (`pgtrickle_default`). `--json` prints JSON. The exit code\n"
        "is 0 (done), 1 (failed) or 2 (misused).",
        *parts,
    )


def operators() -> str:
    """Every class that a DAG file uses, with its parameters."""
    from airflow_provider_pgtrickle.provider_info import get_provider_info

    info = get_provider_info()
    parts = ["## Declarations\n\n" + "\n\n".join(_class(_named(path)) for path in _DECLARATIONS)]
    for title, kind in (("Operators", "operators"), ("Sensors", "sensors"), ("Triggers", "triggers")):
        modules = [name for group in info[kind] for name in group["python-modules"]]
        described = [_class(cls) for module in modules for cls in _public_classes(module)]
        parts.append(f"## {title}\n\n" + "\n\n".join(described))
    parts.append("## Notifiers\n\n" + "\n\n".join(_class(_named(path)) for path in info["notifications"]))
    decorated = [_named(entry["class-name"]) for entry in info["task-decorators"]]
    parts.append("## Decorators\n\n" + "\n\n".join(inspect.getdoc(function) or "" for function in decorated))
    return _page(
        "Declarations, operators, sensors, triggers",
        "Parameters of Airflow's own base classes (`task_id`, `retries`, `poke_interval`, …) are left out.",
        *parts,
    )


def sql(dsn: str) -> str:
    """Tables, views and functions of the schema `pgtrickle`, as an installed catalog describes them."""
    from airflow_provider_pgtrickle.engine.catalog.migrate import install

    with psycopg.connect(dsn) as connection:
        install(connection)
        relations = connection.execute(_RELATIONS).fetchall()
        columns = connection.execute(_COLUMNS).fetchall()
        functions = connection.execute(_FUNCTIONS).fetchall()
    parts = []
    for title, kinds in (("Tables", "rp"), ("Views", "v")):
        described = [
            f"### `pgtrickle.{name}`\n\n{comment or ''}\n\n".replace("\n\n\n\n", "\n\n")
            + _table(
                ("column", "type", "meaning"),
                [(f"`{c}`", f"`{t}`", note or "") for relation, c, t, note in columns if relation == name],
            )
            for name, kind, comment in relations
            if kind in kinds
        ]
        parts.append(f"## {title}\n\n" + "\n\n".join(described))
    rows = [(f"`{name}({given})`", f"`{result}`", comment or "") for name, given, result, comment in functions]
    parts.append("## Functions\n\n" + _table(("function", "returns", "meaning"), rows))
    return _page("SQL", "Everything in the schema `pgtrickle`, for whoever has only psql.", *parts, _CHANNEL)


def support_matrix(dsn: str) -> str:
    """What is maintained by differences, and how; `support_matrix.py` knows it."""
    spec = spec_from_file_location("docs_support_matrix", Path(__file__).with_name("support_matrix.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.render(_page, _table, module.sections(dsn)))


_RELATIONS = """
SELECT c.relname, c.relkind::text, obj_description(c.oid, 'pg_class')
FROM pg_class c
WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind IN ('r', 'p', 'v')
ORDER BY c.relname
"""

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind IN ('r', 'p', 'v')
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""

# Trigger functions are nobody's to call.
_FUNCTIONS = """
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid), obj_description(oid, 'pg_proc')
FROM pg_proc
WHERE pronamespace = 'pgtrickle'::regnamespace AND prorettype <> 'trigger'::regtype
ORDER BY proname, 2
"""

_DECLARATIONS = (
    "airflow_provider_pgtrickle.stream_table.StreamTable",
    "airflow_provider_pgtrickle.factory.stream_table_graph.StreamTableGraph",
    "airflow_provider_pgtrickle.factory.stream_table_group.StreamTableGroup",
)

#: Parameters that mean the same wherever they stand.
_EVERYWHERE = {
    "name": "name of the stream table, `schema.name` or `name` (then in `public`)",
    "stream_table": "name of the stream table, `schema.name` or `name` (then in `public`)",
    "postgres_conn_id": "the Airflow connection of its database",
    "spark_conn_id": "the Airflow connection of Spark, of type `spark` or `spark_connect`",
    "poll_interval": "seconds after which it looks though no notification came",
    "end_from_trigger": "end the task in the triggerer, without a worker",
}

_CHANNEL = """## Notifications

`LISTEN pg_trickle_alert` hears JSON objects with `event`, `stream_table` and details. The events:
`stale_data`, `auto_suspended`, `resumed`, `reinitialize_needed`, `buffer_growth_warning`, `refresh_completed`,
`refresh_failed`, `diamond_partial_failure`, `content_differs`, `requested`. PostgreSQL drops what nobody hears, so a
notification is a hint: the tables above are the record."""


def pages(dsn: str) -> dict[str, str]:
    """Every generated page by its place, as seen from the reference's folder."""
    return {
        "settings.md": settings(),
        "cli.md": cli(),
        "operators.md": operators(),
        "sql.md": sql(dsn),
        "../support-matrix.md": support_matrix(dsn),
    }


def stale(dsn: str) -> list[str]:
    """The pages that the code no longer agrees with."""
    return [
        name
        for name, text in pages(dsn).items()
        if not (REFERENCE / name).is_file() or (REFERENCE / name).read_text(encoding="utf-8") != text
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is stale")
    parser.add_argument("--dsn", help="an empty database to install the catalog in")
    arguments = parser.parse_args(argv)
    with _database(arguments.dsn) as dsn:
        if arguments.check:
            behind = stale(dsn)
            if behind:
                print(f"Stale: {', '.join(behind)}. Run: python docs/generate.py", file=sys.stderr)
            return 1 if behind else 0
        REFERENCE.mkdir(exist_ok=True)
        for name, text in pages(dsn).items():
            (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


@contextmanager
def _database(dsn: str | None) -> Iterator[str]:
    if dsn is not None:
        yield dsn
        return
    from airflow_provider_pgtrickle.embedded import PostgresServer

    # Not inside a private folder: a server started by root runs as a user of its own.
    server = PostgresServer(Path(tempfile.gettempdir()) / f"pgtrickle-docs-{secrets.token_hex(6)}")
    try:
        server.start()
        yield server.dsn()
    finally:
        server.remove()


def _page(title: str, introduction: str, *parts: str) -> str:
    return "\n\n".join([f"{_GENERATED}\n# {title}", introduction, *(part.strip() for part in parts)]) + "\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")


def _forms(given: Argument) -> list[str]:
    """What may be typed: `-n`, `--number N`."""
    *short, last = given.flags
    metavar = str(given.options.get("metavar") or "")
    action = given.options.get("action")
    if not last.startswith("-"):
        return [metavar or last]
    if action is argparse.BooleanOptionalAction:
        return [*short, last, last.replace("--", "--no-", 1)]
    if action is not None:
        return [*short, last]
    return [*short, f"{last} {metavar or last.removeprefix('--').upper()}"]


def _default(options: Any) -> str:
    default = options.get("default")
    return "" if default is None or default is argparse.SUPPRESS else f"`{default}`"


def _meaning(options: Any) -> str:
    choices = ", ".join(f"`{choice}`" for choice in options.get("choices") or ())
    return "; ".join(part for part in (str(options.get("help") or ""), choices) if part)


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _public_classes(module_name: str) -> list[type]:
    module = import_module(f"{module_name}")
    own = [cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__ == module.__name__]
    return [cls for cls in own if not cls.__name__.startswith("_") and hasattr(cls, "template_fields")] or [
        cls for cls in own if cls.__name__.endswith("Trigger")
    ]


def _class(cls: type) -> str:
    text, parameters = _split(inspect.getdoc(cls) or "")
    templated = set(cls.__dict__.get("template_fields") or ())
    rows = []
    for name, default in _parameters(cls):
        meaning = parameters.get(name) or _inherited(cls, name) or _EVERYWHERE.get(name, "")
        # Said by the code in its own way, and by some docstrings in theirs: once is enough.
        meaning = re.sub(r"[,;]? *[(]?templated[)]?$", "", meaning)
        rows.append((f"`{name}`", default, f"{meaning}, templated" if name in templated else meaning))
    table = _table(("parameter", "default", "meaning"), rows) if rows else ""
    return f"### `{cls.__module__}.{cls.__name__}`\n\n{text}\n\n{table}".rstrip()


def _parameters(cls: type) -> list[tuple[str, str]]:
    """Those of the class and of our own bases, each once, with their defaults as code."""
    found: dict[str, str] = {}
    for base in cls.__mro__:
        if not base.__module__.startswith("airflow_provider_pgtrickle") or "__init__" not in base.__dict__:
            continue
        for name, given in inspect.signature(inspect.unwrap(base.__dict__["__init__"])).parameters.items():
            if name != "self" and given.kind in (given.POSITIONAL_OR_KEYWORD, given.KEYWORD_ONLY):
                default = "" if given.default is given.empty else f"`{given.default!r}`"
                found.setdefault(name, default)
    return list(found.items())


def _inherited(cls: type, name: str) -> str:
    for base in cls.__mro__[1:]:
        meaning = _split((base.__doc__ and inspect.cleandoc(base.__doc__)) or "")[1].get(name)
        if meaning and base.__module__.startswith("airflow_provider_pgtrickle"):
            return meaning
    return ""


def _split(doc: str) -> tuple[str, dict[str, str]]:
    """A docstring's text, and the meaning of each `:param`."""
    text, *described = re.split(r"^:param ", doc, flags=re.MULTILINE)
    parameters = {}
    for entry in described:
        name, _, meaning = entry.partition(":")
        parameters[name.strip()] = " ".join(textwrap.dedent(meaning).split())
    return text.strip(), parameters


if __name__ == "__main__":
    raise SystemExit(main())
