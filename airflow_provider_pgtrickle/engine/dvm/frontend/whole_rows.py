"""A row that is used as one value is written out column by column, because the algebra knows columns alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, is_present, render
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import VIEW_META
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import item_names, output_names
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

FOUND = "__pgt_found"
_INNER = "__pgt_i"
#: Where FOUND stands beside the columns of a relation, the new relation's meta has the shape of the old one.
_SHAPE = "shape_of_rows"


@dataclass(frozen=True)
class _Shape:
    """What a relation's row is as one value."""

    type_name: tuple[str, str] | None
    """The row type of a table or view; None for a record."""
    columns: list[str]
    """The names by which the block refers to the columns."""
    never_null: str | None
    """A column that only the missing partner of an outer join leaves NULL."""


def whole_rows(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT row_to_json(t.*) FROM public.t                     →  … row_to_json(ROW(t.id, t.a)::public.t)
    SELECT count(t.*) FROM u LEFT JOIN public.t ON u.a = t.a  →  … count(CASE WHEN t.id IS NOT NULL THEN ROW(…) END)
    SELECT row_to_json(d.*) FROM (SELECT a …) d               →  … row_to_json((SELECT r FROM (SELECT d.a AS a) r))
    SELECT count(d.*) FROM u LEFT JOIN (SELECT a …) d ON …    →  … count(CASE WHEN d.found THEN … END)
                                                                 FROM u LEFT JOIN (SELECT a, true AS found …) d ON …

    Where an outer join found no row, the value is NULL and not a row of NULLs. A NOT NULL column tells the two apart;
    a relation that has none gets one.
    """
    for reference in list(query.find_all(exp.Column)):
        if isinstance(reference.this, exp.Star):
            reference.replace(_row(reference, schema))
    return query


def _row(reference: exp.Column, schema: Schema) -> exp.Expr:
    select, item = _defined(reference)
    shape = _shape(reference, item, schema)
    row = _typed(reference, shape) if shape.type_name is not None else _record(reference, shape)
    if not any(j.side for j in _joins(select)):
        return row
    if shape.never_null is None:
        shape = _with_found(reference, item, shape)
    found = is_present(exp.column(shape.never_null or FOUND, table=reference.table, quoted=True))
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=found, true=row)]))


def _typed(reference: exp.Column, shape: _Shape) -> exp.Expr:
    assert shape.type_name is not None
    schema, name = (exp.to_identifier(part, quoted=True) for part in shape.type_name)
    return exp.Cast(
        this=exp.Anonymous(
            this="ROW", expressions=[exp.column(n, table=reference.table, quoted=True) for n in shape.columns]
        ),
        to=exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=exp.Dot(this=schema, expression=name)),
    )


def _record(reference: exp.Column, shape: _Shape) -> exp.Expr:
    """A record whose fields have names, which ROW(…) would not give them."""
    fields = [exp.alias_(exp.column(n, table=reference.table, quoted=True), n, quoted=True) for n in shape.columns]
    alias = exp.TableAlias(this=exp.to_identifier(_INNER, quoted=True))
    return exp.Subquery(
        this=exp.Select(
            expressions=[exp.Column(this=exp.to_identifier(_INNER, quoted=True))],
            from_=exp.From(this=exp.Subquery(this=exp.Select(expressions=fields), alias=alias)),
        )
    )


def _refused(reference: exp.Column, why: str) -> Refused:
    return Refused(Reason.WHOLE_ROW, f"{render(reference)}, {why}", "Name the columns.")


def _shape(reference: exp.Column, item: exp.Expr, schema: Schema) -> _Shape:
    held = item.args.get("alias")
    given = [c.name for c in held.args.get("columns") or []] if held else []
    kept: _Shape | None = item.meta.get(_SHAPE)
    if kept is not None:
        return kept
    place: tuple[str, str] = item.meta.get(VIEW_META, ("", ""))
    if place in schema.view_columns:
        columns = list(schema.view_columns[place])
        return _Shape(place, given + columns[len(given) :], None)
    source = schema.by_key.get(item.meta.get(SOURCE_META, ""))
    if source is None:
        columns = _own_columns(item)
        names = given + columns[len(given) :]
        if not columns or len(set(names)) < len(names):
            raise _refused(reference, "which has no row type with a name")
        return _Shape(None, names, None)
    if source.kind == "STREAM_TABLE":
        raise _refused(reference, "a stream table with its internal columns")
    names = given + [c.name for c in source.columns][len(given) :]
    sure = next((n for n, c in zip(names, source.columns, strict=True) if c.not_null), None)
    return _Shape((source.schema, source.name), names, sure)


def _own_columns(item: exp.Expr) -> list[str]:
    """Return the columns of a derived table or a WITH item as its query names them."""
    if isinstance(item, exp.Table) and not item.db:
        node: exp.Expr | None = item
        while node is not None:
            clause = node.args.get("with_")
            for cte in clause.expressions if clause else ():
                if cte.alias == item.name:
                    return item_names(cte)
            node = node.parent
    query = item.this if isinstance(item, exp.Lateral) else item
    return output_names(query) if isinstance(query, exp.Subquery) and _holds_query(query) else []


def _with_found(reference: exp.Column, item: exp.Expr, shape: _Shape) -> _Shape:
    """Add a column to the relation that is never NULL; return the shape of its rows with that."""
    below, above = item, item.parent
    while above is not None and not isinstance(above, exp.Select):
        # The joins of an item are beside it.
        if isinstance(above, exp.Subquery) and above.alias and below.arg_key != "joins":
            raise _refused(reference, "beside an outer join, whose alias counts its columns")
        below, above = above, above.parent
    if isinstance(item, exp.Lateral):
        raise _refused(reference, "beside an outer join, and no column of it is NOT NULL")
    shape = replace(shape, never_null=FOUND)
    inner = item.copy()
    held = inner.args.get("alias")
    given = held.args.get("columns") if held else None
    inner.set("alias", exp.TableAlias(this=exp.to_identifier(_INNER, quoted=True), columns=given))
    inner.set("joins", None)
    columns = [exp.alias_(exp.column(n, table=_INNER, quoted=True), n, quoted=True) for n in shape.columns]
    wrapped = exp.Subquery(
        this=exp.Select(expressions=[*columns, exp.alias_(exp.true(), FOUND, quoted=True)], from_=exp.From(this=inner)),
        alias=exp.TableAlias(this=exp.to_identifier(reference.table, quoted=True)),
        joins=item.args.get("joins"),
    )
    wrapped.meta[_SHAPE] = shape
    item.replace(wrapped)
    return shape


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
        if isinstance(item, exp.Subquery) and not item.alias and not _holds_query(item):
            stack.append(item.this)
        else:
            yield item


def _holds_query(item: exp.Subquery) -> bool:
    """Whether parentheses hold a query, not a join."""
    inner = item.this
    while isinstance(inner, exp.Subquery) and not inner.alias and not inner.args.get("joins"):
        inner = inner.this
    return isinstance(inner, (exp.Select, exp.SetOperation))


def _joins(select: exp.Select) -> Iterator[exp.Join]:
    return (j for j in select.find_all(exp.Join) if j.parent_select is select)
