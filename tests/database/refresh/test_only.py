"""ONLY a table: the tables that inherit from it change without it, come and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, UsageError
from tests.database.reported.conftest import Site, site_at

TREE = (
    "CREATE TABLE t (id int PRIMARY KEY, g int)",
    "CREATE TABLE c (x text) INHERITS (t)",
    "CREATE TABLE d () INHERITS (c)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
    "INSERT INTO c VALUES (1, 1, 'c'), (3, 1, 'c')",
    "INSERT INTO d VALUES (2, 2, 'd'), (4, 1, 'd')",
)
ALONE = "SELECT g, count(*) AS n, sum(id) AS s FROM ONLY t GROUP BY g"
WRITES = (
    "INSERT INTO t VALUES (5, 1); INSERT INTO c VALUES (5, 1, 'c'); INSERT INTO d VALUES (5, 2, 'd')",
    "UPDATE t SET g = g + 1 WHERE id < 4",
    "UPDATE ONLY t SET id = id + 10; UPDATE c SET id = id + 20 WHERE g = 2; UPDATE ONLY c SET x = NULL",
    "DELETE FROM t WHERE id > 12",
    "WITH gone AS (DELETE FROM c RETURNING id, g) INSERT INTO t SELECT id + 100, g FROM gone",
)


@pytest.fixture
def tree(any_dsn: str) -> Iterator[Site]:
    for site in site_at(any_dsn, placement="database"):
        site.run(*TREE)
        yield site


def test_only_the_parents_own_rows_count(tree: Site) -> None:
    tree.follows(ALONE, *WRITES)


def test_who_reads_the_whole_tree_beside_it_gets_all(tree: Site) -> None:
    tree.follows("SELECT o.id, w.n FROM ONLY t o JOIN (SELECT g, count(*) AS n FROM t GROUP BY g) w USING (g)", *WRITES)


def test_a_subquery_that_stays_as_it_is_written_reads_only_the_table(tree: Site) -> None:
    tree.follows("SELECT c.id, (SELECT count(*) FROM ONLY t WHERE t.g = c.g) AS n FROM ONLY c", *WRITES)


def test_changes_of_the_children_change_nothing(tree: Site) -> None:
    tree.declare("st", ALONE, refresh_mode="DIFFERENTIAL")
    tree.run("UPDATE c SET g = 7", "DELETE FROM d WHERE id = 2", "INSERT INTO c VALUES (9, 1, 'c')")
    result = tree.refresh("st")
    assert (result.action, result.rows_inserted, result.rows_updated, result.rows_deleted) == ("DIFFERENTIAL", 0, 0, 0)
    assert tree.client.verify("st").differences == 0


def test_children_come_and_go(tree: Site) -> None:
    tree.declare("st", ALONE, refresh_mode="DIFFERENTIAL")
    for change in (
        "CREATE TABLE e () INHERITS (t); INSERT INTO e VALUES (7, 7); INSERT INTO t VALUES (8, 1)",
        "ALTER TABLE e NO INHERIT t; INSERT INTO e VALUES (8, 8); UPDATE t SET g = 3 WHERE id = 1",
        "ALTER TABLE e INHERIT t; DELETE FROM e; DELETE FROM t WHERE id = 2",
        "DROP TABLE e; INSERT INTO t VALUES (9, 1)",
    ):
        tree.run(change)
        assert tree.refresh("st").action == "REINITIALIZE"
        assert tree.differs("st", ALONE) == [], change
        tree.run(WRITES[1])
        assert tree.refresh("st").action == "DIFFERENTIAL"
        assert tree.differs("st", ALONE) == [], change


def test_a_table_without_children_is_read_by_its_key(tree: Site) -> None:
    tree.run("CREATE TABLE alone (id int PRIMARY KEY, g int)", "INSERT INTO alone VALUES (1, 1), (2, 1)")
    tree.follows(
        "SELECT id, g FROM ONLY alone", "UPDATE alone SET g = id", "DELETE FROM alone WHERE id = 1; TABLE alone"
    )


@pytest.mark.parametrize("query", ["SELECT id, g FROM ONLY t", "SELECT id, g, count(*) AS n FROM ONLY t GROUP BY id"])
def test_its_key_is_that_of_the_rows_of_its_own(tree: Site, query: str) -> None:
    tree.run("CREATE TABLE alone (id int PRIMARY KEY, g int)")
    tree.follows(query, *WRITES)
    explained = tree.client.explain_st("st")
    tree.declare("as_if_alone", query.replace("ONLY t", "alone"))
    alone = tree.client.explain_st("as_if_alone")
    assert (explained.keyed, explained.identity, explained.sink) == (True, alone.identity, alone.sink)
    assert not tree.client.validate_query(query.replace("ONLY t", "t")).keyed


def test_truncate_of_a_child_runs_full(tree: Site) -> None:
    tree.declare("st", ALONE, refresh_mode="DIFFERENTIAL")
    tree.run("TRUNCATE c")
    assert (tree.refresh("st").action, tree.differs("st", ALONE)) == ("FULL", [])


@pytest.mark.parametrize(
    "twice",
    [
        "CREATE TABLE e () INHERITS (t); CREATE TABLE f () INHERITS (e, c)",
        "CREATE TABLE e () INHERITS (t); ALTER TABLE d INHERIT e",
    ],
)
def test_a_row_that_is_inherited_in_two_ways_runs_full(tree: Site, twice: str) -> None:
    tree.run("ALTER TABLE t ADD x text" if "ALTER" in twice else "SELECT 1", twice)
    with pytest.raises(NotDifferentiable, match="inherits in two ways"):
        tree.declare("st", ALONE, refresh_mode="DIFFERENTIAL")
    tree.declare("st", ALONE)
    tree.run(WRITES[1], "INSERT INTO t VALUES (12, 1)")
    assert (tree.refresh("st").action, tree.differs("st", ALONE)) == ("FULL", [])


def test_a_child_that_computes_a_column_otherwise_runs_full(dsn: str) -> None:
    """PostgreSQL reads a child's rows with the expression of the table that is named, so the two images differ."""
    for site in site_at(dsn, placement="database"):
        site.run("CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) VIRTUAL)")
        site.run("CREATE TABLE c (a int, b int GENERATED ALWAYS AS (a * 3) VIRTUAL) INHERITS (t)")
        site.declare("st", "SELECT a, b FROM ONLY t")
        site.run("INSERT INTO t VALUES (1)", "INSERT INTO c VALUES (1)")
        assert (site.refresh("st").action, site.rows("SELECT a, b FROM st")) == ("FULL", [(1, 2)])


def test_immediate_refuses_what_statements_reach_through_another_table(tree: Site) -> None:
    with pytest.raises(UsageError, match=r"public\.c, which statements also reach"):
        tree.declare("st", ALONE, refresh_mode="IMMEDIATE")


def test_of_a_stream_table_it_means_nothing(tree: Site) -> None:
    tree.declare("st", ALONE, refresh_mode="DIFFERENTIAL")
    with pytest.raises(Exception, match=r"ONLY public\.st, which is a stream table"):
        tree.declare("above", "SELECT g FROM ONLY st")
