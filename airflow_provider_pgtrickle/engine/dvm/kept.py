"""new = π(σ(old ⟕ T)): a changed query's content follows from the rows that are stored for the query before it.

    Δstored = g(Δold) + (g − ρ)(stored),   g = π σ(· ⟕ T),   ρ: a stored row after columns have come and gone

Every part is linear in the stored rows, so nothing is grouped: what stays as it is appears nowhere. Where rows
have a key, new columns are set in place by one UPDATE, and only g(Δold) and the rows that go are left.

π computes columns from stored ones, σ is what the new query filters besides, and T are tables from which a column is
fetched by the key that is stored. Two queries fit if their trees have the same leaves below projections, filters and
inner joins. Leaves are the same if they are the same table, if their text is the same, or if their inputs fit: an
aggregate's with the same groups and no more filters than over these, a left or semi-join's with no more filters than on
its left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    conjuncts,
    equality,
    is_present,
    is_row_column,
    plain_column,
    render,
    rewrite,
    substitute,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.node import Column, Item, Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.dvm.view import View

#: A column of the new query that the old one doesn't read.
_NEW = "__pgt_new_"


class Anew(Exception):
    """The new content doesn't follow from the stored rows; the message says why, in words."""


@dataclass(frozen=True)
class InPlace:
    """New columns that are set in the stored rows, before anything else of the change is written."""

    names: tuple[str, ...]
    values: str
    """PostgreSQL's SELECT of row ids, identities and the columns' values, of the rows where they aren't NULL."""


@dataclass(frozen=True)
class Kept:
    """How a new query's content follows from the stored rows of the query before it."""

    old: View
    items: tuple[Item, ...]
    """The new storage's columns, over the stored ones and those that are fetched."""
    terms: tuple[exp.Expr, ...]
    """What the new query filters besides."""
    fetched: tuple[tuple[Scan, exp.Expr], ...]
    """Tables, and the conditions by which their rows are found."""
    words: str

    def change(self, binding: Binding) -> str | None:
        """Return PostgreSQL's SELECT of `__pgt_w` and the new storage's columns; None if no stored row changes."""
        plan = self._plan(binding)
        return None if plan is None else self.old.render(plan, binding)

    def in_place(self, binding: Binding) -> InPlace | None:
        """Return the values of new columns, to be set in the stored rows themselves; None where other values change."""
        if not self._sets:
            return None
        stored = self._stored
        rows = Stored((Column(ROW_ID, "bigint"), *stored.stored_columns))
        held = stored.names
        added = tuple((name, x) for name, x in self.items if name not in held)
        found = Filter(self._wide(rows), _case(conjunction(self.terms), self._differs or exp.false(), exp.false()))
        told_by = tuple((name, column(name)) for name in (ROW_ID, *self.old.identity))
        return InPlace(tuple(name for name, _ in added), self.old.render(Project(found, (*told_by, *added)), binding))

    @property
    def _sets(self) -> bool:
        """Whether all that changes in rows that stay are columns that are new, and rows have a key to find them by."""
        held = self._stored.names
        is_kept = all(plain_column(x) == name for name, x in self.items if name in held)
        return is_kept and self.old.keyed and any(name not in held for name, _ in self.items)

    @property
    def rewrites(self) -> bool:
        """Whether rows that stay get other values, so that most of them are written."""
        return self._differs is not None

    @property
    def reads_stored(self) -> bool:
        """Whether stored rows are read at all."""
        return self.rewrites or bool(self.terms)

    def _plan(self, binding: Binding) -> Node | None:
        stored = self._stored
        passes, differs = conjunction(self.terms), self._differs
        branches: list[Node] = []
        if self._sets:
            differs = None
        if differs is not None:
            # CASE keeps a value from being computed of a row that the new query leaves out.
            stays = Filter(self._wide(stored), _case(passes, differs, exp.false()))
            branches.append(Weigh(Project(stays, self.items), 1))
        if differs is not None or self.terms:
            gone = Filter(self._wide(stored), _case(passes, differs or exp.false(), exp.true()))
            branches.append(Weigh(Project(gone, self._reshaped), -1))
        change = self.old.plan(binding.changed) if binding.changed else None
        if change is not None:
            branches.append(Project(Filter(self._wide(change), passes), self.items))
        return UnionAll.of(branches) if branches else None

    @property
    def _stored(self) -> Stored:
        stored = self.old.stored
        assert stored is not None
        return stored

    @property
    def _reshaped(self) -> tuple[Item, ...]:
        """The new storage's columns of a row that is stored: those that are new are NULL, of their own types."""
        held = self._stored.names
        return tuple(
            (name, column(name) if name in held else _case(exp.false(), x, exp.Null())) for name, x in self.items
        )

    @property
    def _differs(self) -> exp.Expr | None:
        """The condition that a row gets other values than `_reshaped` has; None if no row does."""
        held = self._stored.names
        if any(name in held and plain_column(x) != name for name, x in self.items):
            return exp.true()
        added = [is_present(x.copy()) for name, x in self.items if name not in held]
        return exp.or_(*added, copy=False) if added else None

    def _wide(self, rows: Node) -> Node:
        for scan, condition in self.fetched:
            rows = OuterJoin("LEFT", rows, scan, condition)
        return rows


def kept(old: View, new: View) -> Kept:
    """Return how the content of `new` follows from that of `old`; raise `Anew` where it doesn't."""
    wholes, after = _whole(old), _whole(new)[0]
    if set(old.sources) != set(new.sources):
        raise Anew("it reads other tables than before")
    if old.identity != new.identity or old.keyed != new.keyed:
        raise Anew("its rows are told apart by other columns than before")
    why: Anew | None = None
    for before in wholes:
        try:
            return _kept(old, new, before, after)
        except Anew as anew:
            why = why or anew
    assert why is not None
    raise why


def _kept(old: View, new: View, before: Node, after: Node) -> Kept:
    told, sought = _form(before), _form(after)
    columns, terms = _fit(told, sought, old, new)
    held = {_key(x): name for name, x in reversed(told.outputs.items()) if columns_of(x)}
    items = [(name, substitute(sought.outputs[name], columns)) for name in after.names]
    same = {name for name, x in items if name in told.outputs and _key(told.outputs[name]) == _key(x)}
    fetched = _fetched([*(x for _, x in items), *terms], held, told, sought, columns)
    held |= {_key(column(c.name)): c.name for scan, _ in fetched for _, c in scan.mapping}
    found = tuple((name, column(name) if name in same else _expressed(x, held)) for name, x in items)
    over = tuple(_expressed(term, held) for term in terms)
    return Kept(old, found, over, fetched, _words(old, new, over))


def _whole(view: View) -> tuple[Node, ...]:
    """Return the trees of the stored rows: with hidden columns as they are kept, and as the query says it."""
    if view.topk is not None:
        raise Anew("ORDER BY with LIMIT chooses among all rows")
    if view.readings or not view.steady:
        raise Anew("it depends on more than its tables")
    if view.storage is None or view.shown is None:
        raise Anew(f"{view.refusal}")
    return view.storage, view.shown


def _words(old: View, new: View, terms: Sequence[exp.Expr]) -> str:
    """What has changed, for people."""
    added, removed = (len(set(a.columns) - set(b.columns)) for a, b in ((new, old), (old, new)))
    told = [f"{n} column{'s' * (n > 1)} {verb}" for n, verb in ((added, "added"), (removed, "removed")) if n]
    return ", ".join([*told, *(["filter narrowed"] if terms else [])]) or "rewritten"


# -- whether two trees fit ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Form:
    """A relation as projections over filters over the combinations of some leaves' rows."""

    leaves: tuple[Node, ...]
    outputs: dict[str, exp.Expr]
    """Its columns, over those of the leaves."""
    terms: tuple[exp.Expr, ...]


def _form(node: Node) -> _Form:
    if isinstance(node, Project) and node.row_wise and not node.makes_sets:
        below = _form(node.child)
        return replace(below, outputs={name: substitute(x, below.outputs) for name, x in node.items})
    if isinstance(node, Filter) and node.row_wise:
        below = _form(node.child)
        passing = [substitute(t, below.outputs) for t in conjuncts(node.predicate)]
        return replace(below, terms=(*below.terms, *passing))
    if isinstance(node, InnerJoin):
        forms = [_form(relation) for relation in node.relations]
        outputs = {name: x for form in forms for name, x in form.outputs.items()}
        joining = [substitute(t, outputs) for term in node.terms for t in conjuncts(term)]
        leaves = tuple(leaf for form in forms for leaf in form.leaves)
        return _Form(leaves, outputs, (*(t for form in forms for t in form.terms), *joining))
    return _Form((node,), {name: column(name) for name in node.names}, ())


def _fit(old: _Form, new: _Form, was: View, now: View) -> tuple[dict[str, exp.Expr], tuple[exp.Expr, ...]]:
    """Return the new leaves' columns over those of the old leaves, and what the new form filters besides.

    A column that the old leaves don't have keeps its name, after a mark.
    """
    if len(old.leaves) != len(new.leaves):
        raise Anew("it joins other tables than before")
    columns: dict[str, exp.Expr] = {}
    more: list[exp.Expr] = []
    for left, right in zip(old.leaves, new.leaves, strict=True):
        met, terms = _met(left, right, was, now)
        columns |= {name: met.get(name, column(_NEW + name)) for name in right.names}
        more += terms
    terms_now = {_key(t): t for t in (substitute(t, columns) for t in new.terms)}
    terms_then = {_key(t) for t in old.terms}
    if not terms_then <= set(terms_now):
        raise Anew("a filter or a join's condition is another than before, so rows may come in")
    return columns, (*more, *(t for key, t in terms_now.items() if key not in terms_then))


def _met(old: Node, new: Node, was: View, now: View) -> tuple[dict[str, exp.Expr], tuple[exp.Expr, ...]]:
    """Return columns of a new leaf over those of an old one, and what is filtered besides, over the old leaf."""
    if isinstance(old, Scan) and isinstance(new, Scan):
        if old.source.key == new.source.key:
            names = {origin: c.name for origin, c in old.mapping}
            return {c.name: column(names[origin]) for origin, c in new.mapping if origin in names}, ()
    elif isinstance(old, Aggregate) and isinstance(new, Aggregate):
        return _met_groups(old, new, was, now)
    elif isinstance(old, (OuterJoin, SemiJoin)) and type(old) is type(new) and old.kind == new.kind:
        return _met_sides(old, new, was, now)
    elif type(old) is type(new) and old.names == new.names and _same_text(old, new, was, now):
        return {name: column(name) for name in old.names}, ()
    raise Anew("what is below its SELECT list and filters is another than before")


def _same_text(old: Node, new: Node, was: View, now: View) -> bool:
    return was.render(old, Binding()) == now.render(new, Binding())


def _met_groups(
    old: Aggregate, new: Aggregate, was: View, now: View
) -> tuple[dict[str, exp.Expr], tuple[exp.Expr, ...]]:
    below, above = _form(old.child), _form(new.child)
    columns, terms = _fit(below, above, was, now)
    groups = {_key(below.outputs[name]): name for name in old.group}
    found = {name: groups.get(_key(substitute(above.outputs[name], columns))) for name in new.group}
    if None in found.values() or set(found.values()) != set(groups.values()) or not set(old.group) <= {*found.values()}:
        raise Anew("its groups are others than before")
    met: dict[str, exp.Expr] = {name: column(str(held)) for name, held in found.items()}
    if terms and not old.group:
        raise Anew("a filter of the rows that it adds up is another than before")
    # Equal keys that look different (1.0, 1.00) are one group: a function may tell its rows apart, and not the group.
    alike = {name for name in old.group if old.column(name).is_image}
    over = {key: name for key, name in groups.items() if name in alike and columns_of(below.outputs[name])}
    filtered = tuple(_expressed(term, over, "a filter of the rows that it adds up is new") for term in terms)
    values = {_key(substitute(call, below.outputs)): name for name, call in old.aggregates}
    for name, call in new.aggregates:
        held = values.get(_key(substitute(substitute(call, above.outputs), columns)))
        if held is not None:
            met[name] = column(held)
    return met, filtered


def _met_sides(
    old: OuterJoin | SemiJoin, new: OuterJoin | SemiJoin, was: View, now: View
) -> tuple[dict[str, exp.Expr], tuple[exp.Expr, ...]]:
    met: dict[str, exp.Expr] = {}
    filtered: tuple[exp.Expr, ...] = ()
    told: dict[str, exp.Expr] = {}
    sought: dict[str, exp.Expr] = {}
    for side, left, right in (("left", old.left, new.left), ("right", old.right, new.right)):
        below, above = _form(left), _form(right)
        columns, terms = _fit(below, above, was, now)
        held = {_key(x): name for name, x in reversed(below.outputs.items()) if columns_of(x)}
        if terms and (old.kind == "FULL" or side == "right"):
            raise Anew("a filter below an outer join or in a subquery is new")
        filtered += tuple(_expressed(term, held) for term in terms)
        # A value that is computed below the join may be NULL above it, so it is the same value or none.
        for name, x in above.outputs.items():
            mapped = substitute(x, columns)
            sought[name] = mapped
            if _key(mapped) in held:
                met[name] = column(held[_key(mapped)])
        told |= below.outputs
    # A semi-join has the columns of its left side alone.
    met = {name: x for name, x in met.items() if name in new.names}
    conditions = [
        {_key(substitute(term, outputs)) for term in conjuncts(node.condition)}
        for node, outputs in ((old, told), (new, sought))
    ]
    if conditions[0] != conditions[1]:
        raise Anew("a join's or a subquery's condition is another than before")
    return met, filtered


# -- columns that aren't stored --------------------------------------------------------------------------


def _fetched(
    wanted: Iterable[exp.Expr], held: Mapping[str, str], old: _Form, new: _Form, columns: Mapping[str, exp.Expr]
) -> tuple[tuple[Scan, exp.Expr], ...]:
    """Return the tables from which the missing columns are fetched, each by a key whose values are stored."""
    missing = {name for x in wanted for name in _missing(x, held)}
    # A column that the old query read, and did not keep, is missing under the old leaf's name.
    names = {x.name if is_row_column(x) else "": name for name, x in columns.items()}
    sought: dict[int, tuple[Node, Scan, dict[str, str]]] = {}
    for name in sorted(missing):
        own = names.get(name, "")
        leaf = next((node for node in new.leaves if own in node.names), None)
        origin = _origin(leaf, own) if leaf is not None else None
        if leaf is None or origin is None:
            raise Anew(_not_stored(name))
        scan, origin_column = origin
        sought.setdefault(id(scan), (leaf, scan, {}))[2][name] = origin_column
    return tuple(
        _by_key(number, leaf, scan, asked, held, old, columns)
        for number, (leaf, scan, asked) in enumerate(sought.values(), 1)
    )


def _by_key(
    number: int,
    leaf: Node,
    scan: Scan,
    asked: Mapping[str, str],
    held: Mapping[str, str],
    old: _Form,
    columns: Mapping[str, exp.Expr],
) -> tuple[Scan, exp.Expr]:
    source = scan.source
    types = {c.name: c for c in source.columns}
    mapping = [(origin, Column(name, types[origin].type)) for name, origin in asked.items()]
    terms: list[exp.Expr] = []
    for key in source.primary_key:
        own = [columns[name] for name in leaf.names if _origin(leaf, name) == (scan, key)]
        if isinstance(leaf, Scan):
            # What the new query equates besides need not hold in a stored row.
            own += [column(name) for x in own if is_row_column(x) for name in _equals(x.name, old.terms)]
        stored = next((held[_key(x)] for x in own if _key(x) in held), None)
        if stored is None:
            raise Anew(_not_stored(next(iter(asked))))
        name = f"{_NEW}key_{number}_{key}"
        mapping.append((key, Column(name, types[key].type)))
        terms.append(exp.EQ(this=column(name), expression=column(stored)))
    if not terms:
        raise Anew(_not_stored(next(iter(asked))))
    return Scan(source, tuple(mapping)), conjunction(terms)


def _equals(name: str, terms: Iterable[exp.Expr]) -> Iterator[str]:
    """Yield the columns that equal a column in every row that passes."""
    for term in terms:
        sides = [plain_column(side) for side in equality(term) or ()]
        if name in sides:
            yield from (side for side in sides if side is not None and side != name)


def _origin(node: Node, name: str) -> tuple[Scan, str] | None:
    """Return the scan and the column of its table from which a column comes unchanged."""
    if isinstance(node, Scan):
        return next(((node, origin) for origin, c in node.mapping if c.name == name), None)
    if isinstance(node, Project):
        below = plain_column(dict(node.items)[name])
        return _origin(node.child, below) if below is not None else None
    if isinstance(node, (Filter, InnerJoin, OuterJoin, SemiJoin)):
        return next((_origin(child, name) for child in node.inputs if name in child.names), None)
    return None


def _not_stored(name: str) -> str:
    return f"{name.removeprefix(_NEW)} is not stored, and neither is a key to find it by"


# -- expressions -------------------------------------------------------------------------------------------


def _key(expression: exp.Expr) -> str:
    return render(unparen(expression))


def _expressed(expression: exp.Expr, held: Mapping[str, str], why: str | None = None) -> exp.Expr:
    """Return an expression over the columns in `held`, by the texts of what they hold."""
    missing: list[str] = []
    found = _over(expression, held, missing)
    if missing:
        raise Anew(why or _not_stored(missing[0]))
    return found


def _missing(expression: exp.Expr, held: Mapping[str, str]) -> list[str]:
    missing: list[str] = []
    _over(expression, held, missing)
    return missing


def _over(expression: exp.Expr, held: Mapping[str, str], missing: list[str]) -> exp.Expr:
    whole = held.get(_key(expression))
    if whole is not None:
        return column(whole)

    def change(node: exp.Expr) -> exp.Expr | None:
        # A collation that stands in an expression is stronger than a stored column's.
        if not is_row_column(node) and (not columns_of(node) or node.find(exp.Collate)):
            return None
        name = held.get(_key(node))
        if name is not None:
            return column(name)
        if is_row_column(node):
            missing.append(node.name)
        return None

    return rewrite(expression, change)


def _case(condition: exp.Expr, value: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())], default=otherwise)
