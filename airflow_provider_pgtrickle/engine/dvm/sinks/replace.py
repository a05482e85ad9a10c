"""Δstored = query¹ ⋉ K − stored ⋉ K, K = the keys that the change touches.

No old row is computed: those stored under a touched key are what was there, so the grouping itself may
leave an order open. What it groups may not: from its old and new rows comes K. Key columns that the query
does not show are kept hidden beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_pgtrickle.engine.dvm.differ import Differ, keys_from
from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink, descend, expose, if_changed, visible
from airflow_provider_pgtrickle.engine.dvm.sinks.total_order import total_order


class Replace(Sink):
    """A query that is, below its projections and filters, grouped by key columns."""

    title = "replace by key"

    def __init__(self, query: Query, storage: Node, hidden: Sequence[str], core: Node, keys: dict[str, str]) -> None:
        super().__init__(query, storage, hidden)
        self._core = core
        self._keys = keys
        """Key column of the core → column of the storage."""

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        core = descend(query.root)
        if group_of(core) is None:
            return None
        query = replace(query, root=total_order(query.root, but=core))
        core = descend(query.root)
        names = group_of(core) or ()
        root, found = expose(query.root, core, names, query.name)
        storage, hidden, keys = with_keys(query, root, found)
        return cls(query, storage, hidden, core, keys)

    def delta(self, d: Differ) -> Node | None:
        change = change_of(self._core, d)
        if change is None:
            return None
        keys = keys_from(change, self._keys) if self._keys else None
        mapped = keys.mapped(self._keys) if keys else None
        if mapped is None:
            return difference(if_changed(self.storage, change), if_changed(self.stored, change))
        new = Restrict(self.storage.restrict(mapped), mapped)
        return difference(new, Restrict(self.stored.restrict(mapped), mapped))


def group_of(core: Node) -> tuple[str, ...] | None:
    """The columns a core is grouped by; None where it is no grouping."""
    if isinstance(core, Aggregate):
        return core.group
    if isinstance(core, Window):
        return core.partition if not isinstance(core.child, Window) else None
    if isinstance(core, (Distinct, SetOperation)):
        return core.names
    return None


def change_of(core: Node, d: Differ) -> Node | None:
    """What touches the groups of a core, under the names of its group columns."""
    return core.change(d) if isinstance(core, SetOperation) else d.delta(core.inputs[0])


def with_keys(query: Query, root: Node, found: dict[str, str]) -> tuple[Project, list[str], dict[str, str]]:
    """The storage of a root, the hidden names added, and where each key column stands in it."""
    shown = dict(zip(root.names, query.outputs, strict=False))
    keys, extra = {}, []
    for n, (name, held) in enumerate(found.items(), 1):
        if held in shown:
            keys[name] = shown[held]
        else:
            keys[name] = f"__pgt_key_{n}"
            extra.append((keys[name], column(held)))
    return visible(root, query.outputs, extra), [h for h, _ in extra], keys
