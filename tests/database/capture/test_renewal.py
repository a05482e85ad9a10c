"""After an upgrade install writes the capturing functions anew; nobody loses a change, and nobody runs FULL for it."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.capture.trigger_function import FORM
from tests import servers

_TRACKED = "SELECT form, epoch, digest = pgtrickle.pgt_capture_digest(source_relid) FROM pgtrickle.pgt_change_tracking"


@pytest.fixture
def older(pt, conn):
    """A stream table whose source is captured by a function of another text, of a version that knew no forms."""
    conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    pt.create_stream_table("st", "SELECT id, v FROM t")
    (source,) = conn.execute(
        "SELECT pg_get_functiondef(to_regprocedure(format('pgtrickle_changes.capture_%s()', 't'::regclass::oid)))"
    ).fetchone()
    conn.execute(source.replace("BEGIN\n", "BEGIN -- as it was\n", 1))
    conn.execute(
        "UPDATE pgtrickle.pgt_change_tracking SET form = NULL, digest = pgtrickle.pgt_capture_digest(source_relid)"
    )
    conn.execute("INSERT INTO t VALUES (1, 1)")
    return conn


def is_older(conn) -> bool:
    (found,) = conn.execute("SELECT prosrc LIKE '%as it was%' FROM pg_proc WHERE proname LIKE 'capture_%'").fetchone()
    return bool(found)


def content(conn):
    return conn.execute("SELECT id, v FROM st ORDER BY id").fetchall()


def test_a_function_of_an_older_version_is_written_anew_and_changes_go_on(pt, older):
    (_, epoch, _) = older.execute(_TRACKED).fetchone()
    assert is_older(older)
    assert pt.install() == ["capture of public.t"]
    assert not is_older(older)
    assert older.execute(_TRACKED).fetchone() == (FORM, epoch, True)
    older.execute("INSERT INTO t VALUES (2, 2)")
    result = pt.refresh_stream_table("st")
    assert (result.action, result.source_changes, content(older)) == ("DIFFERENTIAL", 2, [(1, 1), (2, 2)])
    assert pt.install() == []


def test_a_table_that_is_being_written_has_its_turn_later(pt, older, any_dsn):
    with servers.user_session(any_dsn) as writer:
        writer.execute("BEGIN; INSERT INTO t VALUES (2, 2)")
        assert pt.install() == []
        assert is_older(older)
        writer.execute("INSERT INTO t VALUES (3, 3); COMMIT")
    assert pt.install() == ["capture of public.t"]
    result = pt.refresh_stream_table("st")
    assert (result.action, content(older)) == ("DIFFERENTIAL", [(1, 1), (2, 2), (3, 3)])


def test_what_is_torn_is_the_next_refreshs_to_mend(pt, older):
    older.execute("ALTER TABLE t DISABLE TRIGGER USER; INSERT INTO t VALUES (2, 2); ALTER TABLE t ENABLE TRIGGER USER")
    assert pt.install() == []
    result = pt.refresh_stream_table("st")
    assert (result.action, result.fallback_reason, content(older)) == ("FULL", "buffer_lost", [(1, 1), (2, 2)])
    assert not is_older(older)
    assert pt.install() == []


def test_the_function_of_another_role_stays_for_him(pt, older, admin_of):
    admin_of.execute("CREATE ROLE pgt_test_another")
    try:
        (function,) = older.execute("SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE 'capture_%'").fetchone()
        admin_of.execute(f"ALTER FUNCTION {function} OWNER TO pgt_test_another")
        older.execute("UPDATE pgtrickle.pgt_change_tracking SET digest = pgtrickle.pgt_capture_digest(source_relid)")
        assert pt.install() == []
        assert is_older(older)
    finally:
        admin_of.execute("DROP OWNED BY pgt_test_another CASCADE; DROP ROLE pgt_test_another")


def test_what_writers_maintain_is_maintained_on(pt, conn):
    conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    pt.create_stream_table("st", "SELECT id, v FROM t", refresh_mode="IMMEDIATE")
    conn.execute("UPDATE pgtrickle.pgt_change_tracking SET form = NULL")
    conn.execute("INSERT INTO t VALUES (1, 1)")
    assert pt.install() == ["capture of public.t"]
    conn.execute("INSERT INTO t VALUES (2, 2)")
    assert content(conn) == [(1, 1), (2, 2)]
