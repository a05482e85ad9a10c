"""Histories that once ended in a content that was silently wrong, in the words of the attacker."""

from __future__ import annotations

import pytest

from tests.attack.attack import Worlds, play
from tests.attack.moves import History, Refresh, Resume, Say
from tests.attack.worlds import WORLDS

pytestmark = pytest.mark.filterwarnings("ignore::airflow_provider_pgtrickle.engine.errors.PgTrickleWarning")


def said(*statements: str) -> History:
    return tuple(Say("A", statement) for statement in statements)


def refreshed(*names: str, pauses: tuple[int, ...] = ()) -> History:
    return (Refresh("R", names, pauses=pauses),)


_CHANGED = "UPDATE t SET v = v + 1 WHERE id < 5"
_OFF, _ON = "ALTER TABLE t DISABLE TRIGGER USER", "ALTER TABLE t ENABLE TRIGGER USER"
_P3 = "CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3)"
_INTO_P3 = "INSERT INTO p (id, part, v) VALUES (701, 3, 70)"
_ATTACH, _DETACH = "ALTER TABLE p ATTACH PARTITION loose FOR VALUES IN (3)", "ALTER TABLE p DETACH PARTITION loose"
_FUNCTION = "CREATE OR REPLACE FUNCTION"
_IDLE = "RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"


def _while_it_waits(*done: str) -> History:
    """The refresh comes upon the lock of a transaction, and goes on when that commits."""
    return (*said(_CHANGED, "BEGIN", *done), *refreshed("st_join"), *said("COMMIT"))


REPORTED: dict[str, tuple[str, History]] = {
    "a source is rewritten while a refresh waits": (
        "joined",
        _while_it_waits("ALTER TABLE u ADD COLUMN uid uuid DEFAULT gen_random_uuid()"),
    ),
    "a source is emptied and filled while a refresh waits": (
        "joined",
        _while_it_waits("TRUNCATE u", "INSERT INTO u VALUES (1, 'one'), (2, 'two')"),
    ),
    "a source becomes unlogged while a refresh waits": ("joined", _while_it_waits("ALTER TABLE u SET UNLOGGED")),
    "a partition is detached while a refresh waits": (
        "tree",
        (
            *said("UPDATE p SET v = v + 1 WHERE id < 5", "BEGIN", "ALTER TABLE p DETACH PARTITION p1"),
            *refreshed("st_rows"),
            *said("COMMIT"),
        ),
    ),
    "user triggers are switched off and on": ("joined", said(_OFF, _ON)),
    "all triggers are switched on": ("joined", said("ALTER TABLE t ENABLE TRIGGER ALL")),
    "a write while triggers are off": ("joined", said(_OFF, _CHANGED, _ON)),
    "a write while triggers are off, in one transaction": ("joined", said("BEGIN", _OFF, _CHANGED, _ON, "COMMIT")),
    "one trigger of the set is dropped": ("joined", said("DROP TRIGGER <<trigger t update>> ON t", _CHANGED)),
    "one trigger fires for replicas only": (
        "joined",
        said("ALTER TABLE t ENABLE REPLICA TRIGGER <<trigger t update>>", _CHANGED),
    ),
    "a partition's triggers are off": ("tree", said("ALTER TABLE p1 DISABLE TRIGGER ALL")),
    "a partition is made, filled and dropped": ("tree", said(_P3, _INTO_P3, "DROP TABLE p3")),
    "a partition is made, filled and detached": (
        "tree",
        said(_P3, _INTO_P3, "ALTER TABLE p DETACH PARTITION p3"),
    ),
    "a child is made, filled and dropped": (
        "tree",
        said("CREATE TABLE h2 () INHERITS (h)", "INSERT INTO h2 VALUES (801, 1)", "DROP TABLE h2"),
    ),
    "a partition is attached, changed and detached": (
        "tree",
        said(_ATTACH, "UPDATE p SET v = v + 1 WHERE part = 3", "UPDATE p SET part = 1 WHERE id = 301", _DETACH),
    ),
    "a label of an enum is renamed": ("coded", said("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")),
    "two labels of an enum change places": (
        "coded",
        said("ALTER TYPE mood RENAME VALUE 'ok' TO 'x'", "ALTER TYPE mood RENAME VALUE 'glad' TO 'ok'"),
    ),
    "a composite type gets an attribute": ("coded", said("ALTER TYPE pair ADD ATTRIBUTE c int CASCADE")),
    "a nested function is replaced": (
        "coded",
        said(f"{_FUNCTION} inner_one(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 7'"),
    ),
    "an aggregate's state function is replaced": (
        "coded",
        said(f"{_FUNCTION} add_up(bigint, int) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1 + $2 * 7'"),
    ),
    "an operator's function is replaced": (
        "coded",
        said(f"{_FUNCTION} later(int, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 > $2 + 6'"),
    ),
    "what a function reads changes": ("coded", said("UPDATE u SET name = 'another' WHERE g = 2")),
    "a buffer is dropped": ("single", said("DROP TABLE <<buffer t>>", "DELETE FROM t WHERE id = 3")),
    "a buffer is emptied": ("single", said(_CHANGED, "TRUNCATE <<buffer t>>")),
    "a capturing function is replaced": ("single", said(f"{_FUNCTION} <<function t>> {_IDLE}", _CHANGED)),
    "a capturing function is dropped": ("single", said("DROP FUNCTION <<function t>> CASCADE", _CHANGED)),
    "the buffer of a stream table is emptied": (
        "joined",
        (*said(_CHANGED), *refreshed("st_sum"), *said("TRUNCATE <<part st_sum>>")),
    ),
    "the buffer of a stream table is dropped": (
        "joined",
        (*said(_CHANGED), *refreshed("st_sum"), *said("DROP TABLE <<part st_sum>>")),
    ),
    "a stream table's triggers are switched off and on": (
        "joined",
        said("ALTER TABLE st_sum DISABLE TRIGGER USER", "ALTER TABLE st_sum ENABLE TRIGGER USER", _CHANGED),
    ),
    "a stream table's column is rewritten": (
        "joined",
        said("ALTER TABLE st_sum ALTER COLUMN total TYPE bigint USING total + 1"),
    ),
    "a stream table's column gets another type": (
        "joined",
        said("ALTER TABLE st_sum ALTER COLUMN total TYPE text"),
    ),
    "a stream table is rebuilt, and so is the buffer that its reader reads": (
        "joined",
        said(
            "CREATE TABLE t_new (LIKE t INCLUDING ALL)",
            "ALTER TABLE t RENAME TO t_old",
            "ALTER TABLE t_new RENAME TO t",
            "ALTER TABLE st_sum ADD COLUMN mine int DEFAULT 3",
        ),
    ),
    "a refresh stands between its snapshot and its reading, and a source is emptied": (
        "joined",
        (
            *said(_CHANGED),
            *refreshed("st_join", pauses=(18,)),
            *said("BEGIN", "TRUNCATE u", "INSERT INTO u VALUES (1, 'one')", "COMMIT"),
            Resume("R"),
        ),
    ),
}


@pytest.mark.parametrize("name", REPORTED)
def test_nothing_is_lost_unnoticed(worlds18: Worlds, name: str) -> None:
    world, steps = REPORTED[name]
    assert play(worlds18, WORLDS[world], steps) == ()


@pytest.mark.parametrize("name", REPORTED)
def test_nothing_is_lost_unnoticed_on_fifteen(worlds15: Worlds, name: str) -> None:
    world, steps = REPORTED[name]
    assert play(worlds15, WORLDS[world], steps) == ()
