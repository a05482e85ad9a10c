"""The algebra's nodes: relations that can be differentiated, restricted to keys, and rendered.

A node is a frozen value. It answers

    delta(d)        the weighted change of its rows between the old and the new snapshot
    old(d)          its rows at the old snapshot (the tree as it stands is the new one)
    restrict(keys)  itself, with rows dropped that can't carry one of the keys: a hint that
                    never loses a row the keys name; where exactness matters `Restrict` says so
    select(e)       itself as one SELECT
    rows(e)         itself as part of the SELECT around it, where it only filters, renames or joins

A relation is a bag. A weighted one carries `__pgt_w` beside its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.dvm.budget import spend
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.dvm.differ import Differ
    from airflow_provider_pgtrickle.engine.dvm.emit import Emitter
    from airflow_provider_pgtrickle.engine.dvm.rows import Rows

Key = frozenset[str]
Condition = Callable[[Callable[[str], str]], str]
"""A condition on a row, as SQL, given how its columns are written."""
_DERIVED = ("columns", "own_sources", "unique_keys", "weighted", "heavy", "in_place")


@dataclass(frozen=True)
class Column:
    name: str
    type: str | None = None
    """PostgreSQL's name of the type, as narrow as is known without asking the server."""
    not_null: bool = False
    has_equality: bool = True

    def as_nullable(self) -> Column:
        return Column(self.name, self.type, False, self.has_equality)


def _keep_derived(cls: type) -> None:
    for name in _DERIVED:
        own = vars(cls).get(name)
        if isinstance(own, property) and own.fget is not None:
            cached = cached_property(own.fget)
            cached.__set_name__(cls, name)
            setattr(cls, name, cached)


@dataclass(frozen=True, eq=False)
class Node:
    """The root of all nodes; identity is object identity, so that a shared node is computed once."""

    def __init_subclass__(cls) -> None:
        """What follows from a node's inputs is worked out once: asking up a tree would ask its leaves each time."""
        super().__init_subclass__()
        _keep_derived(cls)

    def __post_init__(self) -> None:
        spend()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def columns(self) -> tuple[Column, ...]:
        raise TypeError(f"{type(self).__name__} has no columns")

    @property
    def inner(self) -> tuple[Node, ...]:
        """What the subqueries in its expressions read."""
        return ()

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return self

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        """The same with every node it reads changed."""
        return self.with_inputs([change(i) for i in self.inputs])

    def delta(self, d: Differ) -> Node | None:
        """The change; None where it is provably empty."""
        raise TypeError(f"{type(self).__name__} is no operator of a query")

    def old(self, d: Differ) -> Node:
        """The same tree over the sources' old states."""
        return self.with_inputs([d.old(i) for i in self.inputs])

    def restrict(self, keys: Keys) -> Node:
        """Unrestricted where the keys can't be pushed down."""
        return self

    def select(self, e: Emitter) -> str:
        rows = self.rows(e)
        if rows is None:
            raise TypeError(f"{type(self).__name__} can't be rendered")
        return e.select(rows, e.listed(rows, self.names))

    def select_where(self, e: Emitter, conditions: Sequence[Condition]) -> str | None:
        """Its rows that meet one of these, which exclude each other; None where there is no better way than to ask
        for them all."""
        return None

    def rows(self, e: Emitter) -> Rows | None:
        """Itself as part of the SELECT around it; None where it needs one of its own."""
        return None

    def label(self) -> str:
        """One line for the operator tree."""
        return type(self).__name__

    @property
    def own_sources(self) -> frozenset[str]:
        """Keys of the sources that this node reads itself, not through its inputs."""
        return frozenset()

    @cached_property
    def sources(self) -> frozenset[str]:
        found = set(self.own_sources)
        for node in self.inputs:
            found |= node.sources
        return frozenset(found)

    @property
    def unique_keys(self) -> frozenset[Key]:
        """Sets of columns of which no two rows agree."""
        return frozenset()

    @property
    def weighted(self) -> bool:
        return any(i.weighted for i in self.inputs)

    @property
    def heavy(self) -> bool:
        """Whether PostgreSQL's planner can't push a join's keys into it by itself."""
        return any(i.heavy for i in self.inputs)

    @property
    def shared(self) -> bool:
        """Whether the node is worth computing once even where it is not weighted."""
        return False

    @property
    def in_place(self) -> bool:
        """Whether a delta is read where it is needed, however often: it costs what the buffer costs, and PostgreSQL
        knows the buffer's statistics."""
        return False

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {c.name: c for c in self.columns}

    def column(self, name: str) -> Column:
        return self._by_name[name]

    @property
    def all_names(self) -> tuple[str, ...]:
        """The columns' names, the weight's first where there is one."""
        return (WEIGHT, *self.names) if self.weighted else self.names


_keep_derived(Node)


@dataclass(frozen=True, eq=False)
class Keys:
    """A set of keys: the distinct rows of `relation`, matched by pairs (target column, key column)."""

    relation: Node
    pairs: tuple[tuple[str, str], ...]
    null_matches: bool = True
    """Whether a NULL key names the rows whose column is NULL (grouping), or nothing (joining)."""

    def mapped(self, names: dict[str, str]) -> Keys | None:
        """The keys in terms of other target columns; pairs without one are dropped, None where none is left."""
        pairs = tuple((names[t], k) for t, k in self.pairs if t in names)
        return Keys(self.relation, pairs, self.null_matches) if pairs else None

    def only(self, names: Sequence[str]) -> Keys | None:
        return self.mapped({n: n for n in names})


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """A node over one relation."""

    child: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, child=inputs[0])


def walk(root: Node) -> Iterator[Node]:
    """Every node of a tree once, those in the subqueries of its expressions included."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend((*node.inputs, *node.inner))
