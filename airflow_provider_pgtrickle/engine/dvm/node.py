"""The algebra's nodes: relations that can be differentiated, restricted to keys, and rendered.

A node is a frozen value. Everything that the rest of the engine asks about an operator is a method of its node, so
that a new operator is one file. The defaults are safe for any operator, except that one whose answer depends on an open
order has to say so (`left_open`, `ordered`), and one that turns weighted rows into plain ones too (`weighted`).
It answers

    inputs, with_inputs(…)  what it reads, and the same over other inputs
    columns, unique_keys    what its rows have, and what tells them apart
    delta(d)                the weighted change of its rows between the old and the new snapshot
    old(d)                  its rows at the old snapshot (the tree as it stands is the new one)
    restrict(keys)          itself, with rows dropped that can't carry one of the keys: a hint that
                            never loses a row the keys name; where exactness matters `Restrict` says so
    select(e)               itself as one SELECT
    rows(e)                 itself as part of the SELECT around it, where it only filters, renames or joins
    reads, narrowed         which columns it needs, and the same without those that nobody needs
    left_open, ordered      where one right answer may differ from another, and the same with its orders made total
    unsettled               why its rows may look different each time PostgreSQL computes them
    groups                  by which columns its rows are computed anew, group by group
    passed, carrying        which columns pass through it unchanged, and the same with further ones
    hoisted, computing      how Spark's plan moves expressions down to the relation that they are about

What Spark can compute of it is decided in one place, `lower/assign.py`: a node can't know that without knowing Spark.

A relation is a bag. A weighted one carries `__pgt_w` beside its columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.budget import spend
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT, column, columns_of, plain_column
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows
from airflow_provider_pgtrickle.engine.dvm.types import is_its_image

Key = frozenset[str]
Condition = Callable[[Callable[[str], str]], str]
"""A condition on a row, as SQL, given how its columns are written."""
Item = tuple[str, exp.Expr]
"""A column, and the expression that computes it."""
T = TypeVar("T")
_DERIVED = ("columns", "own_sources", "unique_keys", "weighted", "heavy", "in_place")


@dataclass(frozen=True)
class Column:
    name: str
    type: str | None = None
    """PostgreSQL's name of the type, as narrow as is known without asking the server."""
    not_null: bool = False
    has_equality: bool = True

    @property
    def is_image(self) -> bool:
        """Whether equal values of it are known to look alike."""
        return self.type is not None and is_its_image(self.type)

    def as_nullable(self) -> Column:
        return Column(self.name, self.type, False, self.has_equality)


@dataclass(frozen=True)
class Open:
    """Columns in which one right answer may differ from another."""

    order: frozenset[str] = frozenset()
    """By the order of rows that tie, or that nothing orders."""
    rounded: frozenset[str] = frozenset()
    """In the last digits, where they are floats."""
    shared: frozenset[str] = frozenset()
    """Not open: what rows that tie have in common."""

    def of(self, columns: Iterable[str]) -> Open:
        """Of these columns alone."""
        return self.under({name: name for name in columns})

    def under(self, names: Mapping[str, str]) -> Open:
        """With other names: present one → new one."""
        order, rounded, shared = (
            frozenset(names[n] for n in held if n in names) for held in (self.order, self.rounded, self.shared)
        )
        return Open(order, rounded, shared)

    def also(self, other: Open) -> Open:
        return Open(self.order | other.order, self.rounded | other.rounded, self.shared | other.shared)

    def through(self, items: Iterable[Item]) -> Open:
        """Of expressions over these columns."""
        listed = [(name, x, columns_of(x)) for name, x in items]
        return Open(
            frozenset(n for n, _, reads in listed if reads & self.order),
            frozenset(n for n, _, reads in listed if reads & self.rounded),
            frozenset(n for n, x, _ in listed if plain_column(x) in self.shared),
        )


def _keep_derived(cls: type) -> None:
    for name in _DERIVED:
        own = vars(cls).get(name)
        if isinstance(own, property) and own.fget is not None and not own.__isabstractmethod__:
            cached = cached_property(own.fget)
            cached.__set_name__(cls, name)
            setattr(cls, name, cached)


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """The root of all nodes; identity is object identity, so that a shared node is computed once."""

    def __init_subclass__(cls) -> None:
        """What follows from a node's inputs is worked out once: asking up a tree would ask its leaves each time."""
        super().__init_subclass__()
        _keep_derived(cls)

    def __post_init__(self) -> None:
        spend()

    # -- what it is --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The relations that it reads."""

    @abstractmethod
    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        """The same over other inputs, which have the columns that it reads."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order; a weight is none of them."""

    @abstractmethod
    def label(self) -> str:
        """One line for the operator tree."""

    @property
    def inner(self) -> tuple[Node, ...]:
        """What the subqueries in its expressions read."""
        return ()

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        """The same with every node it reads changed."""
        return self.with_inputs([change(i) for i in self.inputs])

    # -- its change ----------------------------------------------------------------------------------

    def delta(self, d: Differ) -> Node | None:
        """The change; None where it is provably empty."""
        raise TypeError(f"{type(self).__name__} is no operator of a query")

    def old(self, d: Differ) -> Node:
        """The same tree over the sources' old states."""
        return self.with_inputs([d.old(i) for i in self.inputs])

    def restrict(self, keys: Keys) -> Node:
        """Unrestricted where the keys can't be pushed down."""
        return self

    def touching(self, d: Differ, values: Sequence[exp.Expr]) -> tuple[Node, list[exp.Expr]] | None:
        """A change that is found with less work than its own, and in which expressions over its columns take every
        value that they take in its own; they are returned as they are written there. None where there is no such."""
        return None

    # -- as SQL --------------------------------------------------------------------------------------

    def select(self, e: Emitter) -> str:
        """Itself as one SELECT."""
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

    # -- what the passes ask ---------------------------------------------------------------------------

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        """The columns of its inputs that it reads by itself, where those above it need some of its own.

        All of them, where an operator does not say.
        """
        return {name for node in self.inputs for name in node.names}

    def narrowed(self, needed: AbstractSet[str]) -> Node:
        """The same without columns that nobody needs."""
        return self

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        """Its columns in which one right answer may differ from another; `of` knows those of its inputs.

        An operator that adds none of its own leaves open what they do.
        """
        return self.below(of).of(self.names)

    def below(self, of: Callable[[Node], Open]) -> Open:
        """What its inputs leave open."""
        found = Open()
        for node in self.inputs:
            found = found.also(of(node))
        return found

    def ordered(self) -> Node:
        """The same with the orders that it leaves open made total; `Refused` where they can't be."""
        return self

    def unsettled(self) -> str | None:
        """Why its rows may look different each time PostgreSQL computes them, though those of its inputs don't.

        None where they can't. An operator that does not say is taken for one whose rows may.
        """
        return f"it holds {self.label()}"

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The columns by whose values its rows can be computed anew, group by group; None where there are none."""
        return None

    @property
    def row_wise(self) -> bool:
        """Whether each of its rows follows from one row of its one input, and from nothing else."""
        return False

    def steps_from(self, child: Node) -> bool:
        """Whether it takes each row of this input by itself, and can carry further columns of it up."""
        return False

    @property
    def passed(self) -> Mapping[str, str]:
        """Column of an input → column of its own, for those that pass unchanged."""
        own = set(self.names)
        return {name: name for node in self.inputs for name in node.names if name in own}

    def carrying(self, items: Sequence[Item]) -> Node:
        """The same with further columns; for most operators their input has them, and they pass by themselves."""
        return self

    @property
    def joined_on(self) -> Sequence[exp.Expr]:
        """The terms by which it joins its inputs."""
        return ()

    def hoisted(self, down: Callable[[Node, tuple[Item, ...]], tuple[Node, tuple[Item, ...]]]) -> Node:
        """The same with parts of its expressions computed further down; `down` takes its input and its expressions."""
        return self

    def computing(self, item: Item) -> Node | None:
        """The same with an expression over its columns as one more, computed at the input that has them all.

        None where it is no join, or no input has them all.
        """
        return None

    # -- what it is like -------------------------------------------------------------------------------

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
        """Whether its rows carry a weight beside their columns."""
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

    def is_apart(self, uses: int) -> bool:
        """Whether it is computed once and given a name, where it is read so many times."""
        return self.shared or (self.weighted and uses > 1 and not self.in_place)

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


class Leaf(Node):
    """A node that reads no other."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return self


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """A node over one relation."""

    child: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, child=inputs[0])


class Differ:
    """One differentiation: which sources changed, and every delta and old state made once.

    What did not change is pruned before anything is read.
    """

    def __init__(self, changed: Iterable[str], narrow_all: bool = False) -> None:
        self.changed = frozenset(changed)
        self.narrow_all = narrow_all
        self._deltas: dict[Node, Node | None] = {}
        self._olds: dict[Node, Node] = {}

    def is_changed(self, node: Node) -> bool:
        return not self.changed.isdisjoint(node.sources)

    def delta(self, node: Node) -> Node | None:
        if not self.is_changed(node):
            return None
        if node not in self._deltas:
            self._deltas[node] = node.delta(self)
        return self._deltas[node]

    def old(self, node: Node) -> Node:
        if not self.is_changed(node):
            return node
        if node not in self._olds:
            self._olds[node] = node.old(self)
        return self._olds[node]


def folded(root: Node, answer: Callable[[Node, Callable[[Node], T]], T]) -> T:
    """`answer(root, of)`, where `of` knows the answer of what a node reads. Each node is asked once, the lowest first.

    It keeps its own stack, since plans are deeper than Python's.
    """
    done: dict[Node, T] = {}
    stack = [(root, False)]
    while stack:
        node, is_ready = stack.pop()
        if node in done:
            continue
        if is_ready:
            done[node] = answer(node, done.__getitem__)
        else:
            stack.append((node, True))
            stack.extend((n, False) for n in reversed((*node.inner, *node.inputs)))
    return done[root]


def rewritten(root: Node, change: Callable[[Node, Node], Node]) -> Node:
    """The tree with `change(node, fresh)` for each node, `fresh` being the node over its rewritten inputs.

    A node that is read twice is rewritten once, so it is still one node.
    """
    return folded(root, lambda node, of: change(node, node.mapped(of)))


def computed_over(relation: Node, item: Item) -> tuple[Item, ...]:
    """The relation's columns, and one more."""
    return (*((n, column(n)) for n in relation.names), item)


def descendants(root: Node) -> Iterator[Node]:
    """Every node of a tree once, those in the subqueries of its expressions included."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend((*node.inputs, *node.inner))
