"""`StreamTableGraph`: the stream tables of one database, and the DAGs that refresh them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_pgtrickle.engine.declare.options import check
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph import selection
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.factory import folder, forgotten
from airflow_provider_pgtrickle.factory.caller import caller
from airflow_provider_pgtrickle.factory.components import Component, components
from airflow_provider_pgtrickle.stream_table import (
    DEFAULT_CONN_ID,
    DEFAULT_SCHEMA,
    Home,
    StreamTable,
    Unit,
    asset_of,
)

if TYPE_CHECKING:
    from airflow.sdk import DAG, Asset

    from airflow_provider_pgtrickle.engine.graph import Graph
    from airflow_provider_pgtrickle.factory import dbt
    from airflow_provider_pgtrickle.factory.dag import Place

Granularity = Literal["unit", "graph"]
OnRemoved = Literal["keep", "gate", "drop"]


class StreamTableGraph:
    """Stream tables that live in one PostgreSQL database, turned into one DAG.

    :param name: the DAG's id, or what its DAGs' ids begin with where it is split
    :param tables: the declarations, in any order; a `Unit` stands for its tables
    :param postgres_conn_id: a connection of type `pgtrickle` or `postgres`
    :param spark_conn_id: of type `spark` (spark-submit) or `spark_connect` (a warm session in the task's process)
    :param granularity: `unit`: one task for each refresh unit; `graph`: one task refreshes all that is due in one
        session, and tasks that cost no process show each table's state
    :param placement: where changes of its tables are computed, unless a table says otherwise: `spark`, `auto` or
        `database`; None: as the setting says
    :param unlogged_buffers: whether capture may do without a log, unless a table says otherwise; None: as the setting
        says
    :param timezone: the zone by which queries cast times and read the clock, unless a table says otherwise; None: UTC
    :param split: one DAG for each connected component, called `<name>__` and the table in it that reads no other, or
        its tables' `component`
    :param on_removed: what `plan` does with a table that this graph doesn't declare any more: `keep` and warn of it,
        `gate` it, or `drop` it
    :param moved_from: the file, or the graph, that declared these tables until now, where they were moved here
    :param default_args: as for any DAG; `retries` is 2 unless it says otherwise
    :param tags: tags of its DAGs, beside `pgtrickle`
    :param pool: the pool of the tasks that run Spark
    :param dag_args: further arguments of `DAG(...)`; a `schedule` among them replaces the one of the tables
    :param spark_args: further arguments of the back end, such as `conf` and `executor_memory` for spark-submit
    :param deadline: how long a run may take from its queueing; if it isn't done by then, the alert `stale_data` is
    sent. For other callbacks put a `deadline` for `DAG(...)` into `dag_args`
    :param database_uri: `postgres://host:port/database`, if the assets should carry the real address
    :param follows: assets whose updates start a run, beside the schedules of the tables: `["orders"]` names sources,
        which Airflow then draws in the DAG's graph; any other asset is one of yours
    """

    def __init__(
        self,
        name: str,
        tables: Iterable[StreamTable | Unit],
        postgres_conn_id: str = DEFAULT_CONN_ID,
        spark_conn_id: str = "spark_default",
        *,
        granularity: Granularity = "unit",
        placement: str | None = None,
        unlogged_buffers: bool | None = None,
        timezone: str | None = None,
        split: bool = False,
        on_removed: OnRemoved = "keep",
        moved_from: str | None = None,
        default_args: Mapping[str, Any] | None = None,
        pool: str | None = None,
        tags: Iterable[str] = (),
        dag_args: Mapping[str, Any] | None = None,
        spark_args: Mapping[str, Any] | None = None,
        deadline: timedelta | None = None,
        database_uri: str | None = None,
        follows: Iterable[Asset | str] = (),
    ) -> None:
        if granularity not in ("unit", "graph"):
            raise UsageError(f"granularity can't be {granularity!r}", remedy="Use 'unit' or 'graph'.")
        if on_removed not in ("keep", "gate", "drop"):
            raise UsageError(f"on_removed can't be {on_removed!r}", remedy="Use 'keep', 'gate' or 'drop'.")
        self.name = name
        declared = (one.tables if isinstance(one, Unit) else (one,) for one in tables)
        self.tables: tuple[StreamTable, ...] = tuple(table for several in declared for table in several)
        if not self.tables:
            raise UsageError(f"Graph {name!r} has no tables", remedy="Give at least one StreamTable.")
        self.postgres_conn_id = postgres_conn_id
        self.spark_conn_id = spark_conn_id
        self.granularity = granularity
        self.placement = check(Settings.load(), {"placement": placement})["placement"]
        self.timezone = check(Settings.load(), {"timezone": timezone})["timezone"]
        self.unlogged_buffers = check(Settings.load(), {"unlogged_buffers": unlogged_buffers})["unlogged_buffers"]
        self.split = split
        self.on_removed = on_removed
        self.moved_from = moved_from
        self.default_args = dict(default_args or {})
        self.pool = pool
        self.tags = tuple(tags)
        self.dag_args = dict(dag_args or {})
        self.spark_args = dict(spark_args or {})
        self.deadline = deadline
        #: The file that declares it, which owns its tables.
        self.file = str(caller().get("__file__", ""))
        self.home = Home(postgres_conn_id, database_uri.rstrip("/") if database_uri else None)
        if isinstance(follows, str):
            raise UsageError(f"follows must be a list, not {follows!r}", remedy=f"Write follows=[{follows!r}].")
        self.follows = tuple(self.source(one) if isinstance(one, str) else one for one in follows)
        #: What adds tasks to each DAG or group, behind those of its tables.
        self.behind: Callable[[Place, Component], object] | None = None
        # The components are computed here and not in register(), so that a circle or a bad schedule is an error of the
        # line that declares the graph.
        _ = self.components
        for table in self.tables:
            table.settle(self.home, self.placement, self.unlogged_buffers, self.timezone)
        forgotten.watch(self, name)

    @classmethod
    def from_folder(cls, name: str, path: str | Path, *args: Any, **kwargs: Any) -> StreamTableGraph:
        """A graph from .sql files with YAML headers. A relative path starts at the calling file."""
        root = Path(path)
        if not root.is_absolute():
            root = Path(caller().get("__file__", "")).parent / root
        return cls(name, folder.stream_tables(root), *args, **kwargs)

    @classmethod
    def from_dbt(
        cls,
        name: str,
        project: str | Path,
        *args: Any,
        select: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] | None = None,
        tests: str | None = None,
        env: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> StreamTableGraph:
        """A graph of a dbt project's models with `materialized: stream_table`, from their compiled SQL.

        `project` is its folder or its manifest.json, which `dbt compile` writes; a relative path starts at the calling
        file. `select` and `exclude` are dbt's: `totals`, `+totals`, `tag:money`. `tests` is the program dbt, if its
        tests of these models shall run after their refreshes; `env` is its environment. Where `database_uri` is given,
        the tables of other models that they read are followed as assets, by the addresses that Cosmos gives them.
        """
        from airflow_provider_pgtrickle.factory import dbt

        root = Path(project)
        if not root.is_absolute():
            root = Path(caller().get("__file__", "")).parent / root
        found = dbt.read(root, select, exclude)
        if (uri := kwargs.get("database_uri")) and found.awaited:
            from airflow.sdk import Asset

            kwargs["follows"] = [*kwargs.get("follows", ()), *map(Asset, found.assets(uri))]
        graph = cls(name, found.tables.values(), *args, **kwargs)
        if tests is not None:
            graph.behind = partial(_dbt_tests, found, tests, dict(env or {}))
        return graph

    @cached_property
    def components(self) -> list[Component]:
        """The graph as one DAG, or its connected components where it is split."""
        return components(self.name, self.tables, Settings.load().min_schedule_seconds, split=self.split)

    @property
    def graph(self) -> Graph:
        return self.components[0].graph

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """All its tables, by `schema.name`."""
        return tuple(sorted(str(table.qualified) for table in self.tables))

    def source(self, name: str) -> Asset:
        """The asset of a table that the graph reads: what loads the table has it among its outlets."""
        wanted = QualifiedName.parse(name, DEFAULT_SCHEMA)
        read = {str(one) for table in self.tables for one in table.reads}
        if str(wanted) not in read:
            close = get_close_matches(str(wanted), sorted(read), n=1)
            raise UsageError(
                f"Graph {self.name!r} reads no {wanted}",
                remedy=f"Did you mean {close[0]}?" if close else f"It reads {', '.join(sorted(read)) or 'nothing'}.",
            )
        return asset_of(self.home, wanted)

    def selected(self, select: str | Iterable[str] | None, exclude: str | Iterable[str] | None = None) -> Component:
        """The units of the tables that these terms select; without terms all of them."""
        whole = components(self.name, self.tables, Settings.load().min_schedule_seconds)[0]
        tags = {str(table.qualified): table.tags for table in self.tables}
        chosen = selection.select(self.graph, tags, select) if select is not None else set(self.declared)
        if exclude is not None:
            chosen = chosen - selection.select(self.graph, tags, exclude)
        if not chosen:
            raise UsageError(f"Nothing of graph {self.name!r} is selected", remedy="Check select and exclude.")
        return whole.narrowed(chosen)

    def dags(self) -> list[DAG]:
        """The DAGs. A worker that runs one task of one DAG builds that DAG only."""
        from airflow.sdk import get_parsing_context

        from airflow_provider_pgtrickle.factory.dag import build

        forgotten.noticed(self)
        wanted = get_parsing_context().dag_id
        return [build(self, component) for component in self.components if wanted in (None, component.dag_id)]

    def register(self, namespace: MutableMapping[str, Any]) -> list[DAG]:
        """Put the DAGs where Airflow finds them: `graph.register(globals())`.

        Each DAG is put under its id. If the graph's own variable has that name, the DAG is put under `<id>_dag`.
        """
        from airflow.sdk import DAG

        made = self.dags()
        for dag in made:
            name = f"{dag.dag_id}_dag" if namespace.get(dag.dag_id) is self else dag.dag_id
            held = namespace.get(name)
            if held is not None and not isinstance(held, DAG):
                raise UsageError(
                    f"The variable {name} holds a {type(held).__name__}, which the DAG of that name would replace",
                    remedy="Rename the variable, or the graph.",
                )
            namespace[name] = dag
        return made


def _dbt_tests(found: dbt.Project, program: str, env: Mapping[str, str], place: Place, component: Component) -> None:
    """Add a task that runs dbt's tests of the component's models, unless nothing of it was refreshed."""
    from airflow.sdk import TriggerRule

    from airflow_provider_pgtrickle.operators.dbt import DbtTestOperator

    mine = {str(table.qualified) for table in component.tables}
    tests = DbtTestOperator(
        # A hyphen can't occur in a table's task id.
        **place.named("dbt-tests"),
        dbt=program,
        project_dir=str(found.folder),
        models=[model for model, table in found.tables.items() if str(table.qualified) in mine],
        env=env,
        trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
        doc_md="Runs dbt's tests of what was refreshed.",
    )
    tests.set_upstream([place.dag.get_task(unit.task_id) for unit in component.units])
