"""What a probe found out about a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.catalog.foreign import ForeignCode
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source
from airflow_provider_pgtrickle.engine.dvm.sinks.floats import FLOATS


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: str
    type_oid: int
    collation: str | None = None
    """Quoted and qualified, where it is not the type's own."""


@dataclass(frozen=True)
class Probe:
    original: str
    canonical: str
    """PostgreSQL's own rendering, every name qualified, no semicolon."""
    text: str
    """The canonical text with every name in quotes, which `dvm.analyze` reads."""
    columns: tuple[OutputColumn, ...]
    schema: Schema
    columns_used: Mapping[int, tuple[str, ...]]
    """The columns that the query or a view in it names, by the source's relid, in the table's order."""
    views: tuple[int, ...]
    """Oids of the views behind the query."""
    function_oids: tuple[int, ...]
    """Oids of the user-defined functions that the query and its views call."""
    types: frozenset[int]
    """Oids of the user-defined types of the values that they handle."""
    collations: frozenset[int]
    """Oids of the collations that they compare by."""
    foreign: tuple[ForeignCode, ...]
    """Functions and views behind the query that somebody else owns."""
    odd_equalities: tuple[str, ...]
    """Types by which it groups or sorts, and whose equality operator isn't in pg_catalog."""
    open_ended: bool
    """The text speaks of columns without naming them (`*`, NATURAL JOIN), so new columns change its meaning."""

    @property
    def floats(self) -> dict[str, str]:
        """The types of the columns that are floats."""
        return {column.name: column.type for column in self.columns if column.type in FLOATS}

    @property
    def steady(self) -> bool:
        """Whether the same sources always give the same answer."""
        return self.schema.steady

    @property
    def foreign_code(self) -> dict[str, str]:
        """The foreign code as the catalog keeps it."""
        return {str(code.oid): code.digest for code in self.foreign}

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self.schema.sources.values())
