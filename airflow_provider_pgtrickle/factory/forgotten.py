"""Notices a graph that its DAG file declares and then forgets: no DAG would appear, and no error either."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NoReturn

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.factory.caller import caller


def watch(graph: object, name: str) -> None:
    """While Airflow reads the DAG file that declares the graph, leave a stand-in that is an import error.

    Airflow validates the DAGs of a file when it has read all of it, and by then `noticed` has taken the stand-in away.
    A graph of a module that others import is theirs to register.
    """
    context, module = _read_by_airflow()
    if module is not None and caller().get("__name__") == module.__name__:
        context.autoregistered_dags.add((_stand_in(graph, name), module))


def noticed(graph: object) -> None:
    """The graph was made DAGs of, or put into one."""
    context, module = _read_by_airflow()
    if module is not None:
        found = context.autoregistered_dags
        found -= {(dag, at) for dag, at in found if getattr(dag, "stands_for", None) is graph}


def _read_by_airflow() -> tuple[Any, ModuleType | None]:
    # Where no DAG file is read, nothing of Airflow has to be imported for this.
    home = sys.modules.get("airflow.sdk.definitions._internal.contextmanager")
    context = getattr(home, "DagContext", None)
    name = getattr(context, "current_autoregister_module_name", None)
    return context, sys.modules.get(name) if name else None


def _stand_in(graph: object, name: str) -> Any:
    from airflow.sdk import DAG

    class Forgotten(DAG):
        stands_for = graph

        def validate(self) -> NoReturn:
            raise UsageError(
                f"The stream tables of graph {name!r} are declared, but no DAG is made of them",
                remedy="Write .register(globals()) after the graph, or .register({}) if it is meant to have none.",
            )

    return Forgotten(dag_id=f"{name}__not_registered", schedule=None)
