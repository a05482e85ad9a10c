"""A query is split in two halves: something inside it that is kept as a stream table of its own, and what reads it.

    Q = outer(γ(F))    →    part := γ(F),    Q = outer(part)         an aggregate
    Q = σ(γ(F))        →    part := γ(F),    Q = σ(part)             HAVING
    Q = γ(F), γ over DISTINCT x  →  part := δ(π(F)),  Q = γ'(part) or γ'(F ⊎ part)
    Q = outer(R)       →    part := R,       Q = outer(part)         R = B ⊎ S(R), a recursion

Some queries gather an aggregate's rows: by another aggregate, DISTINCT, a window, LIMIT, or a subquery over all of
them. Then the change of one group doesn't tell the reader which rows to look at, unless the group's rows are counted
again, both before and after the change. An aggregate that is kept has each group's old value stored, and adds the
change to it. A recursion below anything but projections would be computed anew twice; one that is kept has its rows
stored, and changes by deleting and rederiving.

A filter above groups shows or hides a group by what it adds up to, so the sums of hidden groups must be kept, too. And
a value counts as DISTINCT as long as one row of its group has it, so it is kept how many have. Both pay only where the
groups are then merged by adding, or where values are collected that are much fewer than rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls, arguments, is_order_sensitive, is_windowed
from airflow_provider_pgtrickle.engine.dvm.dialect import Search, raw_type, walk_of, without_walk
from airflow_provider_pgtrickle.engine.dvm.expressions import conjunction, has_subquery, render, rewrite, unparen
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import is_bounded
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_order import drop_order
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import item_names, parse
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_walk import Unfit, Use, places_of, spell_walk, uses
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

#: The clauses of a block that move to its part; HAVING is about groups, so it stays.
_WITHIN = ("from_", "joins", "laterals", "where", "group")
_PART = "__pgt_p"
_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)


@dataclass(frozen=True)
class Split:
    """One way to halve a query. Both halves are text, which PostgreSQL must accept as it accepted the whole query."""

    parts: tuple[str, ...]
    """SELECTs that read nothing but tables: of groups' keys with aggregates or with values, or of a recursion's rows.
    """
    _query: exp.Query
    _places: tuple[tuple[exp.Table, ...], ...]
    """For each part the tables of the query that stand for it."""
    added: str | None = None
    """A SELECT that must be merged by adding, or the split doesn't pay."""
    grouped: str | None = None
    """The SELECT of the groups that would otherwise be read anew; the split pays only if they have many rows."""
    repeated: bool = False
    """Whether the parts' values are read where the rows would be; the split pays only if each is in many rows."""
    alike: tuple[str, ...] = ()
    """Columns of the parts whose equal values must look alike, because one of them stands for all."""

    @property
    def is_for_several(self) -> bool:
        """Whether one part has aggregates of several blocks."""
        return any(len(places) > 1 for places in self._places) and self.added is not None

    def outer(self, *names: tuple[str, str]) -> str:
        """Return the whole query, which reads each part from the table of that schema and name."""
        for (schema, name), places in zip(names, self._places, strict=True):
            for place in places:
                place.set("this", exp.to_identifier(name, quoted=True))
                place.set("db", exp.to_identifier(schema, quoted=True))
        return render(self._query)


@dataclass(frozen=True)
class _Half:
    """A block that now reads a part: the part's SELECT, and the place where the block names the part's table."""

    inner: exp.Select
    place: exp.Table


def splits(canonical: str, schema: Schema) -> Iterator[Split]:
    """Yield a split for each recursion, or, if there is none, for each aggregate that is worth keeping.

    First come aggregates over DISTINCT values, whose parts others may be made of, then aggregates of one row, together,
    then the innermost.
    """
    try:
        first = parse(canonical)
    except Refused:
        return
    if any(clause.args.get("recursive") for clause in first.find_all(exp.With)):
        for number, _ in enumerate(first.find_all(exp.CTE)):
            found = _recursion(parse(canonical), number, schema)
            if found is not None:
                yield found
        return
    worth = {
        number: block
        for number, block in enumerate(_blocks(first))
        if _aggregates(block, schema) and (_gathers(block, own=True) or _is_gathered(block, schema))
    }
    top, is_filtered = _top(first)
    numbered = {id(block): number for number, block in enumerate(_blocks(first))}
    shown = numbered.get(id(top)) if top is not None and _aggregates(top, schema) else None
    # The text is parsed anew each time, because each way of halving changes its tree.
    for number in dict.fromkeys([*worth, *([shown] if shown is not None else [])]):
        query = parse(canonical)
        over_values = _over_values(query, _blocks(query)[number], schema)
        if over_values is not None:
            yield over_values
    for numbers in _of_one_table(worth):
        query = parse(canonical)
        together = _together(query, [_blocks(query)[number] for number in numbers], schema)
        if together is not None:
            yield together
    for number in worth:
        query = parse(canonical)
        half = _halve(query, _blocks(query)[number], schema)
        if half is not None:
            yield Split((render(half.inner),), query, ((half.place,),))
    if shown is not None and is_filtered and shown not in worth:
        query = parse(canonical)
        half = _halve(query, _blocks(query)[shown], schema)
        if half is not None:
            part = render(half.inner)
            yield Split((part,), query, ((half.place,),), added=part, grouped=part)


def _blocks(query: exp.Query) -> list[exp.Select]:
    return list(query.find_all(exp.Select))[::-1]


# -- recursions ----------------------------------------------------------------------------------


def _recursion(query: exp.Query, number: int, schema: Schema) -> Split | None:
    """Return the split at a WITH item of the query, None if that is no recursion or can't stand alone.

    WITH RECURSIVE b AS (…), r(x) AS (… b … r …) SELECT … FROM r JOIN t …
    →   part:  WITH RECURSIVE b AS (…), r(x) AS (…) SELECT r.x AS x FROM r
        outer: WITH RECURSIVE b AS (…) SELECT … FROM part AS r JOIN t …
    """
    items = list(query.find_all(exp.CTE))
    item, by_name = items[number], {cte.alias: cte for cte in items}
    name, read = item.alias, _items_behind(item, by_name)
    # A name that stands for two things would need the scopes.
    if not any(cte is item for cte in read) or len(by_name) < len(items):
        return None
    try:
        walked = _walked(query, item, schema)
    except (Refused, Unfit):
        return None
    places = [t for t in places_of(item) if not _is_within(t, item)]
    columns = [item.alias_or_name for item in walked.shown]
    if not places or len(set(columns)) < len(columns) or _has_whole_rows(query, places):
        return None
    part = exp.Select(
        with_=exp.With(expressions=[walked.item if cte is item else cte.copy() for cte in read], recursive=True),
        expressions=walked.shown,
        from_=exp.From(this=exp.Table(this=exp.to_identifier(name, quoted=True))),
    )
    if not any(table.args.get("db") for table in part.find_all(exp.Table)):
        return None
    for place in places:
        if walked.records:
            _restore(place, columns, walked.records)
        elif not place.alias:
            place.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    above = item.parent
    assert isinstance(above, exp.With)
    item.pop()
    if above.expressions:
        above.set("recursive", any(cte is c for cte in above.expressions for c in _items_behind(cte, by_name)))
    else:
        above.pop()
    return Split((render(part),), query, (tuple(places),), alike=walked.alike)


@dataclass(frozen=True)
class _Walked:
    """What a part keeps of a recursive item."""

    item: exp.CTE
    """A copy of the item; SEARCH is spelled out where rows are ordered by it."""
    shown: list[exp.Expr]
    alike: tuple[str, ...] = ()
    """Columns whose equal values must look alike."""
    records: Search | None = None
    """The search, breadth first, of whose column only the depth is kept."""


def _walked(query: exp.Query, item: exp.CTE, schema: Schema) -> _Walked:
    """Return the item's columns as a table can store them, without those that nobody asks for.

    SELECT r.a, r.c, r.p::text[]  stands for  SELECT r.a, r.c, r.p,  c the mark of CYCLE, p its path
    """
    walk, own = walk_of(item), item_names(without_walk(item))
    shown: list[exp.Expr] = [_shown(item, c) for c in own]
    if walk is None:
        return _Walked(item.copy(), shown)
    search, cycle = walk.search, walk.cycle
    if search is not None and not any(d.args.get("on") for d in query.find_all(exp.Distinct)):
        drop_order(query, schema)
    asked = uses(item)
    is_ordered = search is not None and asked[search.place] == {Use.ORDER}
    kept, alike, records = item.copy(), [], None
    for name in walk.added:
        is_record = search is not None and search.is_breadth and name == search.place
        if cycle is not None and name == cycle.mark:
            shown.append(_shown(item, name))
        elif is_ordered and search is not None and name == search.place:
            kept = spell_walk(item, asked, is_ordered=True).item
            shown.append(_shown(item, name))
            alike = [*(() if is_record else search.by), *(cycle.by if cycle else ())]
            records = search if is_record else None
        elif asked[name] == {Use.TEXT}:
            shown.append(_shown(item, name, "text" if is_record else "text[]"))
        elif asked[name]:
            raise Unfit(f"the query asks for more of {name} than its text")
    return _Walked(kept, shown, tuple(alike), records)


def _shown(item: exp.CTE, name: str, kind: str | None = None) -> exp.Expr:
    held: exp.Expr = exp.column(name, table=item.alias, quoted=True)
    if kind is not None:
        held = exp.Cast(this=held, to=raw_type(kind))
    return exp.alias_(held, name, quoted=True)


def _restore(place: exp.Table, columns: Sequence[str], search: Search) -> None:
    """Put the records of a search, breadth first, back where the query reads the item.

    r  →  (SELECT p.a, ROW(p.s, p.a) AS s FROM part AS p) AS r
    """

    def held(name: str) -> exp.Column:
        return exp.column(name, table=_PART, quoted=True)

    record = exp.Anonymous(this="ROW", expressions=[held(search.place), *map(held, search.by)])
    values = {c: record if c == search.place else held(c) for c in columns}
    inner = exp.Select(expressions=[exp.alias_(value, c, quoted=True) for c, value in values.items()])
    alias = exp.TableAlias(this=exp.to_identifier(place.alias_or_name, quoted=True))
    place.replace(exp.Subquery(this=inner, alias=alias, joins=place.args.get("joins")))
    place.set("joins", None)
    place.set("alias", exp.TableAlias(this=exp.to_identifier(_PART, quoted=True)))
    inner.set("from_", exp.From(this=place))


def _items_behind(item: exp.CTE, by_name: dict[str, exp.CTE]) -> list[exp.CTE]:
    """Return the WITH items that an item reads, the item itself among them if it is a recursion."""
    found: list[exp.CTE] = []
    waiting = [item]
    while waiting:
        for table in waiting.pop().this.find_all(exp.Table):
            other = by_name.get(table.name) if not table.args.get("db") else None
            if other is not None and not any(other is f for f in found) and not _is_within(other.parent, item):
                found.append(other)
                waiting.append(other)
    return found


def _is_within(node: exp.Expr | None, item: exp.CTE) -> bool:
    while node is not None and node is not item:
        node = node.parent
    return node is item


def _has_whole_rows(query: exp.Query, places: list[exp.Table]) -> bool:
    """Whether a place is read as a whole row, to which the part's hidden columns would be added."""
    aliases = {place.alias_or_name for place in places}
    return any(
        (isinstance(c.this, exp.Star) and c.table in aliases) or (not c.table and c.name in aliases)
        for c in query.find_all(exp.Column)
    )


# -- which aggregates ----------------------------------------------------------------------------


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


def _top(query: exp.Query) -> tuple[exp.Select | None, bool]:
    """Return the block whose rows the query shows through nothing but filters and projections; whether it is filtered.

    The block's own HAVING counts as a filter.
    """
    block: exp.Expr | None = query
    is_filtered = False
    while isinstance(block, exp.Select):
        given = block.args.get("from_")
        if block.args.get("group") or block.args.get("having") or _gathers(block) or given is None:
            return block, is_filtered or bool(block.args.get("having"))
        item = given.this
        below = item.this if isinstance(item, exp.Subquery) else _item_of(query, item)
        if below is None or any(block.args.get(c) for c in ("joins", "laterals")) or item.args.get("joins"):
            return block, is_filtered
        is_filtered = is_filtered or bool(block.args.get("where"))
        block = below
    return None, False


def _item_of(query: exp.Query, item: exp.Expr) -> exp.Expr | None:
    """Return the query of the WITH item that a table of FROM is; None if it is another, or something else reads it."""
    clause = query.args.get("with_")
    if clause is None or not isinstance(item, exp.Table):
        return None
    for cte in clause.expressions:
        if _names(item, cte) and sum(_names(t, cte) for t in query.find_all(exp.Table)) == 1:
            found: exp.Expr = cte.this
            return found
    return None


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
    part = render(inner)
    return Split((part,), query, (tuple(half.place for half in halves),), added=part)


def _filtered(item: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Return an aggregate's column that takes in only the rows that meet the condition."""
    return _as(_filtered_call(item.this, condition), item.alias)


def _filtered_call(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    terms = [condition]
    if isinstance(call, exp.Filter):
        terms.append(call.expression.this)
        call = call.this
    return exp.Filter(this=call.copy(), expression=exp.Where(this=conjunction(terms)))


def _halve(query: exp.Query, block: exp.Select, schema: Schema, taken: int = 0) -> _Half | None:
    """Return what becomes the part, whose first `taken` aggregates are others; the block then reads it.

    Return None if the block reads more than tables, or its groups alone don't give its columns."""
    group = block.args.get("group")
    keys = [unparen(key) for key in group.expressions] if group else []
    inner = _only(block, _WITHIN)
    if not _is_of_tables(block, inner, keys):
        return None
    names = {key: f"k{number}" for number, key in enumerate(keys, 1)} | _calls(block, schema, taken)
    inner.set("expressions", [_as(what, name) for what, name in names.items()])
    alias = _unused("part", query)
    over = _Over({what: exp.column(name, table=alias, quoted=True) for what, name in names.items()})
    place = exp.Table(alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    having = block.args.get("having")
    _rewrite_block(block, over, place)
    block.set("where", exp.Where(this=over(having.this)) if having else None)
    return None if over.lost else _Half(inner, place)


def _is_of_tables(block: exp.Select, rows: exp.Select, keys: Collection[exp.Expr]) -> bool:
    """Whether a block groups nothing but tables, by keys that can be columns of a part."""
    group = block.args.get("group")
    if group and (group.find(*_SETS) or any(isinstance(key, exp.Literal) for key in keys)):
        return False
    if block.find(exp.Collate):
        return False  # the expression's explicit collation would be only an implicit one as a column of the part
    tables = list(rows.find_all(exp.Table))
    return bool(tables) and all(isinstance(t.this, exp.Identifier) and t.args.get("db") for t in tables)


def _rewrite_block(block: exp.Select, over: _Over, source: exp.Expr) -> None:
    """Let a block read what stands for its groups. Its HAVING is left out."""
    items = [over.item(item) for item in block.expressions]
    for clause in (*_WITHIN, "having"):
        block.set(clause, None)
    for clause, value in list(block.args.items()):
        if clause not in ("expressions", "with_") and value:
            block.set(clause, [over(x) for x in value] if isinstance(value, list) else over(value))
    block.set("expressions", items)
    block.set("from_", exp.From(this=source))


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


# -- DISTINCT values ----------------------------------------------------------------------------


def _over_values(query: exp.Query, block: exp.Select, schema: Schema) -> Split | None:
    """Return one part for each argument of the block's aggregates over DISTINCT values: each value once in each group.

    SELECT g, count(DISTINCT x) FROM t GROUP BY g
    →  part:  SELECT DISTINCT g AS k1, x AS v1 FROM t
       kept:  SELECT k1 AS g, count(v1) FROM part GROUP BY k1

    Other aggregates of the list read the rows beside the values. What tells them apart is the column b:

    SELECT g, count(DISTINCT x), sum(y) FROM t GROUP BY g
    →  part:  as above
       kept:  SELECT k1 AS g, count(v1) FILTER (WHERE b = 1), sum(c1) FILTER (WHERE b = 0) FROM
              (SELECT 0 AS b, g AS k1, y AS c1, CASE WHEN false THEN x END AS v1 FROM t
               UNION ALL SELECT 1, k1, NULL, v1 FROM part) AS u GROUP BY k1
    """
    group = block.args.get("group")
    keys = {unparen(key): f"k{number}" for number, key in enumerate(group.expressions if group else (), 1)}
    rows = _only(block, _WITHIN)
    calls = _calls(block, schema)
    values = {call: value for call in calls if (value := _value_of(call)) is not None}
    if not values or not _is_of_tables(block, rows, keys) or any(has_subquery(call) for call in calls):
        return None
    alias = _unused("part", query)
    kept = list(dict.fromkeys(values.values()))
    columns: dict[exp.Expr, str] = {}
    for call in calls:
        for read in call.find_all(exp.Column) if call not in values else ():
            if isinstance(read.this, exp.Star):
                return None
            columns.setdefault(read, f"c{len(columns) + 1}")
    is_alone = len(kept) == 1 and len(values) == len(calls) and kept[0].condition is None
    is_collected = any(call.find(exp.Order) for call in values)
    if is_collected and not is_alone:
        return None  # the rows of its groups would be read for the union

    def own(name: str) -> exp.Column:
        return exp.column(name, table=alias, quoted=True)

    def renamed(call: exp.Expr) -> exp.Expr:
        """The call over what the block reads now."""
        if call not in values:
            over = rewrite(call, lambda n: own(columns[n]) if n in columns else None)
            return _filtered_call(over, _is(own("b"), 0))
        number = kept.index(values[call]) + 1
        plain = _with_argument(call, own(f"v{number}"))
        return plain if is_alone else _filtered_call(plain, _is(own("b"), number))

    over = _Over({**{key: own(name) for key, name in keys.items()}, **{call: renamed(call) for call in calls}})
    grouped = _without_distinct(rows, keys, () if is_collected else calls)
    parts = tuple(render(_values(rows, keys, value, number)) for number, value in enumerate(kept, 1))
    places = tuple(exp.Table(alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))) for _ in kept)
    source: exp.Expr = places[0]
    if not is_alone:
        source = exp.Subquery(
            this=_rows_and_values(rows, keys, columns, kept, places),
            alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)),
        )
    having = block.args.get("having")
    _rewrite_block(block, over, source)
    if having:
        block.set("having", exp.Having(this=over(having.this)))
    if group:
        block.set("group", exp.Group(expressions=[own(name) for name in keys.values()]))
    if over.lost:
        return None
    shown = tuple(f"v{number}" for number in range(1, len(kept) + 1))
    return Split(
        parts,
        query,
        tuple((place,) for place in places),
        added=None if is_collected else grouped,
        grouped=grouped,
        repeated=is_collected,
        alike=shown,
    )


@dataclass(frozen=True)
class _Value:
    """What an aggregate takes in once for each group, and the condition on the rows that have it."""

    of: exp.Expr
    condition: exp.Expr | None


def _value_of(call: exp.Expr) -> _Value | None:
    """Return the argument of an aggregate over DISTINCT values; None for any other call, and for one that collects them
    in another order or in none."""
    bare, condition = call, None
    if isinstance(bare, exp.Filter):
        bare, condition = bare.this, bare.expression.this
    given = arguments(bare)
    order = given[0] if len(given) == 1 and isinstance(given[0], exp.Order) else None
    distinct = order.this if order else given[0] if len(given) == 1 else None
    if not isinstance(distinct, exp.Distinct) or is_order_sensitive(bare):
        return None
    value, *constants = distinct.expressions
    if any(x.find(exp.Column) for x in constants) or (constants and order is None):
        return None
    if order and any(unparen(by.this) != unparen(value) for by in order.expressions):
        return None
    return _Value(value, condition)


def _with_argument(call: exp.Expr, argument: exp.Expr) -> exp.Expr:
    """Return an aggregate over DISTINCT values as one over the column that has each of them once.

    string_agg(DISTINCT x, ',' ORDER BY x DESC)  →  string_agg(v, ',' ORDER BY v DESC)
    """
    made = (call.this if isinstance(call, exp.Filter) else call).copy()
    (given,) = arguments(made)
    if isinstance(given, exp.Order):
        collected: list[exp.Expr] = [argument.copy(), *given.this.expressions[1:]]
        for by in given.expressions:
            by.set("this", argument.copy())
        collected.append(exp.Order(this=collected.pop(), expressions=given.expressions))
        made.set("expressions", collected)
    else:
        given.replace(argument.copy())
    return made


def _is(what: exp.Expr, number: int) -> exp.Expr:
    return exp.EQ(this=what, expression=exp.Literal.number(number))


def _without_distinct(rows: exp.Select, keys: dict[exp.Expr, str], calls: Collection[exp.Expr]) -> str:
    """The groups as they would be if each value counted as often as it is there."""
    select = rows.copy()
    plain = [
        rewrite(call, lambda n: n.expressions[0].copy() if isinstance(n, exp.Distinct) else None) for call in calls
    ] or [exp.Count(this=exp.Star())]
    named = [*keys.items(), *((call, f"a{n}") for n, call in enumerate(plain, 1))]
    select.set("expressions", [_as(what, name) for what, name in named])
    return render(select)


def _values(rows: exp.Select, keys: dict[exp.Expr, str], value: _Value, number: int) -> exp.Select:
    """SELECT DISTINCT keys, value FROM … WHERE … AND condition."""
    select = rows.copy()
    select.set("group", None)
    select.set("distinct", exp.Distinct())
    select.set("expressions", [_as(key, name) for key, name in keys.items()] + [_as(value.of, f"v{number}")])
    if value.condition is not None:
        where = rows.args.get("where")
        terms = [*([where.this] if where else []), value.condition]
        select.set("where", exp.Where(this=conjunction(terms)))
    return select


def _rows_and_values(
    rows: exp.Select,
    keys: dict[exp.Expr, str],
    columns: dict[exp.Expr, str],
    kept: list[_Value],
    places: tuple[exp.Table, ...],
) -> exp.Expr:
    """The rows that the block reads, and the values of each part. The rows' NULLs tell the types of the values."""
    first = rows.copy()
    first.set("group", None)
    untrue = [exp.Case(ifs=[exp.If(this=exp.false(), true=value.of.copy())]) for value in kept]
    items = [_as(exp.Literal.number(0), "b")]
    items += [_as(what, name) for what, name in (*keys.items(), *columns.items())]
    items += [_as(null, f"v{number}") for number, null in enumerate(untrue, 1)]
    first.set("expressions", items)
    together: exp.Expr = first
    for number, place in enumerate(places, 1):
        part = place.alias
        held = {*keys.values(), f"v{number}"}
        names = [item.alias for item in items[1:]]
        of = [exp.column(name, table=part, quoted=True) if name in held else exp.null() for name in names]
        select = exp.Select(expressions=[exp.Literal.number(number), *of], from_=exp.From(this=place))
        together = exp.Union(this=together, expression=select, distinct=False)
    return together


def _as(what: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=what.copy(), alias=exp.to_identifier(name, quoted=True))


class _Over:
    """It rewrites expressions of a block: its keys and aggregates become what stands for them."""

    def __init__(self, known: dict[exp.Expr, exp.Expr]) -> None:
        self._known = known
        self.lost = False
        """Whether an expression had a column that was neither a key nor inside an aggregate."""

    def __call__(self, expression: exp.Expr) -> exp.Expr:
        return rewrite(expression, self._change)

    def item(self, item: exp.Expr) -> exp.Expr:
        """Return one of the block's columns, under its name."""
        value = self(item.this if isinstance(item, exp.Alias) else item)
        return exp.alias_(value, item.alias_or_name, quoted=True) if item.alias_or_name else value

    def _change(self, node: exp.Expr) -> exp.Expr | None:
        if node in self._known and not is_windowed(node):
            return self._known[node].copy()
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
