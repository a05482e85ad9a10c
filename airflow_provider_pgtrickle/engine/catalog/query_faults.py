"""PostgreSQL's objections to a query, with their place in the user's own text."""

from __future__ import annotations

import psycopg

from airflow_provider_pgtrickle.engine.catalog.faults import translated
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, QueryError, SyntaxFault

#: SQLSTATEs outside class 42 that mean the text is wrong: bad literals, unknown schemas, escape sequences.
_TEXTUAL = {"22P02", "22007", "22008", "22025", "3F000", "3D000"}

_REMEDIES = {
    "42701": "Give each output column a name of its own with AS.",
    "42P16": "Cast the column to a concrete type.",
    "42P22": "Add COLLATE to the column.",
    "42P02": "Write the value into the query; parameters can't be stored.",
}


def as_query_fault(error: psycopg.Error, query: str, offset: int) -> PgTrickleError:
    """The fault that `error` shows in `query`, which began `offset` characters into the statement sent."""
    state = error.sqlstate or ""
    message = error.diag.message_primary
    if message is None or state == "42501" or state[:2] in ("08", "25", "53", "55", "57", "40") or error.diag.context:
        return translated(error, otherwise=QueryError)
    remedy = _REMEDIES.get(state) or error.diag.message_hint
    message = message[:1].upper() + message[1:]
    if state == "54001" or message.startswith("Memory exhausted"):
        return QueryError(
            "The query is nested too deeply for PostgreSQL",
            remedy="Give its inner part a stream table of its own, or write it with fewer parentheses.",
        )
    if state == "42601" and "multiple commands" in message:
        return SyntaxFault("The text holds more than one statement", remedy="Give one SELECT, without semicolons.")
    if state == "42701" and "?column?" in message:
        return QueryError("More than one column of the query has no name", remedy="Name each with AS.")
    if "data-modifying" in message:
        return QueryError(
            "A stream table's query can't change data", remedy="Remove INSERT, UPDATE and DELETE from it."
        )
    if "temporary relation" in message:
        return QueryError("A stream table can't read a temporary table", remedy="Make it a permanent one.")
    kind = SyntaxFault if state in _TEXTUAL or (state[:2] == "42" and state not in ("42701", "42P16")) else QueryError
    return kind(message, remedy=remedy, place=place(query, error.diag.statement_position, offset))


def place(query: str, position: str | None, offset: int) -> str | None:
    """`line L, column C` in `query` of a server's 1-based character position in the whole statement."""
    if not position or not query:
        return None
    index = min(max(int(position) - 1 - offset, 0), len(query))
    before = query[:index]
    return f"line {before.count(chr(10)) + 1}, column {index - (before.rfind(chr(10)) + 1) + 1}"
