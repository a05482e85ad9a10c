"""The types of expressions over exact numbers tell which running sums may be kept.

A sum of integers or numerics has the same value and type whether it is added up anew or kept by adding and subtracting.
PostgreSQL shows as many digits after the point as the longest of its terms had. Where the terms' types say how many
there can be, `exact_type` knows them; of any other numeric (`is_numeric`) they have to be counted. A sum of floats is
computed anew for its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import is_present, is_row_column, render, unparen
from airflow_provider_pgtrickle.engine.dvm.node import Column
from airflow_provider_pgtrickle.engine.dvm.types import base_type, is_integer, numeric_scale

_RANK = {"smallint": 0, "integer": 1, "bigint": 2, "numeric": 3}
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_BY_RANK = ("smallint", "integer", "bigint", "numeric")
_MOST_SCALES = 4


@dataclass(frozen=True)
class Exact:
    """An exact number: its type's name without modifier, and its digits after the point."""

    base: str
    precision: int
    scale: int
    lower: tuple[int, ...] = ()
    """Smaller numbers of digits that some of its values have: CASE WHEN a THEN 1.50 ELSE 0 END."""

    @property
    def scales(self) -> tuple[int, ...]:
        """Every number of digits that a value may have, the largest first."""
        return (self.scale, *self.lower)

    @property
    def type_name(self) -> str | None:
        """The narrowest type that holds every value unchanged; None where there is no such type."""
        if self.base != "numeric":
            return self.base
        return f"numeric({self.precision},{self.scale})" if self.precision <= 1000 and not self.lower else None

    @property
    def sum_type(self) -> str:
        """The type in which a running sum is kept: wide enough for ten billion rows, and narrow enough for Spark."""
        if self.base in ("smallint", "integer"):
            return "bigint"
        return f"numeric(38,{self.scale})" if self.precision + 10 <= 38 else "numeric"

    @property
    def squared(self) -> Exact:
        """The type of its values' squares."""
        return replace(self, base="numeric", precision=2 * self.precision, scale=2 * self.scale, lower=())

    @property
    def shown_type(self) -> str:
        """The type of PostgreSQL's `sum` over it."""
        return "bigint" if self.base in ("smallint", "integer") else "numeric"


def exact_type(expression: exp.Expr, columns: Mapping[str, Column]) -> Exact | None:
    """Return the exact type of an expression, or None where it is not exact or not known."""
    node = unparen(expression)
    if is_row_column(node):
        return named(columns[node.name].type)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _literal(node.name)
    if isinstance(node, exp.Cast):
        return _cast(node, columns)
    if isinstance(node, exp.Neg):
        return exact_type(node.this, columns)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        return _arithmetic(node, exact_type(node.this, columns), exact_type(node.expression, columns))
    if isinstance(node, (exp.Case, exp.Coalesce)):
        return _common([value for _, value in branches(node)], columns)
    return None


def is_numeric(expression: exp.Expr, columns: Mapping[str, Column]) -> bool:
    """Whether an expression is certainly of type numeric, with however many digits."""
    node = unparen(expression)
    if is_row_column(node):
        return base_type(columns[node.name].type or "") == "numeric"
    if isinstance(node, exp.Cast):
        return render(node.to).lower() in ("decimal", "numeric")
    if isinstance(node, exp.Neg):
        return is_numeric(node.this, columns)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        # With a float it would be a float.
        both = [is_numeric(x, columns) for x in (node.this, node.expression)]
        exact = [exact_type(x, columns) for x in (node.this, node.expression)]
        return all(n or e is not None for n, e in zip(both, exact, strict=True)) and (
            any(both) or any(e is not None and e.base == "numeric" for e in exact)
        )
    return False


def scale_of(expression: exp.Expr, columns: Mapping[str, Column]) -> exp.Expr:
    """Return an expression over the same row: how many digits after the point the exact expression's value has."""
    node = unparen(expression)
    kind = exact_type(node, columns)
    assert kind is not None
    if not kind.lower:
        return exp.Literal.number(kind.scale)
    if isinstance(node, (exp.Cast, exp.Neg)):
        return scale_of(node.this, columns)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        left, right = (exp.Paren(this=scale_of(x, columns)) for x in (node.this, node.expression))
        if isinstance(node, exp.Mul):
            return exp.Add(this=left, expression=right)
        return exp.Greatest(this=left, expressions=[right])
    *cases, (_, last) = branches(node)
    ifs = [exp.If(this=condition.copy(), true=_scale_of_branch(value, columns)) for condition, value in cases]
    return exp.Case(ifs=ifs, default=_scale_of_branch(last, columns)) if ifs else _scale_of_branch(last, columns)


def branches(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return (when, what) of each value that CASE or COALESCE may give; the last value is for all other rows."""
    if isinstance(node, exp.Coalesce):
        values = [node.this, *node.expressions]
        return [(is_present(value.copy()), value) for value in values]
    tested = node.this
    found = [
        (exp.EQ(this=tested.copy(), expression=i.this.copy()) if tested is not None else i.this, i.args["true"])
        for i in node.args["ifs"]
    ]
    return [*found, (exp.true(), node.args.get("default") or exp.null())]


def named(type_name: str | None) -> Exact | None:
    """
    >>> named("numeric(10,2)")
    Exact(base='numeric', precision=10, scale=2, lower=())
    >>> named("double precision") is None
    True
    """
    if type_name is None:
        return None
    name = {"int": "integer", "decimal": "numeric"}.get(type_name, type_name)
    if name.startswith("decimal("):
        name = "numeric" + name[len("decimal") :]
    scale = numeric_scale(name)
    if scale is None:
        return None
    if is_integer(name):
        return Exact(name, _DIGITS[name], 0)
    return Exact("numeric", int(name[len("numeric(") :].split(",")[0].rstrip(")")), scale)


def constant_type(expression: exp.Expr) -> str | None:
    """Return the type of a constant without a modifier, as PostgreSQL prints it; None for any other expression."""
    node = unparen(expression)
    if isinstance(node, exp.Boolean):
        return "boolean"
    if isinstance(node, exp.Literal):
        return None if node.is_string else (kind.base if (kind := _literal(node.name)) else None)
    if not isinstance(node, exp.Cast) or not isinstance(unparen(node.this), (exp.Literal, exp.Null)):
        return None
    kind_of = render(node.to)
    return kind_of if base_type(kind_of) == kind_of else None


def _cast(node: exp.Cast, columns: Mapping[str, Column]) -> Exact | None:
    inner, target = exact_type(node.this, columns), render(node.to).lower()
    if inner is None:
        return None
    if target in ("decimal", "numeric"):
        return Exact("numeric", inner.precision, inner.scale, inner.lower)
    return named(target.replace(", ", ","))


def _literal(text: str) -> Exact | None:
    if text.isdigit():
        value = int(text)
        base = "integer" if value < 2**31 else "bigint" if value < 2**63 else "numeric"
        return Exact(base, max(len(text), _DIGITS.get(base, 0)), 0)
    whole, point, digits = text.partition(".")
    if point and (whole + digits).isdigit():
        return Exact("numeric", len(whole) + len(digits), len(digits))
    return None


def _wider(a: Exact, b: Exact) -> str:
    return _BY_RANK[max(_RANK[a.base], _RANK[b.base])]


def _arithmetic(node: exp.Expr, a: Exact | None, b: Exact | None) -> Exact | None:
    if a is None or b is None:
        return None
    if isinstance(node, exp.Mul):
        scales = {x + y for x in a.scales for y in b.scales}
        return _of_scales(_wider(a, b), a.precision + b.precision, scales)
    scales = {max(x, y) for x in a.scales for y in b.scales}
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return _of_scales(_wider(a, b), whole + max(scales) + 1, scales)


def _of_scales(base: str, precision: int, scales: set[int]) -> Exact | None:
    if len(scales) > _MOST_SCALES:
        return None
    first, *rest = sorted(scales, reverse=True)
    return Exact(base, precision, first, tuple(rest))


def null_type(expression: exp.Expr) -> str | None:
    """Return the type's name if the expression is a NULL, empty if that NULL has no type; None for any other."""
    node, target = unparen(expression), ""
    while isinstance(node, exp.Cast):
        target = target or render(node.to).lower()
        node = unparen(node.this)
    return target if isinstance(node, exp.Null) else None


def _scale_of_branch(value: exp.Expr, columns: Mapping[str, Column]) -> exp.Expr:
    """Return the number of digits of a branch's value; it is 0 for a NULL, which the caller doesn't count anyway."""
    return exp.Literal.number(0) if null_type(value) is not None else scale_of(value, columns)


def _common(values: list[exp.Expr], columns: Mapping[str, Column]) -> Exact | None:
    kinds: list[Exact] = []
    bases: list[Exact] = []
    for value in values:
        null = null_type(value)
        if null == "":
            continue
        if null is not None:
            kind = Exact("numeric", 1, 0) if null in ("decimal", "numeric") else named(null.replace(", ", ","))
        else:
            kind = exact_type(value, columns)
        if kind is None:
            return None
        bases.append(kind)
        if null is None:
            kinds.append(kind)
    if not bases:
        return None
    base = _BY_RANK[max(_RANK[b.base] for b in bases)]
    scales = {scale for k in kinds for scale in k.scales} or {0}
    return _of_scales(base, max(b.precision - b.scale for b in bases) + max(scales), scales)
