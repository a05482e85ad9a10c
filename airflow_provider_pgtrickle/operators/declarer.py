"""Which file a task's declarations stand in, as the catalog keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.declare.owners import Claim, Owner

if TYPE_CHECKING:
    from airflow.sdk import Context


def of_graph(context: Context, graph: str, file: str, moved_from: str | None = None) -> Claim:
    """The claim of a graph that the file declares."""
    bundle = getattr(context["ti"], "bundle_instance", None)
    if bundle is None:
        return Claim(Owner("", file, graph), moved_from)
    root = Path(bundle.path).resolve()
    try:
        relative = Path(file).resolve().relative_to(root)
    except ValueError:
        return Claim(Owner("", file, graph), moved_from)
    return Claim(Owner(bundle.name, str(relative), graph), moved_from, lambda other: not (root / other).exists())


def of_task(context: Context) -> Claim | None:
    """The claim of a task that declares a table by itself; None where it is in no file."""
    task = context.get("task")
    if task is None or not task.has_dag():
        return None
    dag = task.get_dag()
    return of_graph(context, f"{task.dag_id}.{task.task_id}", dag.fileloc) if dag else None
