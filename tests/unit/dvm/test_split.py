"""Both halves of a query as text; `tests/property/test_split.py` has them say what the whole says."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.split import splits
from tests.unit.dvm.shop import schema

RECURSION = (
    "WITH RECURSIVE r(g, n) AS (SELECT b.g, 0 FROM public.b UNION ALL SELECT b.g, r.n + 1 FROM r"
    " JOIN public.b ON b.v = r.g)"
)
HALVED = [
    (
        f"{RECURSION} SELECT r.g, x.n FROM r LEFT JOIN r x ON x.g = r.n WHERE r.n < 3",
        f"{RECURSION} SELECT r.g AS g, r.n AS n FROM r",
        "SELECT r.g, x.n FROM own.p AS r LEFT JOIN own.p AS x ON x.g = r.n WHERE r.n < 3",
    ),
    (
        f"{RECURSION} SEARCH DEPTH FIRST BY g SET place CYCLE g SET looped USING way SELECT r.g FROM r"
        " WHERE NOT r.looped ORDER BY r.place",
        f"{RECURSION} SEARCH DEPTH FIRST BY g SET place CYCLE g SET looped USING way"
        " SELECT r.g AS g, r.n AS n, r.looped AS looped FROM r",
        "SELECT r.g FROM own.p AS r WHERE NOT r.looped",
    ),
    (
        f"{RECURSION} SEARCH BREADTH FIRST BY g SET place CYCLE g SET looped USING way SELECT max(r.place::text) AS p,"
        " max(array_length(x.way, 1)) AS n FROM r JOIN r AS x ON true",
        f"{RECURSION} SEARCH BREADTH FIRST BY g SET place CYCLE g SET looped USING way SELECT r.g AS g, r.n AS n,"
        " CAST(r.place AS text) AS place, r.looped AS looped, CAST(r.way AS text[]) AS way FROM r",
        "SELECT MAX(CAST(r.place AS text)) AS p, MAX(array_length(x.way, 1)) AS n FROM own.p AS r"
        " JOIN own.p AS x ON TRUE",
    ),
    (
        f"{RECURSION} SEARCH BREADTH FIRST BY g SET place SELECT rank() OVER (ORDER BY r.place) AS n FROM r",
        None,
        "SELECT rank() OVER (ORDER BY r.place) AS n FROM (SELECT __pgt_p.g AS g, __pgt_p.n AS n,"
        " ROW(__pgt_p.place, __pgt_p.g) AS place FROM own.p AS __pgt_p) AS r",
    ),
    (
        "WITH RECURSIVE z AS (SELECT b.g FROM public.b), r AS (SELECT z.g FROM z UNION SELECT b.v FROM public.b"
        " JOIN r ON r.g = b.g) SELECT count(*) AS n FROM z WHERE z.g IN (SELECT r.g FROM r)",
        "WITH RECURSIVE z AS (SELECT b.g FROM public.b), r AS (SELECT z.g FROM z UNION SELECT b.v FROM public.b"
        " JOIN r ON r.g = b.g) SELECT r.g AS g FROM r",
        "WITH z AS (SELECT b.g FROM public.b) SELECT COUNT(*) AS n FROM z WHERE z.g IN (SELECT r.g FROM own.p AS r)",
    ),
    (
        "SELECT x.n, count(*) AS c FROM (SELECT b.g, count(*) AS n FROM public.b GROUP BY b.g) x GROUP BY x.n",
        "SELECT b.g AS k1, COUNT(*) AS a1 FROM public.b GROUP BY b.g",
        "SELECT x.n, COUNT(*) AS c FROM (SELECT part.k1 AS g, part.a1 AS n FROM own.p AS part) AS x GROUP BY x.n",
    ),
    (
        "SELECT g, sum(v) AS s FROM public.b GROUP BY g HAVING sum(v) > (SELECT avg(i.v) FROM public.b i)"
        " ORDER BY (sum(v)) DESC LIMIT 3",
        "SELECT AVG(i.v) AS a1 FROM public.b AS i",
        "SELECT g, SUM(v) AS s FROM public.b GROUP BY g HAVING SUM(v) >"
        " (SELECT part.a1 FROM own.p AS part) ORDER BY (SUM(v)) DESC LIMIT 3",
    ),
    (
        "SELECT a.id, (SELECT sum(b.v) FROM public.b WHERE b.g = 1) AS s, (SELECT count(*) AS n FROM public.b) AS c,"
        " (SELECT avg(b.v) FILTER (WHERE b.v > 0) FROM public.b WHERE b.g = 2 OR b.g = 3) AS m FROM public.a",
        "SELECT AVG(b.v) FILTER(WHERE (b.g = 2 OR b.g = 3) AND (b.v > 0)) AS a1, COUNT(*) AS a2,"
        " SUM(b.v) FILTER(WHERE (b.g = 1)) AS a3 FROM public.b",
        "SELECT a.id, (SELECT part__.a3 FROM own.p AS part__) AS s, (SELECT part_.a2 AS n FROM own.p AS part_) AS c,"
        " (SELECT part.a1 FROM own.p AS part) AS m FROM public.a",
    ),
    (
        "SELECT g, sum(v) AS s FROM public.b GROUP BY g ORDER BY (sum(v)) DESC, (min(v)) LIMIT 3",
        "SELECT g AS k1, SUM(v) AS a1, MIN(v) AS a2 FROM public.b GROUP BY g",
        "SELECT part.k1 AS g, part.a1 AS s FROM own.p AS part ORDER BY (part.a1) DESC, (part.a2) LIMIT 3",
    ),
    (
        "SELECT g, sum(sum(v)) OVER () AS t, sum(v) AS s FROM public.b WHERE v > 1 GROUP BY g HAVING count(*) > 1",
        None,
        "SELECT part.k1 AS g, SUM(part.a1) OVER () AS t, part.a1 AS s FROM own.p AS part WHERE part.a2 > 1",
    ),
    (
        "SELECT g, sum(v) AS s FROM public.b GROUP BY g HAVING count(*) > 3",
        "SELECT g AS k1, SUM(v) AS a1, COUNT(*) AS a2 FROM public.b GROUP BY g",
        "SELECT part.k1 AS g, part.a1 AS s FROM own.p AS part WHERE part.a2 > 3",
    ),
    (
        "WITH x AS (SELECT g + 1 AS h, sum(v) AS s FROM public.b GROUP BY (g + 1)) SELECT x.h FROM x WHERE x.s > 3",
        "SELECT g + 1 AS k1, SUM(v) AS a1 FROM public.b GROUP BY (g + 1)",
        "WITH x AS (SELECT part.k1 AS h, part.a1 AS s FROM own.p AS part) SELECT x.h FROM x WHERE x.s > 3",
    ),
    (
        "SELECT g, count(DISTINCT v) AS n FROM public.b WHERE v > 1 GROUP BY g HAVING sum(DISTINCT v) > 2",
        "SELECT DISTINCT g AS k1, v AS v1 FROM public.b WHERE v > 1",
        "SELECT part.k1 AS g, COUNT(part.v1) AS n FROM own.p AS part GROUP BY part.k1 HAVING SUM(part.v1) > 2",
    ),
    (
        "SELECT count(DISTINCT v) FILTER (WHERE g > 1) AS n, sum(g * v) AS s FROM public.b WHERE v <> 3 OR g = 2",
        "SELECT DISTINCT v AS v1 FROM public.b WHERE (v <> 3 OR g = 2) AND (g > 1)",
        "SELECT COUNT(part.v1) FILTER(WHERE (part.b = 1)) AS n, SUM(part.c1 * part.c2) FILTER(WHERE (part.b = 0)) AS s"
        " FROM (SELECT 0 AS b, g AS c1, v AS c2, CASE WHEN FALSE THEN v END AS v1 FROM public.b WHERE v <> 3 OR g = 2"
        " UNION ALL SELECT 1, NULL, NULL, part.v1 FROM own.p AS part) AS part",
    ),
    (
        "SELECT g, string_agg(DISTINCT t, ', '::text ORDER BY t DESC) AS s, count(DISTINCT t) AS n FROM public.b"
        " GROUP BY g",
        "SELECT DISTINCT g AS k1, t AS v1 FROM public.b",
        "SELECT part.k1 AS g, string_agg(part.v1, CAST(', ' AS text) ORDER BY part.v1 DESC) AS s,"
        " COUNT(part.v1) AS n FROM own.p AS part GROUP BY part.k1",
    ),
]
WHOLE = [
    "SELECT g, array_agg(DISTINCT v ORDER BY v) AS a, count(*) AS n FROM public.b GROUP BY g",
    "SELECT g, string_agg(DISTINCT t, (g)::text ORDER BY t, (g)::text) AS a FROM public.b GROUP BY g",
    "SELECT g, array_agg(DISTINCT v) AS a FROM public.b GROUP BY g",
    "SELECT g, count(DISTINCT v) AS n FROM public.b GROUP BY ROLLUP (g)",
    'SELECT count(DISTINCT v) AS n FROM public.b GROUP BY (g COLLATE "C")',
    "SELECT a.id, x.n FROM public.a JOIN (SELECT b.g, count(DISTINCT b.v) AS n FROM public.b GROUP BY b.g) x"
    " ON x.g = a.g WHERE x.n > 2",
    "SELECT g, sum(v) AS s FROM public.b GROUP BY g",
    "SELECT a.id, x.n FROM public.a JOIN (SELECT b.g, count(*) AS n FROM public.b GROUP BY b.g) x ON x.g = a.g",
    "SELECT a.id FROM public.a WHERE a.g IN (SELECT b.g FROM public.b GROUP BY b.g)",
    "SELECT DISTINCT count(*) AS n FROM public.b GROUP BY ROLLUP (g)",
    "WITH c AS (SELECT b.g FROM public.b) SELECT DISTINCT count(*) AS n FROM c GROUP BY c.g",
    "SELECT g, v, rank() OVER (ORDER BY g) AS r FROM public.b GROUP BY g",
    'SELECT DISTINCT count(*) AS n FROM public.b GROUP BY (g COLLATE "C")',
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT r.n FROM r) SELECT max(r.n) AS n FROM r",
    f"{RECURSION} SELECT row_to_json(r.*) AS whole FROM r",
    f"{RECURSION} SEARCH DEPTH FIRST BY g SET place SELECT max(r.place) AS g FROM r",
    f"{RECURSION} CYCLE g SET looped USING way SELECT rank() OVER (ORDER BY r.way) AS n FROM r",
    "WITH RECURSIVE r AS (SELECT g FROM public.b), s AS (WITH r AS (SELECT v FROM public.b) SELECT v FROM r)"
    " SELECT count(*) AS n FROM s, r",
]


def _plain(text: str) -> str:
    return text.replace('"', "")


@pytest.mark.parametrize(("query", "part", "outer"), HALVED)
def test_a_query_is_halved_below_its_projection(query: str, part: str | None, outer: str) -> None:
    first = next(iter(splits(query, schema())))
    assert part is None or _plain(first.parts[0]) == part
    assert _plain(first.outer(*[("own", "p")] * len(first.parts))) == outer


@pytest.mark.parametrize("query", WHOLE)
def test_what_is_read_by_key_or_reads_more_than_tables_stays_whole(query: str) -> None:
    assert list(splits(query, schema())) == []
