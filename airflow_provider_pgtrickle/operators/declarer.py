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
    ti = context["ti"]
    file = ti.task.dag.fileloc if ti.task.has_dag() else None
    return of_graph(context, f"{ti.dag_id}.{ti.task_id}", file) if file else None
