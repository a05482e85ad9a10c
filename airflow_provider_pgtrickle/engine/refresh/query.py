"""The protocol's view of a defining query, which the algebra gives once per definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from airflow_provider_pgtrickle.engine.dvm.lower.assign import Describe, Slices
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection

_KEPT = 1000


class QuerySource(Protocol):
    """A defining query, ready to be computed: its whole content, and its change."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """The sources that the query reads, by frontier key."""

    @property
    def refusal(self) -> str | None:
        """Why the query can't be refreshed by differences, in words; None if it can."""

    @property
    def topk(self) -> bool: ...

    @property
    def steady(self) -> bool:
        """Whether the content depends on the sources alone."""

    @property
    def lookups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of columns, besides the identity, by which a change looks stored rows up."""

    def full(self, binding: Binding) -> str:
        """SQL of the storage columns of every row."""

    def delta(self, binding: Binding) -> str | None:
        """SQL of `__pgt_w` and the storage columns of the true change; None if there can't be a change."""


@runtime_checkable
class SparkQuery(Protocol):
    """A query that can also be computed by Spark from reads of its sources."""

    def spark(
        self,
        binding: Binding,
        whole: bool,
        key: Sequence[tuple[str, str]],
        describe: Describe,
        slices: Slices,
        prefix: str,
    ) -> dvm.SparkPlan | None: ...


@dataclass(frozen=True)
class ViewQuery:
    """The algebra's view of a query."""

    view: dvm.View
    steady: bool

    @property
    def sources(self) -> Mapping[str, Source]:
        return self.view.sources

    @property
    def refusal(self) -> str | None:
        return self.view.refusal.message if self.view.refusal else None

    @property
    def topk(self) -> bool:
        return self.view.topk is not None

    @property
    def lookups(self) -> tuple[tuple[str, ...], ...]:
        return self.view.lookups

    def full(self, binding: Binding) -> str:
        return self.view.full(binding)

    def delta(self, binding: Binding) -> str | None:
        return self.view.delta(binding)

    def spark(
        self,
        binding: Binding,
        whole: bool,
        key: Sequence[tuple[str, str]],
        describe: Describe,
        slices: Slices,
        prefix: str,
    ) -> dvm.SparkPlan | None:
        return self.view.spark(binding, whole=whole, key=key, describe=describe, slices=slices, prefix=prefix)


_analysed: dict[tuple[object, ...], ViewQuery] = {}


def analysed(conn: Connection, st: StreamTable) -> QuerySource:
    """The query of a stream table whose fingerprint is known to hold.

    Analysis costs more than a small refresh, so a process keeps its result until the canonical text or the sources'
    fingerprint changes. The frontier keys in it are oids, so the result is valid in one database only.
    """
    place = (conn.info.host, conn.info.port, conn.info.dbname)
    key = (*place, st.id, st.relid, st.maintained_query, st.fingerprint)
    if key not in _analysed:
        probed = probe(conn, st.maintained_query, accepted=st.foreign_code)
        if len(_analysed) >= _KEPT:
            _analysed.pop(next(iter(_analysed)))
        _analysed[key] = ViewQuery(dvm.analyze(probed.text, probed.schema), probed.steady)
    return _analysed[key]
