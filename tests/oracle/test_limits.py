"""LIMIT below the top: kept by differences where the rows it keeps are the same each time, else refused."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Reason
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained, Refused, maintain
from tests.oracle.test_breadth import CYCLES, TABLES

LATERAL = "SELECT a.id, l.* FROM a CROSS JOIN LATERAL ({}) l"


@pytest.mark.parametrize(
    "query",
    [
        LATERAL.format("SELECT b.y FROM b WHERE b.g = a.g ORDER BY b.p DESC, b.id LIMIT 1"),
        LATERAL.format("SELECT b.y FROM b JOIN k ON k.g = b.g WHERE b.g = a.g ORDER BY b.id, k.v LIMIT 2 OFFSET 1"),
        LATERAL.format("SELECT s.y FROM (SELECT b.y, b.id FROM b WHERE b.g = a.g) s ORDER BY s.id LIMIT 1"),
        LATERAL.format("SELECT b.y, count(*) AS n FROM b WHERE b.g = a.g GROUP BY b.y ORDER BY count(*), b.y LIMIT 1"),
        LATERAL.format("SELECT DISTINCT b.y FROM b WHERE b.g = a.g ORDER BY b.y LIMIT 1"),
        LATERAL.format("SELECT b.y FROM b WHERE b.g = a.g UNION SELECT k.t FROM k ORDER BY 1 LIMIT 1"),
        LATERAL.format("SELECT u.v FROM unnest(a.arr) WITH ORDINALITY u(v, o) ORDER BY u.v, u.o LIMIT 1"),
        "SELECT s.id, k.v FROM (SELECT id, g FROM b ORDER BY p DESC, id LIMIT 2) s LEFT JOIN k ON k.g = s.g",
        "SELECT x.id, count(*) AS n FROM (SELECT id, g FROM b ORDER BY id LIMIT 3) x JOIN k USING (g) GROUP BY x.id",
        "SELECT s.id FROM (SELECT id, y FROM b ORDER BY id LIMIT (SELECT count(*) FROM k)) s",
        "(SELECT id, y FROM b ORDER BY id LIMIT 2) UNION ALL SELECT g, t FROM k",
        "WITH x AS (SELECT id, g FROM b ORDER BY id LIMIT 3) SELECT x1.id, x2.g FROM x x1 JOIN x x2 USING (g)",
        "WITH x AS (SELECT id, g FROM b ORDER BY id LIMIT 3) SELECT id FROM a WHERE id NOT IN (SELECT id FROM x)",
        "SELECT id FROM a WHERE id NOT IN (SELECT id FROM b ORDER BY id LIMIT 2)",
        "SELECT a.id FROM a LEFT JOIN (SELECT g FROM b ORDER BY id LIMIT 2) x ON x.g = a.g WHERE x.g IS NULL",
    ],
)
def test_what_an_order_picks_is_kept_by_differences(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)


def test_with_ties_keeps_every_row_that_ties(new_case: NewCase) -> None:
    """What tells the rows apart must not be ordered by: it would break the ties that are asked for."""
    with new_case(*TABLES) as case:
        maintain(
            case,
            LATERAL.format("SELECT b.id AS i FROM b WHERE b.g = a.g ORDER BY b.g FETCH FIRST 1 ROW WITH TIES"),
            *CYCLES,
        )


def test_rows_that_tie_are_told_apart_by_their_key(new_case: NewCase) -> None:
    """PostgreSQL may keep either row; the table holds the same one whichever way it is computed."""
    with new_case("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (2, 7), (1, 7)") as case:
        st = Maintained.create(case, "SELECT s.id FROM (SELECT id FROM t ORDER BY v, id LIMIT 1) s")
        made = Maintained.create(case, "SELECT s.id FROM (SELECT id FROM t ORDER BY v LIMIT 2) s", name="st_1")
        assert st.rows() == [(1,)]
        assert 'ORDER BY "t"."v", "t"."id" LIMIT' in made.view.storage_query()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.id FROM (SELECT id FROM b OFFSET 0) s",
        "SELECT s.id FROM (SELECT id FROM b LIMIT ALL) s",
        "SELECT id FROM b OFFSET 0",
        "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.g = a.g LIMIT 1)",
        "SELECT id, (SELECT y FROM b WHERE b.id = a.id LIMIT 1) AS y FROM a",
        "SELECT id, (SELECT 1 FROM b WHERE b.g = a.g LIMIT 1) AS y FROM a",
        "SELECT id FROM a WHERE (SELECT count(*) FROM (SELECT 1 FROM b WHERE b.g = a.g LIMIT 2) s) = 2",
    ],
)
def test_a_limit_that_leaves_no_choice_needs_no_order(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT s.id FROM (SELECT id FROM b LIMIT 2) s", Reason.LIMIT_WITHOUT_ORDER),
        ("SELECT id, (SELECT y FROM b WHERE b.g = a.g LIMIT 1) AS y FROM a", Reason.LIMIT_WITHOUT_ORDER),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b LIMIT 1 OFFSET 1) OR id IN (SELECT g FROM b LIMIT 1)",
         Reason.LIMIT_WITHOUT_ORDER),
        (LATERAL.format("SELECT b.y FROM b WHERE b.g = a.g LIMIT 1"), Reason.LIMIT_WITHOUT_ORDER),
        ("SELECT s.id FROM (SELECT id, g FROM a UNION ALL SELECT id, g FROM b ORDER BY 1 LIMIT 3) s",
         Reason.AMBIGUOUS_ORDER),
        (LATERAL.format("SELECT unnest(a.arr), b.y FROM b ORDER BY b.id LIMIT 1"), Reason.AMBIGUOUS_ORDER),
        ("SELECT array_agg(s.id) AS i FROM (SELECT id FROM b ORDER BY p, id LIMIT 3) s", Reason.AMBIGUOUS_ORDER),
    ],
)  # fmt: skip
def test_a_choice_left_open_is_refused_for_differences_only(new_case: NewCase, query: str, reason: Reason) -> None:
    with new_case(*TABLES) as case, pytest.raises(Refused) as refused:
        maintain(case, query)
    assert refused.value.reason is reason
