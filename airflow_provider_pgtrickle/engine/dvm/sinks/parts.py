"""An aggregate has a running state: columns that are stored, to which a change adds, and of which a value is shown."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import raw_type
from airflow_provider_pgtrickle.engine.dvm.exact_types import Exact, exact_type, scale_of
from airflow_provider_pgtrickle.engine.dvm.expressions import column, has_subquery, is_present, render, unparen
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Column

COUNT = "__pgt_count"
WEIGHT_COLUMN = "__pgt_n"
Item = tuple[str, exp.Expr]


@dataclass(frozen=True)
class Part:
    """The hidden columns of one argument: `full` computes them from the rows, `added` from the change, `merged` from
    the results of both."""

    hidden: tuple[str, ...]
    full: tuple[Item, ...]
    added: tuple[Item, ...]
    merged: tuple[tuple[str, exp.Expr, exp.Expr, exp.Expr], ...]
    """(column, its value in a stored row, its value in an added row, the expression that combines both)."""
    anew: exp.Expr | None = None
    """A condition over the merged columns, which is true where the group must be computed anew."""
    is_sum: bool = True
    """Whether each column is merged by adding, whatever was added before."""


def cast(expression: exp.Expr, type_name: str) -> exp.Expr:
    return exp.Cast(this=expression, to=raw_type(type_name))


def part_of(
    call: exp.Expr, columns: Mapping[str, Column], parts: MutableMapping[tuple[str, str], Part], namer: Namer
) -> exp.Expr | None:
    """Return the aggregate's value over hidden columns, and add its `Part` to `parts`; None where it can't be kept."""
    bare, condition = unparen(call), None
    if isinstance(bare, exp.Filter):
        condition = bare.expression.this
        bare = unparen(bare.this)
    if has_subquery(call) or bare.find(exp.Distinct) or bare.find(exp.Order):
        return None
    if isinstance(bare, exp.Count):
        if bare.expressions:
            return None
        return _count(bare, condition, parts, namer)
    if isinstance(bare, (exp.Sum, exp.Avg)) and (kind := exact_type(bare.this, columns)) is not None:
        return _sum(bare, condition, kind, columns, parts, namer)
    if isinstance(bare, (exp.Min, exp.Max)) and not bare.expressions:
        return _extremum(bare, condition, parts, namer)
    return None


def _sql(*expressions: exp.Expr | None) -> str:
    return " | ".join(render(e) if e is not None else "" for e in expressions)


def _filtered(call: exp.Expr, *terms: exp.Expr | None) -> exp.Expr:
    wanted = [exp.Paren(this=t.copy()) for t in terms if t is not None]
    if not wanted:
        return call
    return exp.Filter(this=call, expression=exp.Where(this=exp.and_(*wanted, copy=False)))


def _zero(call: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=call, expressions=[exp.Literal.number(0)])


def _counted(name: str, full: exp.Expr, terms: list[exp.Expr | None]) -> tuple[Item, Item]:
    weights = cast(_zero(_filtered(exp.Sum(this=column(WEIGHT_COLUMN)), *terms)), "bigint")
    return (name, full), (name, weights)


def _plain_sum(name: str, type_name: str | None) -> tuple[str, exp.Expr, exp.Expr, exp.Expr]:
    total: exp.Expr = exp.Sum(this=column(name))
    return name, column(name), column(name), cast(total, type_name) if type_name else total


def _count(
    call: exp.Count, condition: exp.Expr | None, parts: MutableMapping[tuple[str, str], Part], namer: Namer
) -> exp.Expr:
    argument = None if isinstance(call.this, exp.Star) else call.this
    if argument is None and condition is None:
        return column(COUNT)
    key = ("count", _sql(argument, condition))
    if key not in parts:
        name = namer("__pgt_cnt")
        terms = [is_present(argument.copy()) if argument is not None else None, condition]
        full, added = _counted(name, _filtered(call.copy(), condition), terms)
        parts[key] = Part((name,), (full,), (added,), (_plain_sum(name, "bigint"),))
    return column(parts[key].hidden[0])


def _sum(
    call: exp.Expr,
    condition: exp.Expr | None,
    kind: Exact,
    columns: Mapping[str, Column],
    parts: MutableMapping[tuple[str, str], Part],
    namer: Namer,
) -> exp.Expr:
    argument = call.this
    key = ("sum", _sql(argument, condition))
    if key not in parts:
        total, counted = namer("__pgt_sum"), namer("__pgt_nn")
        full_sum = cast(_zero(_filtered(exp.Sum(this=argument.copy()), condition)), kind.sum_type)
        full_count, added_count = _counted(
            counted,
            _filtered(exp.Count(this=argument.copy(), big_int=True), condition),
            [is_present(argument.copy()), condition],
        )
        product = exp.Mul(
            this=column(WEIGHT_COLUMN), expression=exp.Paren(this=cast(exp.Paren(this=argument.copy()), "numeric"))
        )
        added_sum = _zero(_filtered(exp.Sum(this=product), condition))
        not_finite = exp.NEQ(
            this=exp.Paren(this=exp.Sub(this=column(total), expression=column(total))),
            expression=exp.Literal.number(0),
        )
        # For each number of digits but the smallest, count the terms that have it: PostgreSQL shows a sum with as many
        # digits as its longest term has.
        longer = [(scale, namer(f"__pgt_scale{scale}")) for scale in kind.scales[:-1]]
        fulls, addeds = [(total, full_sum), full_count], [(total, added_sum), added_count]
        for scale, name in longer:
            is_so = exp.EQ(this=exp.Paren(this=scale_of(argument, columns)), expression=exp.Literal.number(scale))
            full, added = _counted(
                name,
                _filtered(exp.Count(this=argument.copy(), big_int=True), is_so, condition),
                [is_present(argument.copy()), is_so, condition],
            )
            fulls.append(full)
            addeds.append(added)
        names = [name for _, name in longer]
        parts[key] = Part(
            (total, counted, *names),
            tuple(fulls),
            tuple(addeds),
            (_plain_sum(total, kind.sum_type), *(_plain_sum(n, "bigint") for n in (counted, *names))),
            not_finite if kind.base == "numeric" else None,
        )
    total, counted, *names = parts[key].hidden
    value: exp.Expr = cast(column(total), "numeric" if isinstance(call, exp.Avg) else kind.shown_type)
    if names:
        ifs = [
            exp.If(this=exp.GT(this=column(n), expression=exp.Literal.number(0)), true=_at_scale(value, scale))
            for n, scale in zip(names, kind.scales[:-1], strict=True)
        ]
        value = exp.Paren(this=exp.Case(ifs=ifs, default=_at_scale(value, kind.scales[-1])))
    if isinstance(call, exp.Avg):
        value = exp.Div(this=value, expression=column(counted), typed=True)
    present = exp.GT(this=column(counted), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=present, true=value)])


def _at_scale(value: exp.Expr, scale: int) -> exp.Expr:
    """Return the same number with that many digits after the point."""
    return exp.Anonymous(this="round", expressions=[value.copy(), exp.Literal.number(scale)])


def _extremum(
    call: exp.Expr, condition: exp.Expr | None, parts: MutableMapping[tuple[str, str], Part], namer: Namer
) -> exp.Expr:
    function = type(call)
    argument = call.this
    key = (function.__name__, _sql(argument, condition))
    if key not in parts:
        held = namer("__pgt_ext")
        inserted, deleted = namer("__pgt_ins"), namer("__pgt_del")
        came = exp.GT(this=column(WEIGHT_COLUMN), expression=exp.Literal.number(0))
        left = exp.LT(this=column(WEIGHT_COLUMN), expression=exp.Literal.number(0))
        best = exp.Anonymous(
            this="least" if function is exp.Min else "greatest", expressions=[column(held), column(inserted)]
        )
        reaches = (exp.LTE if function is exp.Min else exp.GTE)(this=column(deleted), expression=best)
        anew = exp.And(
            this=is_present(column(deleted)),
            expression=exp.Coalesce(this=exp.Paren(this=reaches), expressions=[exp.true()]),
        )
        null = exp.Nullif(this=column(held), expression=column(held))
        parts[key] = Part(
            (held,),
            ((held, _filtered(call.copy(), condition)),),
            (
                (inserted, _filtered(function(this=argument.copy()), came, condition)),
                (deleted, _filtered(function(this=argument.copy()), left, condition)),
            ),
            (
                (held, column(held), column(inserted), function(this=column(held))),
                (inserted, null.copy(), column(inserted), function(this=column(inserted))),
                (deleted, null.copy(), column(deleted), function(this=column(deleted))),
            ),
            anew,
            is_sum=False,
        )
    return column(parts[key].hidden[0])
