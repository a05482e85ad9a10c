"""A small schema for tests of the engine that need no database."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm import Schema, Source, SourceColumn, View, analyze
from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse

_TYPES = {"id": "integer", "g": "integer", "v": "integer", "p": "numeric(10,2)", "t": "text"}


def table(name: str, columns: tuple[str, ...] = ("id", "g", "v", "p", "t"), number: int = 1, **more: object) -> Source:
    held = tuple(SourceColumn(c, _TYPES.get(c, "integer"), c == "id") for c in columns)
    key = ("id",) if "id" in columns else ()
    return Source(str(number), "public", name, held, key, relid=number, **more)  # type: ignore[arg-type]


def schema(*tables: Source, **more: object) -> Schema:
    tables = tables or (table("a", number=1), table("b", number=2))
    more = {"set_returning": frozenset({"generate_series"})} | more
    return Schema(sources={(t.schema, t.name): t for t in tables}, **more)  # type: ignore[arg-type]


def view(query: str, known: Schema | None = None) -> View:
    return analyze(query, known or schema())


def rewritten(rewrite_pass, query: str, known: Schema | None = None) -> str:
    """What a pass makes of a query whose views are inlined."""
    known = known or schema()
    return render(rewrite_pass(mark_sets(inline_views(parse(query), known), known), known))


def delta(query: str, known: Schema | None = None, changed: tuple[str, ...] | None = None) -> str | None:
    """The SQL of the change when some sources changed, all of them if not told."""
    made = view(query, known)
    bound = made.example_binding()
    if changed is not None:
        sources = {key: held if key in changed else type(held)(False) for key, held in bound.sources.items()}
        bound = type(bound)(sources, bound.stored)
    return made.delta(bound)
