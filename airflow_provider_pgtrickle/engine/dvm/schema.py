"""The algebra knows these plain values of the database, and no driver: relations, their columns and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

#: A volatility beside PostgreSQL's own: the function's body may read tables, whatever its label says.
READS_TABLES = "t"
#: Another one: the function reads the clock at the transaction's start, as `now()` does.
READS_CLOCK = "n"


@dataclass(frozen=True)
class SourceColumn:
    name: str
    type: str
    """The type as `format_type` prints it: `numeric(10,2)`, `character varying(20)`, `integer[]`."""
    not_null: bool = False
    has_equality: bool = True
    """Whether the type can stand in GROUP BY; `json`, `xml`, `point` can't."""
    deterministic: bool = True
    """Whether equal texts are the same text; under some collations 'a' equals 'A'."""


@dataclass(frozen=True)
class Source:
    """A relation that a query reads after views are inlined."""

    key: str
    """The source's key in a frontier: the oid as text for a table, `pgt_<id>` for a stream table."""
    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    """Further unique keys, whose columns are all NOT NULL."""
    kind: str = "TABLE"
    """TABLE (partitioned ones too) and STREAM_TABLE are captured; MATVIEW, FOREIGN_TABLE and UNLOGGED_TABLE are not."""
    relid: int = 0
    pgt_id: int | None = None
    estimated_rows: float = -1
    """`pg_class.reltuples`; it is -1 if the table was never analyzed."""
    hidden: tuple[tuple[int, str], ...] = ()
    """The positions, from 0, and names of the columns that no query may read: a stream table's internal ones."""
    heirs: tuple[str, ...] | None = None
    """Of ONLY a table: the keys of the tables that inherit from it directly. None for a table with all of its rows.

    ONLY t = t − Σ heirs, because the rows of t are its own and those of its heirs, and so are their changes."""
    own_keys: tuple[tuple[str, ...], ...] = ()
    """The keys of ONLY the table, if it has children: they say nothing of these. The primary key is the first."""

    def alone(self, heirs: tuple[str, ...]) -> Source:
        """Return ONLY the table, a source of its own whose changes follow from those of the table and its heirs."""
        primary_key, *others = self.own_keys or (self.primary_key, *self.unique_keys)
        return replace(
            self, key=f"{self.key}_only", heirs=heirs, primary_key=primary_key, unique_keys=tuple(others), own_keys=()
        )

    @property
    def table(self) -> str:
        """The key of the table whose rows these are, all or some of them."""
        return self.key if self.heirs is None else self.key.removesuffix("_only")

    @property
    def reads(self) -> frozenset[str]:
        """The keys of the sources from whose changes its own follow."""
        return frozenset((self.table, *(self.heirs or ())))

    @property
    def layout(self) -> tuple[str, ...]:
        """The names of all columns in PostgreSQL's order, in which an alias counts columns."""
        names = [c.name for c in self.columns]
        for place, name in self.hidden:
            names.insert(place, name)
        return tuple(names)

    def aliases(self, given: Sequence[str]) -> dict[str, str]:
        """The name of each column under an alias, which counts hidden columns as well: t AS x (a, b)."""
        return dict(zip(self.layout, [*given, *self.layout[len(given) :]], strict=True))

    @property
    def captured(self) -> bool:
        return self.kind in ("TABLE", "STREAM_TABLE")


@dataclass(frozen=True)
class Schema:
    """A schema describes everything that a canonical query names."""

    sources: Mapping[tuple[str, str], Source]
    """The relations that the query reads, by (schema, name)."""
    views: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The canonical text of each view that the query reads, by (schema, name)."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """The volatility ('i', READS_CLOCK, 's', READS_TABLES, 'v') of each function that the query calls, by lower-case
    name: the worst of its overloads. A function also counts as immutable if its result depends only on settings that
    are the same in every session of a refresh."""
    aggregates: frozenset[str] = frozenset()
    """The lower-case names of the user-defined aggregates that the query calls."""
    set_returning: frozenset[str] = frozenset()
    """The lower-case names of the functions that the query calls and that return sets of rows."""
    view_columns: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """The names of each view's output columns."""
    keeps_equal_keys_apart: bool = True
    """Whether the server distinguishes keys of GROUPING SETS that become equal when derived tables are flattened.
    PostgreSQL does so since version 18."""
    is_local: bool = False
    """Whether the query is evaluated in a zone other than UTC, where local times need not follow one another like the
    instants that they mean."""

    heirs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each table of which the query reads ONLY its own rows, by its key: the keys of those that inherit from it.
    A table is left out if its own rows can't be told from those of the others: one inherits from it in two ways, or it
    has virtual columns."""

    @property
    def by_key(self) -> dict[str, Source]:
        """All sources by their keys, with those that are ONLY a table."""
        found = {s.key: s for s in self.sources.values()}
        alone = (found[key].alone(heirs) for key, heirs in self.heirs.items())
        return found | {s.key: s for s in alone}

    @property
    def steady(self) -> bool:
        """Whether the same sources give the same answer at the same instant: beside them it asks at most the clock."""
        return all(volatility in ("i", READS_CLOCK) for volatility in self.functions.values())

    @property
    def reads_clock(self) -> bool:
        return READS_CLOCK in self.functions.values()
