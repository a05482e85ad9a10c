"""Stream tables from a folder of .sql files, each with its options as YAML in the comment on top.

/*
schedule: 5m
refresh_mode: DIFFERENTIAL
*/
SELECT …

A comment in which no line begins with the name of an option stays an ordinary comment.
"""

from __future__ import annotations

import re
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from airflow_provider_pgtrickle.engine.errors import QueryError, UsageError
from airflow_provider_pgtrickle.engine.graph.reads import reads
from airflow_provider_pgtrickle.stream_table import StreamTable

_BLOCK = re.compile(r"\s*/\*(?P<text>.*?)\*/", re.DOTALL)
_LINES = re.compile(r"\s*(?P<text>(?:[ \t]*--[^\n]*(?:\n|\Z))+)")
#: YAML misreads or refuses @hourly and "*/5 * * * *", so schedules get quotes.
_SCHEDULE = re.compile(
    r"^(?P<key>\s*(?:schedule|verify_every)\s*:\s*)(?P<value>[^'\"\s#][^#\n]*?)(?P<rest>\s*(?:#.*)?)$", re.MULTILINE
)
_OPTION = re.compile(r"\s*(?P<name>\w+)\s*:")
_KEYS = {f.name for f in fields(StreamTable)} - {"query"}


def stream_tables(folder: str | Path) -> list[StreamTable]:
    """The files in the order of their names; the file's stem is the table's name unless the header has one."""
    root = Path(folder)
    files = sorted(root.rglob("*.sql"))
    if not files:
        raise UsageError(f"No .sql file in {root}", remedy="Check the path, which is relative to the DAG file.")
    return [stream_table(file) for file in files]


def stream_table(file: Path) -> StreamTable:
    """One file; every error names it, with the line as the file counts."""
    text = file.read_text(encoding="utf-8-sig")
    header, start = _header(file, text)
    unknown = sorted(header.keys() - _KEYS)
    if unknown:
        raise UsageError(
            f"{file.name}: no option is named {unknown[0]!r}", remedy=f"Known: {', '.join(sorted(_KEYS))}."
        )
    name = str(header.pop("name", file.stem))
    query = text[start:].strip().rstrip(";").rstrip()
    try:
        reads(query)
    except QueryError:
        # Parse again with the header's lines in front, so that the error's line is the file's.
        lead = text[:start] + text[start : len(text) - len(text[start:].lstrip())]
        try:
            reads("\n" * lead.count("\n") + query)
        except QueryError as error:
            place = f"{file.name}, {error.place}" if error.place else file.name
            raise type(error)(error.message, place=place, remedy=error.remedy, stream_table=name) from None
    try:
        return StreamTable(name=name, query=query, **header)
    except UsageError as error:
        raise type(error)(f"{file.name}: {error.message}", remedy=error.remedy, stream_table=name) from None


def _is_option(line: str) -> bool:
    """Whether a line of a comment names an option, or nearly does."""
    match = _OPTION.match(line)
    return match is not None and bool(get_close_matches(match["name"].lower(), _KEYS, n=1, cutoff=0.75))


def _quoted(match: re.Match[str]) -> str:
    plain = match["value"].lower() in ("null", "~")
    value = match["value"] if plain else "'" + match["value"].replace("'", "''") + "'"
    return f"{match['key']}{value}{match['rest']}"


def _header(file: Path, text: str) -> tuple[dict[str, Any], int]:
    """The options of the comments at the file's beginning, and where the query starts."""
    options: dict[str, Any] = {}
    at = start = 0
    while (match := _BLOCK.match(text, at) or _LINES.match(text, at)) is not None:
        at = match.end()
        if found := _options(file, text, match):
            options |= found
            start = at
    if options.get("schedule") is not None:
        options["schedule"] = str(options["schedule"])
    return options, start


def _options(file: Path, text: str, comment: re.Match[str]) -> dict[str, Any]:
    """The options of one comment, from its first line that names an option."""
    lines = comment["text"].splitlines()
    if comment.re is _LINES:
        lines = [line.strip().removeprefix("--").removeprefix(" ") for line in lines]
    first = next((number for number, line in enumerate(lines) if _is_option(line)), None)
    if first is None:
        return {}
    body = "\n".join([*lines[first:], ""]).replace("---", "")
    try:
        options = yaml.safe_load(_SCHEDULE.sub(_quoted, body))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = text[: comment.start("text")].count("\n") + first + (mark.line if mark else 0) + 1
        raise UsageError(
            f"{file.name}: the header is no YAML (line {line})",
            remedy="Write `option: value` lines, and quotes around a value that holds a colon.",
        ) from None
    return options if isinstance(options, dict) else {}
