"""A plan in the letters of its docstrings, so that a test reads as the rule: `(Δa ⋈ b) + (a ⋈ Δb) − (Δa ⋈ Δb)`.

    Δa, a, a⁰      a table's change, its rows now, its rows before the change
    stored         the stream table's own rows
    γ δ π σ ω λ    aggregate, DISTINCT, project, filter, window, lateral; γ⁰: with its subqueries as they were
    τ, moved       comparisons with the clock, and the rows for which it changes one; τ⁰: with the clock as it was
    ⋈ ⟕ ⟗ ⋉ ▷ ∩ ∖  joins and set operations
    c, μ, ∅        constant rows; what PostgreSQL alone reads, a recursion for one; no rows
    x[K]           x restricted to the keys that matter
    x[p, o ≥ k]    x from the first places k on, first(Δ): in each partition p of Δ the least o

Renaming and hints go unsaid. `written` is one line for one rule. `laid_out` is a whole plan: it says which keys
(`a[g of Δb]`: the rows of a whose g is a g of Δb; `a[id ∈ g of Δb]` where the columns differ), and names what is
read more than once in lines of its own. Nothing is numbered across plans, so one plan's text never depends on another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from string import ascii_uppercase

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import ROW, plain_column, render
from airflow_provider_pgtrickle.engine.dvm.node import Binary, Differ, Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.behind import Behind, Firsts
from airflow_provider_pgtrickle.engine.dvm.operators.clocked import Clocked, Moved
from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Touched
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys
from airflow_provider_pgtrickle.engine.dvm.operators.lateral import Lateral
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.nothing import Nothing
from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.reached import Reached
from airflow_provider_pgtrickle.engine.dvm.operators.rederive import Grown, Kept, Lost, Rederived
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import DeltaScan, Scan
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from airflow_provider_pgtrickle.engine.dvm.operators.stored_rows import Derived, Imaged, LastReached, Located
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Expose, Weigh
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from tests.unit.dvm.shop import view

_LETTERS: dict[type[Node], str] = {
    Aggregate: "γ", Clocked: "τ", Distinct: "δ", Filter: "σ", Lateral: "λ", Project: "π", Touched: "touched",
    Window: "ω",
}  # fmt: skip
_SIGNS = {"LEFT": "⟕", "FULL": "⟗", "SEMI": "⋉", "ANTI": "▷", "INTERSECT": "∩", "EXCEPT": "∖"}
#: What has one letter in every plan; a recursion's are those of `rederive`: D what may be lost, N what is derived anew.
_NAMED: dict[type[Node], str] = {
    Constant: "c", Derived: "N", Grown: "N", Lost: "D", Nothing: "∅", Located: "stored", Stored: "stored",
    LastReached: "D",
}  # fmt: skip
#: Longer than this, what is read twice has a name; a longer sum has a line for each of its terms.
_SHORT, _LONG = 20, 100


def first(query: str, kind: type[Node]) -> Node:
    """The uppermost operator of a kind in a query's tree."""
    tree = view(query).tree
    assert tree is not None
    return next(n for n in descendants(tree) if isinstance(n, kind))


def change(query: str, kind: type[Node], changed: str = "1 2") -> str | None:
    """Its change when some sources changed, written down."""
    delta = Differ(changed.split()).delta(first(query, kind))
    return None if delta is None else written(delta)


def written(node: Node) -> str:
    """One rule in one line."""
    return _Writer().of(node)


def laid_out(plan: Node) -> str:
    """A whole plan: its formula, and below it what the formula's names stand for."""
    return "\n".join(_Definitions(plan).lines())


class _Writer:
    def of(self, node: Node) -> str:
        return self.formula(_said(node))

    def formula(self, node: Node) -> str:
        if type(node) in _NAMED:
            return _NAMED[type(node)]
        if isinstance(node, Scan):
            return node.source.name + ("⁰" if node.is_old else "")
        if isinstance(node, DeltaScan):
            return "Δ" + node.scan.source.name
        if isinstance(node, Native):
            return "μ⁰" if node.is_old else "μ"
        if isinstance(node, Weigh):
            return f"{'−' if node.sign < 0 else ''}{_times(node.sign)}{self.grouped(node.child)}"
        if isinstance(node, UnionAll):
            return " ".join(self.terms(node))
        if isinstance(node, InnerJoin):
            return f"({' ⋈ '.join(map(self.grouped, node.relations))})"
        if isinstance(node, Binary):
            return f"({self.grouped(node.left)} {_SIGNS[node.kind]} {self.grouped(node.right)})"
        if isinstance(node, Restrict):
            return f"{self.grouped(node.child)}[{self.keys(node.keys.relation, [t for t, _ in node.keys.pairs])}]"
        if isinstance(node, Behind):
            assert node.keys.onward is not None
            order = _listed([_unnumbered(n) for n in (*(t for t, _ in node.keys.pairs), node.keys.onward.target)])
            return f"{self.grouped(node.child)}[{order} ≥ {self.of(node.keys.relation)}]"
        if isinstance(node, Firsts):
            return f"first({self.of(node.change)})"
        if isinstance(node, Touched):
            return self.touched(node)
        if isinstance(node, Reached):
            return f"reached({self.of(node.change)}, {self.of(node.stored)})"
        if isinstance(node, Kept):
            return f"({self.of(node.child)} ▷ {self.of(node.lost)})"
        if isinstance(node, Rederived):
            return f"{self.of(node.grown)} − {self.of(node.lost)}"
        if isinstance(node, Moved):
            return f"moved{_in_brackets(self.of(node.child))}"
        old = "⁰" if isinstance(node, Clocked) or (isinstance(node, Dependent) and node.subqueries) else ""
        old = old if getattr(node, "is_old", False) else ""
        return f"{_LETTERS[type(node)]}{old}{_in_brackets(self.of(node.inputs[0]))}"

    def grouped(self, node: Node) -> str:
        text = self.of(node)
        return f"({text})" if isinstance(_said(node), (UnionAll, Rederived)) and " " in text else text

    def terms(self, node: UnionAll) -> list[str]:
        """The terms of a sum, each but the first with its sign before it."""
        head, *rest = map(self.of, node.branches)
        return [head, *(f"− {term[1:]}" if term.startswith("−") else f"+ {term}" for term in rest)]

    def keys(self, relation: Node, targets: Sequence[str]) -> str:
        return "K"

    def touched(self, node: Touched) -> str:
        return f"touched({self.of(node.child)})"


class _Definitions(_Writer):
    """A plan is a graph: what has more than one reader is named at the first, and defined once."""

    def __init__(self, plan: Node) -> None:
        self.plan = plan
        self._readers: Counter[Node] = Counter()
        self._texts: dict[Node, str] = {}
        self._names: dict[Node, str] | None = None
        self._unused = _letters()
        self.of(plan)

    def lines(self) -> Iterator[str]:
        self._names = {}
        yield from self._sum("", _said(self.plan))
        defined = 0
        while defined < len(self._names):
            node, name = list(self._names.items())[defined]
            if not defined:
                yield "where"
            yield from self._sum(f"  {name} = ", node)
            defined += 1

    def of(self, node: Node) -> str:
        node = _said(node)
        if self._names is None:
            self._readers[node] += 1
            if node not in self._texts:
                self._texts[node] = self.formula(node)
                if isinstance(node, (Lost, Grown)):
                    self._least(node)
            return self._texts[node]
        if node not in self._names:
            if isinstance(node, (Lost, Grown)):
                self._names[node] = _NAMED[type(node)]
            elif self._readers[node] > 1 and len(self._texts[node]) > _SHORT:
                self._names[node] = next(self._unused)
        return self._names.get(node) or self.formula(node)

    def keys(self, relation: Node, targets: Sequence[str]) -> str:
        if not isinstance(relation, DistinctKeys):
            return f"{_listed(targets)} of {self.grouped(relation)}"
        targets, found = [_unnumbered(t) for t in targets], [_bare(x) for _, x in relation.items]
        values = _listed(found) if not targets or targets == found else f"{_listed(targets)} ∈ {_listed(found)}"
        return f"{values} of {self.grouped(relation.child)}"

    def touched(self, node: Touched) -> str:
        """`(a if Δb)`: all of a, as soon as Δb has a row."""
        if any(relation is None for relation, _ in node.changes):
            return f"touched({self.of(node.child)})"
        if not any(pairs for _, pairs in node.changes):
            return f"({self.of(node.child)} if {' or '.join(self.of(r) for r, _ in node.changes if r is not None)})"
        by = [self.keys(r, [_bare(x) for x, _ in pairs]) for r, pairs in node.changes if r is not None]
        return f"touched({self.of(node.child)} by {', '.join(by)})"

    def _sum(self, start: str, node: Node) -> Iterator[str]:
        if isinstance(node, (Lost, Grown)):
            terms = self._least(node)
        else:
            terms = self.terms(node) if isinstance(node, UnionAll) else [self.formula(node)]
        line = start + " ".join(terms)
        if len(line) <= _LONG:
            yield line
        else:
            yield start + terms[0]
            yield from (" " * len(start) + term for term in terms[1:])

    def _least(self, node: Lost | Grown) -> list[str]:
        """The rules of `rederive`, for the two relations that contain themselves."""
        if isinstance(node, Lost):
            return [f"least (neg {self.grouped(node.changes)}", f"∪ {self.of(node.step)}) ∩ stored"]
        again = [f"{self.grouped(n)} ⋉ {self.of(node.lost)}" for n in node.rederived]
        begun = [*again, f"net⁺{_in_brackets(self.of(node.changes))} ▷ {self.of(node.lost)}"]
        step = self.of(node.step)
        return [f"least{'' if node.is_all else ' set'} {begun[0]}", *(f"+ {t}" for t in (*begun[1:], step))]


def _said(node: Node) -> Node:
    """The node below what goes unsaid: names, hints, how often something is computed, a weight of one."""
    while (
        isinstance(node, (DistinctKeys, Expose, Imaged, Once))
        or (isinstance(node, Project) and all(plain_column(x) for _, x in node.items))
        or (isinstance(node, Restrict) and not node.exact)
        or (isinstance(node, Weigh) and node.sign == 1)
        or (isinstance(node, UnionAll) and len(node.branches) == 1)
    ):
        node = node.inputs[0]
    return node


def _letters() -> Iterator[str]:
    """A, B, C, E, …: without the two that a recursion has."""
    for size in (1, 2):
        for letters in product(*[[c for c in ascii_uppercase if c not in "DKN"]] * size):
            yield "".join(letters)


def _times(sign: int) -> str:
    """No rule multiplies by more than one; a mistake that does is to be seen."""
    return "" if abs(sign) == 1 else f"{abs(sign)}·"


def _in_brackets(text: str) -> str:
    """Text in brackets, which it may have already."""
    depth, closed = 0, []
    for place, letter in enumerate(text, 1):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            closed.append(place)
    return text if text.startswith("(") and closed == [len(text)] else f"({text})"


def _bare(value: exp.Expr) -> str:
    """A key's value, its columns by the names that the query gave them."""
    return _unnumbered(plain_column(value) or render(value).replace(f'"{ROW}".', ""))


def _unnumbered(name: str) -> str:
    """The engine tells columns of one name apart by numbers, which shift with what else is in the query."""
    return re.sub(r"_\d+\b", "", name)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
