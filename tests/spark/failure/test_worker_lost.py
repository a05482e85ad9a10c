"""One of two workers goes in mid-refresh: the other one finishes the work, in every way that Spark has a part in."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.spark.servers import SparkProcess, StandaloneCluster
from tests.spark.failure.application import submitted
from tests.spark.failure.shop import DEADLINE, Halted, Shop, children, in_thread, until
from tests.ways import prefer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Sums over a join, which Spark computes from several reads where it is let.
QUERY = (
    "SELECT n.name, count(*) AS orders, sum(o.v)::int::checked AS total"
    " FROM orders o JOIN groups n ON n.g = o.g WHERE halt(1, o.v) >= 0 GROUP BY n.name"
)
#: A column that Spark leaves to the stage must not have a domain, so no lowered plan waits at the stage.
QUERIES = {"pushed": QUERY, "lowered": QUERY.replace("::checked", "")}
PLAIN = QUERY.replace("halt(1, o.v)", "o.v").replace("::checked", "")
WAYS: dict[str, dict[str, Any]] = {
    "pushed": {},
    "lowered": {"read_partition_rows": 100},
}
#: Where the task waits that is killed: while it reads, and while it copies what is computed into the stage.
STEPS: dict[str, dict[str, Any]] = {"compute": {}, "stage": {"collect_max_rows": 1}}
_NOBODY = (
    r"Nobody has taken a task of this refresh for 1\d s: \d of \d are done, and Spark has no free executor\."
    r" See whether its cluster has workers, and cores for this application; spark_wait_seconds says how long to wait"
    r" for them\."
)
_SMALL = ("spark.executor.memory=512m", "spark.driver.memory=512m")


@pytest.fixture
def shop(dsn: str, way: str) -> Iterator[Shop]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        made = Shop(dsn, conn, QUERIES[way], PLAIN)
        # The page counts by which a large table is cut.
        conn.execute("INSERT INTO orders SELECT n, n % 7, n FROM generate_series(201, 2000) n")
        conn.execute("ANALYZE orders, groups")
        if way == "lowered":
            prefer(conn, "st", way)
        yield made


# The classic applications first: the Connect server has all of the cluster's cores for as long as this module lasts.
@pytest.mark.parametrize(
    ("way", "full", "step"), [("pushed", False, "compute"), ("pushed", True, "stage"), ("lowered", True, "compute")]
)
def test_a_classic_application(cluster: StandaloneCluster, shop: Shop, tmp_path: Path, way, full, step) -> None:
    settings = WAYS[way] | STEPS[step]
    shop.change()
    with shop.halted(
        step, lambda _: submitted(cluster.url, shop.dsn, tmp_path, "run", *_SMALL, full=full, **settings)
    ) as halted:
        _lose_its_worker(cluster, shop, halted)
    (told,) = halted.running.result()
    assert told["action"] == ("FULL" if full else "DIFFERENTIAL")
    _is_exact(shop, way, 1)
    shop.change()
    assert shop.refresh(None, full=full, **settings).action == ("FULL" if full else "DIFFERENTIAL")
    _is_exact(shop, way, 2)
    cluster.add_worker()


@pytest.mark.parametrize("way", ["pushed"])
def test_all_workers_of_a_classic_application_are_gone(
    cluster: StandaloneCluster, shop: Shop, tmp_path: Path, way: str
) -> None:
    shop.change()
    with shop.halted(
        "compute", lambda _: submitted(cluster.url, shop.dsn, tmp_path, "run", *_SMALL, spark_wait_seconds=15)
    ) as halted:
        _lose_all(cluster)
        assert halted.failure() is not None
    # The failed refresh has left nothing behind, and the next one is right.
    shop.wait_for_sessions_to_end()
    told = shop.conn.execute("SELECT error_message FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'")
    assert [re.fullmatch(_NOBODY, error) is not None for (error,) in told] == [True]
    status = shop.conn.execute("SELECT status, consecutive_errors FROM pgtrickle.pgt_stream_tables").fetchall()
    assert status == [("ACTIVE", 0)]
    for _ in range(2):
        cluster.add_worker()
    assert shop.refresh(None).action == "DIFFERENTIAL"
    assert shop.differences() == []
    assert shop.stages() == []


# What is halted where the other kind of session isn't.
@pytest.mark.parametrize(
    ("way", "full", "step"), [("pushed", False, "stage"), ("pushed", True, "compute"), ("lowered", True, "compute")]
)
def test_a_connect_session(cluster: StandaloneCluster, on_cluster: SparkSession, shop: Shop, way, full, step) -> None:
    settings = WAYS[way] | STEPS[step]
    shop.change()
    with shop.halted(step, in_thread(lambda: shop.refresh(on_cluster, full=full, **settings))) as halted:
        _lose_its_worker(cluster, shop, halted)
    assert halted.running.result(DEADLINE).action == ("FULL" if full else "DIFFERENTIAL")
    _is_exact(shop, way, 1)
    shop.change()
    assert shop.refresh(on_cluster, full=full, **settings).action == ("FULL" if full else "DIFFERENTIAL")
    _is_exact(shop, way, 2)
    cluster.add_worker()


@pytest.mark.parametrize("way", ["pushed"])
def test_all_workers_of_a_connect_session_are_gone(
    cluster: StandaloneCluster, on_cluster: SparkSession, shop: Shop, way: str
) -> None:
    """The server goes on counting the task as running; PostgreSQL shows that nobody reads any more."""
    settings = STEPS["stage"]
    shop.change()
    with shop.halted("stage", in_thread(lambda: shop.refresh(on_cluster, spark_wait_seconds=15, **settings))) as halted:
        _lose_all(cluster)
        error = halted.running.exception(DEADLINE)
    assert "Nobody has been at work on this refresh for 15 s" in str(error)
    shop.wait_for_sessions_to_end()
    for _ in range(2):
        cluster.add_worker()
    assert shop.refresh(on_cluster, **settings).action == "DIFFERENTIAL"
    assert shop.differences() == []
    assert shop.stages() == []


def _lose_its_worker(cluster: StandaloneCluster, shop: Shop, halted: Halted) -> None:
    """Kill the worker that carries a waiting task, with its executors, and wait until the other worker has the task."""
    _lose(cluster, next(worker for worker in cluster.workers if _clients(shop, worker, halted.waiting())))
    (left,) = cluster.workers
    # At the step itself, or behind the session of the lost task, which has claimed its partition.
    until(lambda: bool(_clients(shop, left, shop.waiting())) or halted.running.done())
    assert not halted.running.done(), halted.running.exception()


def _lose(cluster: StandaloneCluster, worker: SparkProcess) -> None:
    cluster.workers.remove(worker)
    for pid in [worker.pid, *children(worker.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _lose_all(cluster: StandaloneCluster) -> None:
    for worker in list(cluster.workers):
        _lose(cluster, worker)


def _is_exact(shop: Shop, way: str, refreshes: int) -> None:
    assert shop.differences() == []
    assert {status for status, _ in shop.history()} == {"COMPLETED"}
    taken = shop.conn.execute(
        "SELECT way FROM pgtrickle.pgt_refresh_history WHERE run_token <> 'preferred' ORDER BY refresh_id OFFSET 1"
    ).fetchall()
    assert taken == [(way,)] * refreshes
    assert shop.stages() == []


def _clients(shop: Shop, worker: SparkProcess, sessions: list[int]) -> list[int]:
    """The processes of a worker at the other end of these PostgreSQL sessions."""
    ports = shop.conn.execute("SELECT client_port FROM pg_stat_activity WHERE pid = ANY(%s)", (sessions,)).fetchall()
    sockets = {f"socket:[{inode}]" for (port,) in ports for inode in _inodes(port)}
    return [pid for pid in children(worker.pid) if sockets & _open(pid)]


def _inodes(port: int) -> Iterator[str]:
    """The sockets on this machine with this local port."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _open(pid: int) -> set[str]:
    try:
        return {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    except (FileNotFoundError, ProcessLookupError):
        return set()  # it ended, or closed one, while we looked
