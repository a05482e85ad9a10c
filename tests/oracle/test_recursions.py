"""Which recursions are kept by their own change, and which are computed anew: recursions.sql."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.dvm.split import Split, splits
from tests.oracle.arena import Case
from tests.oracle.declare import declare
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained

REDERIVED = "delete and rederive"
TABLES = (
    "CREATE TABLE node (id int PRIMARY KEY, parent int, label text)",
    "CREATE TABLE edge (src int, dst int, n numeric)",
    "CREATE TABLE mark (id int, note text)",
    "CREATE TABLE weight (id int, n numeric)",
    "INSERT INTO node VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, NULL), (4, 1, 'a, b'), (5, 4, '')",
    "INSERT INTO edge VALUES (1, 2, 1.0), (2, 3, 1), (3, 1, 2), (3, 3, 0.5), (4, 5, 1.00), (4, 5, 1.00)",
    "INSERT INTO mark VALUES (1, 'm'), (4, NULL)",
    "INSERT INTO weight VALUES (1, 1), (4, 1.0), (4, NULL)",
)
CYCLES = (
    ["INSERT INTO edge VALUES (5, 4, 1), (3, 4, 2.0)", "INSERT INTO node VALUES (6, 3, 'NULL'), (7, 5, 'b')"],
    ["DELETE FROM edge WHERE src = 3 AND dst = 1", "UPDATE node SET parent = 4 WHERE id = 3"],
    ["UPDATE node SET label = NULL WHERE id IN (1, 4)", "UPDATE edge SET src = 2 WHERE src = 4", "DELETE FROM weight"],
    ["DELETE FROM mark WHERE id = 4", "INSERT INTO mark VALUES (3, 'x')", "INSERT INTO weight VALUES (2, 1.00)"],
    ["DELETE FROM node WHERE id = 4", "INSERT INTO edge SELECT dst, src, n FROM edge WHERE src < dst"],
)
_SECTION = re.compile(r"^-- ", re.MULTILINE)


def _queries() -> list[tuple[str, str]]:
    text = Path(__file__).with_name("recursions.sql").read_text()
    sections = [section.splitlines() for section in _SECTION.split(text)[1:]]
    return [(rule, query.rstrip(";")) for rule, *queries in sections for query in queries if query]


def _rederived(case: Case, text: str) -> Split | None:
    """The first split, as the product takes it, whose part is kept by deleting and rederiving."""
    declared = declare(case.conn, case.schema, text)
    if dvm.analyze(declared.canonical, declared.schema).sink == REDERIVED:
        return None
    for split in splits(declared.canonical, declared.schema):
        try:
            part = declare(case.conn, case.schema, split.parts[0])
        except psycopg.Error:
            continue
        if dvm.analyze(part.canonical, part.schema).sink == REDERIVED:
            return split
    return None


def _kept(case: Case, query: str) -> list[Maintained]:
    """The parts that a query needs, and what reads them."""
    made: list[Maintained] = []
    text = query
    while (split := _rederived(case, text)) is not None:
        made.append(Maintained.create(case, split.parts[0], name=f"part_{len(made)}"))
        case.capture()
        text = split.outer((case.schema, made[-1].name))
    made.append(Maintained.create(case, text, name="st_outer"))
    made[-1].query = query
    made[-1].verify()
    return made


def _rule(made: list[Maintained]) -> str:
    *parts, last = made
    if last.view.sink == REDERIVED:
        return "kept in parts" if parts else "kept"
    return "kept in parts" if parts and "RECURSIVE" not in last.declared.canonical else "computed anew"


@pytest.mark.parametrize(("rule", "query"), _queries())
def test_a_recursion_is_kept_by_the_rule_that_is_told(new_case: NewCase, rule: str, query: str) -> None:
    _follow(new_case, rule, query)


@pytest.mark.parametrize(("rule", "query"), [(rule, q) for rule, q in _queries() if re.search("SEARCH|CYCLE", q)])
def test_a_walk_is_the_same_on_postgresql_15(new_case15: NewCase, rule: str, query: str) -> None:
    _follow(new_case15, rule, query)


def _follow(new_case: NewCase, rule: str, query: str) -> None:
    with new_case(*TABLES) as case:
        made = _kept(case, query)
        assert _rule(made) == rule, made[-1].view.because
        for statements in CYCLES:
            assert case.change(*statements) == len(statements)
            for each in made:
                assert each.refresh() == "DIFFERENTIAL"


# -- by what a walk knows where it has been ----------------------------------------------------------

#: Type, rule, and three values, of which the third equals the first and may look different.
KEYS = (
    ("bigint", "kept", "1", "2", "1"),
    ("boolean", "kept", "true", "false", "true"),
    ("varchar(9)", "kept", "'a, \"b'", "'NULL'", "'a, \"b'"),
    ("uuid", "kept", "'6ecd8c99-4036-403d-bf84-cf8400f67836'", "'3f333df6-90a4-4fda-8dd3-9485d27cee36'",
     "'6ECD8C99-4036-403D-BF84-CF8400F67836'"),
    ("timestamptz", "kept", "'2026-10-25 00:30:00+00'", "'2026-10-25 01:30:00+00'", "'2026-10-25 02:30:00+02'"),
    ("bytea", "kept", "'\\x00'", "''", "'\\000'"),
    ("numeric(5,2)", "kept", "1", "2.5", "1.00"),
    ("numeric", "computed anew", "1.0", "2", "1.00"),
    ("float8", "computed anew", "0", "1", "'-0'"),
    ("char(3)", "computed anew", "'a'", "'b'", "'a '"),
    ("interval", "computed anew", "'1 day'", "'1 hour'", "'24 hours'"),
    ('text COLLATE "blind"', "computed anew", "'a'", "'b'", "'A'"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "rule", "one", "other", "same"), KEYS, ids=[key[0] for key in KEYS])
def test_a_walk_ends_where_postgresql_says_it_has_been(
    new_case15: NewCase, kind: str, rule: str, one: str, other: str, same: str
) -> None:
    """Of NULL, too: a record with NULL equals itself."""
    query = (
        "WITH RECURSIVE r AS (SELECT a FROM root UNION ALL SELECT l.b FROM link l"
        " JOIN r ON l.a IS NOT DISTINCT FROM r.a)"
        " CYCLE a SET looped USING way SELECT a, looped, way::text AS way FROM r"
    )
    with new_case15(
        "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        f"CREATE TABLE link (a {kind}, b {kind})",
        f"CREATE TABLE root (a {kind})",
        f"INSERT INTO root VALUES ({one})",
        f"INSERT INTO link VALUES ({one}, {other}), ({other}, {same}), ({other}, NULL)",
    ) as case:
        (st,) = _kept(case, query)
        assert _rule([st]) == rule, st.view.because
        for statement in (
            "INSERT INTO link VALUES (NULL, NULL)",
            f"INSERT INTO link VALUES (NULL, {same})",
            f"DELETE FROM link WHERE a = {other} AND b = {one}",
            f"INSERT INTO root VALUES (NULL), ({same})",
            f"UPDATE link SET b = {other} WHERE a IS NULL",
        ):
            assert case.change(statement) == 1
            assert st.refresh() == "DIFFERENTIAL"


# -- how much is read ------------------------------------------------------------------------------

READ = {
    "UNION": ("", "UNION", "SELECT id FROM r"),
    "UNION ALL": ("back < 0", "UNION ALL", "SELECT id FROM r"),
    "CYCLE": ("", "UNION ALL", "CYCLE id SET looped USING way SELECT id, looped FROM r"),
    "SEARCH": ("back < 0", "UNION ALL", "SEARCH BREADTH FIRST BY id SET place SELECT id, place::text AS p FROM r"),
}
#: What happens to one edge, and how many rows the walk gains or loses.
ONE_EDGE = {
    "comes": "INSERT INTO edge VALUES (9000, 10001, -1)",
    "comes and goes back": "INSERT INTO edge VALUES (9000, 281, 1)",
    "goes": "DELETE FROM edge WHERE dst = 1000",
    "moves": "UPDATE edge SET src = 1023 WHERE dst = 1000",
}


def _read(case: Case, text: str) -> int:
    """How many rows of tables a statement reads."""
    counted = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname IN ('edge', 'st_0')"
    ((before,),) = case.rows(counted)
    case.rows(f"SELECT count(*) FROM ({text}) AS x")
    ((after,),) = case.rows(counted)
    return int(after - before)


@pytest.mark.parametrize("happens", ONE_EDGE)
@pytest.mark.parametrize("walk", READ)
def test_one_edge_of_ten_thousand_is_followed_alone(new_case: NewCase, walk: str, happens: str) -> None:
    """9,900 edges of a tree in which n has the children 2n and 2n + 1, and 100 from leaves back to its root."""
    condition, union, rest = READ[walk]
    where = f" WHERE {condition}" if condition else ""
    query = (
        f"WITH RECURSIVE r AS (SELECT 1 AS id {union} SELECT e.dst FROM r JOIN edge e ON e.src = r.id{where}) {rest}"
    )
    with new_case(
        "CREATE TABLE edge (src int, dst int, back int)",
        "INSERT INTO edge SELECT n / 2, n, -1 FROM generate_series(2, 9901) AS n",
        "INSERT INTO edge SELECT 9900 - n, 1, 1 FROM generate_series(1, 100) AS n",
        "CREATE INDEX ON edge (src)",
        "CREATE INDEX ON edge (dst)",
    ) as case:
        st = Maintained.create(case, query)
        assert st.view.sink == REDERIVED
        for columns in st.view.lookups:
            case.execute(f"CREATE INDEX ON st_0 ({', '.join(columns)})")
        case.execute("ANALYZE edge")
        case.execute("ANALYZE st_0")
        case.change(ONE_EDGE[happens])
        delta = st.view.delta(st.binding())
        assert delta is not None
        by_change, anew = _read(case, delta), _read(case, query)
        print(f"{walk}, one edge {happens}: {by_change} rows read, {anew} anew")
        assert by_change * 20 < anew
        assert st.refresh() == "DIFFERENTIAL"
