"""What a query means as a stream table: everything the catalog, the capture and the storage need of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from airflow_provider_pgtrickle import dvm
from airflow_provider_pgtrickle.catalog.probe import Probe, are_one_query, fingerprint, probe
from airflow_provider_pgtrickle.catalog.records import Dependency, StorageColumn
from airflow_provider_pgtrickle.declare import columns, dependencies, modes
from airflow_provider_pgtrickle.declare.columns import Column


@dataclass(frozen=True)
class Definition:
    """Derived from the query and the database alone, never from what is stored."""

    probe: Probe
    view: dvm.View
    columns: tuple[Column, ...]
    dependencies: tuple[Dependency, ...]
    fingerprint: str
    refusal: str | None
    """Why it can't be kept by differences, in words; None where it can."""
    notices: tuple[str, ...]
    whole: Probe | None = None
    """What was declared, where `probe` and all else are of the same query over parts."""

    @property
    def storage(self) -> tuple[StorageColumn, ...]:
        """The columns as the catalog keeps them."""
        return tuple(column.stored for column in self.columns)

    def catalog_columns(self) -> dict[str, Any]:
        """As `pgt_stream_tables` names them."""
        topk = self.view.topk
        return {
            **self.query_columns(),
            "storage": self.storage,
            "identity": tuple(self.view.identity),
            "keyed": self.view.keyed,
            "fingerprint": self.fingerprint,
            "differentiable": self.refusal is None,
            "refusal": self.refusal,
            "steady": self.probe.steady,
            "topk_limit": topk.limit if topk else None,
            "topk_offset": topk.offset if topk else None,
            "topk_order_by": str(topk.order_by) if topk else None,
        }

    def query_columns(self) -> dict[str, Any]:
        """The query alone, as `pgt_stream_tables` names its forms."""
        declared = self.whole or self.probe
        return {
            "original_query": declared.original,
            "defining_query": declared.canonical,
            "split_query": self.probe.canonical if self.whole else None,
        }


def _survives_parsing(conn: psycopg.Connection, probed: Probe) -> bool:
    """Whether PostgreSQL reads each text, as the algebra wrote it again, for the very same query."""
    for text in (probed.text, *probed.schema.views.values()):
        written = dvm.round_trip(text)
        if written is None or not are_one_query(conn, text, written):
            return False
    return True


def define(conn: psycopg.Connection, query: str, refresh_mode: str) -> Definition:
    """Ask PostgreSQL and the algebra about a query; refused with its place and the remedy where it can't be."""
    probed = probe(conn, query)
    view = dvm.analyze(probed.text, probed.schema)
    if view.refusal is None and not _survives_parsing(conn, probed):
        view = dvm.refuse_round_trip(view)
    refusal, notices = modes.judge(refresh_mode, view)
    return Definition(
        probe=probed,
        view=view,
        columns=columns.of_view(conn, view),
        dependencies=dependencies.of(conn, probed),
        fingerprint=fingerprint(conn, probed),
        refusal=refusal,
        notices=notices,
    )
