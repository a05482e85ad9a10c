"""A row that is used as one value is written out column by column, because the algebra knows columns alone."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, is_present, render
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import VIEW_META
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def whole_rows(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT row_to_json(t.*) FROM public.t                     →  … row_to_json(ROW(t.id, t.a)::public.t)
    SELECT count(t.*) FROM u LEFT JOIN public.t ON u.a = t.a  →  … count(CASE WHEN t.id IS NOT NULL THEN ROW(…) END)

    Where an outer join found no row, the value is NULL and not a row of NULLs. A NOT NULL column tells the two apart.
    """
    for reference in list(query.find_all(exp.Column)):
        if isinstance(reference.this, exp.Star):
            reference.replace(_row(reference, schema))
    return query


def _row(reference: exp.Column, schema: Schema) -> exp.Expr:
    select, item = _defined(reference)
    type_name, columns, not_null = _shape(reference, item, schema)
    held = item.args.get("alias")
    given = [c.name for c in held.args.get("columns") or []] if held else []
    names = given + columns[len(given) :]

    def field(name: str) -> exp.Column:
        return exp.column(name, table=reference.table, quoted=True)

    row = exp.Cast(
        this=exp.Anonymous(this="ROW", expressions=[field(n) for n in names]),
        to=exp.DataType(
            this=exp.DataType.Type.USERDEFINED,
            kind=exp.Dot(
                this=exp.to_identifier(type_name[0], quoted=True),
                expression=exp.to_identifier(type_name[1], quoted=True),
            ),
        ),
    )
    if not any(j.side for j in _joins(select)):
        return row
    sure = next((n for n, c in zip(names, columns, strict=True) if c in not_null), None)
    if sure is None:
        raise _refused(reference, "beside an outer join, and no column of it is NOT NULL")
    found = is_present(field(sure))
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=found, true=row)]))


def _refused(reference: exp.Column, why: str) -> Refused:
    return Refused(Reason.WHOLE_ROW, f"{render(reference)}, {why}", "Name the columns.")


def _shape(reference: exp.Column, item: exp.Expr, schema: Schema) -> tuple[tuple[str, str], list[str], frozenset[str]]:
    """Return the row type's name, its fields, and those that are never NULL."""
    place: tuple[str, str] = item.meta.get(VIEW_META, ("", ""))
    if place in schema.view_columns:
        return place, list(schema.view_columns[place]), frozenset()
    source = next((s for s in schema.sources.values() if s.key == item.meta.get(SOURCE_META)), None)
    if source is None:
        raise _refused(reference, "which has no row type with a name")
    if source.kind == "STREAM_TABLE":
        raise _refused(reference, "a stream table with its internal columns")
    never_null = frozenset(c.name for c in source.columns if c.not_null)
    return (source.schema, source.name), [c.name for c in source.columns], never_null


def _defined(reference: exp.Column) -> tuple[exp.Select, exp.Expr]:
    """Return the block whose FROM has the relation, and the relation there."""
    select = reference.parent_select
    while select is not None:
        for item in _items(select):
            if item.alias_or_name == reference.table:
                return select, item
        select = select.parent_select
    raise _refused(reference, "which names no relation in sight")


def _items(select: exp.Select) -> Iterator[exp.Expr]:
    source = select.args.get("from_")
    stack = [source.this, *(j.this for j in select.args.get("joins") or [])] if source else []
    while stack:
        item = stack.pop()
        stack.extend(j.this for j in item.args.get("joins") or [])
        if isinstance(item, exp.Subquery) and not item.alias and not isinstance(item.this, exp.Query):
            stack.append(item.this)
        else:
            yield item


def _joins(select: exp.Select) -> Iterator[exp.Join]:
    return (j for j in select.find_all(exp.Join) if j.parent_select is select)
