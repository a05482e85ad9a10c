"""R = R: the relation is computed once, however often it is read."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Key, Node, Slicer, Unary
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class Once(Unary):
    """A relation that several nodes of a plan read."""

    def delta(self, d: Differ) -> Node | None:
        return d.delta(self.child)

    def sliced(self, s: Slicer) -> Node | None:
        part = s.slice(self.child)
        return None if part is None else Once(part)

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def shared(self) -> bool:
        return True

    def select(self, e: Emitter) -> str:
        return e.body(self.child)

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return set()

    def unsettled(self) -> None:
        return None

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return self.child.whence(name)

    def label(self) -> str:
        return "once"
