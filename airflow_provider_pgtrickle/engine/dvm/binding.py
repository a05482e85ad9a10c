"""A binding holds what one refresh adds to a delta: the window of each buffer, and where the stored rows are."""

from __future__ import annotations

import re
import secrets
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK, Values

#: No query holds this.
_MARK = f"__pgt_{secrets.token_hex(8)}_"
_MARKS = re.compile(rf"{_MARK}(\d+)_")


@dataclass(frozen=True)
class Window:
    """The rows of a change buffer that became visible between two snapshots."""

    buffer: tuple[str, str]
    old: str
    new: str
    also: tuple[int | str, ...] = ()
    """Transactions after `old` whose changes were consumed already, because the unit itself applied them."""
    beyond: str | None = None
    """A FROM item with rows that `new` sees and the buffer doesn't hold yet, in the buffer's columns."""
    narrow: bool = False
    """It has changes of columns that the reader doesn't read. They are left out."""
    net: bool = False
    """Many of its changes cancel out. They are summed once, by what the reader reads of the row."""


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
    least: tuple[tuple[str, str], ...] = ()
    """The least value that a column has in the source's change, as SQL, where it is known."""
    most: tuple[tuple[str, str], ...] = ()
    """The same for the greatest."""


@dataclass(frozen=True)
class Binding:
    sources: Mapping[str, SourceBinding] = field(default_factory=dict)
    stored: tuple[str, str] | None = None
    """(schema, name) of the stream table itself."""
    readings: Mapping[str, Values] = field(default_factory=dict)
    """The values of the query's readings of the clock, by their texts."""
    cut_by: str | None = None
    """The column by which its rows are partitioned: a date, a timestamp, a number or a text; None: there is none."""
    is_filled: bool = False
    """Whether it has a content, from which that of a copy follows, too."""

    @property
    def changed(self) -> frozenset[str]:
        moved = any(values.differ for values in self.readings.values())
        return frozenset([*(key for key, source in self.sources.items() if source.changed), *([CLOCK] * moved)])

    def marked(self) -> tuple[Binding, Hashable, tuple[str, ...]]:
        """The binding with marks for what differs from refresh to refresh; its shape without that; and the values.

        Bindings of one shape have the same SQL, but for the values in the places of the marks.
        """
        values: list[str] = []

        def mark(value: str | int) -> str:
            values.append(str(value))
            return f"{_MARK}{len(values) - 1}_"

        sources = {}
        for key, source in self.sources.items():
            window, handed_on = source.window, source.handed_on
            if isinstance(window, Window):
                also, beyond = tuple(map(mark, window.also)), window.beyond and mark(window.beyond)
                window = replace(window, old=mark(window.old), new="", also=also, beyond=beyond)
            if handed_on is not None:
                handed_on = HandedOn(mark(handed_on.sql))
            least, most = (tuple((name, mark(value)) for name, value in of) for of in (source.least, source.most))
            sources[key] = replace(source, window=window, handed_on=handed_on, least=least, most=most)
        readings = {text: Values(mark(read.old), mark(read.new)) for text, read in self.readings.items()}
        shape = (tuple(sources.items()), self.stored, self.cut_by, tuple(readings), CLOCK in self.changed)
        return replace(self, sources=sources, readings=readings), shape, tuple(values)


def filled(text: str, values: tuple[str, ...]) -> str:
    """The SQL of a marked binding, with the values in the places of the marks."""
    return _MARKS.sub(lambda found: values[int(found[1])], text)
