"""F¹ = σF ⊎ (σ̄T ▷ σF) ⊎ (σ̄F ⋉ σT),  ΔF = ((σ̄T ▷ σF) − (σ̄F ▷ σT)) ⋉ K, T = a table, K = the keys of ΔT.
σ: the rows that are frozen, σ̄: all others; ⋉ and ▷ match rows by T's primary key.

A copy F of a table keeps what the table's frozen rows were. Of each key it holds one row at most: a frozen one stays;
a new row that is frozen isn't taken in, and what was stored stays in its place; otherwise F follows T.

So F isn't a query's answer: it follows from T and from what is stored. As long as the bound of σ only rises, applying
the rule once more changes nothing. Then it makes no difference which keys it is applied to, those of a change or all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import raw_type
from airflow_provider_pgtrickle.engine.dvm.expressions import column, conjunction
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node, rewritten
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.keys import keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink


class Frozen(Sink):
    """A copy of a table, whose rows stay once they are frozen. No query asks for it, so it isn't in SINKS."""

    title = "keep frozen rows"

    def __init__(self, query: Query, table: Node, key: Sequence[str], frozen: exp.Expr) -> None:
        super().__init__(query, rewritten(table, _with_primary_key_alone), ())
        self._key = tuple(key)
        self.frozen = frozen
        """The condition that a row is frozen."""

    @property
    def content(self) -> Node:
        # Rows that stay get the types that the table's columns have by now.
        stored = Project(self.stored, tuple((c.name, _typed(c.name, c.type)) for c in self.storage.columns))
        frozen = Filter(stored, self.frozen)
        held = self._matched("SEMI", Filter(stored, self._live), Filter(self.storage, self.frozen))
        return UnionAll.of((frozen, self._matched("ANTI", Filter(self.storage, self._live), frozen), held))

    def delta(self, d: Differ) -> Node | None:
        change = d.delta(self.storage)
        if change is None:
            return None
        keys = keys_from(change, self._key, null_matches=False)
        assert keys is not None  # PostgreSQL compares the columns of a primary key
        table, stored = self.storage, self.stored
        come = self._matched("ANTI", Filter(table, self._live), Filter(stored, self.frozen))
        gone = self._matched("ANTI", Filter(stored, self._live), Filter(table, self.frozen))
        return difference(Restrict(come.restrict(keys), keys), Restrict(gone.restrict(keys), keys))

    @property
    def _live(self) -> exp.Expr:
        return exp.Not(this=exp.Paren(this=exp.Is(this=exp.Paren(this=self.frozen.copy()), expression=exp.true())))

    def _matched(self, kind: str, left: Node, right: Node) -> Node:
        """The left rows that have a match of their key on the right, or none."""
        names = {name: f"__pgt_k{number}" for number, name in enumerate(self._key, 1)}
        keys = Project(right, tuple((other, column(name)) for name, other in names.items()))
        same = [exp.EQ(this=column(name), expression=column(other)) for name, other in names.items()]
        return SemiJoin(kind, left, keys, conjunction(same))


def _with_primary_key_alone(node: Node, fresh: Node) -> Node:
    """Other unique keys hold in the table, and not among its rows of different times."""
    return replace(fresh, source=replace(fresh.source, unique_keys=())) if isinstance(fresh, Scan) else fresh


def _typed(name: str, type_name: str | None) -> exp.Expr:
    return column(name) if type_name is None else exp.Cast(this=column(name), to=raw_type(type_name))
