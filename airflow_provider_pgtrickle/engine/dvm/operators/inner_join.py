"""Δ(L ⋈ R) = ΔL ⋈ R¹ + L¹ ⋈ ΔR − ΔL ⋈ ΔR. The weight of a joined row is the product of its rows' weights.
A join of more than two inputs takes them one after the other, each by this rule.

Only new states are read, so PostgreSQL has their statistics and indexes. The terms of an unchanged
input are dropped before anything is read. Inputs are taken in an order in which each is tied to
those before it. Inputs that the planner can't narrow by itself (groups, windows, …) are restricted
to the join keys that the term's delta reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, columns_of, equality, plain_column, render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Item, Key, Keys, Node, Slicer, computed_over
from airflow_provider_pgtrickle.engine.dvm.operators.keys import expression_keys
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Place, Rows, Weight

# A join of more inputs isn't worth a comparison of the orders from each start.
_MOST_COMPARED = 16


@dataclass(frozen=True, eq=False)
class InnerJoin(Node):
    """The combinations of the inputs' rows for which every term is true."""

    relations: tuple[Node, ...]
    terms: tuple[exp.Expr, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.relations

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, relations=tuple(inputs))

    @property
    def columns(self) -> tuple[Column, ...]:
        proven = {n for t in self.terms for n in map(plain_column, equality(t) or ()) if n}
        every = (c for r in self.relations for c in r.columns)
        return tuple(replace(c, not_null=c.not_null or c.name in proven) for c in every)

    @property
    def unique_keys(self) -> frozenset[Key]:
        """The combinations of the inputs' keys. An input that the others determine contributes no key."""
        if any(not r.unique_keys for r in self.relations) or len(self.relations) > 12:
            return frozenset()
        determined = self._determined()
        result: set[Key] = {frozenset()}
        for index, relation in enumerate(self.relations):
            if index in determined:
                continue
            smallest = sorted(relation.unique_keys, key=lambda k: (len(k), sorted(k)))[:2]
            result = {a | b for a in result for b in smallest}
        return frozenset(result)

    def _determined(self) -> set[int]:
        """The inputs that the kept inputs determine.

        By a key of such an input, at most one of its rows joins each row of the kept inputs.
        """
        kept = set(range(len(self.relations)))
        for index in reversed(range(len(self.relations))):
            others = {n for i in kept - {index} for n in self.relations[i].names}
            bound = {a for a, b in self._equal_columns() if a in self.relations[index].names and b in others}
            if len(kept) > 1 and any(key <= bound for key in self.relations[index].unique_keys):
                kept.discard(index)
        return set(range(len(self.relations))) - kept

    def _equal_columns(self) -> list[tuple[str, str]]:
        pairs = []
        for term in self.terms:
            sides = equality(term)
            if sides:
                a, b = map(plain_column, sides)
                if a and b:
                    pairs += [(a, b), (b, a)]
        return pairs

    def delta(self, d: Differ) -> Node | None:
        order = self._order()
        first = self.relations[order[0]]
        before: list[Node] = [first]
        change = d.delta(first)
        used: list[exp.Expr] = []
        for index in order[1:]:
            relation = self.relations[index]
            names = {n for r in (*before, relation) for n in r.names}
            fresh = [t for t in self.terms if columns_of(t) <= names and t not in used]
            change = self._step(d, before, change, relation, used, fresh)
            before.append(relation)
            used += fresh
        if change is None or order == sorted(order):
            return change
        return Project(change, tuple((n, column(n)) for n in self.names))

    def _step(
        self,
        d: Differ,
        before: list[Node],
        change: Node | None,
        relation: Node,
        used: list[exp.Expr],
        fresh: list[exp.Expr],
    ) -> Node | None:
        """The rule for one more input. `used`: the terms among the inputs before it; `fresh`: its terms with them."""
        own = d.delta(relation)
        every = (*used, *fresh)
        terms: list[Node] = []
        if change is not None:
            pair = InnerJoin((change, relation), tuple(fresh))
            terms.append(replace(pair, relations=pair._narrowed(d, 0)))
        if own is not None:
            whole = InnerJoin((*before, own), every)
            terms.append(replace(whole, relations=whole._narrowed(d, len(before))))
        if change is not None and own is not None:
            terms.append(Weigh(InnerJoin((change, own), tuple(fresh)), -1))
        return UnionAll.of(terms) if terms else None

    def _order(self) -> list[int]:
        """The inputs in the order in which most of them are looked up by a key, so that a change meets few rows.

        If keys make no difference, the order begins with the input that has most ties, and each next input is tied to
        those before it.
        """
        owner = {n: i for i, r in enumerate(self.relations) for n in r.names}
        ties: dict[int, set[int]] = {i: set() for i in range(len(self.relations))}
        for term in self.terms:
            owners = {owner[c] for c in columns_of(term)}
            for i in owners:
                ties[i] |= owners - {i}
        bound: dict[int, list[tuple[str, int]]] = {i: [] for i in ties}
        for a, b in self._equal_columns():
            bound[owner[a]].append((a, owner[b]))
        starts = sorted(ties, key=lambda i: (-len(ties[i]), i))
        walks = [self._walk(i, ties, bound) for i in starts[: 1 if len(ties) > _MOST_COMPARED else None]]
        return max(walks, key=lambda walk: walk[0])[1]

    def _walk(
        self, start: int, ties: dict[int, set[int]], bound: dict[int, list[tuple[str, int]]]
    ) -> tuple[int, list[int]]:
        """An order that begins with `start`, after the number of inputs that it looks up by a key."""
        order, lookups = [start], 0
        while len(order) < len(ties):
            reached = set(order)
            left = [i for i in ties if i not in reached]
            tied = [i for i in left if ties[i] & reached]
            sure = [
                i
                for i in tied
                if any(key <= {a for a, other in bound[i] if other in reached} for key in self.relations[i].unique_keys)
            ]
            order.append((sure or tied or left)[0])
            lookups += bool(sure)
        return lookups, order

    def _narrowed(self, d: Differ, start: int) -> tuple[Node, ...]:
        """The inputs, restricted where that pays to the keys that are reached from input `start`."""
        relations = self.relations
        if not d.narrow_all and not any(r.heavy for i, r in enumerate(relations) if i != start):
            return relations
        owner = {n: i for i, r in enumerate(relations) for n in r.names}
        reached = [start]
        result = list(relations)
        while len(reached) < len(relations):
            links = self._links(owner, set(reached))
            if not links:
                break
            target = next(iter(links))
            if d.narrow_all or relations[target].heavy:
                prefix = self._prefix(result, reached)
                keys = expression_keys(prefix, links[target])
                if keys is not None:
                    result[target] = relations[target].restrict(keys)
            reached.append(target)
        return tuple(result)

    def _links(self, owner: dict[str, int], reached: set[int]) -> dict[int, list[tuple[str, exp.Expr]]]:
        """For each input that is tied to the reached ones: its columns, and the expressions that they must equal."""
        links: dict[int, list[tuple[str, exp.Expr]]] = {}
        for term in self.terms:
            for near, far in _both_ways(equality(term)):
                name = plain_column(far)
                if name is None or owner[name] in reached:
                    continue
                origins = {owner[c] for c in columns_of(near)}
                if origins and origins <= reached:
                    links.setdefault(owner[name], []).append((name, near))
        return links

    def _prefix(self, relations: Sequence[Node], reached: list[int]) -> Node:
        if len(reached) == 1:
            return relations[reached[0]]
        names = {n for i in reached for n in relations[i].names}
        terms = tuple(t for t in self.terms if columns_of(t) <= names)
        return InnerJoin(tuple(relations[i] for i in reached), terms)

    def sliced(self, s: Slicer) -> Node | None:
        """One of its weighted inputs is cut, and the others are whole: it is linear in each, and in no two together."""
        cut = next((i for i, relation in enumerate(self.relations) if relation.weighted), None)
        if cut is None:
            return super().sliced(s)
        part = s.slice(self.relations[cut])
        if part is None:
            return None
        return replace(self, relations=(*self.relations[:cut], part, *self.relations[cut + 1 :]))

    def restrict(self, keys: Keys) -> Node:
        targets = {t: t for t, _ in keys.pairs}
        if keys.onward is not None:
            targets[keys.onward.target] = keys.onward.target
        equal = {**targets}
        for a, b in self._equal_columns():
            if a in targets:
                equal[b] = a
        result = []
        for relation in self.relations:
            mapping = {t: n for n, t in equal.items() if n in relation.names}
            mapped = keys.mapped(mapping)
            result.append(relation.restrict(mapped) if mapped else relation)
        return replace(self, relations=tuple(result))

    def rows(self, e: Emitter) -> Rows:
        items = [e.item(r) for r in self.relations]
        places = {name: place for i in items for name, place in i.places.items()}
        weights = [i.weight for i in items if i.weight is not None]
        weight = reduce(Weight.times, weights) if weights else None
        source = " CROSS JOIN ".join(i.source for i in items)
        terms = [f"({e.expression(t, places)})" for t in self.terms]
        return Rows(source, places, weight, (*terms, *self._bounds(e, places)), is_join=True)

    def _bounds(self, e: Emitter, places: Mapping[str, Place]) -> list[str]:
        """Ranges of columns that equal one of a change, as far as they are known: PostgreSQL infers none from `=`."""
        if not e.knows_least:
            return []
        found = []
        for name in dict.fromkeys(name for pair in self._equal_columns() for name in pair):
            if not self._own_whence(name) and (least := e.least(self.whence(name), self.column(name).type)) is not None:
                alias, held = places[name]
                found.append(f"{alias}.{e.name(held)} >= {least}")
        return found

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        pairs, equal, found = self._equal_columns(), [name], self._own_whence(name)
        for reached in equal:
            if found:
                break
            equal += (b for a, b in pairs if a == reached and b not in equal)
            found = self._own_whence(reached)
        return found

    def _own_whence(self, name: str) -> frozenset[tuple[str, str]]:
        (relation,) = (r for r in self.relations if name in r.names)
        return relation.whence(name)

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return set().union(*map(columns_of, self.terms))

    def unsettled(self) -> None:
        return None

    def steps_from(self, child: Node) -> bool:
        return True

    @property
    def joined_on(self) -> Sequence[exp.Expr]:
        return self.terms

    def computing(self, item: Item) -> Node | None:
        used = columns_of(item[1])
        for index, relation in enumerate(self.relations):
            if used <= set(relation.names):
                fresh = relation.computing(item) or Project(relation, computed_over(relation, item))
                return replace(self, relations=(*self.relations[:index], fresh, *self.relations[index + 1 :]))
        return None

    def label(self) -> str:
        terms = " AND ".join(render(t) for t in self.terms)
        return f"InnerJoin on {terms}" if terms else "CrossJoin"


def _both_ways(
    sides: tuple[exp.Expr, exp.Expr] | None,
) -> list[tuple[exp.Expr, exp.Expr]]:
    return [sides, (sides[1], sides[0])] if sides else []
