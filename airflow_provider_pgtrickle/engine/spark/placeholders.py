"""SQL texts made safe for the JDBC driver's own reading of them."""

from __future__ import annotations

from sqlglot.dialects.postgres import Postgres
from sqlglot.tokens import TokenType

#: In these a question mark is data, and the driver knows it.
_QUOTED = frozenset(
    {
        TokenType.STRING,
        TokenType.BYTE_STRING,
        TokenType.BIT_STRING,
        TokenType.HEX_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.UNICODE_STRING,
        TokenType.IDENTIFIER,
    }
)


def escape_placeholders(sql: str) -> str:
    """Double each question mark that belongs to an operator; the driver takes a single one for a parameter.

    >>> escape_placeholders("SELECT a ? 'why?', b ?| c FROM \\"t?\\"")
    'SELECT a ?? \\'why?\\', b ??| c FROM "t?"'
    """
    if "?" not in sql:
        return sql
    parts, done = [], 0
    for token in Postgres().tokenize(sql):
        if token.token_type in _QUOTED:
            continue
        # Comments lie between the tokens, where nothing is changed.
        parts += [sql[done : token.start], sql[token.start : token.end + 1].replace("?", "??")]
        done = token.end + 1
    return "".join([*parts, sql[done:]])
