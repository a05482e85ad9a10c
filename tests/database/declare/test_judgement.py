"""`validate` says beforehand what a declaration does in each mode: takes the query, as FULL or not, or refuses it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers
from tests.oracle.test_breadth import QUERIES as BREADTH
from tests.oracle.test_breadth import TABLES
from tests.oracle.test_reach import QUERIES as REACH

MORE = (
    "CREATE SEQUENCE s",
    "CREATE TABLE heir (extra int) INHERITS (k)",
    "CREATE MATERIALIZED VIEW mv AS SELECT g FROM a",
    "CREATE FUNCTION reads() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM public.a'",
    "CREATE TABLE doubled (id int, id2 int)",
)
#: By reason: queries that run FULL, each in its own way.
FULL = {
    Reason.VOLATILE_FUNCTION: ["SELECT id, random() AS r FROM a", "SELECT id FROM a WHERE clock_timestamp() > ts"],
    Reason.TIME_DEPENDENT: ["SELECT id, current_user AS u FROM a", "SELECT id, age(ts) AS old FROM a"],
    Reason.COMPUTES_WITH_CLOCK: ["SELECT id, now() - ts AS old FROM a", "SELECT max(now()) AS m FROM a"],
    Reason.READS_TABLES: ["SELECT id, public.reads() AS n FROM b"],
    Reason.NOT_CAPTURED: ["SELECT count(*) AS n FROM mv"],
    Reason.AMBIGUOUS_ORDER: ["SELECT n::text AS t, count(*) AS c FROM a GROUP BY n"],
    Reason.LIMIT_WITHOUT_ORDER: ["SELECT q.id FROM (SELECT id FROM b LIMIT 2) q"],
    Reason.ENDLESS: [
        "SELECT EXISTS (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT FROM r WHERE n = a.id)"
        " AS e FROM a"
    ],
    Reason.UNSUPPORTED_SYNTAX: ["SELECT a.id, q.v FROM a, unnest(a.arr) AS q(v) FULL JOIN b ON b.id = q.v"],
    Reason.TOO_MANY_GROUPINGS: [
        f"SELECT count(*) AS n FROM a, b GROUP BY GROUPING SETS ({', '.join(f'(a.g + {n})' for n in range(65))})"
    ],
}
#: What no mode takes.
REFUSED = (
    "SELECT nothing FROM a",
    "SELECT id FROM a FOR UPDATE",
    "SELECT nextval('s') AS n, id FROM a",
    "SELECT last_value FROM s",
    "SELECT relname FROM pg_class",
    "SELECT id, id + 1 FROM a",
    "SELECT id AS __pgt_x FROM a",
    "SELECT id, id FROM a",
    "SELECT id FROM a LIMIT 3",
    "SELECT id FROM a TABLESAMPLE bernoulli (50)",
    "SELECT to_jsonb(w) AS j FROM (a JOIN b ON a.g = b.g) AS w",
    "SELECT q.w FROM a, JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$', w int PATH '$')) AS q (w, v)",
    "SELECT id FROM a; SELECT 1 AS n",
    "DELETE FROM a RETURNING id",
    "SELECT",
)
#: What is kept in ways of their own: parts, windows of rows, a clock, a table without its heirs.
KEPT = (
    "SELECT n, count(*) AS c FROM (SELECT g, count(*) AS n FROM k GROUP BY g) q GROUP BY n",
    "SELECT g, n FROM (SELECT g, sum(v) AS n FROM k GROUP BY g) q WHERE n > (SELECT avg(v) FROM k)",
    "SELECT id, p FROM b ORDER BY p DESC NULLS LAST, id LIMIT 3",
    "SELECT id FROM a WHERE ts > now() - interval '7 days'",
    "SELECT id FROM a WHERE ts::date = current_date",
    "SELECT g, count(*) AS n FROM ONLY k GROUP BY g",
    "SELECT g, stddev(f) AS d, corr(f, id) AS c FROM a GROUP BY g",
    "WITH RECURSIVE r AS (SELECT id, g FROM a UNION SELECT b.id, b.g FROM b JOIN r ON r.id = b.g) SELECT * FROM r",
    "SELECT 1 AS one",
)
QUERIES = [
    *((query, reason) for reason, queries in FULL.items() for query in queries),
    *((query, "refused") for query in REFUSED),
    *((query, "taken") for query in (*KEPT, *BREADTH[::9], *REACH[::9])),
]


@pytest.fixture(scope="module")
def pt(postgres18: PostgresServer) -> Iterator[PgTrickle]:
    with servers.fresh_database(postgres18) as name:
        dsn = servers.ordinary_dsn(postgres18, name)
        with PgTrickle(dsn, executor=lambda: PostgresExecutor(client.database)) as client:
            client.install()
            with psycopg.connect(dsn, autocommit=True) as conn:
                for statement in (*TABLES, *MORE):
                    conn.execute(statement)
            yield client


def said(pt: PgTrickle, query: str, mode: str) -> tuple[str, str | None]:
    """What a declaration does: the kind of it, and its words."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            made = pt.create_stream_table("st", query, refresh_mode=mode, initialize=False)
        except NotDifferentiable as refused:
            return "not differentiable", refused.message
        except PgTrickleError as refused:
            return "refused", refused.message
    try:
        notice = next((str(w.message) for w in heard if "Every refresh will run FULL" in str(w.message)), None)
        assert (notice is not None) is (not made.differentiable and mode == "AUTO"), notice
        assert notice is None or str(made.refusal) in notice
        return ("taken", None) if made.differentiable else ("full", made.refusal)
    finally:
        pt.drop_stream_table("st")


def told(pt: PgTrickle, query: str) -> tuple[str, str | None]:
    """The same of `validate`."""
    try:
        explained = pt.validate_query(query)
    except PgTrickleError as refused:
        return "refused", refused.message
    return ("taken", None) if explained.differentiable else ("full", explained.reason)


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_what_validate_says_is_what_each_mode_does(pt: PgTrickle, query: str, expected: Reason | str) -> None:
    kind, words = told(pt, query)
    if isinstance(expected, Reason):
        assert (kind, expected.sentence in str(words)) == ("full", True), words
    else:
        assert kind == expected, words
    done = said(pt, query, "AUTO")
    # Of what runs FULL `validate` also says whether that will ever be otherwise, and a remedy.
    assert words == done[1] or str(done[1]) in str(words)
    assert done[0] == kind
    assert said(pt, query, "FULL") == done
    assert said(pt, query, "DIFFERENTIAL") == ("not differentiable" if kind == "full" else kind, done[1])
