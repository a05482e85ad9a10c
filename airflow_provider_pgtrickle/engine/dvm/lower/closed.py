"""The closed list holds the expressions whose Spark form is equal to PostgreSQL's, with their carriers.

`close` returns the expression as Spark is to compute it. It refuses any expression that it does not know, and the
node around that stays in PostgreSQL. tests/spark covers each entry with values at its edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import call_name
from airflow_provider_pgtrickle.engine.dvm.expressions import has_subquery, is_row_column, render
from airflow_provider_pgtrickle.engine.dvm.lower.carriers import (
    BIGINT,
    BOOL,
    INTEGER,
    NULL,
    TEXT,
    Carrier,
    Kind,
    as_decimal,
    carrier_of,
    decimal,
    unify,
)

Env = Mapping[str, Carrier]
Closed = tuple[exp.Expr, Carrier]


class NotClosed(Exception):
    """The expression is not on the list; the message names it."""


def close(expression: exp.Expr, env: Env) -> Closed:
    rule = _RULES.get(type(expression))
    if rule is None or has_subquery(expression):
        raise NotClosed(render(expression))
    return rule(expression, env)


def close_predicate(expression: exp.Expr, env: Env) -> exp.Expr:
    closed, carrier = close(expression, env)
    if carrier.kind not in (Kind.BOOL, Kind.NULL):
        raise NotClosed(render(expression))
    return closed


def _column(node: exp.Expr, env: Env) -> Closed:
    if not is_row_column(node):
        raise NotClosed(render(node))
    return node.copy(), env[node.name]


def _paren(node: exp.Expr, env: Env) -> Closed:
    inner, carrier = close(node.this, env)
    return exp.Paren(this=inner), carrier


def _literal(node: exp.Expr, env: Env) -> Closed:
    if node.is_string:
        raise NotClosed(render(node))
    text = node.name
    if text.isdigit() and int(text) < 2**63:
        return node.copy(), INTEGER if int(text) < 2**31 else BIGINT
    whole, point, digits = text.partition(".")
    if point and (whole + digits).isdigit():
        carrier = decimal(max(len(whole.lstrip("0")) + len(digits), 1), len(digits))
        if carrier is not None:
            return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(carrier.spark)), carrier
    raise NotClosed(text)


def _null(node: exp.Expr, env: Env) -> Closed:
    return exp.Null(), NULL


def _boolean(node: exp.Expr, env: Env) -> Closed:
    return node.copy(), BOOL


def _logic(node: exp.Expr, env: Env) -> Closed:
    return type(node)(this=close_predicate(node.this, env), expression=close_predicate(node.expression, env)), BOOL


def _not(node: exp.Expr, env: Env) -> Closed:
    return exp.Not(this=close_predicate(node.this, env)), BOOL


def _is(node: exp.Expr, env: Env) -> Closed:
    """Close IS NULL and IS NOT DISTINCT FROM NULL, which differ only for row values; none of these reaches Spark."""
    if not isinstance(node.expression, exp.Null):
        raise NotClosed(render(node))
    test = exp.Is(this=close(node.this, env)[0], expression=exp.Null())
    is_negative = bool(node.args.get("negate")) or isinstance(node, exp.NullSafeNEQ)
    return exp.Not(this=exp.Paren(this=test)) if is_negative else test, BOOL


def _is_distinct(node: exp.Expr, env: Env) -> Closed:
    return _is(node, env) if isinstance(node.expression, exp.Null) else _comparison(node, env)


def _comparison(node: exp.Expr, env: Env) -> Closed:
    (left, a), (right, b) = close(node.this, env), close(node.expression, env)
    numbers = a.is_number and b.is_number
    alike = a.kind is b.kind and a.is_key and (a.kind is not Kind.KEY or a.base == b.base)
    if not numbers and not (alike and isinstance(node, (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ))):
        raise NotClosed(render(node))
    return type(node)(this=left, expression=right), BOOL


def _arithmetic(node: exp.Expr, env: Env) -> Closed:
    (left, a), (right, b) = close(node.this, env), close(node.expression, env)
    if not (a.is_number and b.is_number):
        raise NotClosed(render(node))
    carrier: Carrier | None
    if a.kind is b.kind is Kind.INT:
        # PostgreSQL's smallint arithmetic overflows earlier than Spark's, so Spark would hide the error.
        if "smallint" in (a.spark, b.spark):
            raise NotClosed(render(node))
        carrier = unify([a, b])
    else:
        x, y = as_decimal(a), as_decimal(b)
        if isinstance(node, exp.Mul):
            carrier = decimal(x.precision + y.precision + 1, x.scale + y.scale)
        else:
            scale = max(x.scale, y.scale)
            carrier = decimal(max(x.precision - x.scale, y.precision - y.scale) + scale + 1, scale)
    if carrier is None:
        raise NotClosed(render(node))
    return type(node)(this=left, expression=right), carrier


def _negation(node: exp.Expr, env: Env) -> Closed:
    inner, carrier = close(node.this, env)
    if not carrier.is_number or carrier.spark == "smallint":
        raise NotClosed(render(node))
    return exp.Neg(this=inner), carrier


def _cast(node: exp.Expr, env: Env) -> Closed:
    target = render(node.args["to"]).lower()
    if isinstance(node.this, exp.Literal) and node.this.is_string and target == "text":
        return node.this.copy(), TEXT
    if isinstance(node.this, exp.Null):
        return exp.Null(), NULL
    inner, carrier = close(node.this, env)
    if target in ("decimal", "numeric") and carrier.is_number:
        # PostgreSQL's numeric without a modifier keeps every digit.
        wide = as_decimal(carrier)
        if carrier.kind is Kind.DEC:
            return inner, carrier
        return exp.Cast(this=inner, to=exp.DataType.build(wide.spark)), wide
    if target in ("int", "integer", "bigint") and carrier.is_number and carrier.scale == 0:
        wanted = BIGINT if target == "bigint" else INTEGER
        return exp.Cast(this=inner, to=exp.DataType.build(wanted.spark)), wanted
    wanted = carrier_of(target.replace("decimal", "numeric").replace(", ", ","))
    if wanted == carrier:
        return inner, carrier
    if wanted.kind is Kind.DEC and carrier.is_number:
        wide = as_decimal(carrier)
        if wide.scale <= wanted.scale and wide.precision - wide.scale <= wanted.precision - wanted.scale:
            return exp.Cast(this=inner, to=exp.DataType.build(wanted.spark)), wanted
        if wide.scale == wanted.scale:
            return exp.Cast(this=inner, to=exp.DataType.build(wanted.spark)), wanted
    raise NotClosed(render(node))


def _case(node: exp.Expr, env: Env) -> Closed:
    if node.this is not None:
        raise NotClosed(render(node))
    branches, values = [], []
    for branch in node.args["ifs"]:
        value, carrier = close(branch.args["true"], env)
        branches.append(exp.If(this=close_predicate(branch.this, env), true=value))
        values.append(carrier)
    default = node.args.get("default")
    otherwise = None
    if default is not None:
        otherwise, carrier = close(default, env)
        values.append(carrier)
    return exp.Case(ifs=branches, default=otherwise), _same(node, values)


def _same(node: exp.Expr, carriers: list[Carrier]) -> Carrier:
    numbers = [c for c in carriers if c.is_number]
    if numbers and len(numbers) == len([c for c in carriers if c.kind is not Kind.NULL]):
        wide = [as_decimal(c) for c in numbers] if any(c.kind is Kind.DEC for c in numbers) else numbers
        scales = {c.scale for c in wide}
        if len(scales) > 1 and scales != {0, max(scales)}:
            raise NotClosed(render(node))
        if len(scales) > 1:
            whole = max(c.precision - c.scale for c in wide)
            carrier = decimal(whole + max(scales), max(scales))
            if carrier is not None:
                return carrier
    carrier = unify(carriers)
    if carrier is None:
        raise NotClosed(render(node))
    return carrier


def _coalesce(node: exp.Expr, env: Env) -> Closed:
    closed = [close(e, env) for e in (node.this, *node.expressions)]
    carrier = _same(node, [c for _, c in closed])
    first, *rest = [e for e, _ in closed]
    return exp.Coalesce(this=first, expressions=rest), carrier


def _extreme_of(node: exp.Expr, env: Env) -> Closed:
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.this, *node.expressions]
    name = call_name(node)
    if name not in ("least", "greatest"):
        raise NotClosed(render(node))
    closed = [close(a, env) for a in arguments]
    carrier = unify([c for _, c in closed])
    if carrier is None or not carrier.is_number:
        raise NotClosed(render(node))
    return exp.Anonymous(this=name, expressions=[e for e, _ in closed]), carrier


def _nullif(node: exp.Expr, env: Env) -> Closed:
    if node.this == node.expression:
        return exp.Null(), NULL
    raise NotClosed(render(node))


def _filtered(node: exp.Expr, env: Env) -> Closed:
    call, carrier = close(node.this, env)
    return exp.Filter(this=call, expression=exp.Where(this=close_predicate(node.expression.this, env))), carrier


def _count(node: exp.Expr, env: Env) -> Closed:
    if node.expressions:
        raise NotClosed(render(node))
    if isinstance(node.this, exp.Star):
        return node.copy(), BIGINT
    if isinstance(node.this, exp.Distinct):
        values = [close(e, env) for e in node.this.expressions]
        if len(values) != 1 or not values[0][1].is_key:
            raise NotClosed(render(node))
        return exp.Count(this=exp.Distinct(expressions=[values[0][0]])), BIGINT
    return exp.Count(this=close(node.this, env)[0]), BIGINT


def _sum(node: exp.Expr, env: Env) -> Closed:
    if isinstance(node.this, exp.Distinct):
        raise NotClosed(render(node))
    inner, carrier = close(node.this, env)
    if carrier.kind is Kind.INT and carrier.spark != "bigint":
        return exp.Sum(this=inner), BIGINT
    if carrier.kind is Kind.INT:
        wide = decimal(38, 0)
        assert wide is not None
        return exp.Sum(this=exp.Cast(this=inner, to=exp.DataType.build(wide.spark))), wide
    total = decimal(carrier.precision + 10, carrier.scale) if carrier.kind is Kind.DEC else None
    if total is None:
        raise NotClosed(render(node))
    return exp.Sum(this=inner), total


def _extremum(node: exp.Expr, env: Env) -> Closed:
    inner, carrier = close(node.this, env)
    if not (carrier.is_number or carrier.kind is Kind.NULL) or node.expressions:
        raise NotClosed(render(node))
    return type(node)(this=inner), carrier


_RULES: dict[type[exp.Expr], Callable[[exp.Expr, Env], Closed]] = {
    exp.Column: _column,
    exp.Paren: _paren,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: _is_distinct,
    exp.NullSafeNEQ: _is_distinct,
    exp.EQ: _comparison,
    exp.NEQ: _comparison,
    exp.GT: _comparison,
    exp.GTE: _comparison,
    exp.LT: _comparison,
    exp.LTE: _comparison,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Neg: _negation,
    exp.Cast: _cast,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extreme_of,
    exp.Greatest: _extreme_of,
    exp.Anonymous: _extreme_of,
    exp.Filter: _filtered,
    exp.Count: _count,
    exp.Sum: _sum,
    exp.Min: _extremum,
    exp.Max: _extremum,
}
