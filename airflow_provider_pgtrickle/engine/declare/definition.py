"""What a query means as a stream table: everything the catalog, the capture and the storage need of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog import foreign, indexes, zone
from airflow_provider_pgtrickle.engine.catalog.probe import (
    PLANNING_SECONDS,
    Probe,
    are_one_query,
    fingerprint,
    planning_within,
    probe,
)
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StorageColumn
from airflow_provider_pgtrickle.engine.catalog.search_path import PATH, pin, read_only
from airflow_provider_pgtrickle.engine.declare import columns, dependencies
from airflow_provider_pgtrickle.engine.declare.columns import Column
from airflow_provider_pgtrickle.engine.declare.retention import Retention
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, SourceBinding, Window
from airflow_provider_pgtrickle.engine.dvm.buffers import buffer_column
from airflow_provider_pgtrickle.engine.dvm.types import base_type
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, QueryError


@dataclass(frozen=True)
class Definition:
    """What a query means. It is derived from the query and the database alone, never from the stored table."""

    probe: Probe
    view: dvm.View
    columns: tuple[Column, ...]
    dependencies: tuple[Dependency, ...]
    fingerprint: str
    refusal: str | None
    """Why it can't be maintained by differences, in words; None if it can."""
    notices: tuple[str, ...]
    path: str = PATH
    """The search_path along which the names in the declared text were looked up."""
    whole: Probe | None = None
    """The query as declared, if `probe` and everything else are about the one over its parts."""
    copied: Probe | None = None
    """The query over the tables themselves, if it reads copies in the places of some."""

    @property
    def storage(self) -> tuple[StorageColumn, ...]:
        """The columns as the catalog keeps them."""
        return tuple(column.stored for column in self.columns)

    def catalog_columns(self) -> dict[str, Any]:
        """The values by the columns of `pgt_stream_tables`."""
        topk = self.view.topk
        return {
            **self.query_columns(),
            "storage": self.storage,
            "identity": tuple(self.view.identity),
            "keyed": self.view.keyed,
            "fingerprint": self.fingerprint,
            "differentiable": self.refusal is None,
            "refusal": self.refusal,
            "steady": self.view.steady,
            "clock_probe": self.view.clock_probe(),
            "topk_limit": topk.limit if topk else None,
            "topk_offset": topk.offset if topk else None,
            "topk_order_by": str(topk.order_by) if topk else None,
        }

    def query_columns(self) -> dict[str, Any]:
        """The forms of the query by the columns of `pgt_stream_tables`."""
        declared = self.whole or self.probe
        return {
            "original_query": declared.original,
            "search_path": self.path,
            "foreign_code": declared.foreign_code,
            "defining_query": declared.canonical,
            "split_query": self.probe.canonical if self.whole else None,
        }


def explained(conn: psycopg.Connection, view: dvm.View) -> dvm.Explanation:
    """How a query is maintained, with the indexes that are missing now."""
    missing = indexes.missing(conn, view.sources, view.wanted_keys(), view.wanted_ranges())
    told = view.explain(missing_indexes=missing)
    return replace(told, timezone=zone.of(conn))


def explanation(conn: psycopg.Connection, view: dvm.View) -> dict[str, str]:
    """The catalog's columns that keep it for readers in SQL, short and whole."""
    told = explained(conn, view)
    return {"summary": told.short, "explanation": str(told)}


def _unlike(stored: tuple[Column, ...], probed: Probe) -> str | None:
    """The first column whose type, its modifier aside, is not the query's."""
    types = {column.name: column.type for column in stored}
    for column in probed.columns:
        if base_type(types.get(column.name, "")) != base_type(column.type):
            return f"{column.name} is {types.get(column.name, 'missing')} and not {column.type}"
    return None


def _typed(stored: tuple[Column, ...], probed: Probe) -> tuple[Column, ...]:
    """The columns with the query's own types: numeric(10,2) becomes numeric where a NULL meets it."""
    own = {column.name: column for column in probed.columns}
    return tuple(
        replace(c, type=own[c.name].type, collation=own[c.name].collation) if c.name in own else c for c in stored
    )


def objection_to(conn: psycopg.Connection, view: dvm.View) -> str | None:
    """PostgreSQL's objection to the statements of later refreshes; None if it plans them all.

    They are planned over stand-ins for the buffers and the table, which are rolled back.
    """
    try:
        with conn.transaction(force_rollback=True):
            pin(conn)
            binding = _stand_ins(conn, view)
            statements = [view.storage_query(), view.delta(binding)]
            if len(binding.sources) > 1:
                statements += [view.delta(_changed_alone(binding, key)) for key in binding.sources]
            with planning_within(conn), read_only(conn):
                for statement in filter(None, statements):
                    conn.execute(sql.SQL("EXPLAIN ") + sql.SQL(statement))
    except psycopg.errors.QueryCanceled:
        return f"it takes more than {PLANNING_SECONDS} s to plan it"
    except psycopg.Error as error:
        return _objection(error)
    return None


def _objection(error: psycopg.Error) -> str:
    """What PostgreSQL says against a statement. What is said of the server or the session is no objection to it."""
    if (error.sqlstate or "")[:2] in ("08", "53", "55", "57", "40"):
        raise error
    return error.diag.message_primary or str(error)


def checked(conn: psycopg.Connection, view: dvm.View, probed: Probe) -> dvm.View:
    """The view, refused for differences if PostgreSQL refuses the text of the stored rows or types it otherwise."""
    try:
        unlike = _unlike(columns.of_view(conn, view), probed)
    except psycopg.Error as error:
        return dvm.refused(view, dvm.Reason.UNPLANNABLE, _objection(error))
    if unlike:
        return dvm.refused(view, dvm.Reason.ROUND_TRIP, f"PostgreSQL types the parsed text otherwise: {unlike}")
    return view


def _changed_alone(binding: Binding, key: str) -> Binding:
    return replace(binding, sources={k: replace(bound, changed=k == key) for k, bound in binding.sources.items()})


def _stand_ins(conn: psycopg.Connection, view: dvm.View) -> Binding:
    """Empty tables with the columns of the view's buffers and of its storage."""
    bound = {}
    for number, (key, source) in enumerate(view.sources.items()):
        is_stream_table = source.kind == "STREAM_TABLE"
        items: list[sql.Composable] = [sql.SQL('NULL::xid8 AS xid, NULL::"char" AS action')]
        if is_stream_table:
            items.append(sql.SQL("NULL::bigint AS pk_hash"))
        wanted = {*view.used.get(key, ()), *source.primary_key}
        for column in (c for c in source.columns if c.name in wanted):
            for image in ("new",) if is_stream_table else ("new", "old"):
                name = buffer_column(image, column.name)
                items.append(sql.SQL("{} AS {}").format(sql.Identifier(column.name), sql.Identifier(name)))
        relation = sql.Identifier(source.schema, source.name)
        made = _stand_in(conn, number, sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(items), relation))
        bound[key] = SourceBinding(True, Window(made, "1:1:", "2:2:"))
    stored = _stand_in(conn, len(bound), sql.SQL(view.storage_query()))
    return Binding(bound, stored)


def _stand_in(conn: psycopg.Connection, number: int, query: sql.Composable) -> tuple[str, str]:
    name = ("pgtrickle", f"__pgt_stand_in_{conn.info.backend_pid}_{number}")
    conn.execute(sql.SQL("CREATE TABLE {} AS {} WITH NO DATA").format(sql.Identifier(*name), query))
    return name


def survives_parsing(conn: psycopg.Connection, probed: Probe) -> bool:
    """Whether each text, parsed and written again by the algebra, is the same query to PostgreSQL."""
    for text in (probed.text, *probed.schema.views.values()):
        written = dvm.round_trip(text)
        if written is None or not are_one_query(conn, text, written):
            return False
    return True


def analysed(
    conn: psycopg.Connection,
    query: str,
    path: str | None = None,
    accepted: Mapping[str, str] | None = None,
    *,
    planned: bool = True,
    approximate_floats: bool = False,
    frozen_rows: str | None = None,
) -> tuple[Probe, dvm.View]:
    """What PostgreSQL and the algebra make of a query. Where the two disagree, the view is refused for differences.

    `validate`, `explain` and every declaration call this, so that they say the same. `planned`: PostgreSQL also plans
    the statements of later refreshes, which takes longer than all the rest. `approximate_floats`: sums over floats may
    be kept by adding. `frozen_rows`: it is the query of a copy that keeps these rows.
    """
    probed = probe(conn, query, path, accepted)
    view = dvm.analyze(probed.text, probed.schema, probed.floats if approximate_floats else {})
    if frozen_rows is not None:
        view = dvm.copying(view, frozen_rows)
    if view.refusal is None and probed.odd_equalities:
        detail = f"it groups or sorts by {probed.odd_equalities[0]}, whose equality is not one of pg_catalog"
        view = dvm.refused(view, dvm.Reason.UNSUPPORTED_SYNTAX, detail)
    if view.refusal is None and not survives_parsing(conn, probed):
        view = dvm.refused(view, dvm.Reason.ROUND_TRIP, "PostgreSQL reads the parsed text otherwise")
    if view.refusal is None:
        view = checked(conn, view, probed)
    if view.refusal is None and planned and (objection := objection_to(conn, view)):
        view = dvm.refused(view, dvm.Reason.UNPLANNABLE, objection)
    return probed, view


def define(
    conn: psycopg.Connection,
    query: str,
    refresh_mode: str,
    path: str | None = None,
    accepted: Mapping[str, str] | None = None,
    *,
    planned: bool = True,
    retention: Retention | None = None,
    approximate_floats: bool = False,
    frozen_rows: str | None = None,
) -> Definition:
    """Ask PostgreSQL and the algebra what a query means; a refusal has its place in the text and a remedy.

    Names in a user's own text are looked up along `path`; our own texts qualify every name. A declaration accepts the
    code of others behind the query, and a refresh allows only what was `accepted`. `planned`, `approximate_floats` and
    `frozen_rows`: see `analysed`. With a `retention` the query means its rows within that, and the declared text stays
    the author's.
    """
    text, along = query, path
    if retention is not None:
        text, along = retention.applied(conn, probe(conn, query, path, accepted)), None
    probed, view = analysed(
        conn, text, along, accepted, planned=planned, approximate_floats=approximate_floats, frozen_rows=frozen_rows
    )
    probed = replace(probed, original=query)
    refusal, notices = _judged(refresh_mode, view)
    return Definition(
        probe=probed,
        view=view,
        columns=_typed(columns.of_view(conn, view), probed),
        dependencies=dependencies.of(conn, probed),
        fingerprint=fingerprint(conn, probed),
        refusal=refusal,
        notices=notices + _of_stars(query) + foreign.notices(probed.foreign),
        path=path or PATH,
    )


def float_notice(view: dvm.View) -> tuple[str, ...]:
    """A notice where sums over floats may be approximate, and none is."""
    if view.approximate or view.refusal is not None:
        return ()
    return (
        "float_sums is 'approximate', and no column is: sums over floats are kept by adding where each is a column of"
        " the query as it is, beside its groups' keys, and no other aggregate needs the group",
    )


def _of_stars(query: str) -> tuple[str, ...]:
    """A notice where the query takes columns that its author doesn't know yet."""
    from airflow_provider_pgtrickle.engine.graph.reads import starred

    try:
        names = starred(query) if "*" in query else ()
    except QueryError:
        # PostgreSQL has read it, which is enough.
        return ()
    if not names:
        return ()
    return (
        f"`*` takes in each column that {' or '.join(names)} will get: the table is then reshaped and computed in full."
        " Name the columns to keep it as it is",
    )


def _judged(refresh_mode: str, view: dvm.View) -> tuple[str | None, tuple[str, ...]]:
    """Why the query can't be maintained by differences (None if it can), and notices for its author.

    Mode DIFFERENTIAL refuses such a query, AUTO notes that it runs FULL.
    """
    refusal = view.refusal
    if refusal is None:
        return None, ()
    if refresh_mode in ("DIFFERENTIAL", "IMMEDIATE"):
        raise NotDifferentiable(
            refusal.message,
            reason=refusal.reason,
            place=refusal.place,
            remedy=f"Use refresh_mode AUTO or FULL. {refusal.remedy}",
        )
    notices = (f"Every refresh will run FULL: {refusal.message}",) if refresh_mode == "AUTO" else ()
    return refusal.message, notices
