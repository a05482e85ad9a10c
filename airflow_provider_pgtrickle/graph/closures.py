"""What lies upstream of each table, as bit sets: intersections are one machine operation for 1,000 tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from airflow_provider_pgtrickle.graph.node import Node


class Closures:
    """The transitive sources of every name, the name itself included. Base tables count as names."""

    def __init__(self, bits: dict[str, int], masks: dict[str, int]) -> None:
        self._bits = bits
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
        mask = self._bit(node.name)
        for source in sorted(node.sources):
            mask |= self.of(source)
        self._masks[node.name] = mask

    def _bit(self, name: str) -> int:
        return self._bits.setdefault(name, 1 << len(self._bits))

    def of(self, name: str) -> int:
        return self._masks.get(name) or self._bit(name)

    def above(self, name: str) -> int:
        """Without the name itself."""
        return self.of(name) & ~self._bit(name)

    def holds(self, mask: int, name: str) -> bool:
        return bool(mask & self._bit(name))

    def names(self, mask: int) -> Iterator[str]:
        return (name for name, bit in self._bits.items() if mask & bit)
