"""Tables without changes are refreshed together; where that is not all there is to do, nobody has asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog import locks, records
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.errors import LeaseLost
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import query
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.observe import observe
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_idle

NAMES = [QualifiedName("public", f"st{number}") for number in range(4)]


@pytest.fixture
def pt(any_dsn: str) -> Iterator[PgTrickle]:
    """Three tables over one source, the first two in a chain, and one over another source."""
    with PgTrickle(any_dsn, placement="database", differential_max_change_ratio=0.0) as client:
        client.install()
        with psycopg.connect(any_dsn, autocommit=True) as conn:
            for source in ("a", "b"):
                conn.execute(f"CREATE TABLE {source} (id int PRIMARY KEY, v int)")
                conn.execute(f"INSERT INTO {source} SELECT i, i FROM generate_series(1, 50) i")
            conn.execute("ANALYZE")
        for number, source in enumerate(("a", "st0", "a", "b")):
            client.create_stream_table(f"st{number}", f"SELECT id, v + 1 AS v FROM {source}")
        yield client


def idle(pt: PgTrickle) -> dict[str, RefreshResult] | None:
    return refresh_idle(pt.database, NAMES, settings=pt.settings, run_token="r#1", initiated_by="test")


def rows(pt: PgTrickle, statement: str) -> list[Any]:
    with pt.database.transaction() as conn:
        return conn.execute(statement.encode()).fetchall()


def catalog(pt: PgTrickle) -> list[Any]:
    return rows(
        pt,
        "SELECT pgt_id, status, frontier, data_timestamp, consecutive_errors, last_error, lease_token, h.n"
        " FROM pgtrickle.pgt_stream_tables LEFT JOIN (SELECT pgt_id, count(*) AS n FROM pgtrickle.pgt_refresh_history"
        " GROUP BY pgt_id) h USING (pgt_id) ORDER BY 1",
    )


def test_data_timestamps_move_in_one_commit(pt: PgTrickle) -> None:
    before = {at for (at,) in rows(pt, "SELECT data_timestamp FROM pgtrickle.pgt_stream_tables")}
    done = idle(pt)
    assert done is not None
    assert [done[str(name)].action for name in NAMES] == ["NO_DATA"] * 4
    moved = {at for (at,) in rows(pt, "SELECT data_timestamp FROM pgtrickle.pgt_stream_tables")}
    assert len(moved) == 1
    assert moved.isdisjoint(before)
    commits = rows(
        pt, "SELECT count(DISTINCT xmin::text), count(*) FROM pgtrickle.pgt_refresh_history WHERE run_token = 'r'"
    )
    assert commits == [(1, 4)]


def test_one_change_gives_way_and_is_refreshed_by_itself(pt: PgTrickle) -> None:
    with psycopg.connect(pt.database.dsn, autocommit=True) as conn:
        conn.execute("UPDATE a SET v = v + 1 WHERE id = 7")
    before = catalog(pt)
    assert idle(pt) is None
    assert catalog(pt) == before
    assert [pt.refresh_stream_table(str(name)).action for name in (NAMES[1], NAMES[2], NAMES[3])] == [
        "DIFFERENTIAL",
        "DIFFERENTIAL",
        "NO_DATA",
    ]
    there, wanted = "SELECT id, v FROM public.st1", "SELECT id, v + 2 FROM public.a"
    assert rows(pt, f"({there} EXCEPT ALL {wanted}) UNION ALL ({wanted} EXCEPT ALL {there})") == []
    assert idle(pt) is not None


def test_a_table_that_somebody_else_refreshes_gives_way(pt: PgTrickle) -> None:
    before = catalog(pt)
    with pt.database.transaction() as other:
        assert locks.try_lock_for_transaction(other, before[2][0])
        assert idle(pt) is None
        assert catalog(pt) == before
    assert idle(pt) is not None


@pytest.mark.parametrize(
    "broken",
    [
        "DROP TABLE st3",
        "ALTER TABLE b ALTER v TYPE bigint",
        "ALTER TABLE b DISABLE TRIGGER ALL",
        "UPDATE pgtrickle.pgt_stream_tables SET is_gated = true WHERE pgt_name = 'st3'",
        "UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = 'st3'",
    ],
)
def test_whatever_is_wrong_with_one_table_is_nothing_to_the_others(pt: PgTrickle, broken: str) -> None:
    with psycopg.connect(pt.database.dsn, autocommit=True) as conn:
        conn.execute(broken.encode())
    before = catalog(pt)
    assert idle(pt) is None
    assert catalog(pt) == before


def test_who_lost_the_lease_does_not_go_on(pt: PgTrickle, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*arguments: Any) -> Any:
        with pt.database.transaction() as conn:
            conn.execute("UPDATE pgtrickle.pgt_stream_tables SET lease_token = 'another'")
        return observe(*arguments)

    monkeypatch.setattr("airflow_provider_pgtrickle.engine.refresh.unit.observe", killed)
    with pytest.raises(LeaseLost):
        idle(pt)


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """This process has read no query yet; the list holds the table of each that it reads."""
    read: list[int] = []

    def probed(conn: psycopg.Connection, text: str, **options: Any) -> Any:
        read.append(len(read))
        return probe(conn, text, **options)

    monkeypatch.setattr(query, "_analysed", {})
    monkeypatch.setattr(query, "probe", probed)
    return read


def test_a_new_process_reads_no_query_to_find_that_nothing_came(pt: PgTrickle, new_process: list[int]) -> None:
    done = idle(pt)
    assert done is not None
    assert {result.action for result in done.values()} == {"NO_DATA"}
    assert new_process == []
    assert [pt.refresh_stream_table(str(name)).action for name in NAMES] == ["NO_DATA"] * 4
    assert pt.verify().differences == 0


def test_a_change_that_may_concern_nobody_is_for_the_query_to_judge(pt: PgTrickle, new_process: list[int]) -> None:
    with psycopg.connect(pt.database.dsn, autocommit=True) as conn:
        conn.execute("CREATE TABLE c (id int PRIMARY KEY, v int, w int)")
        conn.execute("INSERT INTO c VALUES (1, 1, 1)")
        pt.create_stream_table("narrow", "SELECT id, v FROM c")
        pt.create_stream_table("wide", "SELECT id, w FROM c")
        query._analysed.clear()
        new_process.clear()
        conn.execute("UPDATE c SET w = w + 1")
    narrow, wide = QualifiedName("public", "narrow"), QualifiedName("public", "wide")
    done = refresh_idle(pt.database, [narrow, NAMES[3]], settings=pt.settings)
    assert done is not None
    assert {result.action for result in done.values()} == {"NO_DATA"}
    assert len(new_process) == 2
    assert refresh_idle(pt.database, [wide], settings=pt.settings) is None
    assert pt.refresh_stream_table("wide").action == "DIFFERENTIAL"
    assert pt.verify().differences == 0


def test_the_catalog_names_the_sources_that_a_query_reads(pt: PgTrickle) -> None:
    with psycopg.connect(pt.database.dsn, autocommit=True) as conn:
        conn.execute("CREATE VIEW seen AS SELECT id, v FROM a WHERE v > 1")
        conn.execute("CREATE MATERIALIZED VIEW held AS SELECT id, v FROM b")
        conn.execute("CREATE TABLE parted (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id)")
        conn.execute("CREATE TABLE parted1 PARTITION OF parted DEFAULT")
        conn.execute("CREATE UNLOGGED TABLE lost (id int PRIMARY KEY, v int)")
        for number, text in enumerate(
            (
                "SELECT s.id, s.v FROM seen s JOIN parted p USING (id)",
                "SELECT id, v FROM held UNION ALL SELECT id, v FROM lost",
                "SELECT v, count(*) AS n FROM st0 GROUP BY v HAVING count(DISTINCT id) > 1",
                "SELECT id, v FROM a WHERE v < (SELECT max(v) FROM b WHERE id > 0)",
                "SELECT 1 AS one",
                "SELECT random() AS r, id FROM a",
            )
        ):
            pt.create_stream_table(f"other{number}", text, refresh_mode="AUTO")
        pt.create_stream_table("clocked", "SELECT id FROM a WHERE v < extract(epoch FROM now())")
    query._analysed.clear()
    with pt.database.transaction() as conn:
        tables = records.get_all(conn)
        unread = {st.name: query.unread(conn, st) for st in tables}
        for st in tables:
            known = {key: (s.kind, s.relid, s.pgt_id, s.schema, s.name) for key, s in unread[st.name].sources.items()}
            read = query.analysed(conn, st).sources
            assert known == {key: (s.kind, s.relid, s.pgt_id, s.schema, s.name) for key, s in read.items()}, st.name
    by_itself = {name for name, view in unread.items() if not isinstance(view, query.Unread)}
    assert by_itself == {"other5", "clocked"}
