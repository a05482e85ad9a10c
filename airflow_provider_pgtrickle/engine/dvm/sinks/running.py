"""Δstored = c ⊕ ω(R¹ ≥ m) − stored ≥ m, m = by partition the first changed place in the order, c = the last before it.
The rows from m on are computed anew, and go on from what the stored rows before them add up to.

    row_number, rank, dense_rank, count    c + v            v, where nothing comes before
    sum of exact numbers                   c + v            the one of them that isn't NULL
    min, max                               LEAST(c, v)      GREATEST(c, v)

A place is a value of the first column of ORDER BY, so all rows with the value m are computed anew. The frames begin
with the partition and end with the row. So no row before m has a changed row in its frame, and its values stay.

c is looked up in the last stored rows before m: numbers and extremes only grow along the order, and sums are kept as
they are after all rows of a place. What the query doesn't show of it is stored as hidden columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import arguments, call_name
from airflow_provider_pgtrickle.engine.dvm.emit import ORDERED
from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type, is_numeric
from airflow_provider_pgtrickle.engine.dvm.expressions import column, has_subquery, plain_column, unparen
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Keys, Node, Onward, rewritten
from airflow_provider_pgtrickle.engine.dvm.operators.behind import Behind, Carried, Firsts
from airflow_provider_pgtrickle.engine.dvm.operators.clocked import origin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import graft
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from airflow_provider_pgtrickle.engine.dvm.sinks.parts import form
from airflow_provider_pgtrickle.engine.dvm.sinks.replace import with_keys
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query, Sink, below_projections, expose, total_order
from airflow_provider_pgtrickle.engine.dvm.types import base_type, is_compared, is_its_image

#: Each column of a partition that may be NULL doubles the look-ups.
_MOST_NULLABLE = 2
_NUMBER = "COALESCE(c, 0) + v"
_SUM = "COALESCE(c + v, c, v)"
_EXTREMES = {"min": "LEAST(c, v)", "max": "GREATEST(c, v)"}


@dataclass(frozen=True)
class Going:
    """How a function of the window goes on from the rows before."""

    function: str
    carried: Carried
    """What it goes on from: an aggregate of a function of the window over the last rows before."""
    value: str
    """Its value over what is carried, c, and what is computed, v."""


@dataclass(frozen=True)
class Shape:
    """A query's window, taken apart into what the sink needs to know of it."""

    core: Window
    """The window, with further functions where its own don't tell what is carried."""
    onward: Onward
    """The first column of the order."""
    going: tuple[Going, ...]


class Running(Sink):
    """Projections over a window all of whose functions run from the partition's beginning to the row, in one order."""

    title = "carry forward"

    def __init__(self, query: Query, storage: Node, hidden: Sequence[str], shape: Shape, held: dict[str, str]) -> None:
        super().__init__(query, storage, hidden)
        self._shape = shape
        self._held = held
        """Columns of the window → those of the storage."""

    @classmethod
    def take(cls, query: Query) -> Sink | None:
        written = below_projections(query.root)
        if not isinstance(written, Window) or written.groups is None or _shape(written, Namer()) is None:
            return None
        query = replace(query, root=total_order(query.root, but=written))
        core = below_projections(query.root)
        assert isinstance(core, Window)
        shape = _shape(core, query.name)
        assert shape is not None
        beside = shape.core
        root = rewritten(query.root, lambda node, fresh: beside if node is core else fresh)
        needed = [*core.partition, shape.onward.target, *(g.carried.of for g in shape.going)]
        root, found = expose(root, shape.core, list(dict.fromkeys(needed)), query.name)
        storage, hidden, held = with_keys(query, root, found)
        return cls(query, storage, hidden, shape, held)

    @property
    def lookups(self) -> tuple[tuple[str, ...], ...]:
        shape = self._shape
        return (tuple(self._held[name] for name in (*shape.core.partition, shape.onward.target)),)

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        found = origin(self._shape.core.child, self._shape.onward.target)
        return frozenset() if found is None else frozenset((found,))

    def delta(self, d: Differ) -> Node | None:
        core, onward, held = self._shape.core, self._shape.onward, self._held
        change = d.delta(core.child)
        if change is None:
            return None
        carried = tuple(dict.fromkeys(g.carried for g in self._shape.going))
        firsts = Firsts(
            change,
            self.stored,
            tuple((name, held[name]) for name in core.partition),
            replace(onward, target=held[onward.target]),
            tuple(replace(c, of=held[c.of]) for c in carried),
        )
        keys = Keys(firsts, tuple((name, name) for name in core.partition), onward=onward)
        rows = Behind(core.child.restrict(keys), keys, tuple(c.name for c in carried))
        anew = graft(self.storage, core, self._continued(replace(core, child=rows)))
        over_stored = keys.mapped(held)
        assert over_stored is not None
        return difference(anew, Behind(self.stored.restrict(over_stored), over_stored))

    def _continued(self, window: Window) -> Node:
        """The window's functions, going on from what is carried."""
        values = {g.function: form(g.value, c=column(g.carried.name), v=column(g.function)) for g in self._shape.going}
        return Project(window, tuple((name, values.get(name, column(name))) for name in self._shape.core.names))


def _shape(core: Window, name: Namer) -> Shape | None:
    """Take a window apart; None where a function doesn't run, or can't go on from the rows before."""
    functions = {n: w for n, call in core.functions if isinstance(w := unparen(call), exp.Window)}
    onwards = {_onward(window) for window in functions.values()}
    onward = onwards.pop() if len(onwards) == 1 and len(functions) == len(core.functions) else None
    if onward is None or not _is_found_by(core, onward):
        return None
    columns = {c.name: c for c in core.child.columns}
    beside: dict[exp.Expr, str] = {}
    carried: dict[tuple[str, str], Carried] = {}
    going = []

    def go_on(function: str, by: str, of: str, value: str) -> None:
        if (by, of) not in carried:
            carried[by, of] = Carried(name("carried"), by, of)
        going.append(Going(function, carried[by, of], value))

    for function, window in functions.items():
        found = _goes_on(window, columns)
        if found is None:
            return None
        of = next((n for n, w in functions.items() if _tells(w, window)), None)
        if of is None:
            wanted = _by_place(window)
            if wanted not in beside:
                beside[wanted] = name("beside")
                go_on(beside[wanted], found[0], beside[wanted], found[1])
            of = beside[wanted]
        go_on(function, found[0], of, found[1])
    more = tuple((of, window) for window, of in beside.items())
    return Shape(replace(core, functions=core.functions + more), onward, tuple(going))


def _onward(window: exp.Window) -> Onward | None:
    """The first column of the order; None where there is none, or the frame isn't all rows up to the row at hand."""
    order, spec = window.args.get("order"), window.args.get("spec")
    if order is None or (spec is not None and not _runs(spec)):
        return None
    first = order.expressions[0]
    name = plain_column(unparen(first.this)) if isinstance(first, exp.Ordered) else None
    if name is None:
        return None
    return Onward(name, name, bool(first.args.get("desc")), bool(first.args.get("nulls_first")))


def _runs(spec: exp.Expr) -> bool:
    begin, end = ((spec.args.get(of), spec.args.get(f"{of}_side")) for of in ("start", "end"))
    is_to_row = end in (("CURRENT ROW", None), (None, None))
    return begin == ("UNBOUNDED", "PRECEDING") and is_to_row and not spec.args.get("exclude")


def _is_found_by(core: Window, onward: Onward) -> bool:
    """Whether rows can be looked up by the partition and a place in the order."""
    columns = [core.child.column(name) for name in core.partition]
    nullable = [c for c in columns if not c.not_null]
    place = core.child.column(onward.target)
    return (
        onward.target not in core.partition
        and all(c.has_equality for c in columns)
        and len(nullable) <= _MOST_NULLABLE
        and all(c.type is not None and is_compared(c.type) for c in nullable)
        and place.type is not None
        and base_type(place.type) in ORDERED
    )


def _goes_on(window: exp.Window, columns: Mapping[str, Column]) -> tuple[str, str] | None:
    """By which aggregate what is carried is told, and the function's value over it; None where it can't go on."""
    call = _called(window)
    name, given = call_name(call), arguments(call)
    if has_subquery(window) or call.find(exp.Distinct):
        return None
    if name in ("row_number", "rank", "dense_rank") and not given:
        return "max", _NUMBER
    if len(given) != 1:
        return None
    kind = exact_type(given[0], columns)
    if name == "count":
        return "max", _NUMBER
    if name == "sum" and (kind is not None or is_numeric(given[0], columns)):
        return "max", _SUM
    if name in _EXTREMES and ((kind is not None and kind.type_name is not None) or _is_alike(given[0], columns)):
        return name, _EXTREMES[name]
    return None


def _is_alike(argument: exp.Expr, columns: Mapping[str, Column]) -> bool:
    """Whether an argument's equal values look alike, and are compared by LEAST as by min()."""
    name = plain_column(argument)
    held = columns[name].type if name is not None else None
    return held is not None and is_its_image(held) and base_type(held) in ORDERED


def _tells(one: exp.Window, window: exp.Window) -> bool:
    """Whether the last rows of a place tell by a function's value what another one goes on from."""
    name = call_name(_called(window))
    if name == "rank":
        return call_name(_called(one)) == "row_number" or one.this == _ALL
    if one is not window:
        return False
    spec = one.args.get("spec")
    is_by_row = spec is not None and spec.args["kind"].upper() == "ROWS"
    return name != "sum" or (len(one.args["order"].expressions) == 1 and not is_by_row)


_ALL = exp.Count(this=exp.Star(), big_int=True)


def _by_place(window: exp.Window) -> exp.Window:
    """The function, or for a rank the number of rows, after all rows of a place."""
    made = window.copy()
    if call_name(_called(window)) == "rank":
        made.set("this", _ALL.copy())
    made.set("order", exp.Order(expressions=[window.args["order"].expressions[0].copy()]))
    made.set("spec", None)
    return made


def _called(window: exp.Window) -> exp.Expr:
    """The function that a window evaluates, without its FILTER."""
    return unparen(window.this.this) if isinstance(window.this, exp.Filter) else window.this
