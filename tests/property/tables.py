"""A schema as it is created: tables, keys, references to one another, partitions, triggers of users, first rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.property.kinds import TYPES, Column


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    reference: tuple[int, str, str] | None = None
    """Which column refers to another table's key (or its own), to what, and what follows from its changes."""
    checked_at_end: bool = False
    """The key is checked at the end of a statement, so that one may exchange all of its values."""
    partitions: tuple[str, ...] = ()
    """Values of the first column that have a partition of their own."""

    @property
    def ddl(self) -> tuple[str, ...]:
        parts = [f"{column.name} {column.kind.type}" for column in self.columns]
        if self.reference is not None:
            number, target, action = self.reference
            default = self.columns[number].kind.literals[0]
            parts[number] += f" DEFAULT {default} REFERENCES {target} {action}"
        if self.key:
            when = " DEFERRABLE" if self.checked_at_end else ""
            parts.append(f"PRIMARY KEY ({', '.join(self.key)}){when}")
        created = f"CREATE TABLE {self.name} ({', '.join(parts)})"
        if not self.partitions:
            return (created,)
        of = f"CREATE TABLE {self.name}_{{}} PARTITION OF {self.name}"
        own = (f"{of.format(n)} FOR VALUES IN ({value})" for n, value in enumerate(self.partitions))
        return (f"{created} PARTITION BY LIST ({self.columns[0].name})", *own, f"{of.format('rest')} DEFAULT")


@dataclass(frozen=True)
class World:
    tables: tuple[Table, ...]
    rows: tuple[str, ...]
    """Statements that fill the tables. Those that a reference refuses fill nothing."""
    triggers: tuple[str, ...] = ()

    @property
    def ddl(self) -> tuple[str, ...]:
        tables = [statement for table in self.tables for statement in table.ddl]
        types = TYPES if any(name in " ".join(tables) for name in ("positive", "label", "Mood", "pair")) else ()
        return (*types, *tables, *self.triggers)

    def concerned(self, query: str) -> tuple[Table, ...]:
        """What the query reads, and what those tables refer to."""
        read = {table.name for table in self.tables if re.search(rf"\b{table.name}\b", query)}
        targets = {t.reference[1].split(" ")[0] for t in self.tables if t.reference and t.name in read}
        return tuple(table for table in self.tables if table.name in read | targets)
