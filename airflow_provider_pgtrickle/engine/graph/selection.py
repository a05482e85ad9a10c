"""Which tables of a graph are meant: `totals`, `+totals`, `totals+`, `2+totals+1`, `tag:sales`, as dbt writes it.

Terms are joined by white space (any of them) or by commas (all of them). `+` before a name takes what feeds the table,
`+` after it what it feeds, a number how many steps far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph.dag import Graph

_TERM = re.compile(r"^(?P<above>(?P<up>\d*)\+)?(?P<what>[^+]+)(?P<below>\+(?P<down>\d*))?$")
_TAG = "tag:"


def select(
    graph: Graph,
    tags: Mapping[str, Iterable[str]],
    terms: str | Iterable[str],
    schema: str = "public",
    *,
    whole: bool = True,
) -> frozenset[str]:
    """The names of the tables that any of the terms means.

    A term that means none is a `UsageError`, unless the graph isn't the `whole` of what may be meant.
    """
    words = terms.split() if isinstance(terms, str) else [word for term in terms for word in term.split()]
    found: frozenset[str] = frozenset()
    for word in words:
        found |= frozenset.intersection(*(_term(graph, tags, part, schema, whole) for part in word.split(",")))
    return found


def _term(graph: Graph, tags: Mapping[str, Iterable[str]], term: str, schema: str, whole: bool) -> frozenset[str]:
    match = _TERM.match(term)
    if match is None:
        raise UsageError(
            f"{term!r} selects nothing: it can't be read", remedy="Write totals, +totals, totals+ or tag:sales."
        )
    named = _named(graph, tags, match["what"], schema, whole)
    found = set(named)
    if match["above"]:
        found |= _reached(named, graph.parents, match["up"])
    if match["below"]:
        found |= _reached(named, graph.children, match["down"])
    return frozenset(found)


def _named(graph: Graph, tags: Mapping[str, Iterable[str]], what: str, schema: str, whole: bool) -> frozenset[str]:
    if what.startswith(_TAG):
        tag = what.removeprefix(_TAG)
        found = frozenset(name for name in graph.nodes if tag in tags.get(name, ()))
        known = sorted({word for words in tags.values() for word in words})
        if not found and whole:
            raise UsageError(f"No table has the tag {tag!r}", remedy=_remedy(tag, known, "Tags are"))
        return found
    pattern = what if "." in what else f"{schema}.{what}"
    found = frozenset(name for name in graph.nodes if name == pattern or fnmatchcase(name, pattern))
    if not found and whole:
        known = [name.removeprefix(f"{schema}.") for name in graph.order()]
        raise UsageError(f"No table of the graph is called {what!r}", remedy=_remedy(what, known, "There are"))
    return found


def _reached(start: Iterable[str], step: Callable[[str], Iterable[str]], most: str) -> set[str]:
    """Tables that are reached from these by at most so many steps; any number if `most` is empty."""
    reached: set[str] = set()
    border, left = set(start), int(most) if most else -1
    while border and left != 0:
        border = {name for at in border for name in step(at)} - reached
        reached |= border
        left -= 1
    return reached


def _remedy(wrong: str, known: list[str], listing: str) -> str:
    close = get_close_matches(wrong, known, n=1)
    return f"Did you mean {close[0]}?" if close else f"{listing} {', '.join(known[:20]) or 'none'}."
