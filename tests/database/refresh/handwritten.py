"""Queries whose content and change are written by hand, so that the protocol is tested apart from the algebra."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_provider_pgtrickle.engine.dvm import View
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, SourceBinding, Window
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.refresh.observe import within

Delta = Callable[[Binding], str | None]


class HandWritten(View):
    """A query whose SQL may be changed by a test."""

    def __init__(self, full_sql: Callable[[Binding], str], delta_sql: Delta, sources: Mapping[str, Source]) -> None:
        super().__init__("", (), sources, {}, True, None)
        self.full_sql = full_sql
        self.delta_sql = delta_sql

    @property
    def is_text(self) -> bool:
        """Its SQL takes in what earlier members of the unit hand on."""
        return False

    def full(self, binding: Binding) -> str:
        return self.full_sql(binding)

    def delta(self, binding: Binding) -> str | None:
        return self.delta_sql(binding)


def changes(source: Source, bound: SourceBinding, columns: tuple[str, ...]) -> str:
    """`__pgt_w` and the columns of what happened to a source."""
    parts = []
    if isinstance(bound.window, Window):
        buffer = '"{}"."{}"'.format(*bound.window.buffer)
        where = within(bound.window).as_string(None)
        new = ", ".join(f'"new_{c}" AS "{c}"' for c in columns)
        old = ", ".join(f'"old_{c}" AS "{c}"' for c in columns)
        if source.pgt_id is not None:
            parts.append(
                f"SELECT CASE action WHEN 'I' THEN 1 ELSE -1 END AS __pgt_w, {new} FROM {buffer} WHERE {where}"
            )
        else:
            parts.append(f"SELECT 1 AS __pgt_w, {new} FROM {buffer} WHERE action IN ('I', 'U') AND {where}")
            parts.append(f"SELECT -1, {old} FROM {buffer} WHERE action IN ('D', 'U') AND {where}")
    if bound.handed_on is not None:
        parts.append(f"SELECT __pgt_w, {', '.join(columns)} FROM ({bound.handed_on.sql}) p")
    return " UNION ALL ".join(parts)


def state(source: Source, bound: SourceBinding, columns: tuple[str, ...]) -> str:
    """The rows of a source at the unit's snapshot, with the pending change of an earlier member in them."""
    listed = ", ".join(columns)
    stored = f'SELECT {listed} FROM "{source.schema}"."{source.name}"'
    if bound.handed_on is None:
        return stored
    return (
        f"SELECT {listed} FROM (SELECT sum(w) AS w, {listed} FROM (SELECT 1 AS w, {listed} FROM ({stored}) s"
        f" UNION ALL SELECT __pgt_w, {listed} FROM ({bound.handed_on.sql}) p) u GROUP BY {listed}) g,"
        " generate_series(1, g.w)"
    )


def filtered(source: Source, columns: tuple[str, ...], condition: str) -> HandWritten:
    """SELECT columns FROM source WHERE condition."""
    listed = ", ".join(columns)
    return HandWritten(
        lambda b: f"SELECT {listed} FROM ({state(source, b.sources[source.key], columns)}) s WHERE {condition}",
        lambda b: (
            f"SELECT __pgt_w, {listed} FROM ({changes(source, b.sources[source.key], columns)}) c WHERE {condition}"
        ),
        {source.key: source},
    )


def grouped(source: Source, key: str, aggregate: str, name: str, columns: tuple[str, ...]) -> HandWritten:
    """SELECT key, aggregate AS name FROM source GROUP BY key."""

    def full(b: Binding) -> str:
        return (
            f"SELECT {key}, {aggregate} AS {name} FROM ({state(source, b.sources[source.key], columns)}) s GROUP BY 1"
        )

    def delta(b: Binding) -> str:
        assert b.stored is not None
        touched = f"SELECT {key} FROM ({changes(source, b.sources[source.key], columns)}) c"
        stored = '"{}"."{}"'.format(*b.stored)
        same = f"IN ({touched})"
        null = f"({key} IS NULL AND EXISTS ({touched} WHERE {key} IS NULL))"
        return (
            f"SELECT 1 AS __pgt_w, f.* FROM ({full(b)}) f WHERE {key} {same} OR {null}"
            f" UNION ALL SELECT -1, {key}, {name} FROM {stored} WHERE {key} {same} OR {null}"
        )

    return HandWritten(full, delta, {source.key: source})
