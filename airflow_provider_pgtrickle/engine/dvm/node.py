"""The algebra's nodes: relations that can be differentiated, restricted to keys, and rendered.

A node is a frozen value. Everything that the rest of the engine asks about an operator is a method of its node, so
that a new operator is one file. The defaults are safe for any operator, with two exceptions: an operator whose answer
depends on an open order has to say so (`left_open`, `ordered`), and so has one that turns weighted rows into plain ones
(`weighted`). A node answers

    inputs, with_inputs(…)  which relations it reads, and the same node over other inputs
    columns, unique_keys    which columns its rows have, and which of them tell the rows apart
    delta(d)                the weighted change of its rows between the old and the new snapshot
    old(d)                  its rows at the old snapshot (the tree as it stands gives those at the new one)
    restrict(keys)          itself without rows that can't carry one of the keys. This is a hint: no row with a
                            key is lost, but others may stay; where exactness matters, `Restrict` drops them
    select(e)               itself as one SELECT
    rows(e)                 itself as part of the SELECT around it, where it only filters, renames or joins
    reads, narrowed         which columns it needs, and the same node without those that nobody needs
    left_open, ordered      where one right answer may differ from another, and the same node with total orders
    unsettled               why its rows may look different each time PostgreSQL computes them
    sliced(s)               the part of its rows that one slice of the changes yields; its parts are all of them
    groups                  by which columns its rows are computed anew, group by group
    whence(name)            which sources' changes have all values of a column, so that their least one bounds them
    passed, carrying        which columns pass through it unchanged, and the same node with further ones
    hoisted, computing      how Spark's plan moves expressions down to the relation that they are about

`lower/assign.py` alone decides what Spark can compute of a node, because nodes know nothing of Spark.

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
"""A function that gives a condition on a row as SQL; its argument says how the row's columns are written."""
Item = tuple[str, exp.Expr]
"""A column, and the expression that computes it."""
T = TypeVar("T")
_DERIVED = ("columns", "own_sources", "unique_keys", "weighted", "heavy", "in_place")


@dataclass(frozen=True)
class Column:
    name: str
    type: str | None = None
    """PostgreSQL's name of the type, as narrow as it is known without asking the server."""
    not_null: bool = False
    has_equality: bool = True
    null_of: str | None = None
    """The type of which it is NULL in every row, where it is written so."""

    @property
    def is_image(self) -> bool:
        """Whether the column's equal values are known to look alike."""
        return self.type is not None and is_its_image(self.type)

    def as_nullable(self) -> Column:
        return Column(self.name, self.type, False, self.has_equality)


@dataclass(frozen=True)
class Open:
    """Columns in which one right answer may differ from another."""

    order: frozenset[str] = frozenset()
    """Columns that depend on the order of rows that tie, or that nothing orders."""
    rounded: frozenset[str] = frozenset()
    """Columns of floats, which may differ in their last digits."""
    shared: frozenset[str] = frozenset()
    """Columns that are not open, because rows that tie have the same value in them."""

    def of(self, columns: Iterable[str]) -> Open:
        """Return what is open in these columns alone."""
        return self.under({name: name for name in columns})

    def under(self, names: Mapping[str, str]) -> Open:
        """Return the same with other names; `names` maps each present name to its new one."""
        order, rounded, shared = (
            frozenset(names[n] for n in held if n in names) for held in (self.order, self.rounded, self.shared)
        )
        return Open(order, rounded, shared)

    def also(self, other: Open) -> Open:
        return Open(self.order | other.order, self.rounded | other.rounded, self.shared | other.shared)

    def through(self, items: Iterable[Item]) -> Open:
        """Return what is open in expressions over these columns."""
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
    """The base class of all nodes. Nodes are equal only if they are the same object: a shared node is computed once."""

    def __init_subclass__(cls) -> None:
        """Keep the answers that follow from a node's inputs: without that each question would go down to the leaves."""
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
        """Return the same node over other inputs, which must have the columns that it reads."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order; the weight is not among them."""

    @abstractmethod
    def label(self) -> str:
        """Return the node's line in the operator tree."""

    @property
    def inner(self) -> tuple[Node, ...]:
        """Return the relations that the subqueries in its expressions read."""
        return ()

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        """Return the same node with `change` applied to every node that it reads."""
        return self.with_inputs([change(i) for i in self.inputs])

    # -- its change ----------------------------------------------------------------------------------

    def delta(self, d: Differ) -> Node | None:
        """Return the change of its rows; None where that is provably empty."""
        raise TypeError(f"{type(self).__name__} is no operator of a query")

    def old(self, d: Differ) -> Node:
        """Return the same tree over the sources' old states."""
        return self.with_inputs([d.old(i) for i in self.inputs])

    def restrict(self, keys: Keys) -> Node:
        """Return the node without rows that can't carry a key; where keys can't be pushed down, all rows stay."""
        return self

    def touching(self, d: Differ, values: Sequence[exp.Expr]) -> tuple[Node, list[exp.Expr]] | None:
        """Return a change that is found with less work than the node's own change, and `values` as written over it.

        `values` are expressions over the node's columns. They must take in it every value that they take in the node's
        own change. None where there is no such change.
        """
        return None

    def sliced(self, s: Slicer) -> Node | None:
        """Return the part of its rows that one slice of the changes yields; None where that is none.

        By default it is not cut: the first slice has all of its rows.
        """
        if self.row_wise:
            (child,) = self.inputs
            part = s.slice(child)
            return None if part is None else self.with_inputs([part])
        return self if s.number == 0 else None

    # -- as SQL --------------------------------------------------------------------------------------

    def select(self, e: Emitter) -> str:
        """Return the node as one SELECT."""
        rows = self.rows(e)
        if rows is None:
            raise TypeError(f"{type(self).__name__} can't be rendered")
        return e.select(rows, e.listed(rows, self.names))

    def select_where(self, e: Emitter, conditions: Sequence[Condition]) -> str | None:
        """Return a SELECT of its rows that meet one of these conditions, which exclude each other.

        None where selecting all rows first is no worse.
        """
        return None

    def rows(self, e: Emitter) -> Rows | None:
        """Return the node as part of the SELECT around it; None where it needs a SELECT of its own."""
        return None

    # -- what the passes ask ---------------------------------------------------------------------------

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        """Return the columns of its inputs that it reads, if the nodes above it need these of its own columns.

        By default an operator reads all of them.
        """
        return {name for node in self.inputs for name in node.names}

    def narrowed(self, needed: AbstractSet[str]) -> Node:
        """Return the same node without columns that nobody needs."""
        return self

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        """Return its columns in which one right answer may differ from another; `of` gives those of an input.

        An operator that opens no further columns leaves open what its inputs leave open.
        """
        return self.below(of).of(self.names)

    def below(self, of: Callable[[Node], Open]) -> Open:
        """Return what its inputs leave open."""
        found = Open()
        for node in self.inputs:
            found = found.also(of(node))
        return found

    def ordered(self) -> Node:
        """Return the same node with the orders that it leaves open made total; raise `Refused` where they can't be."""
        return self

    def unsettled(self) -> str | None:
        """Say why its rows may look different each time PostgreSQL computes them, though those of its inputs don't.

        None where they can't. By default an operator's rows may look different.
        """
        return f"it holds {self.label()}"

    @property
    def groups(self) -> tuple[str, ...] | None:
        """Return the columns by whose values its rows can be computed anew, group by group; None without such."""
        return None

    def whence(self, name: str) -> frozenset[tuple[str, str]]:
        """Return (source key, column) of those in whose changes each value of the column is found, unless it is NULL.

        None where that isn't known.
        """
        known = self._known_whence
        if name not in known:
            known[name] = self._whence(name)
        return known[name]

    @cached_property
    def _known_whence(self) -> dict[str, frozenset[tuple[str, str]]]:
        return {}

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        """Answer for `whence`, which asks once for each column. By default it isn't known."""
        return frozenset()

    @property
    def row_wise(self) -> bool:
        """Whether each of its rows follows from one row of its one input, and from nothing else."""
        return False

    def steps_from(self, child: Node) -> bool:
        """Whether it takes each row of this input by itself, and can carry further columns of the input up."""
        return False

    @property
    def passed(self) -> Mapping[str, str]:
        """A column of an input → the node's own column, for those that pass unchanged."""
        own = set(self.names)
        return {name: name for node in self.inputs for name in node.names if name in own}

    def carrying(self, items: Sequence[Item]) -> Node:
        """Return the same node with further columns; most operators pass on what their input has without a change."""
        return self

    @property
    def joined_on(self) -> Sequence[exp.Expr]:
        """The terms by which it joins its inputs."""
        return ()

    def hoisted(self, down: Callable[[Node, tuple[Item, ...]], tuple[Node, tuple[Item, ...]]]) -> Node:
        """Return the same node with pieces of its expressions computed further down.

        `down` takes an input and the expressions over it.
        """
        return self

    def computing(self, item: Item) -> Node | None:
        """Return the same node with one more column: an expression, computed at the input that has all it reads.

        None where the node is no join, or no input has all these columns.
        """
        return None

    # -- what it is like -------------------------------------------------------------------------------

    @property
    def own_sources(self) -> frozenset[str]:
        """The keys of the sources that this node reads itself, and not through its inputs."""
        return frozenset()

    @cached_property
    def sources(self) -> frozenset[str]:
        found = set(self.own_sources)
        for node in self.inputs:
            found |= node.sources
        return frozenset(found)

    @property
    def unique_keys(self) -> frozenset[Key]:
        """Sets of columns on which no two rows agree."""
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
    def combines(self) -> bool:
        """Whether its rows cost more than reading those of one table."""
        return len(self.inputs) > 1 or self.heavy or any(i.combines for i in self.inputs)

    @property
    def shared(self) -> bool:
        """Whether the node is worth computing once even where it is not weighted."""
        return False

    @property
    def in_place(self) -> bool:
        """Whether a delta is read in place, however often it is needed: reading it costs no more than reading the
        buffer, and PostgreSQL knows the buffer's statistics."""
        return False

    def is_apart(self, uses: int) -> bool:
        """Whether it is computed once and given a name if it is read so many times."""
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
        """The columns' names, after the name of the weight if there is one."""
        return (WEIGHT, *self.names) if self.weighted else self.names


_keep_derived(Node)


@dataclass(frozen=True)
class Onward:
    """A place in an order by one column: rows that come before it are left out, those that tie with it are not."""

    target: str
    """The column by which the rows are ordered."""
    key: str
    """The key set's column with the place."""
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, eq=False)
class Keys:
    """A set of keys: the distinct rows of `relation`, matched by pairs (target column, key column)."""

    relation: Node
    pairs: tuple[tuple[str, str], ...]
    null_matches: bool = True
    """Whether a NULL key matches the rows whose column is NULL (as in grouping), or no row (as in joining)."""
    onward: Onward | None = None
    """Of a key's rows only those from its place onward; the pairs then tell the keys apart."""

    def mapped(self, names: dict[str, str]) -> Keys | None:
        """Return the keys for other target columns, without what has none; None where nothing is left.

        A place says nothing of rows that are found by less than the whole key.
        """
        pairs = tuple((names[t], k) for t, k in self.pairs if t in names)
        onward = self.onward
        if onward is not None:
            is_told = onward.target in names and len(pairs) == len(self.pairs)
            onward = replace(onward, target=names[onward.target]) if is_told else None
        return replace(self, pairs=pairs, onward=onward) if pairs or onward else None

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


@dataclass(frozen=True, eq=False)
class Binary(Node):
    """A node over two relations, of one of several kinds."""

    kind: str
    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, left=inputs[0], right=inputs[1])


class Differ:
    """One differentiation: it knows which sources changed, and makes every delta and every old state once.

    Relations that did not change are pruned before anything is read.
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


class Slicer:
    """One slice of a change: the sum of all slices of a weighted relation is the relation.

    Each term of a difference is linear in the change of one source. Where only this change is cut, the slices of a term
    add up to the term. `cut`: by source, the conditions that divide the rows of its buffer; all that isn't cut belongs
    to the first slice.
    """

    def __init__(self, number: int, cut: Mapping[str, Sequence[str]]) -> None:
        self.cut = cut
        self.number = number
        self._parts: dict[Node, Node | None] = {}

    def slice(self, node: Node) -> Node | None:
        if node not in self._parts:
            self._parts[node] = node.sliced(self)
        return self._parts[node]


def folded(root: Node, answer: Callable[[Node, Callable[[Node], T]], T]) -> T:
    """Return `answer(root, of)`, where `of` gives the answer of a node's input; each node is asked once, lowest first.

    The function keeps its own stack, since plans are deeper than Python's.
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
    """Return the tree with `change(node, fresh)` for each node; `fresh` is the node over its rewritten inputs.

    A node that is read twice is rewritten once, so it is still one node.
    """
    return folded(root, lambda node, of: change(node, node.mapped(of)))


def computed_over(relation: Node, item: Item) -> tuple[Item, ...]:
    """Return the relation's columns, and one more."""
    return (*((n, column(n)) for n in relation.names), item)


def descendants(root: Node) -> Iterator[Node]:
    """Yield every node of a tree once, including those in the subqueries of its expressions."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend((*node.inputs, *node.inner))
