"""What lies upstream of each table, as bit sets, so that sets of 1,000 tables intersect in one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress

from airflow_provider_pgtrickle.engine.graph.node import Node

#: Translates the digits of a number to what `compress` takes for yes and no.
_DIGITS = bytes.maketrans(b"01", b"\0\1")


class Closures:
    """The transitive sources of every name, the name itself included. Base tables count as names."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._names: list[str] = []
        self._masks: dict[str, int] = {}
        self._sources: dict[str, int] = {}
        """What each table reads directly."""
        self._readers: dict[str, int] = {}
        """Which tables read each name directly."""
        self._roots = 0
        """Names that read nothing: base tables, and tables of constants."""

    @classmethod
    def build(cls, nodes: Mapping[str, Node], order: Iterable[str]) -> Closures:
        return cls().updated(nodes, order)

    def updated(self, nodes: Mapping[str, Node], stale: Iterable[str]) -> Closures:
        """A copy in which those of `stale` (upstream first) are computed anew."""
        closures = Closures()
        closures._bits, closures._names = dict(self._bits), list(self._names)
        closures._masks, closures._roots = dict(self._masks), self._roots
        closures._sources, closures._readers = dict(self._sources), dict(self._readers)
        for name in stale:
            closures._compute(nodes[name])
        return closures

    def _compute(self, node: Node) -> None:
        mine = self.bit(node.name)
        mask, sources = mine, 0
        for source in sorted(node.sources):
            mask |= self.of(source)
            sources |= self.bit(source)
        for source in self._few(sources ^ self._sources.get(node.name, 0)):
            self._readers[source] = self._readers.get(source, 0) ^ mine
        self._masks[node.name], self._sources[node.name] = mask, sources
        self._roots = self._roots & ~mine if sources else self._roots | mine

    def bit(self, name: str) -> int:
        if name not in self._bits:
            self._bits[name] = 1 << len(self._names)
            self._roots |= self._bits[name]
            self._names.append(name)
        return self._bits[name]

    def of(self, name: str) -> int:
        return self._masks.get(name) or self.bit(name)

    def moved_since(self, before: Closures, names: Iterable[str]) -> int:
        """The tables of `names` whose sources have changed."""
        mask = 0
        for name in names:
            if self._masks[name] != before._masks.get(name):
                mask |= self.bit(name)
        return mask

    def tables_between(self, shared: int, tip: str) -> int:
        """`tip` and the tables that feed it, as far as they read something of `shared` and are not in it."""
        rest = self.of(tip) & ~shared
        # There are fewer tables that read nothing of `shared`, so these are found: roots, and tables that read only
        # such.
        apart, fresh = 0, rest & self._roots
        while fresh:
            apart |= fresh
            readers = 0
            for name in self._few(fresh):
                readers |= self._readers.get(name, 0)
            fresh = 0
            for name in self._few(readers & rest & ~apart):
                if not self._sources[name] & ~apart:
                    fresh |= self._bits[name]
        return rest & ~apart

    def read_by(self, tables: int) -> int:
        """What the tables read directly."""
        mask = 0
        for name in self.names(tables):
            mask |= self._sources[name]
        return mask

    def names(self, mask: int) -> Iterator[str]:
        """The names of a bit set, in the order in which they became known."""
        return compress(self._names, f"{mask:b}"[::-1].encode().translate(_DIGITS))

    def _few(self, mask: int) -> Iterator[str]:
        """The names of a bit set, faster if few bits are set."""
        while mask:
            lowest = mask & -mask
            yield self._names[lowest.bit_length() - 1]
            mask ^= lowest
