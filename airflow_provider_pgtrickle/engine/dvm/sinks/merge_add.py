"""stored¹ = stored⁰ + Δγ. The sums and counts of the changed rows are added to those that are stored for their groups,
so the unchanged rows of a group aren't read.

    SUM    keeps its sum and its count of non-NULL values: it is NULL again when the last value leaves
    AVG    is their numeric division, which PostgreSQL does, so it is equal to the last digit
    MIN    takes a smaller value when it comes; a group from which its minimum was deleted is computed anew

A group whose count reaches 0 is removed. A group with a sum that became NaN or infinite is computed anew, too. Sums of
floats are kept only where their author asks for it (`floats.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    is_row_column,
    plain_column,
    rename,
    render,
    rewrite,
    substitute,
)
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.keys import keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Expose, Weigh
from airflow_provider_pgtrickle.engine.dvm.proof import open_columns
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.sinks.floats import Floats, approximable
from airflow_provider_pgtrickle.engine.dvm.sinks.parts import COUNT, WEIGHT_COLUMN, Item, Part, Parts, cast
from airflow_provider_pgtrickle.engine.dvm.sinks.replace import with_keys
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import (
    Addition,
    Query,
    Sink,
    below_projections,
    bound_name,
    expose,
    if_changed,
    kept_name,
    total_order,
)


@dataclass(frozen=True)
class Shape:
    """A query's aggregate, taken apart into what the sink needs to know of it."""

    child: Node
    group: tuple[str, ...]
    parts: tuple[Part, ...]
    values: dict[str, exp.Expr]
    """Each of the aggregate's columns → its value over the hidden columns."""
    bounds: dict[str, exp.Expr] = field(default_factory=dict)
    """Each of its columns that is approximate → the bound of that, over the hidden columns and `sizes`."""
    sizes: tuple[Item, ...] = ()


class MergeAdd(Sink):
    """DISTINCT, and projections over a GROUP BY all of whose aggregates have a running state."""

    title = "merge by adding"
    adds = True

    def __init__(
        self,
        query: Query,
        shape: Shape,
        state: Node,
        root: Node,
        keys: dict[str, str],
        storage: Node,
        hidden: Sequence[str],
    ) -> None:
        super().__init__(query, storage, hidden)
        self._shape = shape
        self._state = state
        self._root = root
        self._keys = keys

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        try:
            # The old rows in the delta below the aggregate are computed, so they must be the same each time.
            query = replace(query, root=total_order(query.root))
        except Refused:
            return None
        core = below_projections(query.root)
        shape = _shape(core, _approximable(query, core))
        if shape is None:
            return None
        state = _full_state(shape)
        root, found = expose(query.root, core, shape.group, query.name)
        over_state = _over(root, core, state, shape.values, shape.parts)
        storage, key_names, keys = with_keys(query, over_state, found)
        storage = Project(storage.child, storage.items + tuple((n, column(n)) for n in _hidden(shape)))
        return cls(query, shape, state, root, keys, storage, [*key_names, *_hidden(shape)])

    def without_late(self) -> tuple[Sink, tuple[tuple[str, str], ...]]:
        """Return the sink without the visible values that the stage computes from hidden ones, and these values."""
        over_state = _flat(self.storage, self._state)
        where = {**self._keys, **{h: h for h in _hidden(self._shape)}}
        items, late = [], []
        for name, value in over_state.items():
            if plain_column(value) is None:
                late.append((name, render(_unqualified(rename(value, where)))))
                value = exp.Null()
            items.append((name, value))
        bare = MergeAdd(
            self.query,
            self._shape,
            self._state,
            self._root,
            self._keys,
            Project(self._state, tuple(items)),
            self.hidden,
        )
        return bare, tuple(late)

    @property
    def approximate(self) -> tuple[str, ...]:
        return tuple(self._approximate)

    @property
    def _approximate(self) -> dict[str, str]:
        """Each of the query's columns that is approximate → the aggregate's column."""
        if not self._shape.bounds:
            return {}
        core = below_projections(self.query.root)
        held = {name: plain_column(value) for name, value in _outputs(self.query, core).items()}
        return {name: of for name, of in held.items() if of in self._shape.bounds}

    @property
    def bounds(self) -> Node | None:
        if not self._shape.bounds:
            return None
        state = self._state
        assert isinstance(state, Aggregate)
        items: list[Item] = [(self._keys[g], column(g)) for g in self._shape.group]
        for number, of in enumerate(self._approximate.values()):
            items += [(kept_name(number), self._shape.values[of]), (bound_name(number), self._shape.bounds[of])]
        return Project(replace(state, aggregates=state.aggregates + self._shape.sizes), tuple(items))

    # -- the change ----------------------------------------------------------------------------

    def delta(self, d: Differ) -> Node | None:
        change = d.delta(self._shape.child)
        if change is None:
            return None
        added = Once(self._added(change))
        keys = keys_from(added, self._shape.group) if self._shape.group else None
        if keys is None:
            before: Node = if_changed(self.stored, change)
        else:
            mapped = keys.mapped(self._keys)
            assert mapped is not None
            before = Restrict(self.stored.restrict(mapped), mapped)
        before = Once(before)
        merged = Once(self._merged(before, added))
        kept: list[exp.Expr] = []
        if self._shape.group:
            kept.append(exp.GT(this=column(COUNT), expression=exp.Literal.number(0)))
        else:
            merged = Once(if_changed(merged, change))
        anew = [p.anew for p in self._shape.parts if p.anew is not None]
        branches: list[Node] = []
        if anew:
            any_anew = exp.Paren(this=exp.or_(*[exp.Paren(this=a.copy()) for a in anew], copy=False))
            kept.append(exp.Not(this=exp.Paren(this=any_anew)))
            touched = Filter(merged, any_anew)
            branches.append(self._anew(touched, d))
        unchanged = Filter(merged, conjunction(kept)) if kept else merged
        branches.insert(0, Project(unchanged, tuple((n, column(n)) for n in self._state.names)))
        rows = UnionAll.of(branches)
        new = self._stored_form(rows)
        return UnionAll.of((Weigh(new, 1), Weigh(before, -1)))

    def addition(self, d: Differ) -> Addition | None:
        """Return what a change adds; None where a group's stored row must be read for it, or there are no groups."""
        change = d.delta(self._shape.child)
        if change is None or not self._shape.group or not all(part.is_sum for part in self._shape.parts):
            return None
        where = {**self._keys, **{h: h for h in _hidden(self._shape)}}
        held = {*self._keys.values(), *_hidden(self._shape)}
        values = {
            name: render(_unqualified(rename(value, where)))
            for name, value in _flat(self.storage, self._state).items()
            if name not in held
        }
        anew = [exp.Paren(this=p.anew.copy()) for p in self._shape.parts if p.anew is not None]
        return Addition(
            self._shape.child,
            self._added(change),
            self._keys,
            tuple(_hidden(self._shape)),
            values,
            render(_unqualified(exp.or_(*anew, copy=False))) if anew else None,
        )

    def _added(self, change: Node) -> Node:
        exposed = Expose(change, WEIGHT_COLUMN)
        count = cast(exp.Sum(this=column(WEIGHT_COLUMN)), "bigint")
        items: list[Item] = [(COUNT, exp.Coalesce(this=count, expressions=[exp.Literal.number(0)]))]
        items += [item for part in self._shape.parts for item in part.added]
        return Aggregate(exposed, self._shape.group, tuple(items))

    def _merged(self, before: Node, added: Node) -> Node:
        """Return the sum of each group's stored and added state; GROUP BY matches NULL keys by itself."""
        stored: list[Item] = [(g, column(self._keys[g])) for g in self._shape.group]
        fresh: list[Item] = [(g, column(g)) for g in self._shape.group]
        stored.append((COUNT, column(COUNT)))
        fresh.append((COUNT, column(COUNT)))
        totals: list[Item] = [(COUNT, cast(exp.Sum(this=column(COUNT)), "bigint"))]
        for part in self._shape.parts:
            for name, from_stored, from_added, total in part.merged:
                stored.append((name, from_stored))
                fresh.append((name, from_added))
                totals.append((name, total))
        both = UnionAll((Project(added, tuple(fresh)), Project(before, tuple(stored))), tuple(n for n, _ in fresh))
        return Aggregate(both, self._shape.group, tuple(totals))

    def _anew(self, touched: Node, d: Differ) -> Node:
        keys = keys_from(touched, self._shape.group) if self._shape.group else None
        if keys is None:
            return if_changed(self._state, touched)
        return Restrict(if_changed(self._state.restrict(keys), touched), keys)

    def _stored_form(self, rows: Node) -> Node:
        """Return rows of the state as rows of the storage."""
        return _replaced(self.storage, self._state, rows)


def _outputs(query: Query, core: Node) -> dict[str, exp.Expr]:
    """Return the query's columns over those of the node below its projections."""
    return dict(zip(query.outputs, _flat(query.root, core).values(), strict=False))


def _approximable(query: Query, core: Node) -> Mapping[str, str]:
    """Return the types of the aggregates that may be approximate."""
    if not query.floats or not isinstance(core, Aggregate):
        return {}
    found = approximable(_outputs(query, core), query.floats, core.group)
    # What is rounded below may be another value each time that it is computed.
    rounded = open_columns(core.child).rounded
    return {name: found[name] for name, call in core.aggregates if name in found and not columns_of(call) & rounded}


def _shape(core: Node, floats: Mapping[str, str]) -> Shape | None:
    if isinstance(core, Distinct):
        return Shape(core.child, core.names, (), {})
    if not isinstance(core, Aggregate):
        return None
    parts = Parts({c.name: c for c in core.child.columns})
    sums = Floats(parts)
    values: dict[str, exp.Expr] = {}
    bounds: dict[str, exp.Expr] = {}
    for name, call in core.aggregates:
        value = parts.value(call)
        if value is None and name in floats:
            found = sums.value(call, floats[name])
            if found is not None:
                value, bounds[name] = found.value, found.bound
        if value is None:
            return None
        values[name] = value
    return Shape(core.child, core.group, parts.all, values, bounds, tuple(sums.sizes.items()))


def _flat(node: Node, state: Node) -> dict[str, exp.Expr]:
    """Return the columns of a path of projections as expressions over its lowest node."""
    if node is state:
        return {n: column(n) for n in state.names}
    assert isinstance(node, Project)
    below = _flat(node.child, state)
    return {n: substitute(x, below) for n, x in node.items}


def _unqualified(expression: exp.Expr) -> exp.Expr:
    return rewrite(expression, lambda n: exp.Column(this=n.this.copy()) if is_row_column(n) else None)


def _hidden(shape: Shape) -> list[str]:
    return [COUNT, *(n for part in shape.parts for n in part.hidden)]


def _full_state(shape: Shape) -> Node:
    items: list[Item] = [(COUNT, exp.Count(this=exp.Star(), big_int=True))]
    items += [item for part in shape.parts for item in part.full]
    return Aggregate(shape.child, shape.group, tuple(items))


def _over(root: Node, core: Node, state: Node, values: dict[str, exp.Expr], parts: Sequence[Part]) -> Node:
    """Return the projections above the core over the state instead, with the hidden columns carried up."""
    hidden = [COUNT, *(n for part in parts for n in part.hidden)]
    if root is core:
        return (
            state
            if not values
            else Project(
                state,
                tuple((n, column(n)) for n in core.names if n not in values)
                + tuple((n, v) for n, v in values.items())
                + tuple((h, column(h)) for h in hidden),
            )
        )
    assert isinstance(root, Project)
    if root.child is core:
        items = tuple((n, substitute(x, values)) for n, x in root.items)
        return Project(state, items + tuple((h, column(h)) for h in hidden))
    return Project(_over(root.child, core, state, values, parts), root.items + tuple((h, column(h)) for h in hidden))


def _replaced(node: Node, target: Node, by: Node) -> Node:
    """Return a path of projections with another node in place of its lowest node."""
    return by if node is target else node.with_inputs([_replaced(i, target, by) for i in node.inputs])
