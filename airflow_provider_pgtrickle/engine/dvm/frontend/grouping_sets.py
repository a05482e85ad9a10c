"""GROUPING SETS, CUBE and ROLLUP become a list of groupings; a block groups its rows by each of them in turn."""

from __future__ import annotations

from itertools import product

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import unparen
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused

MAX_SETS = 64
Grouping = tuple[exp.Expr, ...]


def sets_of(group: exp.Group | None) -> list[Grouping]:
    """Return every grouping that a GROUP BY asks for; a plain GROUP BY asks for one.

    GROUP BY a, ROLLUP (b, c)    →  (a, b, c), (a, b), (a)
    """
    sets: list[Grouping] = []
    for combination in product(*(_sets_of(p) for p in _parts(group))):
        sets.append(tuple(e for part in combination for e in part))
        if len(sets) > MAX_SETS:
            raise _too_many(f"over {MAX_SETS} sets")
    if group is not None and group.args.get("all") is False:  # GROUP BY DISTINCT
        sets = list({frozenset(s): s for s in sets}.values())
    return sets


def has_sets(group: exp.Group | None) -> bool:
    """Whether a GROUP BY may ask for several groupings."""
    return any(isinstance(p, (exp.GroupingSets, exp.Cube, exp.Rollup)) for p in _parts(group))


def _parts(group: exp.Group | None) -> list[exp.Expr]:
    if group is None:
        return []
    parts = list(group.expressions)
    for clause in ("grouping_sets", "cube", "rollup"):
        parts.extend(p for p in group.args.get(clause) or [] if isinstance(p, exp.Expr))
    return parts


def _sets_of(part: exp.Expr) -> list[Grouping]:
    if isinstance(part, exp.Rollup):
        members = [_members(e) for e in part.expressions]
        return [tuple(e for m in members[:n] for e in m) for n in range(len(members), -1, -1)]
    if isinstance(part, exp.Cube):
        members = [_members(e) for e in part.expressions]
        if len(members) > 6:
            raise _too_many(f"CUBE of {len(members)}")
        chosen = product(*(((True, m), (False, m)) for m in members))
        return [tuple(e for taken, m in c if taken for e in m) for c in chosen]
    if isinstance(part, exp.GroupingSets):
        return [s for e in part.expressions for s in _sets_of(e)]
    return [_members(part)]


def _members(expression: exp.Expr) -> Grouping:
    bare = unparen(expression)
    return tuple(bare.expressions) if isinstance(bare, exp.Tuple) else (bare,)


def _too_many(what: str) -> Refused:
    return Refused(Reason.TOO_MANY_GROUPINGS, what, "Name the GROUPING SETS you need.")
