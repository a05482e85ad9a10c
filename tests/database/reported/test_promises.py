"""Promises that trials found broken: who sees which rows, what a table accepts, what is told and when."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, TableAltered
from airflow_provider_pgtrickle.operators import readiness
from tests.database.reported.conftest import Site

T = "CREATE TABLE t (id int PRIMARY KEY, g int, v int); INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 30) i"
QUERY = "SELECT id, g, v FROM t"
TOTALS = "SELECT g, sum(v) AS v FROM t GROUP BY g"


@pytest.fixture
def filled(site: Site) -> Site:
    site.run(T)
    site.declare("st", QUERY, refresh_mode="DIFFERENTIAL")
    return site


# -- row-level security ---------------------------------------------------------------------------------------------


def test_a_refresh_that_row_security_would_filter_fails_and_deletes_nothing(filled: Site) -> None:
    filled.run(
        "CREATE POLICY one_group ON t USING (g = 1)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    )
    for force_full in (False, True):
        with pytest.raises(PgTrickleError, match="row-level security") as told:
            filled.refresh("st", force_full=force_full)
        assert "BYPASSRLS" in str(told.value)
    assert filled.rows("SELECT count(*) FROM st") == [(30,)]


def test_a_first_fill_that_row_security_would_filter_fails(site: Site) -> None:
    site.run(T, "CREATE POLICY one_group ON t USING (g = 1)")
    site.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    with pytest.raises(PgTrickleError, match="row-level security"):
        site.declare("st", QUERY)


def test_policies_shape_nothing_for_an_owner_and_triggers_see_what_everybody_writes(
    filled: Site, admin: psycopg.Connection
) -> None:
    """The writer may see only some rows; the change is captured whole all the same."""
    admin.execute("CREATE ROLE writer_of_some")
    try:
        filled.run(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON t TO writer_of_some",
            "CREATE POLICY one_group ON t TO writer_of_some USING (g > 0) WITH CHECK (true)",
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        )
        admin.execute("SET ROLE writer_of_some")
        admin.execute("INSERT INTO t VALUES (100, 2, 7), (101, 1, 7)")
        admin.execute("UPDATE t SET g = 2 WHERE id = 101")
        admin.execute("DELETE FROM t")
        filled.refresh("st")
        assert filled.differs("st", QUERY) == []
        assert filled.rows("SELECT count(*) FROM st") == filled.rows("SELECT count(*) FROM t") == [(10,)]
    finally:
        admin.execute("RESET ROLE")
        admin.execute("DROP OWNED BY writer_of_some; DROP ROLE writer_of_some")


# -- modes, schedules, alerts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL", "FULL"])
def test_the_first_content_is_full_in_every_mode(site: Site, mode: str) -> None:
    site.run(T)
    site.declare("st", QUERY, refresh_mode=mode, initialize=False)
    assert site.refresh("st").action == "FULL"
    assert site.differs("st", QUERY) == []


def test_a_cron_schedule_and_what_is_calculated_from_nothing_grow_stale(site: Site) -> None:
    site.run(T)
    site.declare("hourly", QUERY, schedule="0 * * * *")
    site.declare("above", "SELECT count(*) AS n FROM hourly", schedule="CALCULATED")
    site.declare("alone", TOTALS, schedule="CALCULATED")
    every = "SELECT pgt_name, effective_schedule IS NOT NULL FROM pgtrickle.pgt_stream_tables ORDER BY 1"
    assert site.rows(every) == [("above", True), ("alone", True), ("hourly", True)]
    site.run("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '3 days'")
    assert site.rows("SELECT stale FROM pgtrickle.pg_stat_stream_tables") == [(True,)] * 3


def test_a_halted_table_stays_in_sight(filled: Site) -> None:
    filled.run("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', last_error = 'disk full'")
    state = readiness.read(filled.conn, ["public.st"])["public.st"]
    assert state.halted is not None
    assert "SUSPENDED: disk full. Mend the cause" in state.halted


@pytest.mark.empty
def test_a_database_without_the_catalog_is_told_what_to_do(any_dsn: str) -> None:
    with Database(any_dsn).connect(autocommit=True) as conn, pytest.raises(PgTrickleError, match="pgtrickle install"):
        readiness.read(conn, ["public.st"])
    with PgTrickle(any_dsn) as client, pytest.raises(PgTrickleError, match="pgtrickle install"):
        client.status()


def test_a_source_that_was_made_anew_is_not_called_dropped(filled: Site) -> None:
    """After a restore into another database every source has another oid."""
    filled.run("ALTER TABLE t RENAME TO old; CREATE TABLE t (LIKE old); DROP TABLE old")
    alerts = filled.rows("SELECT alert FROM pgtrickle.check_cdc_health()")
    assert alerts == [("source_made_anew",)]


# -- publications ----------------------------------------------------------------------------------------------------


def test_a_published_stream_table_is_refreshed(site: Site, admin: psycopg.Connection) -> None:
    """What can't be NULL and is unique identifies its rows to subscribers; else the whole old row does."""
    site.run(T)
    site.declare("before", TOTALS)
    admin.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    site.declare("keyed", QUERY)
    site.declare("whole", TOTALS)
    identity = "SELECT relname, relreplident FROM pg_class WHERE relname IN ('keyed', 'whole') ORDER BY 1"
    assert site.rows(identity) == [("keyed", "i"), ("whole", "f")]
    site.run("UPDATE t SET v = v + 1, g = g + 1 WHERE id < 9; DELETE FROM t WHERE g = 0; UPDATE t SET id = id + 90")
    for name, query in (("before", TOTALS), ("keyed", QUERY), ("whole", TOTALS)):
        assert site.refresh(name).action == "DIFFERENTIAL"
        assert site.differs(name, query) == []


def test_a_whole_old_row_is_told_of_when_a_table_is_declared(site: Site, admin: psycopg.Connection) -> None:
    site.run(T)
    admin.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    with pytest.warns(UserWarning, match="REPLICA IDENTITY FULL"):
        site.client.create_stream_table("whole", TOTALS)


# -- what users do to a stream table ---------------------------------------------------------------------------------


def test_a_partition_that_a_user_adds_is_guarded_too(site: Site) -> None:
    site.run(T)
    site.declare("st", QUERY, partition_by="g")
    site.run("CREATE TABLE st_7 PARTITION OF st FOR VALUES FROM (7) TO (8)")
    for statement in ("INSERT INTO st_7 (id, g, v) VALUES (1, 7, 1)", "DELETE FROM st WHERE g = 1"):
        with pytest.raises(psycopg.Error, match="stream table"):
            site.run(statement)
    site.run("INSERT INTO t VALUES (70, 7, 7)")
    site.refresh("st")
    assert site.rows("SELECT id FROM st_7") == [(70,)]
    for statement in ("UPDATE st_7 SET v = 8", "DELETE FROM st_7"):
        with pytest.raises(psycopg.Error, match="stream table"):
            site.run(statement)


@pytest.mark.parametrize(
    ("key", "bounds", "moved"),
    [("g", "FROM (1) TO (2)", 10), ("list (g)", "IN (0, 2)", 20), ("g", "FROM (50) TO (60)", 0)],
)
def test_a_partition_over_rows_of_the_default_one_takes_them(site: Site, key: str, bounds: str, moved: int) -> None:
    """PostgreSQL refuses it, names the DEFAULT partition, and that one's comment says what does it."""
    site.run(T)
    site.declare("st", QUERY, partition_by=key)
    site.declare("above", "SELECT g, count(*) AS n FROM st GROUP BY g")
    said = site.rows("SELECT obj_description('st_default'::regclass, 'pg_class')")
    assert "pgtrickle.add_partition" in said[0][0]
    if moved:
        with pytest.raises(psycopg.errors.CheckViolation, match="st_default"):
            site.run(f"CREATE TABLE apart PARTITION OF st FOR VALUES {bounds}")
    assert site.rows(f"SELECT pgtrickle.add_partition('st', 'apart', '{bounds}')") == [(moved,)]
    assert site.rows("SELECT count(*) FROM apart") == [(moved,)]
    assert site.differs("st", QUERY) == []
    guarded = [
        "INSERT INTO st_default SELECT * FROM st LIMIT 1",
        "DELETE FROM st",
        *["DELETE FROM apart"] * bool(moved),
    ]
    for statement in guarded:
        with pytest.raises(psycopg.Error, match="stream table"):
            site.run(statement)
    site.run("UPDATE t SET v = v + 1, g = (g + 1) % 3 WHERE id < 9; DELETE FROM t WHERE id > 25")
    assert site.refresh("st").action == "DIFFERENTIAL"
    site.refresh("above")
    assert site.differs("st", QUERY) == []
    assert site.differs("above", "SELECT g, count(*) AS n FROM t GROUP BY g") == []


def test_the_visible_columns_make_a_view_that_lasts(filled: Site) -> None:
    """`*` shows the hidden ones, too; a view of the others stays when those come and go."""
    filled.declare("totals", TOTALS)
    (columns,) = filled.rows("SELECT pgtrickle.visible_columns('totals')")[0]
    assert columns == "g, v"
    filled.run(f"CREATE VIEW shown AS SELECT {columns} FROM totals")
    filled.run("ALTER TABLE t ADD COLUMN more int", "ALTER TABLE t ALTER v TYPE int USING v")
    filled.client.alter_stream_table("totals", query="SELECT g, sum(v) AS v FROM t GROUP BY g HAVING count(*) > 0")
    filled.run("UPDATE t SET v = v + 1")
    filled.refresh("totals")
    assert filled.differs("shown", TOTALS) == []


@pytest.mark.parametrize("action", ["RETURN NULL", "NEW.v := 0; RETURN NEW"])
def test_a_trigger_that_may_change_what_is_written_is_named(filled: Site, action: str) -> None:
    filled.run(
        f"CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {action}; END $$",
        "CREATE TRIGGER meddling BEFORE INSERT OR UPDATE ON st FOR EACH ROW EXECUTE FUNCTION meddle()",
        "UPDATE t SET v = v + 1",
    )
    with pytest.raises(TableAltered, match="'meddling' on the stream table may change rows"):
        filled.refresh("st")
    filled.run("DROP TRIGGER meddling ON st")
    filled.refresh("st", force_full=True)
    assert filled.differs("st", QUERY) == []


def test_a_trigger_behind_each_row_sees_what_a_refresh_writes(filled: Site) -> None:
    filled.run(
        "CREATE TABLE seen (id int)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO public.seen VALUES (NEW.id); RETURN NULL; END $$",
        "CREATE TRIGGER noting AFTER INSERT OR UPDATE ON st FOR EACH ROW EXECUTE FUNCTION note()",
        "UPDATE t SET v = v + 1 WHERE id = 4",
    )
    assert filled.refresh("st").action == "DIFFERENTIAL"
    assert filled.rows("SELECT id FROM seen") == [(4,)]


def test_a_dropped_table_is_not_made_anew_by_a_schedule(filled: Site) -> None:
    filled.run("DROP TABLE st CASCADE", "UPDATE t SET v = v + 1")
    with pytest.raises(TableAltered, match="Its table was dropped") as told:
        filled.refresh("st")
    assert "--full" in str(told.value)
    assert filled.rows("SELECT to_regclass('st')") == [(None,)]
    filled.refresh("st", force_full=True)
    assert filled.differs("st", QUERY) == []


def test_a_dropped_table_can_be_forgotten(filled: Site) -> None:
    filled.run("DROP TABLE st CASCADE")
    filled.client.drop_stream_table("st")
    assert filled.client.status() == []
    assert filled.rows("SELECT count(*) FROM pgtrickle.pgt_change_tracking") == [(0,)]


def test_a_constraint_that_refuses_the_content_is_named(filled: Site) -> None:
    filled.run(
        "CREATE TABLE known (id int PRIMARY KEY)",
        "INSERT INTO known SELECT id FROM t",
        "ALTER TABLE st ADD CONSTRAINT only_known FOREIGN KEY (id) REFERENCES known",
        "INSERT INTO t VALUES (99, 1, 1)",
    )
    with pytest.raises(TableAltered, match="'only_known' refuses what the query yields"):
        filled.refresh("st")
    filled.run("INSERT INTO known VALUES (99)")
    filled.refresh("st", force_full=True)
    assert filled.differs("st", QUERY) == []


def test_a_foreign_key_to_a_stream_table_is_named_where_it_holds_a_row(filled: Site) -> None:
    filled.run(
        "CREATE UNIQUE INDEX ON st (id)",
        "CREATE TABLE child (id int CONSTRAINT of_st REFERENCES st (id))",
        "INSERT INTO child VALUES (4)",
        "DELETE FROM t WHERE id = 4",
    )
    with pytest.raises(TableAltered, match="'of_st' refuses what the query yields"):
        filled.refresh("st")
    filled.run("DELETE FROM child")
    filled.refresh("st", force_full=True)
    assert filled.differs("st", QUERY) == []


DEPENDENTS = (
    "CREATE VIEW mine AS SELECT * FROM st",
    "CREATE VIEW on_mine AS SELECT id FROM mine",
    "CREATE MATERIALIZED VIEW kept AS SELECT id FROM st",
    "CREATE UNIQUE INDEX ON st (id)",
    "CREATE TABLE child (id int CONSTRAINT of_st REFERENCES st (id))",
    "CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM st; END",
)


def test_what_a_cascade_drops_is_named(filled: Site) -> None:
    filled.run(*DEPENDENTS)
    filled.declare("reader", "SELECT count(*) AS n FROM st")
    dropped = filled.client.drop_stream_table("st", cascade=True)
    assert dropped[:2] == ("public.reader", "public.st")
    assert set(dropped[2:]) == {
        "view public.mine",
        "view public.on_mine",
        "materialized view public.kept",
        "constraint of_st on table public.child",
        "function public.counted()",
    }


@pytest.mark.parametrize("number", [0, 2, 4, 5])
def test_without_cascade_whatever_depends_on_it_stops_a_drop(filled: Site, number: int) -> None:
    filled.run(*DEPENDENTS[3:4], DEPENDENTS[number])
    with pytest.raises(PgTrickleError, match=r"mine|kept|of_st|counted") as told:
        filled.client.drop_stream_table("st")
    assert "cascade=True" in str(told.value)
    assert filled.client.status()[0]["pgt_name"] == "st"
