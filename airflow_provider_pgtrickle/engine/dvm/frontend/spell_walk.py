"""SEARCH and CYCLE are spelled out as the columns that PostgreSQL adds for them, so that a recursion's rule applies.

    r(a) AS (B UNION ALL S) CYCLE a SET c USING p
    →   r(a, c, p) AS (SELECT x.a, false, ARRAY[ROW(x.a)::text] FROM (B) AS x (a)
                       UNION ALL
                       SELECT x.a, CASE WHEN ROW(x.a)::text = ANY (x.p) THEN true ELSE false END,
                              x.p || ARRAY[ROW(x.a)::text] FROM (S, with r.c, r.p) AS x (a, c, p) WHERE x.c <> true)

    SEARCH DEPTH FIRST BY a SET s     →  s grows like p
    SEARCH BREADTH FIRST BY a SET s   →  s is ROW(depth, x.a)::text, and depth a column of its own

PostgreSQL has records where this has their texts, because no table can store a record that has no name. Texts of
records are equal where the records are, if that holds for each of their columns: whoever builds the item has to see to
it for the columns in `compared`. A cast of the array to text is the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import Search, walk_of, without_walk
from airflow_provider_pgtrickle.engine.dvm.exact_types import constant_type
from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import item_names, read
from airflow_provider_pgtrickle.engine.dvm.types import is_its_image

_INNER = "__pgt_i"
_DEPTH = "__pgt_depth"
#: PostgreSQL's functions of an array that don't ask what is in it.
_OF_LENGTH = ("array_length", "cardinality")
_TEXTS = ("text", "text[]")
_MORE_CLAUSES = ("distinct", "group", "having", "limit", "offset")


class Unfit(Exception):
    """A recursive item has no rule; the message says why."""


class Use(Enum):
    """What is asked of a column that SEARCH or CYCLE adds."""

    TEXT = "its text, or how long it is"
    ORDER = "that rows are ordered by it"
    VALUE = "its value"


@dataclass(frozen=True)
class Spelled:
    """A WITH item whose SEARCH and CYCLE are spelled out."""

    item: exp.CTE
    made: tuple[str, ...]
    """The columns that were added; their equal values look alike."""
    compared: tuple[str, ...]
    """The item's own columns, whose equal values must look alike, or the walk would be another one."""


def places_of(item: exp.CTE) -> list[exp.Table]:
    """Return every table of the whole query, the item's own included, that may be the item."""
    return [t for t in item.root().find_all(exp.Table) if not t.args.get("db") and t.name == item.alias]


def uses(item: exp.CTE) -> dict[str, frozenset[Use]]:
    """Return what the whole query asks of each column that the item's SEARCH and CYCLE add.

    What may be such a column counts as if it were.
    """
    walk, root = walk_of(item), item.root()
    added = walk.added if walk else ()
    places = places_of(item)
    if any(place.alias_column_names or _has_alias_around(place) for place in places):
        return dict.fromkeys(added, frozenset(Use))
    aliases = {place.alias_or_name for place in places}
    # PostgreSQL leaves out the name of a block's only relation.
    blocks = {id(place.parent_select) for place in places}
    found: dict[str, set[Use]] = {name: set() for name in added}
    for column in root.find_all(exp.Column):
        if column.table not in aliases and (column.table or id(column.parent_select) not in blocks):
            continue
        if isinstance(column.this, exp.Star):
            return dict.fromkeys(added, frozenset(Use))
        if column.name in found:
            found[column.name].add(_use(column))
    for join in root.find_all(exp.Join):
        for name in {i.name for i in join.args.get("using") or []} & set(added):
            found[name].add(Use.VALUE)
    return {name: frozenset(kinds) for name, kinds in found.items()}


def spell_walk(item: exp.CTE, asked: Mapping[str, frozenset[Use]], *, is_ordered: bool = False) -> Spelled:
    """Return the item without SEARCH and CYCLE, with the columns that are asked for.

    `is_ordered`: of the column of SEARCH nothing but the order matters. Raise `Unfit` if it would be another walk.
    """
    walk, union, own = walk_of(item), item.this, item_names(without_walk(item))
    assert walk is not None
    if not isinstance(union, exp.Union) or any(union.args.get(c) for c in ("with_", "order", "limit", "offset")):
        raise Unfit("the item is not one UNION of where it begins and its step")
    if len(set(own)) < len(own):
        raise Unfit("two of its columns have one name")
    is_all = union.args.get("distinct") is False
    made: list[tuple[str, str, str]] = []
    compared: tuple[str, ...] = ()
    search, cycle = walk.search, walk.cycle
    if search is not None and (asked[search.place] or not is_all):
        if asked[search.place] - {Use.ORDER if is_ordered else Use.TEXT} or (is_ordered and not is_all):
            raise Unfit(f"the query asks for more of {search.place} than its text")
        made += _sequence(search, is_ordered)
    if cycle is not None:
        if asked[cycle.path] - {Use.TEXT}:
            raise Unfit(f"the query asks for more of {cycle.path} than its text")
        kind, other = (constant_type(read(text)) for text in (cycle.value, cycle.default))
        if kind is None or kind != other or not is_its_image(kind):
            raise Unfit(f"values of {cycle.mark} may be equal and look different, or may not be known to")
        compared = cycle.by
        row, path = f"ROW({_listed(cycle.by)})::text", _inner(cycle.path)
        mark = f"CASE WHEN {row} = ANY ({path}) THEN {cycle.value} ELSE {cycle.default} END"
        made += [(cycle.mark, cycle.default, mark), (cycle.path, f"ARRAY[{row}]", f"{path} || ARRAY[{row}]")]
    if not made:
        return Spelled(without_walk(item), (), ())
    names = tuple(name for name, _, _ in made)
    goes_on = f" WHERE {_inner(cycle.mark)} <> {cycle.value}" if cycle else ""
    begin = _over(union.this, own, own, [(name, first) for name, first, _ in made])
    step = _over(_carrying(union.expression, item.alias, names), own, [*own, *names],
                 [(name, then) for name, _, then in made], goes_on)  # fmt: skip
    spelled = without_walk(item)
    spelled.this.set("this", begin)
    spelled.this.set("expression", step)
    spelled.args["alias"].set("columns", [exp.to_identifier(n, quoted=True) for n in (*own, *names)])
    return Spelled(spelled, names, compared)


def _sequence(search: Search, is_ordered: bool) -> Iterator[tuple[str, str, str]]:
    """Yield (name, how it begins, what follows) of the columns that stand for a search's own.

    Rows are ordered by the record (depth, a) as by depth and then a, and by an array of records as by an array of
    their values, one record after the other.
    """
    listed, place = _listed(search.by), _inner(search.place)
    if search.is_breadth and is_ordered:
        yield search.place, "0::bigint", f"{place} + 1"
    elif search.is_breadth:
        depth = _inner(_DEPTH)
        yield search.place, f"ROW(0::bigint, {listed})::text", f"ROW({depth} + 1, {listed})::text"
        yield _DEPTH, "0::bigint", f"{depth} + 1"
    else:
        one = f"ARRAY[{listed}]" if is_ordered else f"ARRAY[ROW({listed})::text]"
        yield search.place, one, f"{place} || {one}"


def _over(query: exp.Expr, shown: list[str], names: list[str], made: list[tuple[str, str]], then: str = "") -> exp.Expr:
    """Return SELECT shown and made FROM query, whose columns get `names`."""
    items = [f"{_inner(n)} AS {_quoted(n)}" for n in shown] + [f"{text} AS {_quoted(n)}" for n, text in made]
    columns = ", ".join(map(_quoted, names))
    select = read(f"SELECT {', '.join(items)} FROM (SELECT 1) AS {_quoted(_INNER)} ({columns}){then}")
    select.args["from_"].this.set("this", _bare(query).copy())
    return select


def _carrying(step: exp.Expr, name: str, made: tuple[str, ...]) -> exp.Expr:
    """Return a step that shows these columns of the item, too, as PostgreSQL's does."""
    select = _bare(step)
    found = [t for t in select.find_all(exp.Table) if not t.args.get("db") and t.name == name]
    if not isinstance(select, exp.Select) or len(found) != 1 or _has_alias_around(found[0], select):
        raise Unfit("its step doesn't name it once, beside its other tables")
    if any(map(select.args.get, _MORE_CLAUSES)):
        raise Unfit("its step has more clauses than FROM and WHERE")
    fresh = select.copy()
    alias = found[0].alias_or_name
    fresh.set("expressions", [*fresh.expressions, *(exp.column(n, table=alias, quoted=True) for n in made)])
    return fresh


def _has_alias_around(place: exp.Expr, until: exp.Expr | None = None) -> bool:
    """Whether a table stands in a join that has an alias, or below another query than `until`."""
    node = place.parent
    while isinstance(node, (exp.From, exp.Join, exp.Table, exp.Subquery, exp.Paren)):
        if isinstance(node, exp.Subquery) and node.alias:
            return True
        node = node.parent
    return until is not None and node is not until


def _use(column: exp.Column) -> Use:
    node: exp.Expr = column
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    above = node.parent
    if isinstance(above, exp.Cast) and render(above.to) in _TEXTS:
        return Use.TEXT
    if isinstance(above, exp.Anonymous) and above.name.lower() in _OF_LENGTH and not isinstance(above.parent, exp.Dot):
        return Use.TEXT
    order = above.parent if isinstance(above, exp.Ordered) else None
    # percentile_disc(0.5) WITHIN GROUP (ORDER BY place) is one of the values.
    is_order = isinstance(order, exp.Order) and not isinstance(order.parent, exp.WithinGroup)
    return Use.ORDER if is_order else Use.VALUE


def _bare(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.Subquery) and not query.alias:
        query = query.this
    return query


def _quoted(name: str) -> str:
    return render(exp.to_identifier(name, quoted=True))


def _inner(name: str) -> str:
    return render(exp.column(name, table=_INNER, quoted=True))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(_inner, names))
