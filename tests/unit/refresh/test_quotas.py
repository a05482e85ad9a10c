"""The limits of graphs are one setting, and what is wrong in it is told where it is set."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.refresh.turn import SLOTS, WAITING, Queue
from airflow_provider_pgtrickle.engine.settings import Settings


@pytest.mark.parametrize(
    ("text", "quotas"),
    [
        ("", {}),
        ("sales=2", {"sales": 2}),
        ("sales=2,stock=14", {"sales": 2, "stock": 14}),
        (" sales=2 ,  eu.stock-1=4 ", {"sales": 2, "eu.stock-1": 4}),
    ],
)
def test_quotas_are_read(text: str, quotas: dict[str, int]) -> None:
    assert Settings.load(max_concurrent_refreshes_of_graphs=text).quotas == quotas


@pytest.mark.parametrize("text", ["sales", "=3", "sales=", "sales=0", "sales=many", "sales=-1", "a=1 = 2"])
def test_a_wrong_one_is_told_at_once(text: str) -> None:
    with pytest.raises(UsageError, match="max_concurrent_refreshes_of_graphs"):
        Settings.load(max_concurrent_refreshes_of_graphs=text)


def test_each_graph_has_a_queue_of_its_own() -> None:
    queues = [Queue(1), Queue.of_graph("sales", 1), Queue.of_graph("stock", 1)]
    keys = {key for queue in queues for key in (queue.slots, queue.waiting)}
    assert {SLOTS, WAITING} < keys
    assert len(keys) == 6
    assert all(0 <= key < 2**31 for key in keys)
