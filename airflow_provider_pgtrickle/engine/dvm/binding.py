"""A binding holds what one refresh adds to a delta: the window of each buffer, and where the stored rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Window:
    """The rows of a change buffer that became visible between two snapshots."""

    buffer: tuple[str, str]
    old: str
    new: str
    also: tuple[int, ...] = ()
    """Transactions after `old` whose changes were consumed already, because the unit itself applied them."""
    beyond: str | None = None
    """A FROM item with rows that `new` sees and the buffer doesn't hold yet, in the buffer's columns."""


@dataclass(frozen=True)
class InHand:
    """The rows of a change that a statement has at hand, and that the source's table holds already."""

    rows: str
    """A FROM item with the columns of the source's change buffer."""


@dataclass(frozen=True)
class HandedOn:
    """The uncommitted delta of a stream table refreshed earlier in the same unit."""

    sql: str
    """A query that yields `__pgt_w`, `__pgt_row_id` and the visible columns."""


@dataclass(frozen=True)
class SourceBinding:
    changed: bool
    window: Window | InHand | None = None
    handed_on: HandedOn | None = None


@dataclass(frozen=True)
class Binding:
    sources: Mapping[str, SourceBinding] = field(default_factory=dict)
    stored: tuple[str, str] | None = None
    """(schema, name) of the stream table itself."""

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(key for key, source in self.sources.items() if source.changed)
