"""A view is an analysed defining query: it knows what the query reads, how it is stored, and how it changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm import pipeline
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, SourceBinding, Window, filled
from airflow_provider_pgtrickle.engine.dvm.budget import budget, deep
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, buffer_name
from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK, Values, as_of, readings_of
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.dvm.emit import PostgresEmitter, Writings
from airflow_provider_pgtrickle.engine.dvm.explain import Explanation, leaves, looked_up, ranges, written
from airflow_provider_pgtrickle.engine.dvm.expressions import ROW, plain_column, render, unparen
from airflow_provider_pgtrickle.engine.dvm.frontend.build import TreeBuilder
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, parse, read
from airflow_provider_pgtrickle.engine.dvm.frontend.readings import readings
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse import Impossible
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_unwatched import expressions_of
from airflow_provider_pgtrickle.engine.dvm.lower import Describe, Slices, SparkPlan
from airflow_provider_pgtrickle.engine.dvm.lower.plan import is_single, row_wise_scan
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node, Open, Slicer, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.clocked import Clocked, compared, origin
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from airflow_provider_pgtrickle.engine.dvm.pipeline import TopK
from airflow_provider_pgtrickle.engine.dvm.proof import open_columns
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refusal, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source
from airflow_provider_pgtrickle.engine.dvm.sinks import Sink
from airflow_provider_pgtrickle.engine.dvm.sinks.frozen import Frozen
from airflow_provider_pgtrickle.engine.dvm.sinks.rounding import rounding
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Addition, Query, visible
from airflow_provider_pgtrickle.engine.errors import QueryError

_KEPT = 8


class View:
    """A defining query as `analyze` returns it."""

    def __init__(
        self,
        canonical: str,
        columns: tuple[str, ...],
        sources: Mapping[str, Source],
        used: Mapping[str, tuple[str, ...]],
        steady: bool,
        sink: Sink | None,
        refusal: Refusal | None = None,
        topk: TopK | None = None,
        written: exp.Query | None = None,
    ) -> None:
        self.canonical = canonical
        self._written = written
        """The query with its readings of the clock, where it has some and is computed as it is written."""
        self.columns = columns
        self.sources = {key: source for key, source in sources.items() if source.heirs is None}
        self.used = {key: names for key, names in used.items() if key in self.sources}
        self._read = (dict(sources), dict(used))
        """The same with ONLY of tables, which are read and not captured by themselves."""
        self.steady = steady
        self.refusal = refusal
        self.topk = topk
        self._sink = sink
        # Rendering takes longer than PostgreSQL needs for a small change, and mostly the same sources change.
        self._deltas: dict[Hashable, str | None] = {}
        self._writings = Writings()

    def kept_by(self, sink: Callable[[Query], Sink]) -> View:
        """Return the same query, kept in another way."""
        assert self._sink is not None
        return View(self.canonical, self.columns, *self._read, self.steady, sink(self._sink.query))

    # -- storage -------------------------------------------------------------------------------

    @property
    def hidden(self) -> tuple[str, ...]:
        return self._sink.hidden if self._sink else ()

    @property
    def sink(self) -> str:
        return self._sink.title if self._sink else "full"

    @property
    def storage(self) -> Node | None:
        """The whole content, hidden columns included; None for a query that PostgreSQL alone can read."""
        return self._sink.storage if self._sink else None

    @property
    def shown(self) -> Node | None:
        """The visible columns of the content, computed as the query says and not as they are kept."""
        return visible(self._sink.query.root, self.columns) if self._sink else None

    @property
    def stored(self) -> Stored | None:
        """The stored rows as a relation."""
        return self._sink.stored if self._sink else None

    @property
    def adds(self) -> bool:
        """Whether a change is summed by group in one pass, whatever of it cancels out."""
        return self._sink is not None and self._sink.adds

    @property
    def because(self) -> str | None:
        """The reason why no sink that does less work takes the query; None where there is none to tell."""
        return self._sink.because if self._sink else None

    @property
    def lookups(self) -> tuple[tuple[str, ...], ...]:
        """Sets of columns, besides the identity, by which a delta looks up stored rows; each is worth an index."""
        return self._sink.lookups if self._sink else ()

    @cached_property
    def places(self) -> frozenset[tuple[str, str]]:
        """(source key, column) where a delta reads a source's rows from a changed value on."""
        return self._sink.places if self._sink else frozenset()

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The smallest key among the storage's columns; all visible columns if the storage has no key."""
        keys = self._sink.storage.unique_keys if self._sink else frozenset()
        if not keys:
            return self.columns
        order = {n: i for i, n in enumerate((*self.columns, *self.hidden))}
        smallest = min(keys, key=lambda k: (len(k), sorted(order[n] for n in k)))
        return tuple(sorted(smallest, key=order.__getitem__))

    @cached_property
    def never_null(self) -> frozenset[str]:
        """The identity's columns that hold no NULL."""
        held = {c.name for c in self._sink.storage.columns if c.not_null} if self._sink and self.keyed else set()
        return frozenset(held & set(self.identity))

    @cached_property
    def keyed(self) -> bool:
        return bool(self._sink and self._sink.storage.unique_keys)

    @property
    def is_copy(self) -> bool:
        """Whether it is the copy of a table, which keeps frozen rows: its content follows from what is stored, too."""
        return isinstance(self._sink, Frozen)

    def storage_query(self) -> str:
        return self._unbound

    @cached_property
    def _unbound(self) -> str:
        return self.full(Binding())

    # -- content and change --------------------------------------------------------------------

    def full(self, binding: Binding) -> str:
        """Return PostgreSQL's SELECT of every row, hidden columns included."""
        if self._sink is None:
            return self.canonical if self._written is None else self._emitter(binding).expression(self._written, "")
        return self._emitter(binding).statement(self._sink.content if binding.is_filled else self._sink.storage)

    def before(self, binding: Binding) -> str | None:
        """Return the same SELECT over the sources' old states: the content at the frontier.

        None for a query that PostgreSQL alone can read.
        """
        if self._sink is None:
            return None
        content = self._sink.content if binding.is_filled else self._sink.storage
        return self._emitter(binding).statement(Differ(binding.changed).old(content))

    @property
    def approximate(self) -> tuple[str, ...]:
        """The columns whose values differ from PostgreSQL's by as much as rounding may make."""
        return self._sink.approximate if self._sink else ()

    def bounds(self, binding: Binding) -> tuple[str, tuple[str, ...]] | None:
        """Return SELECT of the values of these columns at the frontier, each with its bound, by group, and the columns
        of the groups' key; None where no column is approximate."""
        found = self._sink.bounds if self._sink else None
        if found is None:
            return None
        text = self._emitter(binding).statement(Differ(binding.changed).old(found))
        return text, found.names[: len(found.names) - 2 * len(self.approximate)]

    def rounding(
        self, binding: Binding, types: Mapping[str, str]
    ) -> tuple[tuple[str, ...], str, tuple[str, ...]] | None:
        """Return the columns whose rounding has a bound though they are exact sums of floats, and as `bounds` does
        what they are near to and the columns of the groups' key. `types`: of the columns that are floats."""
        found = rounding(self._sink.query, types) if self._sink and self.topk is None else None
        if found is None:
            return None
        text = self._emitter(binding).statement(Differ(binding.changed).old(found.node))
        return found.columns, text, found.node.names[: len(found.node.names) - 2 * len(found.columns)]

    @property
    def is_text(self) -> bool:
        """Whether PostgreSQL computes it from a text, which names its sources as they are committed."""
        return self._sink is None

    @property
    def is_rewritten(self) -> bool:
        """Whether that text was parsed and written again, because the clock stands in it."""
        return self._written is not None

    # -- the clock -----------------------------------------------------------------------------

    @cached_property
    def readings(self) -> Mapping[str, Reading]:
        """What the query reads of the clock, by its text."""
        expressions: list[exp.Expr] = [self._written] if self._written is not None else []
        for node in self._nodes:
            expressions += expressions_of(node)
        if isinstance(self._sink, Frozen):
            expressions.append(self._sink.frozen)
        return readings_of(expressions)

    @property
    def _nodes(self) -> Iterator[Node]:
        """The nodes of the content, and of the rows that a TopK query bounds."""
        if self._sink is not None:
            bounds = self._sink.query.bounds
            for root in (self._sink.storage, *([bounds.body] if bounds else [])):
                yield from descendants(root)

    def moved(self, binding: Binding) -> str | None:
        """Return SQL of the number of rows that compare otherwise with the clock now; None if the clock didn't move.

        A row counts as often as it is compared. Only rows of tables are counted: where anything else is compared, or
        PostgreSQL reads the clock by itself, 1 stands for all that may have changed.
        """
        if CLOCK not in binding.changed:
            return None
        looked_for, rest = self._moves(binding)
        is_unknown = self._sink is None or any(CLOCK in node.own_sources for node in rest)
        counts = [f"(SELECT count(*) FROM ({select}) AS moved)" for select in looked_for]
        return " + ".join([*(["1"] if is_unknown else []), *counts]) or None

    def clock_probe(self) -> str | None:
        """Return SQL of whether the clock has moved rows between two instants, the columns of `__pgt_clock`.

        One lookup for each comparison answers it. Where there is nothing to look up, it is whether a reading differs.
        None for a query without readings, and for a copy: what freezes stays in it.
        """
        if not self.readings or self.is_copy:
            return None
        binding = Binding(readings={text: _probing(reading) for text, reading in self.readings.items()})
        looked_for, rest = self._moves(binding)
        texts = list(readings_of([self._written] if self._written is not None else []))
        for node in rest:
            texts += readings_of(expressions_of(node))
        differ = [f"{v.old} IS DISTINCT FROM {v.new}" for v in map(binding.readings.__getitem__, dict.fromkeys(texts))]
        return " OR ".join([*differ, *dict.fromkeys(f"EXISTS ({select})" for select in looked_for)])

    def _moves(self, binding: Binding) -> tuple[list[str], list[Node]]:
        """Return SELECTs of the rows of tables that compare otherwise with the clock, and the nodes without one."""
        looked_for, rest = [], []
        for node in self._nodes:
            if isinstance(node, Clocked) and is_single(node):
                looked_for.append(self._emitter(binding).statement(node.moved))
            else:
                rest.append(node)
        return looked_for, rest

    @cached_property
    def left_open(self) -> Open:
        """The columns in which one right answer may differ from another."""
        if self._sink is None:
            return Open()
        if self.topk is None:
            found = open_columns(self._sink.storage)
            # An approximate value is the same each time that it is computed.
            return Open(found.order, found.rounded - set(self.approximate))
        # It is open which of the rows that tie at the window's edge are in; their ORDER BY columns are not open.
        bounds = self._sink.query.bounds
        if bounds is None:
            return Open(frozenset(self.columns))
        ordered = {name for term in bounds.order for name in (plain_column(unparen(term.this)),) if name}
        if any(key <= ordered for key in bounds.body.unique_keys):
            return Open()
        return Open(frozenset(self.columns) - ordered)

    def plan(self, changed: Iterable[str]) -> Node | None:
        """Return the change as a plan; None where it is provably empty."""
        if self._sink is None:
            raise QueryError(f"the query can't run DIFFERENTIAL: {self.refusal}")
        return self._sink.delta(Differ(changed))

    def delta(self, binding: Binding) -> str | None:
        """Return PostgreSQL's SELECT of `__pgt_w` and the storage's columns: the change of the stored rows."""
        marked, shape, values = binding.marked()
        if shape not in self._deltas:
            plan = self.plan(binding.changed)
            if len(self._deltas) >= _KEPT:
                self._deltas.pop(next(iter(self._deltas)), None)
            self._deltas[shape] = None if plan is None else self._emitter(marked).statement(plan)
        text = self._deltas[shape]
        return None if text is None else filled(text, values)

    def slices(self, binding: Binding, cut: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Return SELECTs, the bag union of whose rows is the change; none where it can't be cut.

        `cut`: by source, the conditions that divide the rows of its buffer. A sum or rows beyond the buffer have none.
        """
        plan = self.plan(binding.changed)
        if plan is None:
            return ()
        parts = [Slicer(n, cut).slice(plan) for n in range(max(map(len, cut.values()), default=0))]
        found = [part for part in parts if part is not None]
        return tuple(self._emitter(binding).statement(part) for part in found) if len(found) > 1 else ()

    def pieces(self, binding: Binding, slices: Slices) -> tuple[str, ...]:
        """Return SELECTs, the bag union of whose rows is the content; none where it isn't one table, row by row."""
        scan = row_wise_scan(self._sink.storage) if self._sink is not None and self.topk is None else None
        if scan is None or (self.is_copy and binding.is_filled):
            return ()
        assert self._sink is not None
        found = []
        for condition in slices(scan.source):
            emitter = self._emitter(binding)
            emitter.slices[scan.source.key] = condition
            found.append(emitter.statement(self._sink.storage))
        return tuple(found)

    def render(self, node: Node, binding: Binding) -> str:
        """Return PostgreSQL's SELECT of any node of a plan."""
        return self._emitter(binding).statement(node)

    def addition(self, binding: Binding) -> tuple[str, Addition] | None:
        """Return PostgreSQL's SELECT of what a change adds to the stored groups; None where it can't just be added."""
        found = self._sink.addition(Differ(binding.changed)) if self._sink else None
        return None if found is None else (self._emitter(binding).statement(found.added), found)

    def wanted_keys(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """Return (source key, columns) by which a delta looks up rows of a source, whichever sources changed."""
        plan = self._widest_plan
        if self._sink is None or plan is None:
            return frozenset()
        return frozenset(looked_up(plan)) | self._sink.step_lookups | self._clocked

    def wanted_ranges(self) -> frozenset[tuple[str, tuple[str, ...], str]]:
        """Return (source key, columns, a further one) where a delta reads rows of some columns from a place on."""
        plan = self._widest_plan
        return frozenset(ranges(plan)) if plan is not None else frozenset()

    @property
    def _widest_plan(self) -> Node | None:
        return self._sink.delta(Differ(self.sources, narrow_all=True)) if self._sink else None

    @property
    def _clocked(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """(source key, columns) in whose ranges rows are found that compare otherwise with the clock."""
        clocked = (node for node in self._nodes if isinstance(node, Clocked))
        return frozenset((key, (name,)) for node in clocked for key, name in node.lookups)

    def explain(self, binding: Binding | None = None, missing_indexes: Iterable[str] = ()) -> Explanation:
        """Explain what will be done with the query; `missing_indexes` are statements that would make indexes."""
        bound = binding or self.example_binding()
        plan = self.plan(bound.changed) if self.refusal is None else None
        return Explanation(
            differentiable=self.refusal is None,
            reason=str(self.refusal) if self.refusal else None,
            operator_tree=written(self.tree) if self.tree is not None else "(left to PostgreSQL as it stands)",
            sink=self.sink,
            because=self.because,
            identity=self.identity,
            keyed=self.keyed,
            hidden=self.hidden,
            full_sql=self.storage_query(),
            delta_sql=self.delta(bound) if plan is not None else None,
            missing_indexes=tuple(missing_indexes),
            clock=self._of_clock(),
            approximate=self.approximate,
            leaves=tuple((n.label(), self.render(n, bound)) for n in leaves(plan)) if plan is not None else (),
        )

    def _of_clock(self) -> tuple[str, ...]:
        """What is compared with the clock, and where its rows are looked for."""
        said = []
        for node in dict.fromkeys(n for n in self._nodes if isinstance(n, Clocked)):
            for _, comparison in node.items:
                value, reading = compared(comparison)
                name = plain_column(value)
                found = origin(node.child, name) if name else None
                if found is None:
                    where = "rows are looked for among all that are compared"
                else:
                    source = self.sources[found[0]]
                    where = f"rows are looked for in {source.schema}.{source.name} by an index on {found[1]}"
                bare = render(reading)
                held = render(value).replace(f'"{ROW}".', "")
                said.append(f"{held} between two values of {bare}: {where}")
        return tuple(dict.fromkeys(said))

    def spark(
        self,
        binding: Binding,
        *,
        key: Sequence[tuple[str, str]],
        describe: Describe,
        slices: Slices,
        prefix: str,
    ) -> SparkPlan | None:
        """Return the content as a plan for Spark; None where PostgreSQL computes it all.

        `key`: names and types of the columns that identify a stored row.
        """
        if self._sink is None or self.topk is not None or (self.is_copy and binding.is_filled):
            return None
        # Spark's dialect takes a tenth of a process from the shell to import, and most refreshes are done without it.
        from airflow_provider_pgtrickle.engine.dvm.lower.assign import lower

        sink, late = self._sink.without_late()
        storage = (*self.columns, *self.hidden)
        return lower(sink.storage, storage, key, lambda: self._emitter(binding), describe, slices, prefix, late)

    def _emitter(self, binding: Binding) -> PostgresEmitter:
        return PostgresEmitter(binding, *self._read, self._writings)

    @property
    def tree(self) -> Node | None:
        """The operator tree behind the content."""
        return self._sink.content if self._sink else None

    def example_binding(self) -> Binding:
        """Return a binding for explaining, in which every source changed between two invented snapshots."""
        sources = {}
        for key, source in self.sources.items():
            suffix = key if source.kind == "STREAM_TABLE" else str(source.relid or key)
            window = Window((CHANGES, buffer_name(suffix)), "100:100:", "200:200:")
            sources[key] = SourceBinding(True, window)
        readings = {
            text: Values(as_of(reading, "'…'::timestamp with time zone"), text)
            for text, reading in self.readings.items()
        }
        return Binding(sources, ("…", "stream table"), readings)


def _probing(reading: Reading) -> Values:
    return Values(as_of(reading, '"__pgt_clock"."old"'), as_of(reading, '"__pgt_clock"."new"'))


@deep()
def analyze(
    canonical: str, schema: Schema, floats: Mapping[str, str] | None = None, held: frozenset[str] | None = None
) -> View:
    """Return the view of a canonical query; raise `QueryError` if it can't be a stream table in any mode.

    `floats`: the types of the columns that may be kept as approximate sums of floats. `held`: the columns of the table
    if it is there already, and stays.
    """
    asked = (schema, dict(floats or {}), held)
    known = _latest.get(canonical)
    if known is not None and known[0] == asked:
        return known[1]
    view = _analyzed(canonical, schema, floats, held)
    with _lock:
        _latest.pop(canonical, None)
        if len(_latest) >= _KEPT:
            _latest.pop(next(iter(_latest)))
        _latest[canonical] = (asked, view)
    return view


#: A query is validated, declared and filled, one right after the other, and each of them asks for its view.
_latest: dict[str, tuple[tuple[Schema, dict[str, str], frozenset[str] | None], View]] = {}
_lock = threading.Lock()  # threads declare and refresh side by side


def _analyzed(canonical: str, schema: Schema, floats: Mapping[str, str] | None, held: frozenset[str] | None) -> View:
    try:
        query = parse(canonical)
        outputs = tuple(output_names(query))
    except Refused as refused:
        return _full_only(canonical, (), schema, refused.refusal)
    try:
        with budget():
            return _differentiable(canonical, query, outputs, schema, floats, held)
    except Impossible as refused:
        raise QueryError(
            f"{refused.refusal.reason.sentence} ({refused.refusal.detail})", remedy=refused.refusal.remedy
        ) from None
    except Refused as refused:
        return _full_only(canonical, outputs, schema, refused.refusal)
    except RecursionError:
        refusal = Refusal(Reason.TOO_LARGE, "nested too deeply", "It runs FULL; or split the query.")
        return _full_only(canonical, outputs, schema, refusal)


def refused(view: View, reason: Reason, detail: str) -> View:
    """Return the same view, refused for differences because of what PostgreSQL said about it."""
    refusal = Refusal(reason, detail, "It runs FULL in PostgreSQL; please report it.")
    steady = view.steady and not view.readings
    return View(view.canonical, view.columns, view.sources, view.used, steady, None, refusal)


def round_trip(text: str) -> str | None:
    """Return a text parsed and written again, which PostgreSQL must take for the same query; None if it is refused."""
    try:
        return render(read(text))
    except Refused:
        return None


def _differentiable(
    canonical: str,
    query: exp.Query,
    outputs: tuple[str, ...],
    schema: Schema,
    floats: Mapping[str, str] | None,
    held: frozenset[str] | None,
) -> View:
    draft = pipeline.run(query, outputs, schema, floats=floats, held=held)
    assert draft.sink is not None
    used = _used([draft.sink.storage] + ([draft.bounds.body] if draft.bounds else []), draft.builder)
    sources = {key: draft.builder.sources[key] for key in sorted(used)}
    return View(canonical, outputs, sources, used, schema.steady, draft.sink, None, draft.topk)


def _used(roots: Iterable[Node], builder: Builder) -> dict[str, tuple[str, ...]]:
    wanted: dict[str, set[str]] = {key: set(names) for key, names in builder.inside.items()}
    for node in (n for root in roots for n in descendants(root)):
        if isinstance(node, Scan):
            for key in {node.source.key, *node.source.reads}:
                wanted.setdefault(key, set()).update(o for o, _ in node.mapping)
        for key in node.own_sources - {CLOCK}:
            wanted.setdefault(key, set())
    return {key: _in_order(builder.sources[key], names) for key, names in wanted.items()}


def _in_order(source: Source, names: set[str]) -> tuple[str, ...]:
    names = names | set(source.primary_key)
    return tuple(c.name for c in source.columns if c.name in names) or tuple(c.name for c in source.columns[:1])


def _full_only(canonical: str, outputs: tuple[str, ...], schema: Schema, refusal: Refusal) -> View:
    """Return a view that can only be computed anew; its sources are captured to know when that is needed."""
    sources = schema.by_key
    used = {key: tuple(c.name for c in s.columns) for key, s in sources.items()}
    written = None
    try:
        builder = TreeBuilder(schema)
        query = readings(inline_views(parse(canonical), schema), schema)
        written = query.copy() if schema.reads_clock else None
        builder.note_reads(query)
        if not any(isinstance(c.this, exp.Star) for c in query.find_all(exp.Column)):
            used = {key: _in_order(s, builder.inside.get(key, set())) for key, s in sources.items()}
    except Refused:
        pass
    steady = schema.steady and not schema.reads_clock
    return View(canonical, outputs, sources, used, steady, None, refusal, written=written)
