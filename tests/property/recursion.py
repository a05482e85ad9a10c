"""Random graphs, recursive queries over them, and histories of their nodes and edges.

Under UNION ALL every edge goes from the smaller number to the greater, or the query would not end; under UNION
edges go anywhere, and all that ends a walk is that it has been there. With CYCLE they go anywhere under both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

DDL = (
    "CREATE TABLE node (id int PRIMARY KEY, parent int, label text)",
    "CREATE TABLE edge (src int, dst int, n numeric)",
    "CREATE TABLE mark (id int, note text)",
)
_MOST = 6
_IDS = st.integers(1, _MOST)
_NUMBERS = st.sampled_from(("1", "2.0", "2.00", "0.5", "NULL"))
_NOTES = st.sampled_from(("'a'", "'b'", "NULL"))


@dataclass(frozen=True)
class Graph:
    """What may be done to the tables so that the query still ends."""

    is_acyclic: bool


# -- queries -----------------------------------------------------------------------------------

_HIERARCHY = "node n JOIN r ON n.parent = r.id"
_ALL = (
    # (columns, begin, step, what to show)
    ("id, depth", "SELECT id, 0 FROM node WHERE {root}", f"SELECT n.id, r.depth + 1 FROM {_HIERARCHY} {{where}}"),
    (
        "id, path",
        "SELECT id, ARRAY[id] FROM node WHERE {root}",
        f"SELECT n.id, r.path || n.id FROM {_HIERARCHY} {{where}}",
    ),
    (
        "id, path, parent",
        "SELECT id, label, parent FROM node WHERE {root}",
        f"SELECT n.id, r.path || '/' || coalesce(n.label, '-'), n.parent FROM {_HIERARCHY} {{where}}",
    ),
    (
        "id, label",
        "SELECT id, label FROM node WHERE {root}",
        f"SELECT n.id, m.note FROM {_HIERARCHY} LEFT JOIN mark m ON m.id = n.id {{where}}",
    ),
    (
        "id, total",
        "SELECT dst, n FROM edge",
        "SELECT e.dst, r.total * e.n FROM r JOIN edge e ON e.src = r.id {where}",
    ),
    (
        "a, id, length",
        "SELECT src, dst, 1 FROM edge",
        "SELECT r.a, e.dst, r.length + 1 FROM r JOIN edge e ON e.src = r.id {where}",
    ),
    (
        "id, note",
        "SELECT id, note FROM mark UNION ALL SELECT 1, 'one'",
        "SELECT e.dst, m.note FROM r JOIN edge e ON e.src = r.id JOIN mark m ON m.id = e.dst {where}",
    ),
    (
        "id, twins",
        "SELECT DISTINCT id, 0::bigint FROM mark",
        "SELECT e.dst, e.twins FROM r"
        " JOIN (SELECT src, dst, count(*) AS twins FROM edge GROUP BY src, dst) e ON e.src = r.id {where}",
    ),
)
_SET = (
    ("id", "SELECT id FROM mark", "SELECT e.dst FROM r JOIN edge e ON e.src = r.id {where}"),
    ("a, id", "SELECT src, dst FROM edge", "SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.id {where}"),
    ("id, b", "SELECT src, dst FROM edge", "SELECT e.src, r.b FROM edge e JOIN r ON e.dst = r.id {where}"),
    (
        "id, depth",
        "SELECT id, 0 FROM mark",
        "SELECT e.dst, r.depth + 1 FROM r JOIN edge e ON e.src = r.id WHERE r.depth < 4 {and_}",
    ),
    (
        "id, note",
        "SELECT id, note FROM mark",
        "SELECT e.dst, m.note FROM r JOIN edge e ON e.src = r.id LEFT JOIN mark m ON m.id = e.dst {where}",
    ),
    (
        "id, parent",
        "SELECT id, parent FROM node WHERE {root}",
        f"SELECT n.id, n.parent FROM {_HIERARCHY} {{where}}",
    ),
)
_ROOTS = ("parent IS NULL", "parent IS NULL OR label = 'a'", "id = 1", "id IN (SELECT m.id FROM mark m)")
_CONDITIONS = (
    "",
    "",
    "r.id <> 3",
    "EXISTS (SELECT 1 FROM mark k WHERE k.id = r.id)",
    "NOT EXISTS (SELECT 1 FROM mark k WHERE k.id = r.id AND k.note = 'b')",
    "r.id NOT IN (SELECT k.id FROM mark k WHERE k.note = 'b')",
    "(r.id = 2 OR EXISTS (SELECT 1 FROM edge k WHERE k.dst = r.id AND k.src <> 5))",
    "r.id <= (SELECT count(*) FROM node k)",
    "(SELECT count(*) FROM mark k WHERE k.id >= r.id) < 3",
)


# (columns, begin, step, by what CYCLE may tell that a walk has been there); notes may be NULL.
_WALKED = (
    ("id", "SELECT id FROM mark", "SELECT e.dst FROM r JOIN edge e ON e.src = r.id {where}", ("id",)),
    (
        "id, depth",
        "SELECT id, 0 FROM mark",
        "SELECT e.dst, r.depth + 1 FROM edge e, r WHERE e.src = r.id {and_}",
        ("id",),
    ),
    (
        "a, id",
        "SELECT src, dst FROM edge WHERE src < 3",
        "SELECT r.id, e.dst FROM r JOIN edge e ON e.src = r.id {where}",
        ("a, id", "id, a", "id"),
    ),
    (
        "id, note",
        "SELECT id, note FROM mark",
        "SELECT e.dst, m.note FROM r JOIN edge e ON e.src = r.id LEFT JOIN mark m ON m.id = e.dst {where}",
        ("id", "note", "id, note"),
    ),
    (
        "id, parent",
        "SELECT id, parent FROM node WHERE {root}",
        f"SELECT n.id, n.parent FROM {_HIERARCHY} {{where}}",
        ("id", "parent, id"),
    ),
    (
        "id, label",
        "SELECT 1, 'one'::text",
        "SELECT n.id, n.label FROM node n JOIN r ON n.parent IS NOT DISTINCT FROM nullif(r.id, 3) {where}",
        ("id",),
    ),
)
_MARKS = ("looped", "looped", "looped TO 'Y' DEFAULT 'N'", "looped TO 1 DEFAULT 0", "looped TO false DEFAULT true")


# What stands above a recursion; {second} is another one, which may read the first.
_ABOVE = (
    "SELECT r.* FROM r WHERE r.id <> 3",
    "SELECT r.id, m.note FROM r JOIN mark m ON m.id = r.id",
    "SELECT n.id, n.label, r.id AS reached FROM node n LEFT JOIN r ON r.id = n.id AND r.id < 5",
    "SELECT r.id, count(*) AS n FROM r GROUP BY r.id",
    "SELECT count(*) AS n, max(r.id) AS most FROM r",
    "SELECT DISTINCT r.id % 2 AS odd FROM r",
    "SELECT r.id, rank() OVER (ORDER BY r.id) AS place FROM r",
    "SELECT n.id FROM node n WHERE n.id IN (SELECT r.id FROM r)",
    "SELECT n.id FROM node n WHERE n.id NOT IN (SELECT r.id FROM r)",
    "SELECT n.id, EXISTS (SELECT 1 FROM r WHERE r.id = n.id) OR n.label = 'a' AS found FROM node n",
    "SELECT n.id, (SELECT count(*) FROM r WHERE r.id < n.id) AS less FROM node n",
    "SELECT a.id, b.id AS next FROM r AS a JOIN r AS b ON b.id = a.id + 1",
    "SELECT c.n, count(*) AS times FROM (SELECT r.id, count(*) AS n FROM r GROUP BY r.id) c GROUP BY c.n",
    "SELECT r.id FROM r EXCEPT ALL SELECT m.id FROM mark m",
    "SELECT x.at FROM r AS x(at) UNION SELECT e.dst FROM edge e",
    "{second} SELECT s.id, r.id AS first FROM s LEFT JOIN r ON r.id = s.id",
    "{second} SELECT s.id FROM s WHERE s.id NOT IN (SELECT r.id FROM r WHERE r.id IS NOT NULL)",
)
_ABOVE_CYCLES = (
    "SELECT r.id FROM r WHERE r.looped IS NOT NULL",
    "SELECT r.looped, count(*) AS n FROM r GROUP BY r.looped",
    "SELECT r.id, max(array_length(r.way, 1)) AS far FROM r GROUP BY r.id",
    "SELECT n.id, r.way::text AS way FROM node n LEFT JOIN r ON r.id = n.id AND cardinality(r.way) > 1",
    "SELECT count(DISTINCT r.way::text) AS ways FROM r",
    "{second} SELECT s.id, r.looped FROM s LEFT JOIN r ON r.id = s.id",
)
_ABOVE_SEARCHES = (
    "SELECT r.id, dense_rank() OVER (ORDER BY r.place) AS nth FROM r",
    "SELECT r.id, dense_rank() OVER (PARTITION BY r.id ORDER BY r.place DESC) AS nth FROM r",
    "SELECT r.id % 2 AS odd, string_agg(r.id::text, ',' ORDER BY r.place, r.id) AS ids FROM r GROUP BY r.id % 2",
    "SELECT max(r.place::text) AS last FROM r",
    "SELECT count(*) AS n FROM (SELECT r.id FROM r ORDER BY r.place) AS q",
)
_SECOND = (
    ", s(id) AS (SELECT m.id FROM mark m UNION SELECT e.src FROM edge e JOIN s ON e.dst = s.id)",
    ", s(id) AS (SELECT r.id FROM r UNION SELECT e.src FROM edge e JOIN s ON e.dst = s.id)",
    ", z AS (SELECT n.id, n.parent FROM node n WHERE n.label IS NOT NULL), s(id) AS (SELECT z.id FROM z"
    " UNION SELECT z.parent FROM z JOIN s ON z.id = s.id)",
)


@st.composite
def above(draw: st.DrawFn, query: str) -> str:
    """A recursive query under something else than a list of columns."""
    recursion, _, _ = query.rpartition(" SELECT ")
    return f"{recursion} {draw(st.sampled_from(_ABOVE)).format(second=draw(st.sampled_from(_SECOND)))}"


@st.composite
def queries(draw: st.DrawFn, graph: Graph) -> str:
    columns, begin, step = draw(st.sampled_from(_ALL if graph.is_acyclic else _SET))
    condition = draw(st.sampled_from(_CONDITIONS))
    begin = begin.format(root=draw(st.sampled_from(_ROOTS)))
    step = step.format(where=f"WHERE {condition}" if condition else "", and_=f"AND {condition}" if condition else "")
    names = columns.split(", ")
    shown = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    if draw(st.booleans()):
        shown.append(f"{names[-1]}::text AS shown")
    word = "UNION ALL" if graph.is_acyclic else "UNION"
    return f"WITH RECURSIVE r({columns}) AS ({begin} {word} {step}) SELECT {', '.join(shown)} FROM r"


@dataclass(frozen=True)
class Walk:
    """A recursion with SEARCH or CYCLE: its WITH without the word in front, and the columns that may be shown."""

    text: str
    columns: tuple[str, ...]
    is_all: bool
    has_cycle: bool
    has_search: bool


@st.composite
def walks(draw: st.DrawFn, graph: Graph) -> Walk:
    columns, begin, step, keys = draw(st.sampled_from(_WALKED))
    condition = draw(st.sampled_from(_CONDITIONS))
    begin = begin.format(root=draw(st.sampled_from(_ROOTS)))
    step = step.format(where=f"WHERE {condition}" if condition else "", and_=f"AND {condition}" if condition else "")
    is_all = graph.is_acyclic or draw(st.booleans())
    # From 3 the last of them goes back to where a tree begins.
    has_cycle = not graph.is_acyclic or "nullif" in step or draw(st.booleans())
    has_search = not has_cycle or draw(st.booleans())
    names, clauses = columns.split(", "), ""
    shown = list(names)
    if has_search:
        by = ", ".join(draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)))
        clauses += f" SEARCH {draw(st.sampled_from(('DEPTH', 'BREADTH')))} FIRST BY {by} SET place"
        shown.append("place::text AS place")
    if has_cycle:
        clauses += f" CYCLE {draw(st.sampled_from(keys))} SET {draw(st.sampled_from(_MARKS))} USING way"
        shown += ["looped", "way::text AS way", "array_length(way, 1) AS length"]
    text = f"r({columns}) AS ({begin} UNION {'ALL ' if is_all else ''}{step}){clauses}"
    return Walk(text, tuple(shown), is_all, has_cycle, has_search)


@st.composite
def walk_queries(draw: st.DrawFn, graph: Graph) -> str:
    walk = draw(walks(graph))
    shown = draw(st.lists(st.sampled_from(walk.columns), min_size=1, unique=True))
    order = " ORDER BY place, 1" if walk.has_search and draw(st.booleans()) else ""
    return f"WITH RECURSIVE {walk.text} SELECT {', '.join(shown)} FROM r{order}"


@st.composite
def queries_above_walks(draw: st.DrawFn, graph: Graph) -> str:
    walk = draw(walks(graph))
    above = _ABOVE_CYCLES * walk.has_cycle + _ABOVE_SEARCHES * (walk.has_search and walk.is_all)
    return f"WITH RECURSIVE {walk.text} {draw(st.sampled_from(above)).format(second=draw(st.sampled_from(_SECOND)))}"


# -- what happens to the tables ------------------------------------------------------------------


@st.composite
def _edge(draw: st.DrawFn, graph: Graph) -> tuple[str, str]:
    a, b = draw(_IDS), draw(_IDS)
    if graph.is_acyclic:
        a, b = min(a, b), max(a, b) + (a == b)
    return str(a), draw(st.sampled_from((str(b), str(b), str(b), "NULL")))


@st.composite
def _row(draw: st.DrawFn, graph: Graph, table: str) -> str:
    if table == "mark":
        return f"({draw(_IDS)}, {draw(_NOTES)})"
    a, b = draw(_edge(graph))
    if table == "edge":
        return f"({a}, {b}, {draw(_NUMBERS)})"
    # A parent is smaller than its child.
    return f"({b}, {a}, {draw(_NOTES)})" if b != "NULL" else f"({a}, NULL, {draw(_NOTES)})"


@st.composite
def inserts(draw: st.DrawFn, graph: Graph, table: str, most: int = 3) -> str:
    rows = draw(st.lists(_row(graph, table), min_size=1, max_size=most))
    return f"INSERT INTO {table} VALUES {', '.join(rows)}" + (" ON CONFLICT DO NOTHING" if table == "node" else "")


@st.composite
def _changes(draw: st.DrawFn, graph: Graph) -> list[str]:
    table = draw(st.sampled_from(("edge", "edge", "node", "node", "mark")))
    what = draw(st.sampled_from(("insert", "delete", "delete", "move", "phantom", "again", "empty", "note")))
    a, b = draw(_edge(graph))
    key = {"edge": "src", "node": "id", "mark": "id"}[table]
    one = f"{key} = {draw(_IDS)}"
    if what == "insert":
        return [draw(inserts(graph, table))]
    if what == "delete":
        return [f"DELETE FROM {table} WHERE {one}"]
    if what == "move" and table == "edge":
        return [f"UPDATE edge SET src = {a}, dst = {b} WHERE src = {draw(_IDS)}"]
    if what == "move" and table == "node":
        # One that is in a cycle's way is refused by nobody: its parent is smaller, always.
        child, parent = (b, a) if b != "NULL" else (a, "NULL")
        if draw(st.booleans()):
            return [f"UPDATE node SET parent = {parent} WHERE id = {child}"]
        larger = f" AND (parent IS NULL OR parent < {child})" if graph.is_acyclic else ""
        return [f"UPDATE node SET id = {child} WHERE {one}{larger}"]
    if what == "phantom":
        return [f"INSERT INTO edge VALUES ({a}, {b}, 7)", "DELETE FROM edge WHERE n = 7"]
    if what == "again":
        return [
            f"CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT * FROM {table} WHERE {one}",
            f"DELETE FROM {table} WHERE {one}",
            f"INSERT INTO {table} SELECT * FROM gone",
            "DROP TABLE gone",
        ]
    if what == "empty":
        return [f"DELETE FROM {table}"]
    column = {"edge": "n", "node": "label", "mark": "note"}[table]
    return [f"UPDATE {table} SET {column} = {draw(_NUMBERS if table == 'edge' else _NOTES)} WHERE {one}"]


@dataclass(frozen=True)
class RecursiveExample:
    ddl: tuple[str, ...]
    query: str
    history: list[list[str]]


@st.composite
def inner_recursions(draw: st.DrawFn) -> RecursiveExample:
    example = draw(recursive_examples(is_acyclic=draw(st.booleans())))
    return replace(example, query=draw(above(example.query)))


@st.composite
def walk_examples(draw: st.DrawFn, *, is_inner: bool) -> RecursiveExample:
    graph = Graph(is_acyclic=draw(st.sampled_from((False, False, True))))
    queries_of = queries_above_walks if is_inner else walk_queries
    return replace(draw(recursive_examples(is_acyclic=graph.is_acyclic)), query=draw(queries_of(graph)))


@st.composite
def recursive_examples(draw: st.DrawFn, *, is_acyclic: bool) -> RecursiveExample:
    graph = Graph(is_acyclic)
    filled = [draw(inserts(graph, table, most=8)) for table in ("node", "edge", "mark") if draw(st.integers(0, 5)) < 5]
    transactions = st.lists(_changes(graph), min_size=1, max_size=3).map(lambda parts: [s for p in parts for s in p])
    history = draw(st.lists(transactions, min_size=2, max_size=4))
    return RecursiveExample((*DDL, *filled), draw(queries(graph)), history)
