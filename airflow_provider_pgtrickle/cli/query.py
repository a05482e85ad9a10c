"""explain, validate: show how a query is maintained."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.cli.command import NAME, Answer, Command, argument
from airflow_provider_pgtrickle.cli.declare import query_of
from airflow_provider_pgtrickle.engine.errors import UsageError

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle
    from airflow_provider_pgtrickle.engine.dvm import Explanation


def explain(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    return _answer(client, client.explain_st(arguments.name), arguments, _spent(client, arguments.name))


def validate(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    query = query_of(arguments)
    if query is None:
        raise UsageError("There is no query to validate", remedy="Pass --query or --query-file.")
    return _answer(client, client.validate_query(query, arguments.timezone), arguments, [])


def _answer(
    client: PgTrickle, explanation: Explanation, arguments: argparse.Namespace, spent: list[tuple[str, str]]
) -> Answer:
    """Short, or with the operators (`--tree`), or with the SQL too (`--sql`). JSON has all of it, as ever."""
    whole = str(explanation)
    if arguments.sql:
        return Answer(text=whole)
    text = [explanation.laid_out([*explanation.facts, _cost(client, explanation), *spent])]
    if arguments.tree:
        text += ["", "operators:", *(f"  {line}" for line in explanation.operator_tree.splitlines())]
        for name, _, part in explanation.parts:
            text += ["", f"operators of {name}:", *(f"  {line}" for line in part.operator_tree.splitlines())]
    elif explanation.differentiable:
        text += ["", "--tree shows the operators, --sql the statements of a refresh."]
    return Answer(text="\n".join(text), data=whole)


def _cost(client: PgTrickle, explanation: Explanation) -> tuple[str, str]:
    """What computing all of it is estimated to."""
    rows, cost = client.estimate(explanation.full_sql)
    return "computed in full", f"about {rows:,} rows at a planner's cost of {cost:,.0f}"


def _spent(client: PgTrickle, name: str) -> list[tuple[str, str]]:
    """What its refreshes by differences took lately."""
    done = [row for row in client.history(name, _LATELY) if row["action"] == "DIFFERENTIAL" and row["duration_ms"]]
    if not done:
        return []
    middle = sorted(row["duration_ms"] for row in done)[len(done) // 2]
    changes = sorted(row["source_changes"] for row in done)[len(done) // 2]
    return [("lately", f"{middle:,.0f} ms for {changes:,} changes, the median of {len(done)} refreshes")]


_LATELY = 20
_MORE = (
    argument("--tree", action="store_true", help="with the operators"),
    argument("--sql", action="store_true", help="with the operators and the statements of a refresh"),
)

COMMANDS = (
    Command(
        "explain",
        "How a stream table is kept: by differences or why not, what it costs, which indexes are missing.",
        explain,
        (NAME, *_MORE),
    ),
    Command(
        "validate",
        "The same for a query, before anything is created.",
        validate,
        (
            argument("--query", help="the SELECT; '-' reads it from standard input"),
            argument("--query-file", type=Path, metavar="FILE", help="a file that holds it"),
            argument("--timezone", metavar="ZONE", help="by which it casts times and reads the clock; else UTC"),
            *_MORE,
        ),
    ),
)
