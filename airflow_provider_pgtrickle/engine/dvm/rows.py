"""Rows on their way into a SELECT: what stands in FROM and WHERE, and how each column is written there.

An operator that only filters, renames or joins hands these on, so that those above it write one SELECT and not one
inside the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

Place = tuple[str, str]
"""Alias of a FROM item, and the column's name there."""


@dataclass(frozen=True)
class Rows:
    source: str
    """FROM, without the word."""
    places: Mapping[str, Place]
    weight: str | None = None
    where: tuple[str, ...] = ()
    is_join: bool = False
    """Whether the source is several relations, which PostgreSQL's planner orders among themselves."""

    @property
    def is_item(self) -> bool:
        """Whether they may stand as one relation among others."""
        return not self.where and not self.is_join

    def that(self, *terms: str) -> Rows:
        """Those that meet further conditions."""
        return replace(self, where=(*self.where, *terms))

    def under(self, names: Mapping[str, str]) -> Rows:
        """The same with other names: new name → present one."""
        return replace(self, places={new: self.places[name] for new, name in names.items()})

    @property
    def clauses(self) -> str:
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{where}"
