"""`StreamTableGroup`: a graph's tables as a task group in a DAG of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.sdk import TaskGroup

from airflow_provider_pgtrickle.factory import dag as tasks
from airflow_provider_pgtrickle.factory import forgotten
from airflow_provider_pgtrickle.factory.stream_table_graph import StreamTableGraph


class StreamTableGroup(TaskGroup):
    """The tasks of a graph, to be put between others: `load >> StreamTableGroup(shop) >> report`.

    In each run of that DAG all tables with changes are refreshed. The graph's own DAG isn't needed then, but may be
    there, too.

    :param graph: the declarations; its `pool`, `granularity`, `spark_args` hold here, what it says of DAGs doesn't
    :param group_id: by default the graph's name
    :param due_only: leave out what isn't due by its own schedule, except in a run that somebody triggered
    :param select: only the units of these tables: `totals`, `+totals`, `totals+`, `tag:sales`, several in a list
    :param exclude: without the units that hold nothing else than these, written in the same way
    """

    def __init__(
        self,
        graph: StreamTableGraph,
        group_id: str | None = None,
        *,
        due_only: bool = False,
        select: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        chosen = graph.selected(select, exclude)
        super().__init__(group_id=group_id or graph.name, **kwargs)
        forgotten.noticed(graph)
        if graph.default_args:
            self.default_args = {**graph.default_args, **self.default_args}
        tasks.fill(graph, chosen, tasks.Place(self.dag, self, due_only))
