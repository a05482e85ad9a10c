"""R = B ⊎ S(R), B where a WITH RECURSIVE begins and S its step; UNION makes R a set. `rederive` computes its change at
the top of a query. Below the top it is the new rows less the old ones, as for `native`.

S is linear in R: each row of R makes its next rows by itself, on a path of row-wise nodes, joins and preserved
sides, which `path` finds. PostgreSQL allows one self-reference, so there is one path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.exact_types import constant_type
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    equality,
    plain_column,
    render,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.node import Column, Leaf, Node
from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter
from airflow_provider_pgtrickle.engine.dvm.types import base_type, has_collation, is_its_image


@dataclass(frozen=True, eq=False)
class Itself(Leaf):
    """The recursive reference: the place of R in S."""

    held: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.held

    def select(self, e: Emitter) -> str:
        raise TypeError("a recursive reference is replaced before anything is rendered")

    def unsettled(self) -> None:
        return None

    def label(self) -> str:
        return "the recursion itself"


@dataclass(frozen=True, eq=False, kw_only=True)
class Recursion(Native):
    """A recursive WITH item, which is rendered as it was written, with its base and its step."""

    base: Node
    step: Node
    itself: Itself
    is_all: bool

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.base, self.step)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, base=inputs[0], step=inputs[1])

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(replace(c, name=n) for c, n in zip(self.itself.columns, self.outputs, strict=True))

    @property
    def weighted(self) -> bool:
        return False

    @property
    def heavy(self) -> bool:
        return True

    def label(self) -> str:
        return f"Recursion by {'UNION ALL' if self.is_all else 'UNION'}: where it begins, and its step"


def path(node: Node, leaf: Node) -> list[Node] | None:
    """The nodes from `node` down to `leaf`, both included; None if `leaf` is not below `node`."""
    if node is leaf:
        return [node]
    for child in node.inputs:
        below = path(child, leaf)
        if below is not None:
            return [node, *below]
    return None


def graft(node: Node, leaf: Node, by: Node) -> Node:
    """The tree with `by` in place of `leaf`. Columns of `by` that `leaf` doesn't have are carried to the top."""
    extra = [n for n in by.names if n not in leaf.names]
    result = by
    above = path(node, leaf) or [node]
    for parent, child in zip(above[-2::-1], above[:0:-1], strict=True):
        result = parent.with_inputs([result if i is child else i for i in parent.inputs])
        result = result.carrying([(n, column(n)) for n in extra])
    return result


def settle(base: Node, step: Node, itself: Itself) -> tuple[Itself, Node]:
    """The reference, with those facts about its columns in which base and step agree, and the step over it."""
    held = tuple(replace(b, name=c.name) for b, c in zip(_typed(base), itself.columns, strict=True))
    while True:
        fresh = Itself(held)
        over = graft(step, itself, fresh)
        agreed = tuple(
            Column(
                c.name,
                _agreed_type(c, s),
                c.not_null and s.not_null,
                c.has_equality and s.has_equality,
            )
            for c, s in zip(held, _typed(over), strict=True)
        )
        if agreed == held:
            return fresh, over
        held = agreed


def _agreed_type(base: Column, step: Column) -> str | None:
    """The base's type, to which PostgreSQL casts the step's values, if these then look alike where they are equal.

    A numeric may be narrower in the base than its type, and a text of the step's may have another collation.
    """
    if base.type is None or base.type == step.type:
        return base.type
    is_cast = base.is_image and base_type(base.type) != "numeric"
    return base.type if is_cast and (step.is_image or not has_collation(base.type)) else None


def _typed(node: Node) -> list[Column]:
    return [replace(c, type=c.type or _type_of(node, c.name)) for c in node.columns]


def _type_of(node: Node, name: str) -> str | None:
    """The type of a column that is a constant or a cast, of which nothing else needs to know."""
    while isinstance(node, Project):
        item = unparen(dict(node.items)[name])
        below = plain_column(item)
        if below is None:
            return constant_type(item) or _type_of_cast(item, node.child)
        node, name = node.child, below
    rows = node.item.find(exp.Values) if isinstance(node, Constant) and node.item is not None else None
    if rows is not None and isinstance(node, Constant):
        place = node.outputs.index(name)
        types = {constant_type(row.expressions[place]) for row in rows.expressions}
        return types.pop() if len(types) == 1 else None
    return node.column(name).type


def _type_of_cast(item: exp.Expr, below: Node) -> str | None:
    """The target's name if its values look alike where they are equal; a text has the collation of what is cast."""
    if not isinstance(item, exp.Cast):
        return None
    target, source = render(item.to), plain_column(item.this)
    is_known = not has_collation(target) or (source is not None and _type_of(below, source) is not None)
    return target if is_known and is_its_image(target) and base_type(target) == target else None


def joined_columns(step: Node, itself: Itself) -> frozenset[str]:
    """Columns of the recursion by which the step looks the recursion's rows up when another relation changes."""
    *above, _ = path(step, itself) or [itself]
    origin = {n: n for n in itself.names}
    found: set[str] = set()
    for node in reversed(above):
        for a, b in _equalities(node):
            name = plain_column(a)
            if name in origin and columns_of(b) and not columns_of(b) & set(origin):
                found.add(origin[name])
        origin = {out: origin[n] for n, out in node.passed.items() if n in origin}
    return frozenset(found)


def joined_sources(step: Node, itself: Itself) -> frozenset[tuple[str, tuple[str, ...]]]:
    """(source key, columns) by which each step looks up the next rows; the step equates them with the recursion's."""
    found: set[tuple[str, tuple[str, ...]]] = set()
    along = path(step, itself) or []
    for node, child in pairwise(along):
        origin = {c.name: (s.source.table, o) for s in _scans(node, child) for o, c in s.mapping}
        for a, b in _equalities(node):
            name = plain_column(a)
            if name in origin and columns_of(b) and columns_of(b) <= set(child.names):
                key, held = origin[name]
                found.add((key, (held,)))
    return frozenset(found)


def _scans(node: Node, but: Node) -> Iterator[Scan]:
    for beside in node.inputs:
        while isinstance(beside, Filter):
            beside = beside.child
        if isinstance(beside, Scan) and beside is not but:
            yield beside


def _equalities(node: Node) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The sides of each equality in a join's condition, in both orders."""
    for sides in filter(None, map(equality, node.joined_on)):
        yield sides
        yield sides[1], sides[0]
