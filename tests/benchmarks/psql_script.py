"""A psql script in pieces: its statements, with variables filled in, and the rows that follow COPY … FROM stdin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from psycopg import sql

_PIECES = re.compile(
    r"""
      (?P<comment> --[^\n]* )
    | (?P<string> (?:\b[eE])? '(?:[^'\\]|''|\\.|\\)*' )
    | (?P<name> "(?:[^"]|"")*" )
    | (?P<dollar> \$(?P<tag>\w*)\$ .*? \$(?P=tag)\$ )
    | (?P<variable> (?<![:\w]):(?:'(?P<quoted>\w+)'|(?P<bare>[a-z_]\w*)) )
    | (?P<order> \\[^\n]* )
    | (?P<end> ; )
    | (?P<open> [(\[] )
    | (?P<close> [)\]] )
    """,
    re.VERBOSE | re.DOTALL,
)
_STDIN = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Statement:
    text: str
    rows: str = ""
    """What follows COPY … FROM stdin."""
    ordered: str = ""
    """The backslash command that ends the statement in place of a semicolon."""


def statements(script: str, variables: Mapping[str, str]) -> Iterator[Statement]:
    """The script's statements; psql's own commands are left out, but for \\set of a variable."""
    held = dict(variables)
    text, depth, at = "", 0, 0
    while at < len(script):
        if script.startswith("/*", at):
            at = _after_comment(script, at)
            continue
        found = _PIECES.match(script, at)
        if found is None:
            text += script[at]
            at += 1
            continue
        at = found.end()
        kind = found.lastgroup if found.lastgroup not in ("tag", "quoted", "bare") else _outer(found)
        if kind == "comment":
            continue
        if kind == "variable":
            text += _filled(found, held)
        elif kind == "order":
            if found[0].startswith("\\set "):
                name, *values = found[0].split()[1:]
                held[name] = "".join(_value(v, held) for v in values)
            elif text.strip():
                yield Statement(text.strip(), ordered=found[0])
                text = ""
        elif kind == "end" and depth == 0:
            rows = ""
            if _STDIN.match(text):
                begin = script.index("\n", at) + 1
                end = begin if script.startswith("\\.", begin) else script.index("\n\\.", begin) + 1
                rows, at = script[begin:end], end + 2
            if text.strip():
                yield Statement(text.strip(), rows)
            text = ""
        else:
            depth += {"open": 1, "close": -1}.get(kind or "", 0)
            text += found[0]


def _outer(found: re.Match[str]) -> str:
    return "dollar" if found["dollar"] else "variable"


def _after_comment(script: str, at: int) -> int:
    """Where a comment ends; comments nest."""
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(script, at):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(script)


def _filled(found: re.Match[str], held: Mapping[str, str]) -> str:
    quoted, bare = str(found["quoted"] or ""), str(found["bare"])
    return sql.Literal(held.get(quoted, "")).as_string(None) if quoted else held.get(bare, found[0])


def _value(word: str, held: Mapping[str, str]) -> str:
    return held.get(word[1:], "") if word.startswith(":") else word.strip("'")
