"""An explanation tells a person what will be done with a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot.errors import SqlglotError

from airflow_provider_pgtrickle.engine.dvm.dialect import CANONICAL
from airflow_provider_pgtrickle.engine.dvm.expressions import ROW
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import DeltaScan, Scan
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored

#: What each sink does, in a word for whoever doesn't know the algebra.
_KEPT = {
    "difference": "the change of the query is the change of the table",
    "merge by adding": "changes are added to the stored sums and counts",
    "carry forward": "the rows behind the first changed one of a partition are computed anew, on from the row before",
    "replace by key": "the groups that a change touches are computed anew",
    "recompute": "the query is computed anew, and only the difference is written",
    "delete and rederive": "what a change may have derived is deleted and derived anew",
    "keep frozen rows": "rows that are frozen stay as they are stored, all others follow the table",
    "full": "the query is computed anew at each refresh, and only the difference is written",
}


@dataclass(frozen=True)
class WriterCost:
    """What a writer of one source pays for an IMMEDIATE table."""

    source: str
    estimated: float
    """The planner's cost of the statement that a small change runs."""
    samples: int
    rows: float
    mean_ms: float
    most_ms: float

    def __str__(self) -> str:
        text = f"{self.source}: estimated cost {self.estimated:,.0f}"
        if not self.samples:
            return f"{text}, not timed yet"
        return (
            f"{text}; {self.samples:,} statements timed, of {self.rows:,.1f} rows on average:"
            f" {self.mean_ms:.2f} ms, at most {self.most_ms:.2f}"
        )


@dataclass(frozen=True)
class Explanation:
    differentiable: bool
    reason: str | None
    """The reason why the query isn't differentiable, in words, with the remedy."""
    operator_tree: str
    sink: str
    because: str | None
    """The reason why no sink that does less work takes the query; None where there is none to tell."""
    identity: tuple[str, ...]
    keyed: bool
    hidden: tuple[str, ...]
    full_sql: str
    delta_sql: str | None
    missing_indexes: tuple[str, ...]
    """CREATE INDEX statements that would let the delta look its rows up."""
    leaves: tuple[tuple[str, str], ...]
    """(what is read, PostgreSQL SQL of it) of each leaf of the delta if every source has changed."""
    clock: tuple[str, ...] = ()
    """What is compared with the clock, and how the rows are found for which a comparison changes."""
    approximate: tuple[str, ...] = ()
    """The columns that are kept as approximate sums of floats, because their author asked for it."""
    ways: tuple[str, ...] = ()
    """The ways to refresh it, with what each was predicted to take, and took."""
    parts: tuple[tuple[str, str, Explanation], ...] = ()
    """(name, query, its own explanation) of each part: an inner aggregate that is kept in a hidden stream table."""
    writers: tuple[WriterCost, ...] = ()
    """What writers pay, if the table is IMMEDIATE."""
    timezone: str | None = None
    """The zone by which it casts times and reads the clock; None: UTC."""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What a person asks first, in words: whether differences keep it, how, and what a refresh reads."""
        identity = ", ".join(self.identity) or "the one row"
        told = [("differentiable", "yes" if self.differentiable else "no")]
        if self.reason:
            told.append(("why not", self.reason))
        told.append(("kept by", f"{self.sink}: {_KEPT.get(self.sink, self.sink)}"))
        if self.because:
            told.append(("not cheaper", self.because))
        if self.timezone:
            told.append(("times", f"by {self.timezone}"))
        if self.approximate:
            told.append(("approximate", f"{', '.join(self.approximate)}, by PostgreSQL's rounding and no more"))
        told.append(("rows told by", identity if self.keyed else f"{identity} (all columns: no key is known)"))
        if self.parts:
            told.append(("parts", ", ".join(name for name, *_ in self.parts)))
        if changes := sorted({label.removeprefix("Δ") for label, _ in self.leaves if label.startswith("Δ")}):
            told.append(("a refresh reads", f"the changes of {', '.join(changes)}, and the rows that these touch"))
        return told

    @property
    def short(self) -> str:
        """The facts as a list, and the indexes that are missing."""
        return self.laid_out(self.facts)

    def laid_out(self, facts: list[tuple[str, str]]) -> str:
        """These facts below each other, and the indexes that are missing."""
        width = max(len(name) for name, _ in facts) + 2
        lines = [f"{f'{name}:':{width}}{told}" for name, told in facts]
        if self.missing_indexes:
            lines += ["", "indexes that would help:", *(f"  {statement};" for statement in self.missing_indexes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        identity = ", ".join(self.identity) or "the one row"
        lines = [f"differentiable: {'yes' if self.differentiable else 'no'}"]
        if self.reason:
            lines.append(f"why: {self.reason}")
        lines += [
            f"sink: {self.sink}{f' (because {self.because})' if self.because else ''}",
            f"identity: {identity}{'' if self.keyed else ' (a bag: rows are matched on all columns)'}",
        ]
        if self.timezone:
            lines.append(f"times: by {self.timezone}")
        if self.approximate:
            lines.append(f"approximate: {', '.join(self.approximate)}")
        if self.hidden:
            lines.append(f"hidden columns: {', '.join(self.hidden)}")
        if self.clock:
            lines += ["", "compared with the clock:", *self.clock]
        if self.missing_indexes:
            lines += ["", "indexes that would help:", *(f"{statement};" for statement in self.missing_indexes)]
        if self.ways:
            lines += ["", "ways:", *self.ways]
        if self.writers:
            lines += ["", "what a statement on a source runs for it:", *map(str, self.writers)]
        lines += ["", "operator tree:", self.operator_tree]
        for what, text in self.leaves:
            lines += ["", f"leaf {what}:", readable(text)]
        if self.delta_sql is not None:
            lines += ["", "delta:", readable(self.delta_sql)]
        for name, query, explanation in self.parts:
            lines += ["", f"kept by itself as {name}:", readable(query), "", *indented(str(explanation))]
        return "\n".join(lines)


def looked_up(plan: Node) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the sources that are read by keys, each with the columns that these keys match."""
    for source, columns, place in _searched(plan):
        if place is None:
            yield source, columns


def ranges(plan: Node) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the sources that are read by keys from a place on: the columns that these match, and the place's."""
    for source, columns, place in _searched(plan):
        if place is not None:
            yield source, columns, place


def _searched(plan: Node) -> Iterator[tuple[str, tuple[str, ...], str | None]]:
    for node in leaves(plan):
        if isinstance(node, Restrict) and isinstance(node.child, Scan):
            origin = {column.name: name for name, column in node.child.mapping}
            keys = node.keys
            place = origin[keys.onward.target] if keys.onward is not None else None
            yield node.child.source.table, tuple(origin[target] for target, _ in keys.pairs), place


def indented(text: str) -> Iterator[str]:
    """Return the text's lines, indented by two spaces."""
    return (f"  {line}".rstrip() for line in text.splitlines())


#: Longer texts are not laid out, because that takes seconds and nobody reads them.
_LONGEST_LAID_OUT = 50_000


def readable(text: str) -> str:
    """Return SQL laid out for the eye, or unchanged where that can't be done."""
    if len(text) > _LONGEST_LAID_OUT:
        return text
    try:
        return sqlglot.transpile(text, read=CANONICAL, write=CANONICAL, pretty=True, normalize_functions=False)[0]
    except (SqlglotError, RecursionError):
        return text


def written(root: Node) -> str:
    """Return a tree with one line for each operator."""
    lines: list[str] = []
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        lines.append("  " * depth + node.label().replace(f'"{ROW}".', ""))
        stack.extend((child, depth + 1) for child in reversed(node.inputs))
    return "\n".join(lines)


def leaves(plan: Node) -> Iterator[Node]:
    """Yield each relation that a delta's plan reads at its bottom once, with the keys that restrict it."""
    seen: set[object] = set()
    stack: list[Node] = [plan]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        restricted = isinstance(node, Restrict) and isinstance(node.child, (Scan, Stored))
        if restricted or isinstance(node, (Scan, DeltaScan, Stored)):
            yield node
            if restricted:
                seen.add(id(node.inputs[0]))
        stack.extend(reversed(node.inputs))
