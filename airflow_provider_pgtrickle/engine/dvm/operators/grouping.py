"""ΔG(R) = G(R¹ ⋉ K) − G(R⁰ ⋉ K), K = the groups that ΔR touches. Every operator over groups of rows follows it.

A group is all rows with the same values in some columns. The operator's rows for a touched group are computed anew,
from the old state and from the new one.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.keys import keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference


class Grouping(Node):
    """An operator whose rows are computed group by group."""

    @property
    def heavy(self) -> bool:
        return True

    def change(self, d: Differ) -> Node | None:
        """The changed rows that touch the operator's groups, under the names of the group columns."""
        return d.delta(self.inputs[0])

    def delta(self, d: Differ) -> Node | None:
        change = self.change(d)
        return None if change is None else touched_difference(d, self, change, self.groups or ())

    @property
    def always_alike(self) -> frozenset[str]:
        """Columns whose values look the same, whichever row of a group PostgreSQL reads first."""
        return frozenset()

    def unsettled(self) -> str | None:
        """The reason, if a group's values may look different, as 1.0 and 1.00 do.

        One of its equal rows represents the group, and it is open which one.
        """
        alike = self.always_alike
        held = next((c for c in self.columns if c.name not in alike and not c.is_image), None)
        return f"it groups {held.name}, whose equal values may look different" if held else None


def touched_difference(d: Differ, node: Node, change: Node, group: Sequence[str]) -> Node:
    """node¹ − node⁰ over the groups that `change` touches. Both node and change have the columns `group`."""
    keys = keys_from(change, group) if group else None
    before = d.old(node)
    if keys is None:
        return difference(node, before)
    return difference(Restrict(node.restrict(keys), keys), Restrict(before.restrict(keys), keys))
