"""K = the distinct values of some expressions over a relation, whatever the weights of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, plain_column, render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Keys, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class DistinctKeys(Unary):
    """A key set, which is computed once and used by every relation that it restricts."""

    items: tuple[tuple[str, exp.Expr], ...]
    keep_nulls: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        result = []
        for name, expression in self.items:
            origin = plain_column(expression)
            not_null = not self.keep_nulls or (origin is not None and self.child.column(origin).not_null)
            result.append(Column(name, None, not_null))
        return tuple(result)

    @property
    def weighted(self) -> bool:
        return False

    @property
    def shared(self) -> bool:
        return True

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        below = plain_column(dict(self.items)[name])
        return self.child.whence(below) if below is not None else frozenset()

    def select(self, e: Emitter) -> str:
        rows = replace(e.rows(self.child), weight=None)
        values = [(n, e.expression(x, rows.places)) for n, x in self.items]
        if not self.keep_nulls:
            rows = rows.that(*(f"({v}) IS DISTINCT FROM NULL" for _, v in values))
        word = "SELECT DISTINCT" if e.is_distinct(self.child.weighted) else "SELECT"
        return e.select(rows, [f"{v} AS {e.name(n)}" for n, v in values], word)

    def label(self) -> str:
        return f"Keys [{', '.join(render(x) for _, x in self.items)}]"


def keys_from(relation: Node, columns: Iterable[str], *, null_matches: bool = True) -> Keys | None:
    """The distinct values of some columns of `relation`, as keys of the same columns."""
    usable = tuple(n for n in columns if relation.column(n).has_equality)
    if not usable:
        return None
    distinct = DistinctKeys(relation, tuple((n, column(n)) for n in usable), null_matches)
    return Keys(distinct, tuple((n, n) for n in usable), null_matches)


def expression_keys(
    relation: Node, pairs: Iterable[tuple[str, exp.Expr]], *, null_matches: bool = False
) -> Keys | None:
    """The distinct values of expressions over `relation`, each as the key of a target column."""
    items = tuple((target, expression) for target, expression in pairs)
    if not items:
        return None
    named = tuple((f"k{n}", expression) for n, (_, expression) in enumerate(items, 1))
    distinct = DistinctKeys(relation, named, null_matches)
    return Keys(distinct, tuple((items[n][0], f"k{n + 1}") for n in range(len(items))), null_matches)
