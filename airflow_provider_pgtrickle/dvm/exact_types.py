"""Types of expressions over exact numbers: what a running sum may be kept of.

A sum of integers, or of numerics that all have the same number of digits after the point, is the
same whether it is added up anew or kept by adding and subtracting: value, type and digits.
Everything else (floats, numerics of varying scale) is not kept but computed anew for its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.expressions import is_row_column, unparen
from airflow_provider_pgtrickle.dvm.node import Column
from airflow_provider_pgtrickle.dvm.types import is_integer, numeric_scale

_RANK = {"smallint": 0, "integer": 1, "bigint": 2, "numeric": 3}
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_BY_RANK = ("smallint", "integer", "bigint", "numeric")


@dataclass(frozen=True)
class Exact:
    """An exact number: its type's name without modifier, and its digits after the point."""

    base: str
    precision: int
    scale: int

    @property
    def type_name(self) -> str | None:
        """The narrowest type that holds every value; None where there is none."""
        if self.base != "numeric":
            return self.base
        return f"numeric({self.precision},{self.scale})" if self.precision <= 1000 else None

    @property
    def sum_type(self) -> str:
        """The type a running sum is kept in: wide enough for ten billion rows, and as narrow as Spark can add."""
        if self.base in ("smallint", "integer"):
            return "bigint"
        return f"numeric(38,{self.scale})" if self.precision + 10 <= 38 else "numeric"

    @property
    def shown_type(self) -> str:
        """The type of PostgreSQL's `sum` over it."""
        return "bigint" if self.base in ("smallint", "integer") else "numeric"


def exact_type(expression: exp.Expr, columns: Mapping[str, Column]) -> Exact | None:
    """The exact type of an expression, or None where it is not exact or not known."""
    node = unparen(expression)
    if is_row_column(node):
        return named(columns[node.name].type)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _literal(node.name)
    if isinstance(node, exp.Cast):
        inner, target = exact_type(node.this, columns), node.to.sql("postgres").lower()
        if inner is not None and target in ("decimal", "numeric"):
            return Exact("numeric", inner.precision, inner.scale)
        return named(target.replace(", ", ",")) if inner is not None else None
    if isinstance(node, exp.Neg):
        return exact_type(node.this, columns)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        return _arithmetic(node, exact_type(node.this, columns), exact_type(node.expression, columns))
    if isinstance(node, exp.Case):
        branches = [i.args["true"] for i in node.args["ifs"]]
        if node.args.get("default") is not None:
            branches.append(node.args["default"])
        return _common(branches, columns)
    if isinstance(node, exp.Coalesce):
        return _common([node.this, *node.expressions], columns)
    return None


def named(type_name: str | None) -> Exact | None:
    """
    >>> named("numeric(10,2)")
    Exact(base='numeric', precision=10, scale=2)
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
        return Exact(_wider(a, b), a.precision + b.precision, a.scale + b.scale)
    scale = max(a.scale, b.scale)
    return Exact(_wider(a, b), max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def _null_type(expression: exp.Expr) -> str | None:
    """The type's name where the expression is a NULL; empty where that has none."""
    node, target = unparen(expression), ""
    while isinstance(node, exp.Cast):
        target = target or node.to.sql("postgres").lower()
        node = unparen(node.this)
    return target if isinstance(node, exp.Null) else None


def _is_zero(expression: exp.Expr) -> bool:
    """A zero adds no digits to a sum that matter."""
    node = unparen(expression)
    while isinstance(node, exp.Cast):
        node = unparen(node.this)
    return isinstance(node, exp.Literal) and not node.is_string and node.name == "0"


def _common(branches: list[exp.Expr], columns: Mapping[str, Column]) -> Exact | None:
    kinds: list[Exact] = []
    bases: list[Exact] = []
    for branch in branches:
        null = _null_type(branch)
        if null == "":
            continue
        if null is not None:
            kind = Exact("numeric", 1, 0) if null in ("decimal", "numeric") else named(null.replace(", ", ","))
        else:
            kind = exact_type(branch, columns)
        if kind is None:
            return None
        bases.append(kind)
        if null is None and not _is_zero(branch):
            kinds.append(kind)
    if not bases or len({k.scale for k in kinds}) > 1:
        return None
    base = _BY_RANK[max(_RANK[b.base] for b in bases)]
    scale = kinds[0].scale if kinds else 0
    return Exact(base, max(b.precision - b.scale for b in bases) + scale, scale)
