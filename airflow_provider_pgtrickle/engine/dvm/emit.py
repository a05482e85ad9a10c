"""Rendering a plan as one PostgreSQL statement is the last step, after every rule has been applied.

Shared nodes (deltas, key sets) and the versions of sources become CTEs. A node that only filters, renames or
joins is part of the SELECT that reads it (`rows`); every other node is a subquery in place, so that
PostgreSQL's planner sees through it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import sqlglot
from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.binding import Binding, HandedOn, InHand, SourceBinding, Window
from airflow_provider_pgtrickle.engine.dvm.budget import MAX_DEPTH, MAX_SELECTS, too_large
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID, buffer_column
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    ROW,
    SOURCE_META,
    WEIGHT,
    is_row_column,
    renamed_by_place,
    render,
    rewrite,
)
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Pairs, Place, Relation, SharedSubquery, placed
from airflow_provider_pgtrickle.engine.dvm.schema import Source, SourceColumn
from airflow_provider_pgtrickle.engine.dvm.types import as_text, base_type, is_its_image

#: Types that are comparable with all to which they can be equal, and in the same order.
ORDERED = (
    "date",
    "timestamp without time zone",
    "timestamp with time zone",
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "real",
    "double precision",
)

Change = Callable[[exp.Expr], exp.Expr | None]


@lru_cache(maxsize=10_000)
def quote(name: str) -> str:
    return render(exp.to_identifier(name, quoted=True))


def literal(text: str) -> str:
    return render(exp.Literal.string(text))


@lru_cache(maxsize=10_000)
def _alias(name: str) -> str:
    return render(exp.to_identifier(name))


# In the places of a row's columns stand names that no query can have, because PostgreSQL's text has no NUL.
_HOLE = re.compile(rf'{ROW}\."\0(\d+)\0"')


@dataclass(frozen=True)
class _Written:
    """An expression's text between the row's columns, and their names: there is one text more than there are names."""

    expression: exp.Expr
    between: tuple[str, ...]
    """Nothing if tables stand in the expression, whose names depend on the statement, or the clock."""
    names: tuple[str, ...]

    def at(self, where: str | Mapping[str, Place]) -> str:
        """Return the text for a SELECT in which the columns are held where `where` says."""
        text = [self.between[0]]
        for name, after in zip(self.names, self.between[1:], strict=True):
            alias, held = (where, name) if isinstance(where, str) else where[name]
            text += [_alias(alias), ".", quote(held), after]
        return "".join(text)


def _write(expression: exp.Expr) -> _Written:
    if expression.find(exp.Table, Reading) is not None:
        return _Written(expression, (), ())
    names: list[str] = []

    def change(node: exp.Expr) -> exp.Expr | None:
        if not is_row_column(node):
            return None
        names.append(node.name)
        hole = exp.to_identifier(f"\0{len(names) - 1}\0", quoted=True)
        return exp.Column(this=hole, table=exp.to_identifier(ROW))

    between = _HOLE.split(render(rewrite(expression, change), is_own=True))
    return _Written(expression, tuple(between[::2]), tuple(names[int(number)] for number in between[1::2]))


@dataclass
class Writings:
    """The expressions of a view that were written before, because most stand in each of its statements many times.

    They are found by their identity, as long as they are here; nobody changes an expression that stands in a plan.
    """

    _known: dict[int, _Written] = field(default_factory=dict)

    def of(self, expression: exp.Expr) -> _Written:
        known = self._known.get(id(expression))
        if known is None:
            if len(self._known) >= _MOST_WRITINGS:
                self._known.clear()
            known = self._known[id(expression)] = _write(expression)
        return known


_MOST_WRITINGS = 20_000


class PostgresEmitter(Emitter):
    """One statement of PostgreSQL over the sources at their versions."""

    weight = quote(WEIGHT)

    def __init__(
        self,
        binding: Binding,
        sources: Mapping[str, Source],
        used: Mapping[str, Iterable[str]],
        writings: Writings | None = None,
    ) -> None:
        super().__init__()
        self._writings = Writings() if writings is None else writings
        self._binding = binding
        self._sources = sources
        self._used = {key: tuple(names) for key, names in used.items()}
        self._is_whole = False
        """Whether the statement yields a whole content, so that no keys restrict what it reads."""
        self.slices: dict[str, str] = {}
        """The slice of each source, by its key, that this statement reads as one of several parallel reads."""

    # -- the statement -------------------------------------------------------------------------

    def statement(self, root: Relation) -> str:
        """Return `WITH … SELECT` of the root's columns, after its weight if it has one."""
        self.count(root)
        self._is_whole = not root.weighted
        body = root.select(self)
        if not self._shared_subqueries:
            return body
        shared = ",\n".join(f"{name} AS {subquery}" for name, subquery in self._shared_subqueries.items())
        return f"WITH {shared}\n{body}"

    def named(self, node: Relation) -> str | None:
        """In a whole content PostgreSQL computes a WITH item once that is read twice, and all sets of a GROUP BY."""
        if self._is_whole and node.combines and self._uses.get(id(node), 0) > 1:
            return self._apart(node)
        return super().named(node)

    def shared_name(self, number: int, node: Relation) -> str:
        return quote(f"__pgt_{'delta' if node.weighted else 'part'}_{number}")

    def is_distinct(self, is_delta: bool) -> bool:
        """A delta's keys need no DISTINCT: they hardly repeat, and PostgreSQL would expect 200 rows after it."""
        return not is_delta

    # -- small pieces --------------------------------------------------------------------------

    def name(self, name: str) -> str:
        return quote(name)

    def expression(self, expression: exp.Expr, alias: str | Mapping[str, Place], is_old: bool = False) -> str:
        written = self._writings.of(expression)
        if written.between:
            return written.at(alias)

        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and node.table == ROW:
                return placed(node, alias)
            if isinstance(node, Reading):
                return self._read(node, is_old)
            if isinstance(node, exp.Table) and SOURCE_META in node.meta:
                return self._versioned(node, is_old, change)
            return None

        return render(rewrite(expression, change), is_own=True)

    def _read(self, reading: Reading, is_old: bool) -> exp.Expr | None:
        """Return the value that a reading of the clock has; None where the clock isn't bound."""
        values = self._binding.readings.get(render(reading))
        return None if values is None else exp.var(values.old if is_old else values.new)

    def _versioned(self, table: exp.Table, is_old: bool, inside: Change) -> exp.Expr | None:
        """Return the table at one version; the joins that hang on it are changed like everything else."""
        source = self._sources[table.meta[SOURCE_META]]
        version = self._version(source, is_old)
        if version is None:
            return None
        replaced: exp.Expr = exp.Table(this=sqlglot.to_identifier(version, quoted=True))
        if renamed_by_place(table):
            replaced = exp.Subquery(this=self._whole(source).from_(replaced))
        alias = table.args.get("alias")
        replaced.set(
            "alias", alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        )
        for join in table.args.get("joins") or []:
            replaced.append("joins", rewrite(join, inside))
        return replaced

    def _whole(self, source: Source) -> exp.Select:
        """Return a SELECT of all columns in PostgreSQL's order, with NULL for unknown ones, which nobody reads."""
        known = {c.name for c in self._columns_used(source)}
        return exp.Select(
            expressions=[
                exp.alias_(exp.column(name, quoted=True) if name in known else exp.null(), name, quoted=True)
                for name in source.layout
            ]
        )

    def stored(self) -> str:
        if self._binding.stored is None:
            raise ValueError("this plan reads the stored rows; the binding must say where they are")
        return ".".join(quote(name) for name in self._binding.stored)

    def cut_by(self) -> str | None:
        return self._binding.cut_by

    @cached_property
    def knows_least(self) -> bool:
        return any(source.least or source.most for source in self._binding.sources.values())

    def least(self, columns: Collection[tuple[str, str]], compared: str | None, *, most: bool = False) -> str | None:
        if compared is None or base_type(compared) not in ORDERED:
            return None
        # ONLY a table has no changes of its own, of which it could be known.
        bound = [(self._binding.sources.get(key, SourceBinding(False)), name) for key, name in sorted(columns)]
        known = [dict(source.most if most else source.least).get(name) for source, name in bound]
        values = [value for value in known if value is not None]
        if not values or len(values) < len(known):
            return None
        return values[0] if len(values) == 1 else f"{'GREATEST' if most else 'LEAST'}({', '.join(values)})"

    def record_semi_join(self, child: Relation, keys: Relation, pairs: Pairs) -> str:
        """Compare rows as records, because NULLs match in records, and PostgreSQL can hash records.

        PostgreSQL compares records only if their columns have the same types, and a domain is not its base type.
        COALESCE with a second argument gives the base type.
        """
        source, alias = self.from_item(child)
        relation, key = self.from_item(keys)
        left = ", ".join(f"COALESCE({alias}.{quote(t)}, NULL)" for t, _ in pairs)
        right = ", ".join(f"COALESCE({key}.{quote(k)}, NULL)" for _, k in pairs)
        record = self.alias()
        return (
            f"SELECT {self.columns(child, alias)} FROM {source} "
            f"CROSS JOIN LATERAL (SELECT ROW({left}) AS r) AS {record} "
            f"WHERE {record}.r IN (SELECT ROW({right}) FROM {relation})"
        )

    # -- sources -------------------------------------------------------------------------------

    def _plain(self, source: Source) -> str:
        only = "ONLY " if source.heirs is not None else ""
        return f"{only}{quote(source.schema)}.{quote(source.name)}"

    def relation(self, source: Source, is_old: bool) -> str:
        version = self._version(source, is_old)
        if version is not None:
            return quote(version)
        slice_ = None if is_old else self.slices.get(source.key)
        return f"(SELECT * FROM {self._plain(source)} WHERE {slice_})" if slice_ else self._plain(source)

    def _version(self, source: Source, is_old: bool) -> str | None:
        """Return the name of a shared subquery that holds the source at one version; None where that is its table."""
        adjustment = self._adjustment(source, is_old)
        if adjustment is None:
            return None
        name = f"__pgt_{'old' if is_old else 'now'}_{source.key}"
        if quote(name) not in self._shared_subqueries:
            self._shared_subqueries[quote(name)] = SharedSubquery(self._sum_of(source, *adjustment), materialized=False)
        return name

    def relation_where(self, source: Source, is_old: bool, condition: Callable[[str], str]) -> str | None:
        """Return the FROM item for a source's rows that meet a condition, if they come from its table and its changes.

        None for any other source. The condition is put on the table and on the changes, so that the table's indexes
        are used: PostgreSQL doesn't push a semi-join into a union by itself.
        """
        adjustment = self._adjustment(source, is_old)
        return None if adjustment is None else f"({self._sum_of(source, *adjustment, condition)})"

    def is_table(self, source: Source, is_old: bool) -> bool:
        return self._adjustment(source, is_old) is None

    def _adjustment(self, source: Source, is_old: bool) -> tuple[str, str] | None:
        """Return (changes, sign) by which a source at one version differs from its table; None where it doesn't."""
        if source.heirs is not None:
            return (self._changes_alone(source), "-") if is_old and self._changed_behind(source) else None
        bound = self._binding.sources.get(source.key)
        if bound is None:
            return None
        if is_old:
            return (self._window_changes(source, bound.window), "-") if bound.changed and bound.window else None
        return (self._handed_on_changes(source, bound.handed_on), "") if bound.handed_on is not None else None

    def changes(self, source: Source, part: str | None = None) -> str:
        """Return the source's whole change: its window together with what was handed on. Only a window has slices."""
        if source.heirs is not None:
            return self._changes_alone(source)
        bound = self._binding.sources[source.key]
        if part is not None:
            return self._window_slice(source, bound.window, part)
        terms = []
        if bound.window is not None:
            terms.append(self._window_changes(source, bound.window))
        if bound.handed_on is not None:
            terms.append(self._handed_on_changes(source, bound.handed_on))
        if len(terms) == 1:
            return terms[0]
        columns = self._source_columns(source)
        name = quote(f"__pgt_changes_{source.key}")
        if name not in self._shared_subqueries:
            selects = [f"SELECT {self.weight}, {columns} FROM {term}" for term in terms]
            self._shared_subqueries[name] = SharedSubquery(" UNION ALL ".join(selects))
        return name

    def _changed_behind(self, source: Source) -> list[tuple[str, Source, Window | InHand]]:
        """Return (sign, table, window) of each table with a change from which that of ONLY a table follows."""
        signs = {source.table: "", **dict.fromkeys(source.heirs or (), "-")}
        bound = {key: self._binding.sources[key] for key in signs if key in self._binding.sources}
        return [(signs[key], self._sources[key], b.window) for key, b in bound.items() if b.changed and b.window]

    def _changes_alone(self, source: Source) -> str:
        """Return the change of ONLY a table: the table's own, less that of each table that inherits from it."""
        beside, name = self._source_columns(source), quote(f"__pgt_window_{source.key}")
        listed = f", {beside}" if beside else ""
        if name not in self._shared_subqueries:
            selects = [
                f"SELECT {sign}{self.weight} AS {self.weight}{listed} FROM {self._window_changes(table, window)}"
                for sign, table, window in self._changed_behind(source)
            ]
            self._shared_subqueries[name] = SharedSubquery(" UNION ALL ".join(selects), materialized=False)
        return name

    def _columns_used(self, source: Source) -> tuple[SourceColumn, ...]:
        return columns_read(source, self._used.get(source.key, ()))

    def _source_columns(self, source: Source) -> str:
        return ", ".join(quote(c.name) for c in self._columns_used(source))

    def _window_changes(self, source: Source, window: Window | InHand) -> str:
        name = quote(f"__pgt_window_{source.key}")
        if name not in self._shared_subqueries:
            is_net = isinstance(window, Window) and window.net
            text = changes_in(source, self._columns_used(source), window)
            self._shared_subqueries[name] = SharedSubquery(text, materialized=is_net)
        return name

    def _window_slice(self, source: Source, window: Window | InHand | None, part: str) -> str:
        if not isinstance(window, Window) or window.net:
            raise ValueError("only a window of single changes is cut")
        name = quote(f"__pgt_slice_{source.key}")
        if name not in self._shared_subqueries:
            text = changes_in(source, self._columns_used(source), window, part)
            self._shared_subqueries[name] = SharedSubquery(text, materialized=False)
        return name

    def _handed_on_changes(self, source: Source, handed_on: HandedOn) -> str:
        name = quote(f"__pgt_pending_{source.key}")
        if name not in self._shared_subqueries:
            columns = self._source_columns(source)
            self._shared_subqueries[name] = SharedSubquery(
                f"SELECT {self.weight}, {columns} FROM ({handed_on.sql}) AS p"
            )
        return name

    def _sum_of(self, source: Source, changes: str, sign: str, condition: Callable[[str], str] | None = None) -> str:
        """Return source ± changes as a bag: rows that the changes don't touch stay, the touched ones are summed."""
        columns, touch = self._columns_used(source), found_by(source)
        plain, listed = self._plain(source), self._source_columns(source)
        beside = f", {listed}" if listed else ""  # a table may have no columns
        touched = ", ".join(f"t.{quote(c)}" for c in touch)
        keys = f"SELECT {', '.join(quote(c) for c in touch)} FROM {changes}"
        is_touched = f"({touched}) IN ({keys})"
        in_table = [*([is_touched] if touch else []), *([condition("t")] if condition else [])]
        in_changes = [condition("c")] if condition else []
        summed = _summed(
            columns,
            f"SELECT 1 AS {self.weight}{beside} FROM {plain} AS t{_where(in_table)} "
            f"UNION ALL SELECT {sign}{self.weight}{beside} FROM {changes} AS c{_where(in_changes)}",
            "> 0",
        )
        many = "" if touch and source.kind != "STREAM_TABLE" else " CROSS JOIN LATERAL generate_series(1, u.__pgt_n)"
        items = ", ".join(f"u.{quote(c.name)}" for c in columns)
        selects = [f"SELECT {items} FROM ({summed}) AS u{many}"]
        if touch:
            changed, wanted = f"({is_touched})", [condition("t")] if condition else []
            if wanted:
                # This is a join, because PostgreSQL expects to hash the keys of an IN anew for each row it looks up.
                same = " AND ".join(f"c.{quote(n)} = t.{quote(n)}" for n in touch)
                changed = f"EXISTS (SELECT FROM {changes} AS c WHERE {same})"
            selects.insert(0, f"SELECT {listed} FROM {plain} AS t{_where([f'NOT {changed}', *wanted])}")
        return " UNION ALL ".join(selects)


def _where(terms: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(terms)}" if terms else ""


def _summed(columns: Iterable[SourceColumn], rows: str, having: str) -> str:
    """Return rows with `__pgt_n`, the sum of the weights of all that look the same."""
    group, restored = [], []
    for c in columns:
        column = f"s.{quote(c.name)}"
        if not c.has_equality:
            group.append(f"{column}::text")
            restored.append(f"({column}::text)::{c.type} AS {quote(c.name)}")
            continue
        group.append(column)
        restored.append(f"{column} AS {quote(c.name)}")
        if not (is_its_image(c.type) and c.deterministic):
            group.append(f'{as_text(column, c.type)} COLLATE "C"')
    weight = f"sum(s.{quote(WEIGHT)})"
    items = ", ".join([*restored, f"{weight} AS __pgt_n"])
    return f"SELECT {items} FROM ({rows}) AS s GROUP BY {', '.join(group) or '()'} HAVING {weight} {having}"


def found_by(source: Source) -> tuple[str, ...]:
    """Return the columns by which a changed row is found again; several rows of a stream table may agree on them."""
    return (ROW_ID,) if source.kind == "STREAM_TABLE" else source.primary_key


def columns_read(source: Source, used: Iterable[str]) -> tuple[SourceColumn, ...]:
    """Return the columns that a reader takes from a source: those that it uses, and those that find a row again."""
    wanted = {*used, *found_by(source)}
    columns = [c for c in source.columns if c.name in wanted]
    if source.kind == "STREAM_TABLE" and all(c.name != ROW_ID for c in columns):
        columns.append(SourceColumn(ROW_ID, "bigint", True))
    return tuple(columns)


def changes_in(
    source: Source, columns: Sequence[SourceColumn], window: Window | InHand, part: str | None = None
) -> str:
    """Return SQL of the source's change in a window or a slice of it, as weighted rows of these columns.

    change = + new images − old images; where many cancel out, their sum by image
    """
    is_stream_table = source.kind == "STREAM_TABLE"
    if isinstance(window, InHand):
        buffer, where = f"{window.rows} AS b", "true"
        is_narrow, is_net = len(columns) < len(source.columns), False
    else:
        buffer, where = window_rows(window), window_predicate(window)
        is_narrow, is_net = window.narrow, window.net
    if is_narrow and not is_stream_table:
        where = f"{where} AND {concerns(columns)}"
    if part is not None:
        where = f"{where} AND {part}"

    def side(weight: int, prefix: str, actions: str) -> str:
        items = [f"{weight} AS {quote(WEIGHT)}"]
        for c in columns:
            held = "pk_hash" if c.name == ROW_ID and is_stream_table else buffer_column(prefix, c.name)
            items.append(f"{quote(held)} AS {quote(c.name)}")
        return f"SELECT {', '.join(items)} FROM {buffer} WHERE action IN ({actions}) AND {where}"

    if is_stream_table:
        sides = (side(1, "new", "'I'"), side(-1, "new", "'D'"))
    else:
        sides = (side(1, "new", "'I', 'U'"), side(-1, "old", "'U', 'D'"))
    both = " UNION ALL ".join(sides)
    if not is_net:
        return both
    listed = "".join(f", u.{quote(c.name)}" for c in columns)
    return (
        f"SELECT sign(u.__pgt_n)::integer AS {quote(WEIGHT)}{listed} FROM ({_summed(columns, both, '<> 0')}) AS u"
        " CROSS JOIN LATERAL generate_series(1, abs(u.__pgt_n))"
    )


def concerns(columns: Iterable[SourceColumn]) -> str:
    """Return the condition that a buffer's row changes one of these columns of a table. Images decide, not equality."""
    names = [c.name for c in columns]
    new, old = (", ".join(quote(buffer_column(side, name)) for name in names) for side in ("new", "old"))
    return f"(action <> 'U' OR ROW({new})::record *<> ROW({old})::record)"


def window_rows(window: Window) -> str:
    """Return the FROM item in which `window_predicate` finds the window's rows."""
    buffer = ".".join(quote(part) for part in window.buffer)
    return f"(SELECT * FROM {buffer} UNION ALL SELECT * FROM {window.beyond}) AS b" if window.beyond else buffer


def window_predicate(window: Window) -> str:
    """Return the condition for rows that became visible after `old`: a reader on the snapshot `new` sees no later ones.

    A condition for `new` would filter nothing, and make PostgreSQL expect only a ninth of the rows.
    """
    old = f"{literal(window.old)}::pg_snapshot"
    terms = [f"xid >= pg_snapshot_xmin({old})", f"NOT pg_visible_in_snapshot(xid, {old})"]
    terms += [f"xid <> {literal(str(xid))}::xid8" for xid in window.also]
    return " AND ".join(terms)


def check_size(root: Relation) -> None:
    """Refuse a plan with too many SELECTs: shared nodes are written once, all others wherever they are read."""
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    parents: dict[int, int] = {}
    order: list[Relation] = []
    stack: list[tuple[Relation, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
            continue
        parents[id(node)] = parents.get(id(node), 0) + 1
        if parents[id(node)] == 1:
            stack.append((node, True))
            stack.extend((child, False) for child in node.inputs)
    apart = 0
    for node in order:
        size = 1 + sum(sizes[id(child)] for child in node.inputs)
        if node.is_apart(parents[id(node)]):
            apart, size = apart + size, 1
        sizes[id(node)] = size
        depths[id(node)] = 1 + max((depths[id(child)] for child in node.inputs), default=0)
    if sizes[id(root)] + apart > MAX_SELECTS:
        raise too_large("SELECTs in one statement", MAX_SELECTS)
    if depths[id(root)] > MAX_DEPTH:
        raise too_large("SELECTs inside each other", MAX_DEPTH)
