"""SEARCH and CYCLE as the columns that PostgreSQL adds for them; `tests/property/test_recursion.py` compares both."""

from __future__ import annotations

import pytest
from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_walk import Unfit, Use, spell_walk, uses

BEGIN = "SELECT b.g, b.v FROM public.b"
STEP = "SELECT b.g, r.g FROM (r JOIN public.b ON b.v = r.g)"
UNION = f"{BEGIN} UNION ALL {STEP}"
NOTHING: set[Use] = set()
TEXT, ORDER, VALUE = {Use.TEXT}, {Use.ORDER}, {Use.VALUE}


def _item(text: str) -> exp.CTE:
    item = parse(text).args["with_"].expressions[0]
    assert isinstance(item, exp.CTE)
    return item


def _spelled(walk: str, above: str, union: str = UNION) -> str:
    item = _item(f"WITH RECURSIVE r(g, v) AS ({union}) {walk} {above}")
    return (
        render(spell_walk(item, uses(item), is_ordered="ORDER BY r.place" in above).item)
        .replace('"', "")
        .replace("__pgt_i", "x")
    )


SPELLED = [
    (
        "CYCLE g, v SET looped USING way",
        "SELECT r.g FROM r",
        "r(g, v, looped, way) AS (SELECT x.g AS g, x.v AS v, FALSE AS looped, ARRAY[CAST(ROW(x.g, x.v) AS text)] AS way"
        f" FROM ({BEGIN}) AS x(g, v) UNION ALL SELECT x.g AS g, x.v AS v,"
        " CASE WHEN CAST(ROW(x.g, x.v) AS text) = ANY(x.way) THEN TRUE ELSE FALSE END AS looped,"
        " x.way || ARRAY[CAST(ROW(x.g, x.v) AS text)] AS way FROM (SELECT b.g, r.g, r.looped, r.way"
        " FROM (r JOIN public.b ON b.v = r.g)) AS x(g, v, looped, way) WHERE x.looped <> TRUE)",
    ),
    (
        "CYCLE g SET looped TO text 'it''s' DEFAULT text 'N' USING way",
        "SELECT r.looped FROM r",
        "r(g, v, looped, way) AS (SELECT x.g AS g, x.v AS v, CAST('N' AS text) AS looped,"
        f" ARRAY[CAST(ROW(x.g) AS text)] AS way FROM ({BEGIN}) AS x(g, v) UNION ALL SELECT x.g AS g, x.v AS v,"
        " CASE WHEN CAST(ROW(x.g) AS text) = ANY(x.way) THEN CAST('it''s' AS text) ELSE CAST('N' AS text) END"
        " AS looped,"
        " x.way || ARRAY[CAST(ROW(x.g) AS text)] AS way FROM (SELECT b.g, r.g, r.looped, r.way"
        " FROM (r JOIN public.b ON b.v = r.g)) AS x(g, v, looped, way) WHERE x.looped <> CAST('it''s' AS text))",
    ),
    (
        "SEARCH BREADTH FIRST BY v SET place",
        "SELECT r.place::text FROM r",
        "r(g, v, place, __pgt_depth) AS (SELECT x.g AS g, x.v AS v,"
        " CAST(ROW(CAST(0 AS bigint), x.v) AS text) AS place, CAST(0 AS bigint) AS __pgt_depth"
        f" FROM ({BEGIN}) AS x(g, v) UNION ALL SELECT x.g AS g, x.v AS v,"
        " CAST(ROW(x.__pgt_depth + 1, x.v) AS text) AS place, x.__pgt_depth + 1 AS __pgt_depth"
        " FROM (SELECT b.g, r.g, r.place, r.__pgt_depth FROM (r JOIN public.b ON b.v = r.g))"
        " AS x(g, v, place, __pgt_depth))",
    ),
    (
        "SEARCH DEPTH FIRST BY g, v SET place",
        "SELECT rank() OVER (ORDER BY r.place) FROM r",
        "r(g, v, place) AS (SELECT x.g AS g, x.v AS v, ARRAY[x.g, x.v] AS place"
        f" FROM ({BEGIN}) AS x(g, v) UNION ALL SELECT x.g AS g, x.v AS v, x.place || ARRAY[x.g, x.v] AS place"
        " FROM (SELECT b.g, r.g, r.place FROM (r JOIN public.b ON b.v = r.g)) AS x(g, v, place))",
    ),
    (
        "SEARCH DEPTH FIRST BY g SET place",
        "SELECT r.g FROM r",
        f"r(g, v) AS ({UNION})",
    ),
]


@pytest.mark.parametrize(("walk", "above", "spelled"), SPELLED)
def test_the_columns_are_spelled_out(walk: str, above: str, spelled: str) -> None:
    assert _spelled(walk, above) == spelled


@pytest.mark.parametrize(
    ("above", "used"),
    [
        ("SELECT r.g FROM r", NOTHING),
        ("SELECT (r.way)::text AS t, array_length(way, 1) AS n FROM r", TEXT),
        ("SELECT cardinality(x.way) AS n FROM r x JOIN public.a ON true", TEXT),
        ("SELECT rank() OVER (ORDER BY (r.way) DESC) AS n FROM r", ORDER),
        ("SELECT r.g FROM r ORDER BY r.way, (r.way)::text", ORDER | TEXT),
        ("SELECT r.way FROM r", VALUE),
        ("SELECT (mode() WITHIN GROUP (ORDER BY r.way))::text AS t FROM r", VALUE),
        ("SELECT rank() OVER (PARTITION BY r.way) AS n FROM r", VALUE),
        ("SELECT own.cardinality(r.way) AS n FROM r", VALUE),
        ("SELECT a.way FROM r, public.a", NOTHING),
        ("SELECT way FROM (SELECT a.id AS way FROM public.a) x JOIN (SELECT r.g FROM r) y ON true", NOTHING),
        ("SELECT way FROM r", VALUE),
        ("SELECT 1 AS n FROM r JOIN r x USING (way)", VALUE),
        ("SELECT x.w FROM r x(g, v, l, w)", set(Use)),
        ("SELECT j.way FROM (r JOIN public.a ON true) j", set(Use)),
        ("SELECT row_to_json(r.*) AS j FROM r", set(Use)),
    ],
)
def test_what_is_asked_of_a_column(above: str, used: set[Use]) -> None:
    item = _item(f"WITH RECURSIVE r(g, v) AS ({UNION}) CYCLE g SET looped USING way {above}")
    assert uses(item)["way"] == used


CYCLE = "CYCLE g SET looped USING way"
UNFIT = [
    (CYCLE, "SELECT r.way FROM r", UNION, "more of way than its text"),
    (CYCLE, "SELECT rank() OVER (ORDER BY r.way) FROM r", UNION, "more of way than its text"),
    (
        "SEARCH DEPTH FIRST BY g SET place",
        "SELECT rank() OVER (ORDER BY r.place) FROM r",
        UNION.replace(" ALL", ""),
        "more of place than its text",
    ),
    ("CYCLE g SET looped TO 1.0 DEFAULT 1.00 USING way", "SELECT 1 FROM r", UNION, "values of looped"),
    ("CYCLE g SET looped TO 1 DEFAULT '1'::text USING way", "SELECT 1 FROM r", UNION, "values of looped"),
    (CYCLE, "SELECT 1 FROM r", UNION.replace("SELECT b.g, r.g", "SELECT DISTINCT b.g, r.g"), "more clauses"),
    (CYCLE, "SELECT 1 FROM r", UNION.replace("b.v = r.g", "b.v = r.g JOIN r x ON true"), "doesn't name it once"),
    (CYCLE, "SELECT 1 FROM r", f"{UNION} LIMIT 3", "not one UNION"),
]


@pytest.mark.parametrize(("walk", "above", "union", "why"), UNFIT)
def test_what_would_be_another_walk_stays_as_it_is_written(walk: str, above: str, union: str, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        _spelled(walk, above, union)
