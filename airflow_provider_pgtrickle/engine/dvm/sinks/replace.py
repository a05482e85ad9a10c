"""Δstored = query¹ ⋉ K − stored ⋉ K, K = the keys that the change touches.
The rows of these keys are computed anew and replace those that are stored under them.

No old row of the grouping is computed: the rows stored under a touched key are its old rows. So the grouping itself
may leave an order open. The rows that it groups may not, because K is computed from their old and new states. Key
columns that the query does not show are stored as hidden columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.grouping import Grouping
from airflow_provider_pgtrickle.engine.dvm.operators.keys import keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import (
    Query,
    Sink,
    descend,
    expose,
    if_changed,
    total_order,
    visible,
)


class Replace(Sink):
    """GROUP BY, INTERSECT, EXCEPT or a window over no other window, with nothing but projections and filters above."""

    title = "replace by key"

    def __init__(
        self, query: Query, storage: Node, hidden: Sequence[str], core: Grouping, keys: dict[str, str]
    ) -> None:
        super().__init__(query, storage, hidden)
        self._core = core
        self._keys = keys
        """Each key column of the core → the storage's column that holds it."""

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        core = descend(query.root)
        if core.groups is None:
            return None
        query = replace(query, root=total_order(query.root, but=core))
        core = descend(query.root)
        assert isinstance(core, Grouping)
        root, found = expose(query.root, core, core.groups or (), query.name)
        storage, hidden, keys = with_keys(query, root, found)
        return cls(query, storage, hidden, core, keys)

    def delta(self, d: Differ) -> Node | None:
        change = self._core.change(d)
        if change is None:
            return None
        keys = keys_from(change, self._keys) if self._keys else None
        mapped = keys.mapped(self._keys) if keys else None
        if mapped is None:
            return difference(if_changed(self.storage, change), if_changed(self.stored, change))
        new = Restrict(self.storage.restrict(mapped), mapped)
        return difference(new, Restrict(self.stored.restrict(mapped), mapped))


def with_keys(query: Query, root: Node, found: dict[str, str]) -> tuple[Project, list[str], dict[str, str]]:
    """Return the storage of a root, the names of its hidden columns, and the storage's column for each key column."""
    shown = dict(zip(root.names, query.outputs, strict=False))
    keys, extra = {}, []
    for n, (name, held) in enumerate(found.items(), 1):
        if held in shown:
            keys[name] = shown[held]
        else:
            keys[name] = f"__pgt_key_{n}"
            extra.append((keys[name], column(held)))
    return visible(root, query.outputs, extra), [h for h, _ in extra], keys
