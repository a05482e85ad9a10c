"""A query is split in two halves: an aggregate that is kept as a stream table of its own, and a query that reads it.

    Q = outer(γ(F))    →    part := γ(F),    Q = outer(part)

Some queries gather an aggregate's rows: by another aggregate, DISTINCT, a window, LIMIT, or a subquery over all of
them. Then the change of one group doesn't tell the reader which rows to look at, unless the group's rows are counted
again, both before and after the change. An aggregate that is kept has each group's old value stored, and adds the
change to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import groupby

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls, is_windowed
from airflow_provider_pgtrickle.engine.dvm.expressions import conjunction, has_subquery, render, rewrite
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import is_bounded
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

#: The clauses of a block that move to its part; HAVING is about groups, so it stays.
_WITHIN = ("from_", "joins", "laterals", "where", "group")
_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)


@dataclass(frozen=True)
class Split:
    """One way to halve a query. Both halves are text, which PostgreSQL must accept as it accepted the whole query."""

    part: str
    """The SELECT of the groups' keys and aggregates, which reads nothing but tables."""
    _query: exp.Query
    _places: tuple[exp.Table, ...]

    @property
    def is_for_several(self) -> bool:
        """Whether several blocks read the part. Then it pays only if all of it is kept by adding."""
        return len(self._places) > 1

    def outer(self, schema: str, name: str) -> str:
        """Return the whole query, which reads the part from the table of that name."""
        for place in self._places:
            place.set("this", exp.to_identifier(name, quoted=True))
            place.set("db", exp.to_identifier(schema, quoted=True))
        return render(self._query)


@dataclass(frozen=True)
class _Half:
    """A block that now reads a part: the part's SELECT, and the place where the block names the part's table."""

    inner: exp.Select
    place: exp.Table


def splits(canonical: str, schema: Schema) -> Iterator[Split]:
    """Yield a split for each aggregate that is worth keeping: those of one row together, then the innermost first."""
    try:
        first = parse(canonical)
    except Refused:
        return
    if any(clause.args.get("recursive") for clause in first.find_all(exp.With)):
        return
    worth = {
        number: block
        for number, block in enumerate(_blocks(first))
        if _aggregates(block, schema) and (_gathers(block, own=True) or _is_gathered(block, schema))
    }
    # The text is parsed anew each time, because each way of halving changes its tree.
    for numbers in _of_one_table(worth):
        query = parse(canonical)
        together = _together(query, [_blocks(query)[number] for number in numbers], schema)
        if together is not None:
            yield together
    for number in worth:
        query = parse(canonical)
        half = _halve(query, _blocks(query)[number], schema)
        if half is not None:
            yield Split(render(half.inner), query, (half.place,))


def _blocks(query: exp.Query) -> list[exp.Select]:
    return list(query.find_all(exp.Select))[::-1]


# -- which ---------------------------------------------------------------------------------------


def _aggregates(block: exp.Select, schema: Schema) -> bool:
    return bool(block.args.get("group") or _calls(block, schema))


def _gathers(block: exp.Select, *, own: bool = False) -> bool:
    """Whether a block's rows depend on further rows than they are made from; with `own`, its grouping doesn't count."""
    having = block.args.get("having")
    return bool(
        block.args.get("distinct")
        or is_bounded(block)
        or any(item.find(exp.Window) for item in block.expressions)
        or (own and having and has_subquery(having))
    )


def _is_gathered(block: exp.Select, schema: Schema) -> bool:
    """Whether something that reads the block's rows gathers them."""
    node: exp.Expr = block
    while True:
        above = node.find_ancestor(exp.CTE, exp.From, exp.Join, exp.Select)
        if above is None:
            return False
        if isinstance(above, exp.CTE):
            return any(_is_gathered_through(t, schema) for t in above.root().find_all(exp.Table) if _names(t, above))
        if isinstance(above, exp.Select):
            # The block is a subquery in an expression: all its rows give one value for each outer row, unless it has
            # groups to look up.
            return node is block and not block.args.get("group")
        select = above.find_ancestor(exp.Select)
        assert select is not None  # FROM and JOIN belong to a block
        if _aggregates(select, schema) or _gathers(select):
            return True
        node = select


def _is_gathered_through(reference: exp.Table, schema: Schema) -> bool:
    select = reference.find_ancestor(exp.Select)
    return select is not None and (_aggregates(select, schema) or _gathers(select) or _is_gathered(select, schema))


def _names(table: exp.Table, cte: exp.CTE) -> bool:
    return not table.args.get("db") and table.name == cte.alias


def _of_one_table(blocks: dict[int, exp.Select]) -> Iterator[list[int]]:
    """Yield the numbers of several blocks that give one row each, and read one table, the same, by conditions alone."""

    def read(number: int) -> str:
        return render(blocks[number].args["from_"])

    simple = [number for number, block in blocks.items() if _reads_one_table(block)]
    for _, found in groupby(sorted(simple, key=read), key=read):
        numbers = list(found)
        if len(numbers) > 1:
            yield numbers


def _reads_one_table(block: exp.Select) -> bool:
    given, where = block.args.get("from_"), block.args.get("where")
    more = [clause for clause in ("group", "joins", "laterals", "with_", "having") if block.args.get(clause)]
    return (
        not more
        and given is not None
        and isinstance(given.this, exp.Table)
        and not given.this.args.get("joins")
        and not (where and has_subquery(where))
    )


# -- how -----------------------------------------------------------------------------------------


def _together(query: exp.Query, blocks: list[exp.Select], schema: Schema) -> Split | None:
    """Return one part for the aggregates of several blocks; each goes over the rows that its block reads.

    SELECT x(a) FROM t WHERE p, SELECT y(b) FROM t WHERE q
    →  SELECT x(a) FILTER (WHERE p), y(b) FILTER (WHERE q) FROM t
    """
    halves: list[_Half] = []
    columns: list[exp.Expr] = []
    for block in blocks:
        half = _halve(query, block, schema, len(columns))
        if half is None:
            return None
        halves.append(half)
        where = half.inner.args.get("where")
        columns += [_filtered(item, where.this) if where else item for item in half.inner.expressions]
    inner = halves[0].inner
    inner.set("expressions", columns)
    inner.set("where", None)
    return Split(render(inner), query, tuple(half.place for half in halves))


def _filtered(item: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Return an aggregate's column that takes in only the rows that meet the condition."""
    call = item.this
    terms = [condition]
    if isinstance(call, exp.Filter):
        terms.append(call.expression.this)
        call = call.this
    filtered = exp.Filter(this=call.copy(), expression=exp.Where(this=conjunction(terms)))
    return exp.alias_(filtered, item.alias, quoted=True)


def _halve(query: exp.Query, block: exp.Select, schema: Schema, taken: int = 0) -> _Half | None:
    """Return what becomes the part, whose first `taken` aggregates are others; the block then reads it.

    Return None if the block reads more than tables, or its groups alone don't give its columns."""
    group = block.args.get("group")
    keys = list(group.expressions) if group else []
    if group and (group.find(*_SETS) or any(isinstance(key, exp.Literal) for key in keys)):
        return None
    if block.find(exp.Collate):
        return None  # the expression's explicit collation would be only an implicit one as a column of the part
    inner = _only(block, _WITHIN)
    tables = list(inner.find_all(exp.Table))
    if not tables or any(not isinstance(t.this, exp.Identifier) or not t.args.get("db") for t in tables):
        return None
    names = {key: f"k{number}" for number, key in enumerate(keys, 1)} | _calls(block, schema, taken)
    inner.set("expressions", [exp.alias_(what.copy(), name, quoted=True) for what, name in names.items()])
    alias = _unused("part", query)
    over = _Over(names, alias)
    place = exp.Table(alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    having = block.args.get("having")
    items = [over.item(item) for item in block.expressions]
    condition = exp.Where(this=over(having.this)) if having else None
    for clause in (*_WITHIN, "having"):
        block.set(clause, None)
    for clause, value in list(block.args.items()):
        if clause not in ("expressions", "with_") and value:
            block.set(clause, [over(x) for x in value] if isinstance(value, list) else over(value))
    block.set("expressions", items)
    block.set("from_", exp.From(this=place))
    block.set("where", condition)
    return None if over.lost else _Half(inner, place)


def _only(block: exp.Select, clauses: Collection[str]) -> exp.Select:
    copy = block.copy()
    for clause in [clause for clause in copy.args if clause not in clauses]:
        copy.set(clause, None)
    return copy


def _calls(block: exp.Select, schema: Schema, taken: int = 0) -> dict[exp.Expr, str]:
    """Return the aggregates in all clauses of the block, and the part's columns for them, after `taken` others."""
    rest = _only(block, [clause for clause in block.args if clause not in (*_WITHIN, "with_")])
    found: dict[exp.Expr, str] = {}
    for expression in rest.iter_expressions():
        for call in aggregate_calls(expression, schema.aggregates):
            found.setdefault(call, f"a{taken + len(found) + 1}")
    return found


class _Over:
    """It rewrites expressions of a block in terms of its part's columns."""

    def __init__(self, names: dict[exp.Expr, str], alias: str) -> None:
        self._names = names
        self._alias = alias
        self.lost = False
        """Whether an expression had a column that was neither a key nor inside an aggregate."""

    def __call__(self, expression: exp.Expr) -> exp.Expr:
        return rewrite(expression, self._change)

    def item(self, item: exp.Expr) -> exp.Expr:
        """Return one of the block's columns, under its name."""
        value = self(item.this if isinstance(item, exp.Alias) else item)
        return exp.alias_(value, item.alias_or_name, quoted=True) if item.alias_or_name else value

    def _change(self, node: exp.Expr) -> exp.Expr | None:
        if node in self._names and not is_windowed(node):
            return exp.column(self._names[node], table=self._alias, quoted=True)
        if isinstance(node, (exp.Select, exp.SetOperation)):
            # If the subquery reads columns of the block other than its keys, PostgreSQL will refuse the outer half.
            return node.copy()
        self.lost = self.lost or isinstance(node, exp.Column)
        return None


def _unused(name: str, query: exp.Query) -> str:
    taken = {identifier.name for identifier in query.find_all(exp.Identifier)}
    while name in taken:
        name += "_"
    return name
