"""The support matrix: what the engine registers, and how it maintains each query that stands as an executed fixture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import psycopg
from sqlglot import exp, parse_one

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.dvm import operators, pipeline
from airflow_provider_pgtrickle.engine.dvm.expressions import ROW, column, rewrite
from airflow_provider_pgtrickle.engine.dvm.lower import closed
from airflow_provider_pgtrickle.engine.dvm.lower.carriers import Carrier, Kind, carrier_of
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from airflow_provider_pgtrickle.engine.dvm.sinks import SINKS

Row = tuple[str, ...]
Table = tuple[Sequence[str], list[Row]]

FIXTURES = Path(__file__).parent.parent / "tests" / "sql_fixtures"
_SECTION = re.compile(r"^-- (tables|query|cycle|delta|sql)(?: at [^\n]*)?\n", re.MULTILINE)
#: Modules of nodes that carry keys and weights about, and are nothing a user wrote.
_PLUMBING = {"grouping", "keys", "once", "restrict", "stored", "stored_rows", "weigh"}
#: What the samples below are about, and expressions over it: the code says of each where it runs.
_COLUMNS = {"i": "integer", "big": "bigint", "n": "numeric(10,2)", "wide": "numeric", "t": "text", "d": "date",
            "f": "double precision", "ok": "boolean"}  # fmt: skip
_SAMPLES = (
    "i + 1", "i - big", "n * i", "-n", "n / i", "i / 2", "i % 2", "wide + 1", "f + 1", "t || 'x'", "lower(t)",
    "n > 10 AND ok", "ok OR NOT ok", "t IS NULL", "t = t", "t < t", "t LIKE 'a%'", "d = d", "d < d",
    "i IN (1, 2)", "i BETWEEN 1 AND 2", "CAST(i AS BIGINT)", "CAST(t AS INT)", "coalesce(n, 0)",
    "CASE WHEN ok THEN n ELSE 0 END", "greatest(i, big)", "count(*)", "count(DISTINCT t)", "sum(i)", "sum(big)",
    "sum(n)", "sum(wide)", "sum(f)", "sum(n) FILTER (WHERE ok)", "avg(n)", "min(n)", "max(t)", "max(d)",
    "string_agg(t, ',')",
)  # fmt: skip
_TYPES = ("smallint", "integer", "bigint", "numeric(10,2)", "numeric", "boolean", "text", "character varying(20)",
          "character(3)", "date", "time without time zone", "timestamp without time zone", "timestamp with time zone",
          "uuid", "double precision", "interval", "jsonb", "bytea", "integer[]")  # fmt: skip

#: What IMMEDIATE refuses beyond DIFFERENTIAL: `engine/immediate/live.py`, in the order in which it asks.
_REFUSED_FOR_WRITERS: tuple[Row, ...] = (
    ("a query without a difference", "each writer would compute the whole content; [reasons](#reasons)"),
    ("a query that depends on the clock, the session or chance", "its answer changes while nobody writes"),
    (
        "functions and views of other roles",
        "whoever replaces one would run code with the declarer's rights at the next write",
    ),
    ("a materialized view or a foreign table as a source", "their writers fire no triggers"),
    (
        "a partition or an inheritance child by itself, whose parent isn't the source",
        "statements reach its rows through the parent, and then fire no statement trigger here",
    ),
)


def sections(dsn: str) -> Iterator[tuple[str, str, Table]]:
    """Title, introduction and table of each section."""
    yield (
        "Queries",
        "Each line is a file of `tests/sql_fixtures`: tables, the query, changes in cycles, and the delta of the first"
        " cycle as a formula. `make test` executes every one of them, asserts that each cycle ran DIFFERENTIAL, and"
        " compares the content with PostgreSQL's own answer. Each is also refreshed in placement `spark` and in"
        " placement `database`, and the two tables are equal in every column, row ids included"
        " (`tests/spark/algebra/test_placement.py`).",
        (("fixture", "operators in its tree", "sink", "identity"), list(_queries(dsn))),
    )
    yield (
        "Operators",
        "How the change of each is computed, as its module states it"
        " (`airflow_provider_pgtrickle/engine/dvm/operators`). ΔR is the change of R since the last refresh: the rows"
        " that come, less the rows that go. R⁰ is R as it was, R¹ as it is now. R ⋉ K are the rows of R with a key"
        " in K, and R ▷ K those without one. ⋈, ⟕ and ⟗ are inner, left and full join, ⊎ is UNION ALL."
        " [The algebra](algebra.md) says why the rules are as they are.",
        (("operator", "rule"), list(_operators())),
    )
    yield (
        "Sinks",
        "A sink turns a query's change into the rows that are written (`airflow_provider_pgtrickle/engine/dvm/sinks`)."
        " The first one in this order that takes a query maintains it. query¹ is the query's answer now.",
        (("sink", "what is written", "takes"), list(_sinks())),
    )
    yield (
        "IMMEDIATE",
        "IMMEDIATE takes what DIFFERENTIAL takes: every query above but `clock`, by the same operators and sinks, but"
        " without parts. It is refused for what stands here."
        " [Read your own writes](how-to/read-your-own-writes.md) says what it costs.",
        (("refused", "why"), list(_REFUSED_FOR_WRITERS)),
    )
    yield (
        "Rewrites",
        "A query's text is rewritten in this order before its tree of operators is built.",
        (("pass", "what it does"), [(f"`{p.__name__}`", _first(import_module(p.__module__))) for p in pipeline.PASSES]),
    )
    yield (
        "Reasons",
        "Why a query is refused or runs FULL. *never*: no difference exists. *not yet*: open an issue.",
        (("reason", "when", "meaning"), [(f"`{r.name}`", r.value[0], r.sentence) for r in Reason]),
    )
    yield (
        "Spark's closed list: expressions",
        "Where a FULL is lowered, Spark joins and aggregates. A node whose"
        " expressions are all on this list runs in Spark; any other stays in PostgreSQL, as part of a leaf. Nothing is"
        " approximated. An expression over one relation's columns is computed in that relation's leaf anyway, so what"
        " matters below is what stands above a join or inside an aggregate. Samples, over "
        + ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())
        + ":",
        (("expression", "computed by Spark as"), list(_closed())),
    )
    yield (
        "Spark's closed list: types",
        "How a column travels through Spark.",
        (("type", "in Spark", "meaning"), list(_carriers())),
    )


def _queries(dsn: str) -> Iterator[Row]:
    with psycopg.connect(dsn) as conn:
        install(conn)
        for file in sorted(FIXTURES.glob("*.sql")):
            pieces = _SECTION.split(file.read_text(encoding="utf-8"))[1:]
            found = dict(zip(pieces[::2], pieces[1::2], strict=True))
            with conn.transaction(force_rollback=True):
                conn.execute("CREATE SCHEMA pgt_docs; SET LOCAL search_path = pgt_docs")
                conn.execute(found["tables"])
                probed = probe(conn, found["query"].strip().rstrip(";"))
                view = dvm.analyze(probed.text, probed.schema)
            name = f"[{file.stem}](../tests/sql_fixtures/{file.name})"
            yield name, ", ".join(sorted(_labels(view.tree))), view.sink, "key" if view.keyed else "bag"


def _labels(root: Node | None) -> set[str]:
    found: set[str] = set()
    stack = [root] if root is not None else []
    while stack:
        node = stack.pop()
        module = type(node).__module__.rpartition(".")[2]
        if module in _operator_names() and module != "dependent":
            found.add(module)
        for subquery in getattr(node, "subqueries", ()):
            found.add("dependent")
            if subquery.core is not None:
                stack.append(subquery.core)
        stack.extend(node.inputs)
    return found


def _operators() -> Iterator[Row]:
    for name in _operator_names():
        yield name, _first(import_module(f"{operators.__name__}.{name}"))


@cache
def _operator_names() -> tuple[str, ...]:
    return tuple(sorted({module.name for module in iter_modules(operators.__path__)} - _PLUMBING))


def _sinks() -> Iterator[Row]:
    for sink in SINKS:
        yield sink.title, _first(import_module(sink.__module__)), (sink.__doc__ or "").strip()


def _closed() -> Iterator[Row]:
    env = {name: carrier_of(kind) for name, kind in _COLUMNS.items()}
    for text in _SAMPLES:
        expression = rewrite(parse_one(text, read="postgres"), _as_row)
        try:
            spark = closed.close(expression, env)[0].sql("spark").replace(f"`{ROW}`.", "").replace("`", "")
        except closed.NotClosed:
            spark = ""
        yield f"`{text}`", f"`{spark}`" if spark else "stays in PostgreSQL"


def _as_row(node: exp.Expression) -> exp.Expression | None:
    return column(node.name) if isinstance(node, exp.Column) else None


def _carriers() -> Iterator[Row]:
    for name in _TYPES:
        carrier: Carrier = carrier_of(name)
        meaning = "carried, never looked at" if carrier.kind is Kind.OPAQUE else carrier.kind.value
        yield f"`{name}`", f"`{carrier.spark}`", meaning


def _first(module: Any) -> str:
    """A module's docstring up to its first blank line: the formula and nothing else."""
    return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())


def render(page: Any, table: Any, parts: Iterable[tuple[str, str, Table]]) -> str:
    body = [f"## {title}\n\n{introduction}\n\n{table(heads, rows)}" for title, introduction, (heads, rows) in parts]
    return str(
        page(
            "Support matrix",
            "What is maintained by differences, how, and what is not. A query that isn't runs FULL in mode AUTO, and\n"
            "`pgtrickle explain` says why.",
            *body,
        )
    )
