"""The slices of a difference add up to it, operator by operator, and where none is cut nothing is."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from tests.oracle.arena import Case, case
from tests.oracle.harness import Maintained

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, g int, v numeric(8,2), t text)",
    "CREATE TABLE b (g int PRIMARY KEY, name text)",
    "CREATE TABLE c (g int, w int)",
)
ROWS = (
    "INSERT INTO a SELECT i, i % 7, i / 4.0, CASE WHEN i % 5 > 0 THEN 't' || i % 3 END FROM generate_series(1, 60) i",
    "INSERT INTO b SELECT i, 'b' || i % 4 FROM generate_series(0, 6) i",
    "INSERT INTO c SELECT i % 7, i % 2 FROM generate_series(1, 30) i",
)
CHANGES = (
    "UPDATE a SET v = v + 1, g = g + 1 WHERE id % 3 = 0",
    "DELETE FROM a WHERE id % 10 = 1",
    "INSERT INTO a SELECT i, i % 8, 3, 't1' FROM generate_series(100, 130) i",
    "UPDATE a SET t = 'again' WHERE id % 6 = 0",
    "INSERT INTO b VALUES (7, 'b7'); UPDATE b SET name = 'new' WHERE g % 2 = 0",
    "DELETE FROM c WHERE ctid IN (SELECT ctid FROM c WHERE w = 1 LIMIT 5); INSERT INTO c SELECT i, 1"
    " FROM generate_series(0, 7) i",
)
CUT = {
    "scan": "SELECT id, g, v FROM a",
    "without a key": "SELECT g, w FROM c",
    "filter": "SELECT id, v FROM a WHERE v > 5 AND t IS NOT NULL",
    "projection": "SELECT id, v * 2 AS v, coalesce(t, '') || g AS t FROM a",
    "rows of a row": "SELECT id, unnest(ARRAY[g, g + 1, g]) AS u FROM a",
    "join": "SELECT a.id, b.name FROM a JOIN b ON b.g = a.g",
    "filtered join": "SELECT a.id, b.name FROM a JOIN b ON b.g = a.g WHERE md5(coalesce(a.t, '') || b.name) < 'b'",
    "self join": "SELECT x.id, y.id AS other FROM a x JOIN a y ON y.g = x.g AND y.id > x.id",
    "three": "SELECT a.id, b.name, c.w FROM a JOIN b ON b.g = a.g JOIN c ON c.g = b.g",
    "cross join": "SELECT a.id, c.w FROM a CROSS JOIN c",
    "union all": "SELECT id AS k, t FROM a UNION ALL SELECT g, name FROM b UNION ALL"
    " SELECT a.g, name FROM a JOIN b USING (g)",
    "union all with groups": "SELECT id AS k, g FROM a UNION ALL SELECT g, count(*)::int FROM c GROUP BY g",
    "join with groups": "SELECT a.id, s.n FROM a JOIN (SELECT g, count(*) AS n FROM c GROUP BY g) s ON s.g = a.g",
}
WHOLE = {
    "groups": "SELECT g, count(*) AS n, sum(v) AS s FROM a GROUP BY g",
    "distinct": "SELECT DISTINCT g, t FROM a",
    "outer join": "SELECT a.id, b.name FROM a LEFT JOIN b ON b.g = a.g",
    "semi join": "SELECT id, t FROM a WHERE EXISTS (SELECT FROM c WHERE c.g = a.g AND c.w = 1)",
    "subquery": "SELECT id, (SELECT count(*) FROM c WHERE c.g = a.g) AS n FROM a",
    "window": "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) AS s FROM a",
    "except": "SELECT g FROM a EXCEPT SELECT g FROM c",
}


def changed(opened: Case, query: str) -> tuple[Maintained, Binding]:
    opened.change(*ROWS)
    st = Maintained.create(opened, query)
    assert opened.change(*CHANGES) == len(CHANGES)
    return st, st.binding()


def bag(opened: Case, select: str) -> Counter[str]:
    """The sum of the weights of each image."""
    rows = opened.rows(f"SELECT (to_jsonb(d) - '__pgt_w')::text, __pgt_w FROM ({select}) AS d")
    found: Counter[str] = Counter()
    for image, weight in rows:
        found[image] += weight
    return Counter({image: weight for image, weight in found.items() if weight})


@pytest.mark.parametrize("query", CUT.values(), ids=CUT.keys())
@pytest.mark.parametrize("count", [2, 5])
def test_slices_add_up_to_the_difference(oracle_connection: psycopg.Connection, query: str, count: int) -> None:
    with case(oracle_connection, TABLES) as opened:
        st, binding = changed(opened, query)
        parts = [bag(opened, part) for part in st.slices(binding, count)]
        assert len(parts) == count
        assert all(parts), "a slice without rows cuts nothing"
        total: Counter[str] = Counter()
        for part in parts:
            total.update(part)
        whole = st.view.delta(binding)
        assert whole is not None
        assert {k: n for k, n in total.items() if n} == dict(bag(opened, whole))
        assert st.refresh(slices=count) == "SLICED"


@pytest.mark.parametrize("query", WHOLE.values(), ids=WHOLE.keys())
def test_what_is_not_linear_in_the_changes_is_not_cut(oracle_connection: psycopg.Connection, query: str) -> None:
    with case(oracle_connection, TABLES) as opened:
        st, binding = changed(opened, query)
        assert st.slices(binding, 3) == ()
        assert st.refresh(slices=3) == "DIFFERENTIAL"
