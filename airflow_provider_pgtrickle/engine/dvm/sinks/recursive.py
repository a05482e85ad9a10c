"""Δstored = π(ΔR), R a recursion. Every row of R is stored, so its change is found from the stored rows by `rederive`.

Columns of R that the query doesn't show are stored as hidden columns, because they tell R's rows apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import Recursion, graft, joined_columns, joined_sources
from airflow_provider_pgtrickle.engine.dvm.operators.rederive import rederived
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from airflow_provider_pgtrickle.engine.dvm.operators.stored_rows import Lookup
from airflow_provider_pgtrickle.engine.dvm.sinks.replace import with_keys
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink, below_projections, expose
from airflow_provider_pgtrickle.engine.dvm.types import is_of_fixed_size


class Recursive(Sink):
    """A recursion with nothing but projections above it."""

    title = "delete and rederive"

    def __init__(self, query: Query, storage: Node, hidden: Sequence[str], core: Recursion, lookup: Lookup) -> None:
        super().__init__(query, storage, hidden)
        self._core = core
        self._lookup = lookup

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        core = below_projections(query.root)
        if not isinstance(core, Recursion):
            return None
        root, found = expose(query.root, core, core.names, query.name)
        storage, hidden, held = with_keys(query, root, found)
        return cls(query, storage, hidden, core, _lookup(core, held))

    @property
    def lookups(self) -> tuple[tuple[str, ...], ...]:
        return (self._lookup.matched,) if self._lookup.matched else ()

    @property
    def step_lookups(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        return joined_sources(self._core.step, self._core.itself)

    def delta(self, d: Differ) -> Node | None:
        change = rederived(d, self._core, self._lookup)
        return None if change is None else graft(self.storage, self._core, change)


def _lookup(core: Recursion, held: dict[str, str]) -> Lookup:
    """Return the recursion's stored rows, and how they are found: by the columns that the step joins.

    Other columns take part in the search if they are never NULL and of a fixed size.
    """
    stored = Stored(tuple(replace(c, name=held[c.name]) for c in core.columns))
    joined = joined_columns(core.step, core.itself)
    places = [n for n, c in zip(stored.names, core.itself.names, strict=True) if c in joined]
    others = [
        c.name for c in stored.columns if c.name not in places and c.not_null and c.type and is_of_fixed_size(c.type)
    ]
    return Lookup(stored, tuple(places + others))
