"""Ways in which changes were lost or counted twice: each refresh after them runs FULL, and says why."""

from __future__ import annotations

import pytest

from tests.database.reported.conftest import Site

T = "CREATE TABLE t (id int PRIMARY KEY, g int, v int); INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 60) i"
U = "CREATE TABLE u (g int PRIMARY KEY, name text); INSERT INTO u SELECT i, 'g' || i FROM generate_series(0, 2) i"
SCAN = "SELECT id, g, v FROM t"
JOIN = "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g"
CHANGE = "UPDATE t SET v = v + 1 WHERE id < 20"
PARTED = """
    CREATE TABLE p (id int, region text, v int) PARTITION BY LIST (region);
    CREATE TABLE p_n PARTITION OF p FOR VALUES IN ('n'); CREATE TABLE p_s PARTITION OF p FOR VALUES IN ('s');
    INSERT INTO p SELECT i, CASE WHEN i % 2 = 0 THEN 'n' ELSE 's' END, i FROM generate_series(1, 20) i
"""
OF_P = "SELECT id, region, v FROM p"


def capture_trigger(site: Site, table: str, suffix: str) -> str:
    found = site.rows(f"SELECT tgname FROM pg_trigger WHERE tgrelid = '{table}'::regclass AND tgname ~ '_{suffix}$'")
    return found[0][0]


def alerts(site: Site) -> set[str | None]:
    return {alert for (alert,) in site.rows("SELECT alert FROM pgtrickle.check_cdc_health()")}


def is_mended(site: Site, query: str, change: str) -> None:
    """One FULL that says what happened, and from there on differences again."""
    result = site.refresh("st")
    assert (result.action, result.fallback_reason) == ("FULL", "buffer_lost")
    assert site.differs("st", query) == []
    assert alerts(site) == {None}
    for _ in range(2):
        site.run(change)
        assert site.refresh("st").action == "DIFFERENTIAL"
        assert site.differs("st", query) == []
    assert site.refresh("st").action == "NO_DATA"


@pytest.mark.parametrize(
    "tampering",
    [
        ("ALTER TABLE t DISABLE TRIGGER USER", "ALTER TABLE t ENABLE TRIGGER USER", CHANGE),
        ("ALTER TABLE t ENABLE TRIGGER ALL", CHANGE),
        ("ALTER TABLE t ENABLE TRIGGER USER",),
        ("BEGIN; ALTER TABLE t DISABLE TRIGGER USER; UPDATE t SET v = -v; ALTER TABLE t ENABLE TRIGGER USER; COMMIT",),
        ("ALTER TABLE t DISABLE TRIGGER USER", "DELETE FROM t WHERE id > 50", "ALTER TABLE t ENABLE TRIGGER USER"),
        ("ALTER TABLE t DISABLE TRIGGER {update}", CHANGE, "ALTER TABLE t ENABLE TRIGGER {update}"),
        ("ALTER TABLE t ENABLE REPLICA TRIGGER {update}", CHANGE),
        ("ALTER TABLE t ENABLE ALWAYS TRIGGER {replica}", CHANGE),
        ("DROP TRIGGER {update} ON t", CHANGE),
        ("ALTER TRIGGER {update} ON t RENAME TO mine", CHANGE),
        ("DROP FUNCTION pgtrickle_changes.capture_{oid}() CASCADE", CHANGE),
        ("DROP TABLE pgtrickle_changes.changes_{oid}", CHANGE),
        (CHANGE, "TRUNCATE pgtrickle_changes.changes_{oid}"),
        (
            "CREATE OR REPLACE FUNCTION pgtrickle_changes.capture_{oid}() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN RETURN NULL; END'",
            CHANGE,
        ),
    ],
)
def test_capture_that_was_touched_is_not_trusted(site: Site, tampering: tuple[str, ...]) -> None:
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    (oid,) = site.rows("SELECT 't'::regclass::oid::text")[0]
    names = {suffix: capture_trigger(site, "t", suffix) for suffix in ("update", "replica")}
    site.run(*(statement.format(oid=oid, **names) for statement in tampering))
    assert alerts(site) != {None} or "TRUNCATE" in tampering[-1]
    is_mended(site, SCAN, CHANGE)


def test_one_readers_mend_does_not_hide_what_another_has_missed(site: Site) -> None:
    site.run(T)
    for name in ("first", "second"):
        site.declare(name, SCAN, refresh_mode="DIFFERENTIAL")
    site.run("ALTER TABLE t DISABLE TRIGGER USER", CHANGE, "ALTER TABLE t ENABLE TRIGGER USER")
    for name in ("first", "second"):
        result = site.refresh(name)
        assert (result.action, result.fallback_reason) == ("FULL", "buffer_lost")
        assert site.differs(name, SCAN) == []


def test_a_new_reader_mends_and_hides_nothing(site: Site) -> None:
    """It widens the capture that somebody had switched off and on."""
    site.run(T)
    site.declare("first", "SELECT id FROM t", refresh_mode="DIFFERENTIAL")
    site.run("ALTER TABLE t DISABLE TRIGGER USER", "DELETE FROM t WHERE id > 50", "ALTER TABLE t ENABLE TRIGGER USER")
    site.declare("second", SCAN, refresh_mode="DIFFERENTIAL")
    assert site.refresh("first").fallback_reason == "buffer_lost"
    assert site.differs("first", "SELECT id FROM t") == []


def test_a_wider_capture_is_no_reason_to_distrust_the_old_one(site: Site) -> None:
    site.run(T)
    site.declare("first", "SELECT id FROM t", refresh_mode="DIFFERENTIAL")
    site.run("DELETE FROM t WHERE id > 50")
    site.declare("second", SCAN, refresh_mode="DIFFERENTIAL")
    assert site.refresh("first").action == "DIFFERENTIAL"
    assert site.differs("first", "SELECT id FROM t") == []


@pytest.mark.parametrize(
    "quiet", ["VACUUM FULL t", "CLUSTER t USING t_pkey", "ANALYZE t", "GRANT SELECT ON t TO PUBLIC"]
)
def test_what_leaves_rows_alone_costs_nothing(site: Site, quiet: str) -> None:
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    site.run(quiet)
    assert site.refresh("st").action == "NO_DATA"
    site.run(CHANGE, quiet)
    assert site.refresh("st").action == "DIFFERENTIAL"


@pytest.mark.parametrize(
    "passing",
    [
        (
            "CREATE TABLE p_w PARTITION OF p FOR VALUES IN ('w')",
            "INSERT INTO p VALUES (90, 'w', 1), (91, 's', 1)",
            "UPDATE p SET region = 'w' WHERE id = 2",
            "DROP TABLE p_w",
        ),
        (
            "CREATE TABLE other (id int, region text, v int); INSERT INTO other VALUES (70, 'x', 1)",
            "ALTER TABLE p ATTACH PARTITION other FOR VALUES IN ('x')",
            "UPDATE p SET v = v + 100; UPDATE p SET region = 'n' WHERE id = 70",
            "ALTER TABLE p DETACH PARTITION other",
        ),
        (
            "ALTER TABLE p DETACH PARTITION p_n",
            "UPDATE p_n SET v = -v",
            "ALTER TABLE p ATTACH PARTITION p_n FOR VALUES IN ('n')",
        ),
        ("ALTER TABLE p_n DISABLE TRIGGER ALL", "UPDATE p_n SET v = -v", "ALTER TABLE p_n ENABLE TRIGGER ALL"),
    ],
)
def test_parts_that_come_and_go(site: Site, passing: tuple[str, ...]) -> None:
    site.run(PARTED)
    site.declare("st", OF_P, refresh_mode="DIFFERENTIAL")
    site.run(*passing)
    assert site.refresh("st").action in ("FULL", "REINITIALIZE")
    assert site.differs("st", OF_P) == []
    site.run("UPDATE p SET v = v + 1")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", OF_P) == []


def test_children_that_come_and_go(site: Site) -> None:
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    site.run(
        "CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (900, 1, 1)",
        "UPDATE t SET v = 0 WHERE id > 50",
        "DROP TABLE child",
    )
    assert site.refresh("st").action == "FULL"
    assert site.differs("st", SCAN) == []


def test_a_table_that_was_anothers_child_for_a_while(site: Site) -> None:
    """Statements that name the other change its rows, and fire none of its triggers."""
    site.run(T, "CREATE TABLE above (LIKE t)")
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    site.run("ALTER TABLE t INHERIT above", "UPDATE above SET v = -1", "ALTER TABLE t NO INHERIT above")
    assert site.refresh("st").action in ("FULL", "REINITIALIZE")
    assert site.differs("st", SCAN) == []


def test_a_missing_buffer_lets_writers_write(site: Site) -> None:
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    (oid,) = site.rows("SELECT 't'::regclass::oid::text")[0]
    site.run(f"DROP TABLE pgtrickle_changes.changes_{oid}", "UPDATE t SET v = 0", "DELETE FROM t WHERE id = 1")
    is_mended(site, SCAN, CHANGE)


@pytest.mark.parametrize("table", ["st", "pgtrickle_changes.changes_{oid}"])
def test_what_a_crash_would_empty_is_made_to_last(site: Site, table: str) -> None:
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    (oid,) = site.rows("SELECT 't'::regclass::oid::text")[0]
    table = table.format(oid=oid)
    site.run(f"ALTER TABLE {table} SET UNLOGGED")
    assert site.rows("SELECT count(*) FROM pgtrickle.pgt_distrusted") == [(1,)]
    assert site.refresh("st").action in ("FULL", "REINITIALIZE")
    assert site.rows(f"SELECT relpersistence::text FROM pg_class WHERE oid = '{table}'::regclass") == [("p",)]
    site.run(CHANGE)
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", SCAN) == []


@pytest.mark.parametrize(
    "altered",
    [
        "ALTER COLUMN v TYPE int USING v + 1",
        "ALTER COLUMN v TYPE bigint USING v * 2",
        "ALTER COLUMN v TYPE text",
        "DROP COLUMN v",
        "SET UNLOGGED",
    ],
)
def test_what_its_owner_does_to_the_table_is_put_right(site: Site, altered: str) -> None:
    """No trigger fires for it, and nothing keeps an owner from it."""
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    site.run(f"ALTER TABLE st {altered}")
    assert site.rows("SELECT count(*) FROM pgtrickle.pgt_distrusted") == [(1,)]
    assert site.refresh("st").action == "REINITIALIZE"
    assert site.differs("st", SCAN) == []
    site.run(CHANGE)
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", SCAN) == []


@pytest.mark.parametrize(
    "harmless",
    ["VACUUM FULL st", "GRANT SELECT (id, v) ON st TO PUBLIC", "ALTER TABLE st ADD COLUMN mine int", "ANALYZE st"],
)
def test_what_leaves_the_stored_rows_alone_costs_nothing(site: Site, harmless: str) -> None:
    site.run(T)
    site.declare("st", SCAN, refresh_mode="DIFFERENTIAL")
    site.run(harmless)
    assert site.refresh("st").action == "NO_DATA"
    site.run(CHANGE)
    assert site.refresh("st").action == "DIFFERENTIAL"
