"""A sum over floats is kept as the sum of their decimals, each the shortest that reads back as the same float.

    Σ₁₀x, n, Σ₁₀x²  →  sum, avg, var, stddev        and for pairs Σ₁₀y, Σ₁₀y², Σ₁₀xy  →  covar, corr, regr

Decimals are added and subtracted without rounding. So a value neither drifts nor depends on the order of the rows, and
it is the same whether it was added up or computed anew. PostgreSQL adds floats up row by row and rounds each time, so
its last digits are others: `bound` is how much they may differ. With ε = 2⁻⁵² (2⁻²³ for a sum of reals):

    sum    4 n ε Σ|x|            var    8 n ε Σx² / (n − 1), and 8 ε of the value
    avg    4 ε Σ|x|              covar  8 n ε √(Σx² Σy²) / (n − 1), and 8 ε of the value

What divides one of these by another has the bound that follows; it is infinite where PostgreSQL itself has no digit
that is sure, as for the slope of a vertical line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import arguments, call_name
from airflow_provider_pgtrickle.engine.dvm.expressions import column, has_subquery, is_present, render, unparen
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.sinks.parts import (
    SAMPLE,
    SPREAD,
    Parts,
    cast,
    filtered,
    form,
    parsed,
    zero,
)

#: The types whose sums round.
FLOATS = ("double precision", "real")
_EPSILON = {"double precision": "2.220446049250314e-16", "real": "1.1920929e-7"}
#: What is nearer to 0 than the smallest float is 0, and what is beyond the largest is infinite.
_SMALLEST = {"double precision": "5e-324", "real": "1.5e-45"}
_LARGEST = {"double precision": "1.7976931348623158e308", "real": "3.40282356e38"}
#: By name: the value over the sums of the pairs, and when it isn't NULL. PostgreSQL asks in the same order.
_OF_PAIRS = {
    "covar_pop": ("xy / (n * n)", "n > 0"),
    "covar_samp": ("xy / (n * (n - 1))", "n > 1"),
    "corr": ("xy / sqrt(greatest(xx * yy, 0))", "xx <> 0 AND yy <> 0 AND xx * yy > 0"),
    "regr_avgx": ("sx / n", "n > 0"),
    "regr_avgy": ("sy / n", "n > 0"),
    "regr_sxx": ("xx / n", "n > 0"),
    "regr_syy": ("yy / n", "n > 0"),
    "regr_sxy": ("xy / n", "n > 0"),
    "regr_slope": ("xy / xx", "xx <> 0"),
    "regr_intercept": ("(sy * xx - sx * xy) / (n * xx)", "xx <> 0"),
    "regr_r2": ("CASE WHEN yy = 0 THEN 1 ELSE xy * xy / (xx * yy) END", "xx <> 0"),
}
#: Bounds of the same, over the value v; bxx, byy and bxy are those of n Sxx, n Syy and n Sxy.
_CORR = "2 * bxy / sqrt(xx * yy) + bxx / xx + byy / yy + 8 * e"
_SLOPE = "2 * (bxy + abs(xy / xx) * bxx) / xx"
_BOUNDS = {
    "covar_pop": "bxy / (n * n) + 8 * e * abs(v)",
    "covar_samp": "bxy / (n * (n - 1)) + 8 * e * abs(v)",
    "corr": _CORR,
    "regr_avgx": "4 * e * ax + n * 1e-320",
    "regr_avgy": "4 * e * ay + n * 1e-320",
    "regr_sxx": "bxx / n + 8 * e * abs(v)",
    "regr_syy": "byy / n + 8 * e * abs(v)",
    "regr_sxy": "bxy / n + 8 * e * abs(v)",
    "regr_slope": f"{_SLOPE} + 8 * e * abs(v)",
    "regr_intercept": f"4 * e * ay + 4 * e * ax * abs(xy / xx) + abs(sx) * {_SLOPE} / n"
    " + 8 * e * (abs(sy) + abs(sx * xy / xx)) / n",
    "regr_r2": f"3 * ({_CORR})",
}
#: Where nothing is sure: rounding may have made a spread, by which is divided, half of what it is, or a product of
#: PostgreSQL's leaves the range of floats.
_OUT_OF_RANGE = "xx * yy > 1e300 OR xx * yy < n * n * 1e-290"
_UNSURE = {
    "corr": f"xx <= 2 * bxx OR yy <= 2 * byy OR {_OUT_OF_RANGE}",
    "regr_slope": "xx <= 2 * bxx",
    "regr_intercept": "xx <= 2 * bxx OR abs(sx * xy) > 1e300",
    "regr_r2": f"xx <= 2 * bxx OR yy <= 2 * byy OR {_OUT_OF_RANGE}",
}


_WHOLE = (exp.Column, exp.Literal, exp.Cast, exp.Paren)


@dataclass(frozen=True)
class Approximate:
    """An aggregate's value over the hidden columns, and the most by which PostgreSQL's own may differ from it."""

    value: exp.Expr
    bound: exp.Expr
    """A numeric over the hidden columns and `Floats.sizes`."""


@dataclass
class Floats:
    """What a list of aggregates keeps of floats, among its other parts."""

    parts: Parts
    sizes: dict[str, exp.Expr] = field(default_factory=dict)
    """Σ|x|, Σx²: sums that only bounds need, and that aren't kept."""
    _namer: Namer = field(default_factory=Namer)

    def value(self, call: exp.Expr, type_name: str) -> Approximate | None:
        """Return how an aggregate of this type is kept from now on; None where it can't be."""
        bare, condition = unparen(call), None
        if isinstance(bare, exp.Filter):
            condition = bare.expression.this
            bare = unparen(bare.this)
        if has_subquery(call) or bare.find(exp.Distinct) or bare.find(exp.Order):
            return None
        name, given = call_name(bare), arguments(bare)
        if len(given) == 1 and name in ("sum", "avg"):
            return self._sum(name, given[0], condition, type_name)
        if len(given) == 1 and name in SPREAD:
            return self._spread(name, given[0], condition)
        return self._of_pairs(name, given[0], given[1], condition) if len(given) == 2 and name in _OF_PAIRS else None

    def _sum(self, name: str, argument: exp.Expr, condition: exp.Expr | None, type_name: str) -> Approximate:
        total, counted = self._total("__pgt_sum", decimal(argument), condition), self._number(argument, condition)
        size = self._size(_of("abs(x)", x=decimal(argument)), condition)
        value = _of("s / n", s=total, n=counted) if name == "avg" else total
        bound = _of(
            "4 * e * a + n * t" if name == "avg" else "4 * n * e * a + n * t",
            n=counted,
            a=size,
            e=_number_of(_EPSILON[type_name]),
            t=_number_of("1e-320" if type_name == "double precision" else "3e-45"),
        )
        shown = _shown(value, type_name)
        return Approximate(_of("CASE WHEN n > 0 THEN x END", n=counted, x=shown), _sure(bound, size))

    def _spread(self, name: str, argument: exp.Expr, condition: exp.Expr | None) -> Approximate:
        total, counted = self._total("__pgt_sum", decimal(argument), condition), self._number(argument, condition)
        squares = self._total("__pgt_sq", _of("x * x", x=decimal(argument)), condition)
        fewer = 1 if name in SAMPLE else 0
        e = _number_of(_EPSILON["double precision"])
        value = _of(f"(n * q - s * s) / (n * (n - {fewer}))", n=counted, q=squares, s=total)
        bound = _of(f"(8 * n * e * q + n * 1e-320) / (n - {fewer})", n=counted, q=squares, e=e)
        if name.startswith("stddev"):
            value = _of("sqrt(greatest(v, 0))", v=value)
            bound = _of("CASE WHEN v > 0 THEN least(sqrt(t), t / v) ELSE sqrt(t) END", v=value, t=bound)
        bound = _of("t + 8 * e * abs(v)", t=bound, e=e, v=value)
        when = _of(f"n > {fewer}", n=counted)
        return Approximate(_if(when, _shown(value)), _if(when, _sure(bound, squares)))

    def _of_pairs(self, name: str, y: exp.Expr, x: exp.Expr, condition: exp.Expr | None) -> Approximate:
        present = [is_present(y.copy()), is_present(x.copy())]
        both = exp.and_(*present, *([condition] if condition is not None else []), copy=True)
        counted = self.parts.counted("__pgt_pairs", None, *present, condition)
        value, when = _OF_PAIRS[name]
        bound = _BOUNDS[name]
        valued, read = _names(value, when), _names(value, when, bound)
        of = {"x": decimal(x), "y": decimal(y)}
        e = _number_of(_EPSILON["double precision"])
        # A spread of which a float holds only a rest can't be divided by.
        least = _number_of("1e-290" if name in _UNSURE else "1e-320")
        names: dict[str, exp.Expr] = {"n": counted, "e": e}
        for z in ("x", "y"):
            if not any(z in found for found in read):
                continue
            names[f"s{z}"] = self._total("__pgt_sum", of[z], both)
            if f"a{z}" in read:
                names[f"a{z}"] = self._size(_of("abs(z)", z=of[z]), both)
            if read & {z * 2, f"b{z * 2}", "bxy"}:
                square = _of("z * z", z=of[z])
                is_kept = z * 2 in valued
                names[f"q{z}"] = self._total("__pgt_sq", square, both) if is_kept else self._size(square, both)
                names[z * 2] = _of("n * q - s * s", n=counted, q=names[f"q{z}"], s=names[f"s{z}"])
                names[f"b{z * 2}"] = _of("n * (8 * n * e * q + t)", n=counted, e=e, q=names[f"q{z}"], t=least)
        if "xy" in read:
            names["xy"] = _of(
                "CASE WHEN (x - x) <> 0 OR (y - y) <> 0 THEN CAST('NaN' AS numeric) ELSE n * p - x * y END",
                n=counted,
                p=self._total("__pgt_xy", _of("x * y", **of), both),
                x=names["sx"],
                y=names["sy"],
            )
            names["bxy"] = _of(
                "n * (8 * n * e * sqrt(p * q) + t)", n=counted, e=e, p=names["qx"], q=names["qy"], t=least
            )
        kept = _of(value, **names)
        bounded = _of(bound, v=kept, **names)
        is_ratio = name in _UNSURE
        if is_ratio:
            infinite = _of("CAST('Infinity' AS numeric)")
            bounded = exp.Case(ifs=[exp.If(this=_of(_UNSURE[name], **names), true=infinite)], default=bounded)
        sizes = [names[key] for key in ("ax", "ay", "qx", "qy") if key in names]
        is_given = _of("n > 0" if is_ratio else when, **names)
        shown = _if(is_given.copy(), _if(_of(when, **names), _shown(kept)) if is_ratio else _shown(kept))
        return Approximate(shown, _if(is_given, _sure(bounded, *sizes)))

    def _number(self, argument: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        return self.parts.counted("__pgt_nn", argument, condition)

    def _total(self, stem: str, of: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        return self.parts.total(stem, of, condition, None, is_short=True)

    def _size(self, of: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        found = zero(filtered(exp.Sum(this=of), condition))
        known = {render(sum_): name for name, sum_ in self.sizes.items()}
        name = known.get(render(found)) or self._namer("__pgt_size")
        self.sizes[name] = found
        return column(name)


def approximable(outputs: Mapping[str, exp.Expr], types: Mapping[str, str], group: tuple[str, ...]) -> dict[str, str]:
    """Return the aggregates whose values are columns of the query as they are, and nothing else, with their types.

    Nothing may be decided by an approximate value. The groups' keys have to be columns, too, by which the content is
    held against the query. `outputs`: the query's columns over those of the aggregate.
    """
    plain = {name: unparen(value).name for name, value in outputs.items() if _is_plain(value)}
    if not set(group) <= set(plain.values()):
        return {}
    inside = {c.name for name, value in outputs.items() if name not in plain for c in value.find_all(exp.Column)}
    return {
        held: types[name]
        for name, held in plain.items()
        if types.get(name) in FLOATS and held not in inside and held not in group
    }


def decimal(argument: exp.Expr) -> exp.Expr:
    """The decimal of a float: the shortest that reads back as the same float."""
    # A real is read as PostgreSQL's sums read it.
    return cast(cast(cast(exp.Paren(this=argument.copy()), "double precision"), "text"), "numeric")


def _shown(value: exp.Expr, type_name: str = "double precision") -> exp.Expr:
    """A number as a float. What a change adds may be no group's sums, and has a value as well."""
    text = "CASE WHEN abs(v) < s THEN 0 WHEN abs(v) <= l THEN v ELSE v * CAST('Infinity' AS numeric) END"
    small, large = _number_of(_SMALLEST[type_name]), _number_of(_LARGEST[type_name])
    return cast(_of(text, v=value, s=small, l=large), type_name)


def _sure(bound: exp.Expr, *sizes: exp.Expr) -> exp.Expr:
    """The bound, and none where an infinite value or NaN is among the values: these are told to the letter."""
    odd = [_of("(x - x) <> 0", x=size) for size in sizes]
    return exp.Case(ifs=[exp.If(this=exp.or_(*odd), true=exp.Literal.number(0))], default=bound)


def _of(text: str, **by_name: exp.Expr) -> exp.Expr:
    """Return a formula with expressions in the places of its names, in parentheses."""
    return form(text, **{name: x if isinstance(x, _WHOLE) else exp.Paren(this=x) for name, x in by_name.items()})


def _names(*texts: str) -> set[str]:
    return {c.name for text in texts for c in parsed(text).find_all(exp.Column)}


def _if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _number_of(text: str) -> exp.Expr:
    return exp.Literal.number(text)


def _is_plain(value: exp.Expr) -> bool:
    return isinstance(unparen(value), exp.Column)
