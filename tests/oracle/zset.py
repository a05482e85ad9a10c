"""The algebra, executable: relations as rows → weights, in nothing but Python.

A state has weights ≥ 1, a delta has any sign. Each operator stands twice: what it is of a state, and the rule by which
its change follows from the new states and the changes of its inputs (`old` is new − delta, never given). `test_zset`
holds the rules against the definitions, and the SQL that the engine emits against both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

Row = tuple[Hashable, ...]
ZSet = dict[Row, int]
Key = Callable[[Row], Row]
Match = Callable[[Row, Row], bool]


def bag(rows: Iterable[Row]) -> ZSet:
    return total({row: 1} for row in [*rows])


def total(parts: Iterable[ZSet]) -> ZSet:
    """The sum, consolidated: rows that weigh nothing are not there."""
    found: ZSet = {}
    for part in parts:
        for row, weight in part.items():
            found[row] = found.get(row, 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def negated(z: ZSet) -> ZSet:
    return {row: -weight for row, weight in z.items()}


def minus(a: ZSet, b: ZSet) -> ZSet:
    return total((a, negated(b)))


def restricted(z: ZSet, key: Key, keys: set[Row]) -> ZSet:
    return {row: weight for row, weight in z.items() if key(row) in keys}


def rows_of(z: ZSet) -> list[Row]:
    """Each row of a state as often as it is there, in one order."""
    return sorted((row for row, weight in z.items() for _ in range(weight)), key=repr)


# -- what the operators are ---------------------------------------------------------------------------------------


def project(z: ZSet, of: Key) -> ZSet:
    return total({of(row): weight} for row, weight in z.items())


def filtered(z: ZSet, holds: Callable[[Row], bool]) -> ZSet:
    return {row: weight for row, weight in z.items() if holds(row)}


def join(left: ZSet, right: ZSet, matches: Match) -> ZSet:
    return total({a + b: m * n} for a, m in left.items() for b, n in right.items() if matches(a, b))


def left_join(left: ZSet, right: ZSet, matches: Match, width: int) -> ZSet:
    lonely = filtered(left, lambda a: not any(matches(a, b) for b in right))
    return total((join(left, right, matches), project(lonely, lambda a: a + (None,) * width)))


def full_join(left: ZSet, right: ZSet, matches: Match, widths: tuple[int, int]) -> ZSet:
    lonely = filtered(right, lambda b: not any(matches(a, b) for a in left))
    return total((left_join(left, right, matches, widths[1]), project(lonely, lambda b: (None,) * widths[0] + b)))


def semi_join(left: ZSet, right: ZSet, matches: Match) -> ZSet:
    return filtered(left, lambda a: any(matches(a, b) for b in right))


def anti_join(left: ZSet, right: ZSet, matches: Match) -> ZSet:
    return filtered(left, lambda a: not any(matches(a, b) for b in right))


def distinct(z: ZSet) -> ZSet:
    return dict.fromkeys(z, 1)


def intersect_all(a: ZSet, b: ZSet) -> ZSet:
    return {row: min(weight, b[row]) for row, weight in a.items() if row in b}


def except_all(a: ZSet, b: ZSet) -> ZSet:
    return {row: weight - b.get(row, 0) for row, weight in a.items() if weight > b.get(row, 0)}


def grouped(z: ZSet, key: Key, of: Callable[[list[Row]], Row]) -> ZSet:
    """GROUP BY key, with the aggregates `of` each group's rows."""
    return bag(k + of(rows_of(restricted(z, key, {k}))) for k in {key(row) for row in z})


def windowed(z: ZSet, key: Key, of: Callable[[list[Row]], list[Row]]) -> ZSet:
    """PARTITION BY key; `of` gives a partition's rows anew."""
    return bag(row for k in {key(row) for row in z} for row in of(rows_of(restricted(z, key, {k}))))


# -- how they change ----------------------------------------------------------------------------------------------


def linear(operator: Callable[[ZSet], ZSet], change: ZSet) -> ZSet:
    """Δf(R) = f(ΔR): projections and filters."""
    return operator(change)


def join_change(left: ZSet, right: ZSet, d_left: ZSet, d_right: ZSet, matches: Match) -> ZSet:
    """ΔL⋈R¹ + L¹⋈ΔR − ΔL⋈ΔR."""
    parts = (join(d_left, right, matches), join(left, d_right, matches), negated(join(d_left, d_right, matches)))
    return total(parts)


def touched_change(operator: Callable[[ZSet], ZSet], new: ZSet, change: ZSet, key: Key) -> ZSet:
    """f(R¹⋉K) − f(R⁰⋉K), K = keys(ΔR): groups, partitions, distinct rows."""
    keys = {key(row) for row in change}
    return minus(operator(restricted(new, key, keys)), operator(restricted(minus(new, change), key, keys)))


def both_touched_change(
    operator: Callable[[ZSet, ZSet], ZSet], new: tuple[ZSet, ZSet], change: tuple[ZSet, ZSet], key: tuple[Key, Key]
) -> ZSet:
    """f(L¹⋉K, R¹⋉K) − f(L⁰⋉K, R⁰⋉K), K = keys(ΔL) ∪ keys(ΔR): outer, semi and anti joins, set operations."""
    keys = {k(row) for k, z in zip(key, change, strict=True) for row in z}
    now = [restricted(z, k, keys) for z, k in zip(new, key, strict=True)]
    then = [restricted(minus(z, d), k, keys) for z, d, k in zip(new, change, key, strict=True)]
    return minus(operator(now[0], now[1]), operator(then[0], then[1]))
