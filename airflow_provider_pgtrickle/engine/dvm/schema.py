"""What the algebra knows of the database: relations, their columns and keys. Plain values, no driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Beside PostgreSQL's volatilities: whatever a function's label says, its body may look into tables.
READS_TABLES = "t"


@dataclass(frozen=True)
class SourceColumn:
    name: str
    type: str
    """As `format_type` prints it: `numeric(10,2)`, `character varying(20)`, `integer[]`."""
    not_null: bool = False
    has_equality: bool = True
    """Whether the type can stand in GROUP BY; `json`, `xml`, `point` can't."""
    deterministic: bool = True
    """Whether equal texts are the same text; under some collations 'a' equals 'A'."""


@dataclass(frozen=True)
class Source:
    """A relation that a query reads after views are inlined."""

    key: str
    """Its key in a frontier: the oid as text for a table, `pgt_<id>` for a stream table."""
    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    """Further keys whose columns are all NOT NULL."""
    kind: str = "TABLE"
    """TABLE (partitioned ones too) and STREAM_TABLE are captured; MATVIEW, FOREIGN_TABLE and UNLOGGED_TABLE are not."""
    relid: int = 0
    pgt_id: int | None = None
    estimated_rows: float = -1
    """`pg_class.reltuples`; -1 where never analyzed."""
    hidden: tuple[tuple[int, str], ...] = ()
    """Places, counted from 0, and names of the columns that no query may read: those internal to a stream table."""

    @property
    def layout(self) -> tuple[str, ...]:
        """The names of all columns in PostgreSQL's order, by which the columns of an alias are counted."""
        names = [c.name for c in self.columns]
        for place, name in self.hidden:
            names.insert(place, name)
        return tuple(names)

    @property
    def captured(self) -> bool:
        return self.kind in ("TABLE", "STREAM_TABLE")


@dataclass(frozen=True)
class Schema:
    """Everything a canonical query names."""

    sources: Mapping[tuple[str, str], Source]
    """By (schema, name)."""
    views: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Canonical text of each view the query reads, by (schema, name)."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Volatility ('i', 's', READS_TABLES, 'v') of each function the query calls, by lower-case name; the worst of its
    overloads. Immutable is also what only settings shape that every session of a refresh has alike."""
    aggregates: frozenset[str] = frozenset()
    """Lower-case names of the user-defined aggregates the query calls."""
    set_returning: frozenset[str] = frozenset()
    """Lower-case names of the functions it calls that return sets of rows."""
    view_columns: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Output column names of each view."""
    keeps_equal_keys_apart: bool = True
    """Whether the server tells keys of GROUPING SETS apart that are equal once derived tables are flattened.
    PostgreSQL 18 is the first that does."""
