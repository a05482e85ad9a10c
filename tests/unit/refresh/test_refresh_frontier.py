"""Windows and frontiers, as arithmetic on snapshots."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.binding import Window
from airflow_provider_pgtrickle.engine.refresh.snapshot import Frontier, SourceFrontier, Xids

OLD = SourceFrontier("10:20:12,15", "0/1", "2026-01-01T00:00:00+00:00", buffer=7)


def test_a_snapshot_sees_what_was_committed_and_not_what_was_running() -> None:
    seen = Xids.parse("10:20:12,15")
    assert [xid for xid in range(9, 22) if seen.sees(xid)] == [9, 10, 11, 13, 14, 16, 17, 18, 19]


def test_a_snapshot_without_running_transactions() -> None:
    assert Xids.parse("20:20:").sees(19)
    assert not Xids.parse("20:20:").sees(20)


def test_json_there_and_back() -> None:
    frontier = Frontier({"16384": OLD, "pgt_7": SourceFrontier("20:20:", "0/2", "t", (21,))}, "2026-01-01")
    assert Frontier.from_json(frontier.to_json()) == frontier


def test_the_json_is_the_one_that_cleanup_reads() -> None:
    assert SourceFrontier("20:20:", "0/2", "t", (21,)).to_json() == {
        "snapshot": "20:20:",
        "lsn": "0/2",
        "ts": "t",
        "also": [21],
    }


def test_no_frontier_at_all_is_an_empty_one() -> None:
    assert Frontier.from_json(None) == Frontier()


def test_the_window_runs_from_the_frontier_to_the_snapshot() -> None:
    assert OLD.window(("c", "b"), "30:30:") == Window(("c", "b"), "10:20:12,15", "30:30:", ())


def test_own_transactions_are_remembered_until_a_snapshot_sees_them() -> None:
    own = SourceFrontier("20:20:", "0/2", "t", (25,))
    blind = own.advanced(SourceFrontier("20:30:25", "0/3", "t"))
    assert blind.also == (25,)
    assert own.advanced(SourceFrontier("20:30:21", "0/3", "t")).also == ()
    assert blind.advanced(SourceFrontier("20:40:25", "0/4", "t", (41,))).also == (25, 41)


def test_sources_no_longer_read_are_forgotten_and_new_ones_begin() -> None:
    moved = Frontier({"1": OLD}, "a").advanced({"2": OLD}, "b")
    assert (set(moved.sources), moved.data_timestamp) == ({"2"}, "b")
