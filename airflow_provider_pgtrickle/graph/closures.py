"""What lies upstream of each table, as bit sets: intersections are one machine operation for 1,000 tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from airflow_provider_pgtrickle.graph.node import Node


class Closures:
    """The transitive sources of every name, the name itself included. Base tables count as names."""

    def __init__(self, bits: dict[str, int], masks: dict[str, int]) -> None:
        self._bits = bits
        self._names = list(bits)
        self._masks = masks

    @classmethod
    def build(cls, nodes: Mapping[str, Node], order: Iterable[str]) -> Closures:
        return cls({}, {}).updated(nodes, order)

    def updated(self, nodes: Mapping[str, Node], stale: Iterable[str]) -> Closures:
        """The same, with those of `stale` (upstream first) computed anew."""
        closures = Closures(dict(self._bits), dict(self._masks))
        for name in stale:
            closures._compute(nodes[name])
        return closures

    def _compute(self, node: Node) -> None:
        mask = self.bit(node.name)
        for source in sorted(node.sources):
            mask |= self.of(source)
        self._masks[node.name] = mask

    def bit(self, name: str) -> int:
        if name not in self._bits:
            self._bits[name] = 1 << len(self._names)
            self._names.append(name)
        return self._bits[name]

    def of(self, name: str) -> int:
        return self._masks.get(name) or self.bit(name)

    def moved_since(self, before: Closures, names: Iterable[str]) -> int:
        """Those of `names` that have other sources than they had."""
        mask = 0
        for name in names:
            if self._masks[name] != before._masks.get(name):
                mask |= self.bit(name)
        return mask

    def tables_between(self, shared: int, tip: str) -> set[str]:
        """The tables that feed `tip` or are it, read something of `shared`, and are not of it."""
        return {name for name in self.names(self.of(tip) & ~shared) if self._masks.get(name, 0) & shared}

    def names(self, mask: int) -> Iterator[str]:
        while mask:
            lowest = mask & -mask
            yield self._names[lowest.bit_length() - 1]
            mask ^= lowest
