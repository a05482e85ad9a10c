"""The stream table's own rows, as the last refresh left them."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Leaf, Node
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class Stored(Leaf):
    """Visible and hidden columns of the stream table under the names of the view's storage."""

    stored_columns: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.stored_columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return frozenset()

    def restrict(self, keys: Keys) -> Node:
        return Restrict(self, keys, exact=False, is_stored=True)

    def rows(self, e: Emitter) -> Rows:
        alias = e.alias()
        return Rows(f"{e.stored()} AS {alias}", {n: (alias, n) for n in self.names})

    def label(self) -> str:
        return "Stored rows"
