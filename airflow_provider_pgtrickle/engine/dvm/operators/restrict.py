"""R ⋉ K: the rows of R whose key columns occur in K.

An `exact` restriction keeps no other row (NULL matches NULL if the keys say so). One that isn't exact is
a hint at a leaf to read less, written so that PostgreSQL can look up the values of K in an index of R.

Where keys have places, a hint reads from the first place of all: PostgreSQL then looks up one range for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product

from airflow_provider_pgtrickle.engine.dvm.node import Column, Condition, Differ, Key, Keys, Node, Onward
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Pairs


@dataclass(frozen=True, eq=False)
class Restrict(Node):
    """A relation semi-joined with a key set."""

    child: Node
    keys: Keys
    exact: bool = True
    is_stored: bool = False
    """The child are the stream table's own rows, which may be partitioned."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child, self.keys.relation)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        child, relation = inputs
        return replace(self, child=child, keys=replace(self.keys, relation=relation))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def weighted(self) -> bool:
        return self.child.weighted

    @property
    def heavy(self) -> bool:
        return self.child.heavy

    def old(self, d: Differ) -> Node:
        return replace(self, child=d.old(self.child))

    def restrict(self, keys: Keys) -> Node:
        return replace(self, child=self.child.restrict(keys))

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        key = dict(self.keys.pairs).get(name) if self.exact else None
        return self.child.whence(name) or (self.keys.relation.whence(key) if key is not None else frozenset())

    def label(self) -> str:
        pairs = [f"{t} ∈ {k}" for t, k in self.keys.pairs]
        onward = self.keys.onward
        if onward is not None:
            pairs.append(f"{onward.target} from {onward.key}")
        return f"Restrict [{', '.join(pairs)}]{'' if self.exact else ' (hint)'}"

    def _is_safe(self, target: str, key: str) -> bool:
        """Whether plain equality finds every match of this pair."""
        return (
            not self.keys.null_matches or self.child.column(target).not_null or self.keys.relation.column(key).not_null
        )

    def _is_done_below(self) -> bool:
        """Whether the hint at the leaf is exact enough already: it keeps no other row."""
        below = self.child
        if not isinstance(below, Restrict) or below.exact or below.keys.relation is not self.keys.relation:
            return False
        if below.keys.pairs != self.keys.pairs or below.keys.null_matches != self.keys.null_matches:
            return False
        return len(below.keys.pairs) == 1 or all(below._is_safe(*p) for p in below.keys.pairs)

    def select(self, e: Emitter) -> str:
        own = e.semi_join(self.child, self.keys.relation, self.keys.pairs, self.keys.null_matches)
        if own is not None:
            return own
        if self.exact and self._is_done_below():
            return e.body(self.child)
        if self.exact and len(self.keys.pairs) > 1 and not all(self._is_safe(*p) for p in self.keys.pairs):
            return e.record_semi_join(self.child, self.keys.relation, self.keys.pairs)
        conditions = self._conditions(e)
        if not self.exact and (better := self.child.select_where(e, conditions)) is not None:
            return better
        source, alias = e.from_item(self.child)
        body = f"SELECT {e.columns(self.child, alias)} FROM {source} WHERE "
        terms = [c(lambda name: f"{alias}.{e.name(name)}") for c in conditions]
        if self.exact and len(terms) > 1:
            return body + " OR ".join(f"({term})" for term in terms)
        return " UNION ALL ".join(body + term for term in terms)

    def _conditions(self, e: Emitter) -> list[Condition]:
        """Conditions of which a row has to meet one; they exclude each other."""
        relation = self.keys.relation
        if self.keys.onward is not None:
            return list(self._onward(e, self.keys.onward))
        safe = [p for p in self.keys.pairs if self._is_safe(*p)]
        unsafe = [p for p in self.keys.pairs if not self._is_safe(*p)]
        if safe:
            return [lambda of: _is_in(e, of, relation, safe) + self._cut(e, of, safe) + self._least(e, of, safe)]
        target, key = unsafe[0]
        return [
            lambda of: (
                _is_in(e, of, relation, unsafe[:1]) + self._cut(e, of, unsafe[:1]) + self._least(e, of, unsafe[:1])
            ),
            lambda of: f"{of(target)} IS NOT DISTINCT FROM NULL AND {_holds_null(e, relation, [key])}",
        ]

    def _onward(self, e: Emitter, onward: Onward) -> Iterator[Condition]:
        """The same for rows from the first place of all on, wherever the order has its NULLs."""
        relation, own = self.keys.relation, [(onward.target, onward.key)]

        def behind(of: Callable[[str], str]) -> str:
            source, alias = e.from_item(relation)
            compared, first = ("<=", "max") if onward.descending else (">=", "min")
            place = f"{of(onward.target)} {compared} (SELECT {first}({alias}.{e.name(onward.key)}) FROM {source})"
            return place + self._least(e, of, own, most=onward.descending)

        def beside(of: Callable[[str], str]) -> str:
            if onward.nulls_first:
                return f"({behind(of)}) IS NOT TRUE AND {_holds_null(e, relation, [onward.key])}"
            return f"{of(onward.target)} IS NOT DISTINCT FROM NULL"

        places = [behind] if self.child.column(onward.target).not_null else [behind, beside]
        unsafe = [p for p in self.keys.pairs if not self._is_safe(*p)]
        for nulls, place in product(of_nulls(unsafe), places):
            yield partial(self._found, e, nulls, place)

    def _found(self, e: Emitter, nulls: Pairs, place: Condition, of: Callable[[str], str]) -> str:
        """SQL of the rows of a place with these columns NULL and the others not."""
        pairs = [p for p in self.keys.pairs if p not in nulls]
        terms = [f"{of(target)} IS NOT DISTINCT FROM NULL" for target, _ in nulls]
        gone = [key for _, key in nulls]
        if pairs:
            found = _is_in(e, of, self.keys.relation, pairs, gone)
            terms.append(found + self._cut(e, of, pairs) + self._least(e, of, pairs))
        elif nulls:
            terms.append(_holds_null(e, self.keys.relation, gone))
        return " AND ".join([*terms, place(of)])

    def _cut(self, e: Emitter, of: Callable[[str], str], pairs: list[tuple[str, str]]) -> str:
        """SQL of the range of the keys, by which PostgreSQL leaves partitions out whatever its join is."""
        key = dict(pairs).get(e.cut_by() or "") if self.is_stored else None
        if key is None:
            return ""
        source, alias = e.from_item(self.keys.relation)
        least, most = (f"(SELECT {call}({alias}.{e.name(key)}) FROM {source})" for call in ("min", "max"))
        held = of(e.cut_by() or "")
        return f" AND {held} >= {least} AND {held} <= {most}"

    def _least(self, e: Emitter, of: Callable[[str], str], pairs: list[tuple[str, str]], *, most: bool = False) -> str:
        """SQL of the least value, or the greatest, that the keys can have, where it is known: PostgreSQL finds none
        through an IN."""
        if not e.knows_least:
            return ""
        whence, column = self.keys.relation.whence, self.child.column
        bounds = [(target, e.least(whence(key), column(target).type, most=most)) for target, key in pairs]
        compared = "<=" if most else ">="
        return "".join(f" AND {of(target)} {compared} {bound}" for target, bound in bounds if bound is not None)


def of_nulls(pairs: Sequence[tuple[str, str]]) -> list[Pairs]:
    """Every choice of pairs whose columns are NULL: for each, other rows are found, and by other conditions."""
    return [chosen for size in range(len(pairs) + 1) for chosen in combinations(pairs, size)]


def _is_in(
    e: Emitter, of: Callable[[str], str], relation: Node, pairs: Sequence[tuple[str, str]], nulls: Sequence[str] = ()
) -> str:
    source, key = e.from_item(relation)
    left = ", ".join(of(t) for t, _ in pairs)
    right = ", ".join(f"{key}.{e.name(k)}" for _, k in pairs)
    where = _where_null(e, key, nulls) if nulls else ""
    return f"({left}) IN (SELECT {right} FROM {source}{where})"


def _holds_null(e: Emitter, relation: Node, columns: Sequence[str]) -> str:
    source, key = e.from_item(relation)
    return f"EXISTS (SELECT 1 FROM {source}{_where_null(e, key, columns)})"


def _where_null(e: Emitter, alias: str, columns: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(f"{alias}.{e.name(name)} IS NOT DISTINCT FROM NULL" for name in columns)
