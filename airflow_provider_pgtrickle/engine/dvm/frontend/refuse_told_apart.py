"""What tells equal values apart is refused above a grouping, because it is open which of them stands for a group.

Of 1.0 and 1.00 a GROUP BY, DISTINCT, UNION or INTERSECT keeps the one that PostgreSQL reads first. Two answers that
differ in nothing else are equal. They are not once a text or `*=` is made of the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import call_name
from airflow_provider_pgtrickle.engine.dvm.dialect import Infix
from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_unwatched import expressions_of
from airflow_provider_pgtrickle.engine.dvm.node import Node, folded
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.types import base_type, is_its_image

#: Types of which equal values with different texts are common.
_LOOSE = {"numeric", "interval", "jsonb"}
_TEXTS = {"text", "character varying", "varchar", "character", "bpchar", "name", "json", "jsonb", "bytea"}
_OF_TEXT = {"concat", "concat_ws", "format", "scale", "min_scale", "to_json", "to_jsonb", "md5", "quote_literal"}
_OF_IMAGES = {"*=", "*<>", "*<", "*<=", "*>", "*>="}
#: Of values that are equal and look different these make values that do so, too.
_PASSING = (
    exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Case, exp.If, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif,
    exp.Max, exp.Min, exp.Abs,
)  # fmt: skip


@dataclass(frozen=True)
class _Picked:
    """Columns that hold one value of several equal ones."""

    names: frozenset[str] = frozenset()
    """All whose values are not known to look alike."""
    loose: frozenset[str] = frozenset()
    """Those whose values are known not to."""

    def also(self, names: frozenset[str], loose: frozenset[str]) -> _Picked:
        return _Picked(self.names | names | loose, self.loose | loose)

    def renamed(self, names: dict[str, str]) -> _Picked:
        return _Picked(*(frozenset(names[n] for n in held if n in names) for held in (self.names, self.loose)))


def refuse_told_apart(root: Node) -> Node:
    """Return the tree itself after checking that no expression tells apart what a grouping below it takes for equal."""
    folded(root, _picked)
    return root


def _picked(node: Node, of: Callable[[Node], _Picked]) -> _Picked:
    below = _Picked()
    for child in node.inputs:
        found = of(child)
        if isinstance(node, (UnionAll, SetOperation)):
            found = found.renamed(dict(zip(child.names, node.names, strict=True)))
        below = below.also(found.names, found.loose)
    if below.names:
        for expression in expressions_of(node):
            _require_alike(expression, below)
    if isinstance(node, Project):
        return below.renamed({x.name: n for n, x in node.items if isinstance(x, exp.Column)}).also(
            *(frozenset(n for n, x in node.items if _passes(x, held)) for held in (below.names, below.loose))
        )
    if isinstance(node, (Distinct, SetOperation)):
        return below.also(_not_alike(node, node.names), _loose(node, node.names))
    if isinstance(node, Aggregate):
        keys = below.renamed({name: name for name in node.group})
        return keys.also(_not_alike(node, node.group), _loose(node.child, node.group))
    return below


def _not_alike(node: Node, names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(c.name for c in node.columns if c.name in names and not c.is_image)


def _loose(node: Node, names: tuple[str, ...]) -> frozenset[str]:
    """The columns whose values are of a loose type in one of the branches behind them."""
    found = {c.name for c in node.columns if c.name in names and _is_loose(c.type)}
    if isinstance(node, (UnionAll, SetOperation)):
        for branch in node.inputs:
            own = dict(zip(branch.names, node.names, strict=True))
            found |= {own[n] for n in _loose(branch, branch.names) if own[n] in names}
    elif isinstance(node, Distinct):
        found |= _loose(node.child, names)
    return frozenset(found)


def _is_loose(kind: str | None) -> bool:
    return kind is not None and base_type(kind) in _LOOSE and not is_its_image(kind)


def _passes(expression: exp.Expr, names: frozenset[str]) -> bool:
    return any(_reaches(c, expression) for c in expression.find_all(exp.Column) if c.name in names)


def _reaches(node: exp.Expr, top: exp.Expr) -> bool:
    while node is not top:
        parent = node.parent
        if parent is None or not isinstance(parent, _PASSING):
            return False
        node = parent
    return True


def _require_alike(expression: exp.Expr, picked: _Picked) -> None:
    for found in expression.find_all(exp.Column):
        if found.name not in picked.names:
            continue
        node: exp.Expr = found
        while isinstance(node, (exp.Column, *_PASSING)):
            above = node.parent if node is not expression else None
            if above is None:
                break
            if _compares_images(above) or (found.name in picked.loose and _makes_text(above)):
                shown = above.copy()
                for column in shown.find_all(exp.Column):
                    column.set("table", None)
                raise Refused(
                    Reason.AMBIGUOUS_ORDER,
                    f"{render(shown)} tells equal values apart, of which any may stand for its group",
                    "Group by what tells them apart, too, or compare with =.",
                )
            node = above


def _compares_images(node: exp.Expr) -> bool:
    return isinstance(node, Infix) and str(node.args["operator"]).rstrip(")").rpartition(".")[2] in _OF_IMAGES


def _makes_text(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return base_type(render(node.to).replace('"', "").lower()).removeprefix("pg_catalog.") in _TEXTS
    return isinstance(node, exp.DPipe) or (isinstance(node, exp.Func) and call_name(node) in _OF_TEXT)
