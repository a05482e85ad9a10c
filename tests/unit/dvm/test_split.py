"""Both halves of a query as text; `tests/property/test_split.py` has them say what the whole says."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.split import splits
from tests.unit.dvm.shop import schema

HALVED = [
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
]
WHOLE = [
    "SELECT g, sum(v) AS s FROM public.b GROUP BY g",
    "SELECT a.id, x.n FROM public.a JOIN (SELECT b.g, count(*) AS n FROM public.b GROUP BY b.g) x ON x.g = a.g",
    "SELECT a.id FROM public.a WHERE a.g IN (SELECT b.g FROM public.b GROUP BY b.g)",
    "SELECT DISTINCT count(*) AS n FROM public.b GROUP BY ROLLUP (g)",
    "WITH c AS (SELECT b.g FROM public.b) SELECT DISTINCT count(*) AS n FROM c GROUP BY c.g",
    "SELECT g, v, rank() OVER (ORDER BY g) AS r FROM public.b GROUP BY g",
    'SELECT DISTINCT count(*) AS n FROM public.b GROUP BY (g COLLATE "C")',
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT r.n FROM r) SELECT max(r.n) AS n FROM r",
]


def _plain(text: str) -> str:
    return text.replace('"', "")


@pytest.mark.parametrize(("query", "part", "outer"), HALVED)
def test_a_query_is_halved_below_its_projection(query: str, part: str | None, outer: str) -> None:
    first = next(iter(splits(query, schema())))
    assert part is None or _plain(first.part) == part
    assert _plain(first.outer("own", "p")) == outer


@pytest.mark.parametrize("query", WHOLE)
def test_what_is_read_by_key_or_reads_more_than_tables_stays_whole(query: str) -> None:
    assert list(splits(query, schema())) == []
