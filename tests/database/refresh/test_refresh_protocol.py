"""The protocol under fire: late commits, two refreshers, killed sessions, orphans, moved frontiers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.locks import LOCK_SPACE
from airflow_provider_pgtrickle.engine.errors import LeaseLost, TransientFault
from airflow_provider_pgtrickle.engine.refresh import history, lease
from airflow_provider_pgtrickle.engine.settings import Settings
from tests.database.refresh.handwritten import filtered
from tests.database.refresh.workshop import Workshop

BIG = "SELECT id, amount FROM orders WHERE amount > 50"


@pytest.fixture
def processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts in one process don't take over from each other; these stand for attempts in several."""
    monkeypatch.setattr(lease, "at_work", lambda token: nullcontext())


@pytest.fixture
def big(any_workshop: Workshop) -> Workshop:
    query = filtered(any_workshop.source("orders"), ("id", "amount"), "amount > 50")
    any_workshop.stream_table("big", "id int, amount numeric", query, key=["id"])
    any_workshop.refresh_one("big")
    return any_workshop


def user(workshop: Workshop, *, autocommit: bool = False) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(workshop.database.dsn, autocommit=autocommit)


def test_a_transaction_that_wrote_early_and_commits_late_is_not_lost(big: Workshop) -> None:
    with user(big) as late:
        late.execute("INSERT INTO orders VALUES (201, 1, 99, 'late')")
        big.run("INSERT INTO orders VALUES (202, 1, 99, 'early')")
        buffer = f"pgtrickle_changes.changes_{_key(big)}"
        early = big.one(f"SELECT change_id FROM {buffer} WHERE new_id = 202")  # consumed rows go with the refresh
        assert big.refresh_one("big").rows_inserted == 1
        lsn = big.one("SELECT frontier #>> ARRAY['sources', %s, 'lsn'] FROM pgtrickle.pgt_stream_tables", _key(big))
        late.commit()
    # By LSN, or by sequence, the late one lies before the frontier: such a window would never see it.
    assert big.one(f"SELECT count(*) FROM {buffer} WHERE lsn > %s", lsn) == 0
    assert big.one(f"SELECT change_id FROM {buffer} WHERE new_id = 201") < early
    result = big.refresh_one("big")
    assert (result.action, result.rows_inserted) == ("DIFFERENTIAL", 1)
    assert big.differs("big", BIG) == []


def test_what_is_written_during_the_computation_waits_for_the_next_refresh(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    big.executor.before = lambda: big.run("DELETE FROM orders WHERE id IN (99, 98)")
    assert big.refresh_one("big").rows_deleted == 1
    assert big.refresh_one("big").rows_deleted == 2
    assert big.differs("big", BIG) == []


def test_a_rolled_back_change_never_happened(big: Workshop) -> None:
    with user(big) as other:
        other.execute("DELETE FROM orders")
        other.rollback()
    assert big.refresh_one("big").action == "NO_DATA"


def test_two_refreshers_of_one_table_do_not_meet(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    seen = []
    big.executor.before = lambda: seen.append(big.refresh_one("big"))
    assert big.refresh_one("big").action == "DIFFERENTIAL"
    (skipped,) = seen
    assert (skipped.action, skipped.fallback_reason, skipped.status) == ("SKIP", "locked", "SKIPPED")
    assert [(h.action, h.status, h.fallback_reason) for h in big.history("big")[:2]] == [
        ("SKIP", "SKIPPED", "locked"),
        ("DIFFERENTIAL", "COMPLETED", None),
    ]
    assert big.differs("big", BIG) == []


def test_a_refresh_leaves_no_lock_behind_for_the_next(big: Workshop) -> None:
    # The server may take a moment to notice a disconnection; the lock must be gone before.
    for _ in range(30):
        assert big.refresh_one("big").action == "NO_DATA"


@pytest.mark.usefixtures("processes_of_their_own")
def test_a_retry_of_the_same_run_takes_over_and_the_orphan_cannot_commit(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    retried = []
    big.executor.before = lambda: retried.append(big.refresh_one("big", run_token="run"))
    with pytest.raises((LeaseLost, TransientFault)):
        big.refresh_one("big", run_token="run")
    assert [r.rows_deleted for r in retried] == [1]
    assert big.differs("big", BIG) == []
    assert sorted(h.status for h in big.history("big")) == ["COMPLETED", "COMPLETED", "FAILED"]
    st = big.record("big")
    assert (st.status, st.consecutive_errors) == ("ACTIVE", 0)


def test_an_orphan_whose_session_lives_is_fenced_by_the_lease(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    stolen = lease.RunToken()
    big.executor.before = lambda: lease.take(big.conn, [big.record("big").id], stolen, big.settings)
    with pytest.raises(LeaseLost, match="Another run took this refresh over"):
        big.refresh_one("big")
    assert big.one("SELECT count(*) FROM big") == 50
    assert big.one("SELECT lease_token FROM pgtrickle.pgt_stream_tables") == str(stolen)
    assert big.history("big")[0].status == "FAILED"
    assert big.record("big").status == "ACTIVE"


@pytest.mark.usefixtures("processes_of_their_own")
def test_a_lease_past_its_time_is_taken_over(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    newer = []

    def later() -> None:
        big.run("UPDATE pgtrickle.pgt_stream_tables SET lease_expires = now() - interval '1 second'")
        newer.append(big.refresh_one("big", run_token="newer"))

    big.executor.before = later
    with pytest.raises((LeaseLost, TransientFault)):
        big.refresh_one("big", run_token="older")
    assert [r.rows_deleted for r in newer] == [1]
    assert big.differs("big", BIG) == []


def test_revoking_a_run_ends_its_session_and_its_right_to_commit(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    revoked = []
    big.executor.before = lambda: revoked.extend(lease.revoke(big.conn, "doomed"))
    with pytest.raises((LeaseLost, TransientFault)):
        big.refresh_one("big", run_token="doomed")
    assert revoked == [big.record("big").id]
    assert big.refresh_one("big").rows_deleted == 1


def test_a_revoked_run_does_not_try_again(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    big.executor.before = lambda: lease.revoke(big.conn, "doomed")
    patient = Settings(retry_attempts=3, retry_base_seconds=0.01)
    with pytest.raises(LeaseLost, match="it was killed"):
        big.refresh_one("big", run_token="doomed", settings=patient)
    assert [h.status for h in big.history("big")] == ["FAILED", "COMPLETED"]
    assert big.one("SELECT count(*) FROM big") == 50


def test_revoking_a_turn_leaves_the_next_one_alone(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    revoked = []
    big.executor.before = lambda: revoked.extend(lease.revoke(big.conn, "run#1"))
    assert big.refresh_one("big", run_token="run#2").rows_deleted == 1
    assert revoked == []
    assert big.history("big")[0].run_token == "run"
    big.run("DELETE FROM orders WHERE id = 99")
    big.executor.before = lambda: revoked.extend(lease.revoke(big.conn, "run#2"))
    with pytest.raises((LeaseLost, TransientFault)):
        big.refresh_one("big", run_token="run#2")
    assert revoked == [big.record("big").id]


def test_a_run_that_waits_in_its_commit_is_revoked_at_once(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    with user(big) as blocker, ThreadPoolExecutor(1) as pool:
        blocker.execute("LOCK TABLE big IN SHARE ROW EXCLUSIVE MODE")
        doomed = pool.submit(big.refresh_one, "big", run_token="doomed")
        while not big.one("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'big'::regclass"):
            assert not doomed.done()
        with user(big) as killer:
            killer.execute("SET lock_timeout = '1s'")
            assert lease.revoke(killer, "doomed") == [big.record("big").id]
        assert isinstance(doomed.exception(), (LeaseLost, TransientFault))
    assert big.one("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE lease_token IS NOT NULL") == 0
    assert big.one("SELECT count(*) FROM big") == 50


def test_an_attempt_that_tries_again_takes_nothing_from_a_newer_one(big: Workshop) -> None:
    """An orphan that was ended a moment before the newer attempt wrote its lease doesn't know of that attempt."""
    big.run("DELETE FROM orders WHERE id = 100")
    with user(big, autocommit=True) as newer:
        pgt_id = big.record("big").id

        def take_over() -> None:
            big.executor.before = None
            lease.terminate_holders(newer, [pgt_id])
            assert lease.try_lock(newer, [pgt_id]) == []

        big.executor.before = take_over
        patient = Settings(retry_attempts=2, retry_base_seconds=0.01)
        result = big.refresh_one("big", run_token="run", settings=patient)
    assert (result.action, result.fallback_reason) == ("SKIP", "locked")
    assert big.one("SELECT count(*) FROM big") == 50


def test_a_frontier_that_moved_meanwhile_makes_a_duplicate_do_nothing(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    stale = big.record("big").frontier
    big.executor.before = lambda: big.run(
        "UPDATE pgtrickle.pgt_stream_tables SET frontier = jsonb_set(frontier, '{data_timestamp}', '\"moved\"')"
    )
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason, result.status) == ("SKIP", "frontier_moved", "SKIPPED")
    assert big.record("big").frontier != stale
    assert big.one("SELECT count(*) FROM big") == 50
    assert big.refresh_one("big").rows_deleted == 1


CRASHES = {
    "taking the lease": "AFTER UPDATE OF lease_token ON pgtrickle.pgt_stream_tables",
    "writing the RUNNING row": "AFTER INSERT ON pgtrickle.pgt_refresh_history",
    "deleting rows": "AFTER DELETE ON public.big",
    "inserting rows": "AFTER INSERT ON public.big",
    "moving the frontier": "AFTER UPDATE OF frontier ON pgtrickle.pgt_stream_tables",
    "completing the history": "AFTER UPDATE OF action ON pgtrickle.pgt_refresh_history",
}


@pytest.mark.parametrize("step", [*CRASHES, "computing", "committing"])
def test_a_session_killed_at_any_step_loses_nothing_and_doubles_nothing(workshop: Workshop, step: str) -> None:
    query = filtered(workshop.source("orders"), ("id", "amount"), "amount > 50")
    workshop.stream_table("big", "id int, amount numeric", query)
    workshop.refresh_one("big")
    workshop.run("DELETE FROM orders WHERE id = 100; INSERT INTO orders VALUES (300, 1, 60, NULL)")
    # A sequence is not rolled back: the session dies once.
    workshop.run("""
        CREATE SEQUENCE deaths;
        CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('public.deaths') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN NULL;
        END $$""")
    if step == "computing":
        workshop.executor.before = lambda: lease.terminate_holders(workshop.conn, [workshop.record("big").id])
    elif step == "committing":
        workshop.run(
            "CREATE CONSTRAINT TRIGGER die AFTER UPDATE ON pgtrickle.pgt_refresh_history"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.status = 'COMPLETED') EXECUTE FUNCTION die()"
        )
    else:
        workshop.run(f"CREATE TRIGGER die {CRASHES[step]} EXECUTE FUNCTION die()")
    with pytest.raises(TransientFault):
        workshop.refresh_one("big")
    assert workshop.differs("big", BIG) != []
    result = workshop.refresh_one("big")
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 1, 1)
    assert workshop.differs("big", BIG) == []
    assert workshop.one("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status = 'RUNNING'") == 0
    assert workshop.refresh_one("big").action == "NO_DATA"


def test_a_killed_session_is_tried_again_within_the_refresh(big: Workshop) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    big.executor.before = lambda: lease.terminate_holders(big.conn, [big.record("big").id])
    patient = Settings(retry_attempts=2, retry_base_seconds=0.01)
    assert big.refresh_one("big", settings=patient).rows_deleted == 1
    assert [h.status for h in big.history("big")] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert big.record("big").consecutive_errors == 0


def test_what_a_dead_run_left_running_is_marked_by_the_next_one(big: Workshop) -> None:
    history.start(big.conn, [big.record("big").id], ["public.big"], "dead", "test", history.Trace())
    big.refresh_one("big")
    (dead,) = [h for h in big.history("big") if h.run_token == "dead"]
    assert dead.status == "FAILED"
    assert "killed" in (dead.error_message or "")


def test_recovery_of_all_leaves_alone_what_a_session_holds(big: Workshop) -> None:
    pgt_id = big.record("big").id
    history.start(big.conn, [pgt_id], ["public.big"], "alive", "test", history.Trace())
    with user(big, autocommit=True) as holder:
        assert lease.try_lock(holder, [pgt_id]) == []
        assert history.recover(big.conn) == 0
    with user(big, autocommit=True) as other:
        # The holder's session is closed, though its process may take a moment.
        other.execute("SELECT pg_advisory_lock(%s, %s)", (LOCK_SPACE, pgt_id))
        lease.unlock(other)
        assert history.recover(other) == 1


def test_an_orphaned_stage_is_dropped_by_the_next_run(big: Workshop) -> None:
    big.run(f"CREATE UNLOGGED TABLE pgtrickle_changes.stage_{big.record('big').id}_dead (a int)")
    big.run("CREATE UNLOGGED TABLE pgtrickle_changes.stage_999_alive (a int)")
    big.refresh_one("big", force_full=True)
    assert big.rows("SELECT relname FROM pg_class WHERE relname LIKE 'stage%'") == [("stage_999_alive",)]


def _key(workshop: Workshop) -> str:
    return workshop.source("orders").key
