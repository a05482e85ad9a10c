"""Names of relations: parsed as PostgreSQL parses them, quoted by psycopg, compared as values."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.errors import UsageError, unencodable

if TYPE_CHECKING:
    from psycopg import sql

#: NAMEDATALEN - 1. PostgreSQL cuts longer names silently, so two of them could become one.
MAX_BYTES = 63

#: Prefix of every column and relation of our own.
RESERVED_PREFIX = "__pgt_"

_PART = r'"[^"]*"|[^".\s]+'
_NAME = re.compile(rf"\s*(?:(?P<schema>{_PART})\s*\.\s*)?(?P<name>{_PART})\s*")

# PostgreSQL folds only ASCII letters in a multi-byte encoding.
_FOLD = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True, order=True)
class QualifiedName:
    """A relation's schema and name, as the catalog spells them."""

    schema: str
    name: str

    @classmethod
    def parse(cls, text: str, default_schema: str | Callable[[], str] = "public") -> QualifiedName:
        """The name that `text` means, or a `UsageError`. A default that needs a query is given as a function.

        >>> QualifiedName.parse("Sales.Totals")
        QualifiedName(schema='sales', name='totals')
        >>> QualifiedName.parse('"Sales"."My totals"')
        QualifiedName(schema='Sales', name='My totals')
        """
        if not isinstance(text, str | None):
            raise UsageError(f"The name is {type(text).__name__} and not text", remedy="Give it as str.")
        if not text or not text.strip():
            raise UsageError("The name is empty", remedy="Give a table name, as in my_totals or sales.my_totals.")
        if "\0" in text:
            raise UsageError("A name can't hold a NUL character")
        if surrogate := unencodable(text):
            raise UsageError(f"The name holds {surrogate}, which is no character", remedy="Decode it as UTF-8.")
        match = _NAME.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{text!r} is not a name",
                remedy='Write it as name, schema.name or "Schema"."Name", with no quotes inside the quotes.',
            )
        name = _identifier(match["name"])
        if match["schema"]:
            return cls(_identifier(match["schema"]), name)
        return cls(default_schema if isinstance(default_schema, str) else default_schema(), name)

    @property
    def sql(self) -> sql.Identifier:
        # psycopg is imported late, because the pure layers hold names and know no driver.
        from psycopg import sql

        return sql.Identifier(self.schema, self.name)

    @property
    def quoted(self) -> str:
        """`"schema"."name"`, safe in SQL."""
        return self.sql.as_string(None)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def _identifier(raw: str) -> str:
    name = raw[1:-1] if raw.startswith('"') else raw.translate(_FOLD)
    if not name:
        raise UsageError('The name "" is empty', remedy="Give a table name.")
    if "'" in name:
        raise UsageError(f"The name {name!r} holds a quote", remedy="Choose a name without quotes in it.")
    if len(name.encode()) > MAX_BYTES:
        raise UsageError(
            f"The name {name!r} is longer than {MAX_BYTES} bytes",
            remedy="PostgreSQL would cut it: choose a shorter one.",
        )
    if name.startswith(RESERVED_PREFIX):
        raise UsageError(
            f"The name {name!r} starts with {RESERVED_PREFIX}, which is reserved", remedy="Choose another."
        )
    return name
