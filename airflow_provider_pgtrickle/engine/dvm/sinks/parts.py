"""An aggregate has a running state: columns that are stored, to which a change adds, and of which a value is shown.

count         n
bool_and, or  the numbers of true and of false values
sum, avg      Σx, the number of values, and how many of them have how many digits after the point
var, stddev   the same, and Σx²:  (n·Σx² − (Σx)²) / n(n − 1), in PostgreSQL's own numeric arithmetic
bit_xor       the bits that an odd number of values has, and the number of values
min, max      the extreme; what came and what went tell whether it still is
bit_and, or   the bits; what came and what went tell whether they still are
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import arguments, call_name
from airflow_provider_pgtrickle.engine.dvm.dialect import raw_type
from airflow_provider_pgtrickle.engine.dvm.exact_types import Exact, exact_type, is_numeric, scale_of
from airflow_provider_pgtrickle.engine.dvm.expressions import column, has_subquery, is_present, render, rewrite, unparen
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Column

COUNT = "__pgt_count"
WEIGHT_COLUMN = "__pgt_n"
Item = tuple[str, exp.Expr]
#: (column, its value in a stored row, its value in an added row, the expression that combines both).
Merged = tuple[str, exp.Expr, exp.Expr, exp.Expr]

SAMPLE = {"var_samp", "variance", "stddev_samp", "stddev"}
SPREAD = {*SAMPLE, "var_pop", "stddev_pop"}
#: Whether what went may have held a bit that decides: one that no value that came holds, too.
_BITS = {"bit_or": "(gone & ~come) <> 0", "bit_and": "(~gone & come) <> 0"}


@dataclass(frozen=True)
class Part:
    """The hidden columns of one argument: `full` computes them from the rows, `added` from the change, `merged` from
    the results of both."""

    hidden: tuple[str, ...]
    full: tuple[Item, ...]
    added: tuple[Item, ...]
    merged: tuple[Merged, ...]
    anew: exp.Expr | None = None
    """A condition over the merged columns, which is true where the group must be computed anew."""
    is_sum: bool = True
    """Whether each column is merged by adding, whatever was added before."""


def cast(expression: exp.Expr, type_name: str) -> exp.Expr:
    return exp.Cast(this=expression, to=raw_type(type_name))


class Parts:
    """The running state of a list of aggregates. Calls over equal arguments share it."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = columns
        self._namer = Namer()
        self._found: dict[tuple[str, str], Part] = {}

    @property
    def all(self) -> tuple[Part, ...]:
        return tuple(self._found.values())

    def value(self, call: exp.Expr) -> exp.Expr | None:
        """Return the aggregate's value over hidden columns, which are kept from now on; None where it can't be kept."""
        bare, condition = unparen(call), None
        if isinstance(bare, exp.Filter):
            condition = bare.expression.this
            bare = unparen(bare.this)
        if has_subquery(call) or bare.find(exp.Distinct) or bare.find(exp.Order):
            return None
        name, given = call_name(bare), arguments(bare)
        if name == "count" and len(given) == 1:
            argument = None if isinstance(bare.this, exp.Star) else bare.this
            return column(COUNT) if argument is condition is None else self.counted("__pgt_cnt", argument, condition)
        if name == "regr_count":
            return self.counted("__pgt_pairs", None, *(is_present(x.copy()) for x in given), condition)
        if len(given) != 1:
            return None
        (argument,) = given
        if name in ("min", "max"):
            order, best = ("<=", "least") if name == "min" else (">=", "greatest")
            return self._witnessed(name, argument, condition, f"gone {order} {best}(held, come)")
        if name in ("bool_and", "every", "bool_or"):
            return self._bool(name, argument, condition)
        kind = exact_type(argument, self._columns)
        if name in _BITS and kind is not None and kind.base != "numeric":
            return self._witnessed(name, argument, condition, _BITS[name])
        if name == "bit_xor" and kind is not None and kind.base != "numeric":
            return self._parity(argument, condition, kind.base)
        if kind is None and not is_numeric(argument, self._columns):
            return None
        if name in ("sum", "avg"):
            return self._sum(name, argument, condition, kind)
        return self._spread(name, argument, condition, kind) if name in SPREAD else None

    # -- values ----------------------------------------------------------------------------------

    def _bool(self, name: str, argument: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        true = self.counted("__pgt_true", None, form("(x) IS TRUE", x=argument), condition)
        false = self.counted("__pgt_false", None, form("(x) IS FALSE", x=argument), condition)
        shown = "t > 0" if name == "bool_or" else "f = 0"
        return form(f"CASE WHEN t + f > 0 THEN {shown} END", t=true, f=false)

    def _parity(self, argument: exp.Expr, condition: exp.Expr | None, type_name: str) -> exp.Expr:
        odd = form("n % 2 <> 0", n=column(WEIGHT_COLUMN))
        of = form("bit_xor(x)", x=argument)
        full, added = (cast(zero(filtered(of.copy(), *t, condition)), type_name) for t in ((), (odd,)))
        bits = self._kept("__pgt_xor", _sql(argument, condition), full, added, type_name, by="bit_xor")
        return form("CASE WHEN n > 0 THEN x END", n=self.counted("__pgt_nn", argument, condition), x=bits)

    def _sum(self, name: str, argument: exp.Expr, condition: exp.Expr | None, kind: Exact | None) -> exp.Expr:
        total, counted, at = self._summed(argument, condition, kind)
        shown = cast(total, "numeric" if name == "avg" or kind is None else kind.shown_type)
        value = at(shown, 1)
        if name == "avg":
            value = form("x / n", x=value, n=counted)
        return form("CASE WHEN n > 0 THEN x END", n=counted, x=value)

    def _spread(self, name: str, argument: exp.Expr, condition: exp.Expr | None, kind: Exact | None) -> exp.Expr:
        """The same steps as PostgreSQL's, each to the same number of digits.

        PostgreSQL takes the root to as many digits as the quotient has. sqrt() may give more, and rounding them off
        rounds twice: up where the first rounding made a half of less.
        """
        total, counted, at = self._summed(argument, condition, kind)
        squares = self.total("__pgt_sq", form("x * x", x=_numeric(argument)), condition, kind and kind.squared)
        over = form("n * q - t * t", n=counted, q=at(squares, 2), t=at(cast(total, "numeric"), 1))
        fewer = 1 if name in SAMPLE else 0
        value = form(f"(o) / (CAST(n AS numeric) * (n - {fewer}))", o=over, n=counted)
        if name.startswith("stddev"):
            rounded = form("round(sqrt(v), scale(v))", v=value)
            value = form(
                "CASE WHEN (2 * r - u) * (2 * r - u) > 4 * (v) THEN round(r - u, scale(v)) ELSE r END",
                r=rounded,
                u=form("(1 / power(CAST(10 AS numeric), scale(v)))", v=value),
                v=value,
            )
        return form(
            f"CASE WHEN n > {fewer} THEN CASE WHEN (o) <= 0 THEN CAST(0 AS numeric)"
            " WHEN (o) = CAST('NaN' AS numeric) THEN o ELSE v END END",
            n=counted,
            o=over,
            v=value,
        )

    def _summed(
        self, argument: exp.Expr, condition: exp.Expr | None, kind: Exact | None
    ) -> tuple[exp.Expr, exp.Expr, Callable[[exp.Expr, int], exp.Expr]]:
        """Keep Σx and the number of values; return both, and what gives a sum of n-th powers its digits.

        PostgreSQL shows a sum with as many digits as its longest term has. So it is counted how many terms have how
        many digits, where they may differ: for each number of them but the smallest if it is known which there are, and
        else in one number, whose k-th twelve digits count the terms that have k.
        """
        total = self.total("__pgt_sum", argument, condition, kind)
        counted = self.counted("__pgt_nn", argument, condition)
        if kind is None:
            count_by_digits = form("CAST(rpad('1', 1 + 12 * scale(x), '0') AS numeric)", x=argument)
            by_digits = self.total("__pgt_digits", count_by_digits, condition, None, can_be_lost=False)
            digits = form("((length(CAST(d AS text)) - 1) / 12)", d=by_digits)
            rounded = {1: "round(x, d)", 2: "round(x, 2 * d)"}
            return total, counted, lambda x, power: form(rounded[power], x=x, d=digits)
        longer = []
        for scale in kind.scales[:-1]:
            is_so = exp.EQ(this=exp.Paren(this=scale_of(argument, self._columns)), expression=exp.Literal.number(scale))
            longer.append((self.counted(f"__pgt_scale{scale}", argument, is_so, condition), scale))

        def at(x: exp.Expr, power: int) -> exp.Expr:
            if not longer:
                return x
            ifs = [exp.If(this=form("n > 0", n=n), true=form(f"round(x, {power * scale})", x=x)) for n, scale in longer]
            return exp.Paren(this=exp.Case(ifs=ifs, default=form(f"round(x, {power * kind.scales[-1]})", x=x)))

        return total, counted, at

    # -- what is kept ----------------------------------------------------------------------------

    def counted(self, stem: str, of: exp.Expr | None, *terms: exp.Expr | None) -> exp.Column:
        """Keep the number of rows for which `of` is not NULL and the terms are true."""
        counted = exp.Count(this=of.copy() if of is not None else exp.Star(), big_int=True)
        present = [is_present(of.copy())] if of is not None else []
        weights = filtered(exp.Sum(this=column(WEIGHT_COLUMN)), *present, *terms)
        added = cast(zero(weights), "bigint")
        return self._kept(stem, _sql(of, *terms), filtered(counted, *terms), added, "bigint")

    def total(
        self,
        stem: str,
        of: exp.Expr,
        condition: exp.Expr | None,
        kind: Exact | None,
        *,
        can_be_lost: bool = True,
        is_short: bool = False,
    ) -> exp.Column:
        """Keep the sum of an expression. A sum that became NaN or infinite can't be subtracted from.

        `is_short`: as many digits are kept as the sum has, and not as its longest term once had.
        """
        kept_as = kind.sum_type if kind is not None else "numeric"
        product = exp.Mul(this=column(WEIGHT_COLUMN), expression=exp.Paren(this=_numeric(of)))
        return self._kept(
            stem,
            _sql(of, condition),
            cast(zero(filtered(exp.Sum(this=of.copy()), condition)), kept_as),
            zero(filtered(exp.Sum(this=product), condition)),
            kept_as,
            "(x - x) <> 0" if can_be_lost and (kind is None or kind.base == "numeric") else None,
            look="trim_scale(x)" if is_short else "x",
        )

    def _kept(
        self,
        stem: str,
        what: str,
        full: exp.Expr,
        added: exp.Expr,
        type_name: str,
        lost: str | None = None,
        by: str = "sum",
        look: str = "x",
    ) -> exp.Column:
        """Keep a sum under a name that begins with `stem`; `by`: the aggregate that adds a part to another; `look`:
        how the sum is written down."""
        part = self._found.get((stem, what))
        if part is None:
            name = self._namer(stem)
            together = form(look, x=form(f"{by}(x)", x=column(name)))
            merged = (name, column(name), column(name), cast(together, type_name))
            anew = form(lost, x=column(name)) if lost else None
            part = Part((name,), ((name, form(look, x=full)),), ((name, added),), (merged,), anew, is_sum=by == "sum")
            self._found[(stem, what)] = part
        return column(part.hidden[0])

    def _witnessed(self, name: str, argument: exp.Expr, condition: exp.Expr | None, lost: str) -> exp.Column:
        """Keep f(x) with f(f(a), f(b)) = f(a, b). `lost` is true where what went may have made it what it was."""
        key = (name, _sql(argument, condition))

        def of(x: exp.Expr) -> exp.Expr:
            return form(f"{name}(x)", x=x)

        if key not in self._found:
            held, come, gone = (self._namer(stem) for stem in ("__pgt_ext", "__pgt_ins", "__pgt_del"))
            came = exp.GT(this=column(WEIGHT_COLUMN), expression=exp.Literal.number(0))
            left = exp.LT(this=column(WEIGHT_COLUMN), expression=exp.Literal.number(0))
            null = exp.Nullif(this=column(held), expression=column(held))
            by_name = {"held": column(held), "come": column(come), "gone": column(gone)}
            self._found[key] = Part(
                (held,),
                ((held, filtered(of(argument), condition)),),
                (
                    (come, filtered(of(argument), came, condition)),
                    (gone, filtered(of(argument), left, condition)),
                ),
                (
                    (held, column(held), column(come), of(column(held))),
                    (come, null.copy(), column(come), of(column(come))),
                    (gone, null.copy(), column(gone), of(column(gone))),
                ),
                form(f"NOT gone IS NULL AND COALESCE(({lost}), TRUE)", **by_name),
                is_sum=False,
            )
        return column(self._found[key].hidden[0])


def _numeric(x: exp.Expr) -> exp.Expr:
    return cast(exp.Paren(this=x.copy()), "numeric")


def zero(call: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=call, expressions=[exp.Literal.number(0)])


def _sql(*expressions: exp.Expr | None) -> str:
    return " | ".join(render(e) if e is not None else "" for e in expressions)


def filtered(call: exp.Expr, *terms: exp.Expr | None) -> exp.Expr:
    wanted = [exp.Paren(this=t.copy()) for t in terms if t is not None]
    if not wanted:
        return call
    return exp.Filter(this=call, expression=exp.Where(this=exp.and_(*wanted, copy=False)))


@cache
def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="postgres")


def form(text: str, **by_name: exp.Expr) -> exp.Expr:
    """Return a formula with expressions in the places of its names."""

    def change(node: exp.Expr) -> exp.Expr | None:
        return by_name[node.name].copy() if isinstance(node, exp.Column) else None

    return rewrite(parsed(text), change)
