"""Every sink has this interface. It finds its node on the path from the top of a query downwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Node, rewritten
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Touched
from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.reached import Bounds
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored


@dataclass(frozen=True)
class Query:
    """A built query: its node, and the names that its columns have for the user."""

    root: Node
    outputs: tuple[str, ...]
    name: Namer
    bounds: Bounds | None = None
    """The bounds of a TopK query; None where they can't tell whether a change reaches its window."""
    floats: Mapping[str, str] = field(default_factory=dict)
    """The types of the columns that may be kept as approximate sums of floats."""


@dataclass(frozen=True)
class Addition:
    """What a change adds to the stored rows, where it can be added without reading them."""

    rows: Node
    """The rows that are grouped."""
    added: Node
    """A row for each group: its key, and what its hidden columns gain."""
    keys: dict[str, str]
    """Each column of the key → the storage's column that holds it."""
    hidden: tuple[str, ...]
    values: dict[str, str]
    """The other columns of the storage → their SQL over the key's and the hidden columns, once these are added up."""
    anew: str | None
    """SQL over the hidden columns: whether the sums are lost, so that the content must be computed anew."""


class Sink:
    """`storage` is the whole content, hidden columns included; `delta` is its change as weighted rows."""

    title = ""
    adds = False
    """Whether it sums the whole change by group in one pass, so that nothing is won by a sum before it."""

    def __init__(self, query: Query, storage: Node, hidden: Sequence[str]) -> None:
        self.query = query
        self.storage = storage
        self.hidden = tuple(hidden)

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        """Return the sink for this query, or None where the query is not of its kind."""
        raise NotImplementedError

    def delta(self, d: Differ) -> Node | None:
        raise NotImplementedError

    def addition(self, d: Differ) -> Addition | None:
        """Return what a change adds; None where a stored row must be read for it."""
        return None

    def without_late(self) -> tuple[Sink, tuple[tuple[str, str], ...]]:
        """Return the sink with NULL for values that PostgreSQL computes better on the stage, and their expressions."""
        return self, ()

    @property
    def content(self) -> Node:
        """The whole content of a table that is filled, where it follows from what is stored, too."""
        return self.storage

    @property
    def lookups(self) -> tuple[tuple[str, ...], ...]:
        """Sets of columns, besides the identity, by which a delta looks up stored rows; each is worth an index."""
        return ()

    @property
    def step_lookups(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """(source key, columns) of lookups of a source's rows that no key set in the plan shows."""
        return frozenset()

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        """(source key, column) where a delta reads a source's rows from a changed value on."""
        return frozenset()

    @property
    def approximate(self) -> tuple[str, ...]:
        """The columns whose values differ from PostgreSQL's by as much as rounding may make."""
        return ()

    @property
    def bounds(self) -> Node | None:
        """For each group its key, and the value of each such column with its bound; None where there is no such column.

        They are named by `kept_name` and `bound_name`.
        """
        return None

    @property
    def because(self) -> str | None:
        """The reason why no sink that does less work takes the query; None where there is none to tell."""
        return None

    @property
    def stored(self) -> Stored:
        return Stored(tuple(Column(c.name, c.type, c.not_null, c.has_equality) for c in self.storage.columns))


def kept_name(number: int) -> str:
    return f"__pgt_kept_{number}"


def bound_name(number: int) -> str:
    return f"__pgt_bound_{number}"


def visible(root: Node, outputs: Sequence[str], hidden: Sequence[tuple[str, exp.Expr]] = ()) -> Project:
    """Return the root under the user's names, followed by hidden columns."""
    items = tuple((o, column(n)) for o, n in zip(outputs, root.names, strict=False))
    return Project(root, items + tuple(hidden))


def descend(root: Node) -> Node:
    """Return the first node below projections and filters that hold no subquery."""
    node = root
    while node.row_wise:
        (node,) = node.inputs
    return node


def below_projections(root: Node) -> Node:
    """Return the first node below projections that hold no subquery and make one row of each row."""
    node = root
    while isinstance(node, Project) and node.row_wise and not node.makes_sets:
        node = node.child
    return node


def expose(node: Node, core: Node, names: Sequence[str], namer: Namer) -> tuple[Node, dict[str, str]]:
    """Return the path from `node` to `core` with the core's columns `names` carried up, and their names at the top."""
    if node is core:
        return node, {n: n for n in names}
    child, below = expose(node.inputs[0], core, names, namer)
    fresh = node.with_inputs([child])
    passed, extra, found = fresh.passed, [], {}
    for name in names:
        held = passed.get(below[name])
        if held is None:
            held = namer(name)
            extra.append((held, column(below[name])))
        found[name] = held
    return fresh.carrying(extra), found


def if_changed(relation: Node, change: Node) -> Node:
    """Return a relation that has no rows if the change turns out to be empty at run time."""
    return Touched(relation, ((DistinctKeys(change, (("k0", exp.true()),), keep_nulls=True), ()),))


def total_order(root: Node, but: Node | None = None) -> Node:
    """Return the tree with every open order made total, so that computing it twice gives the same rows.

    PostgreSQL may give these rows for the query, too. The node `but` may leave its own order open. A query whose order
    can't be made total is refused for differences, and runs FULL.
    """
    return rewritten(root, lambda node, fresh: fresh if node is but else fresh.ordered())
