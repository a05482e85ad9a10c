"""What Airflow itself knows of stream tables: the connections to them, the DAGs that refresh them, and their runs.

Nothing of a connection but its id and type is read here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import (
    AssetDetails,
    ConnectionDetails,
    DagAccessEntity,
    DagDetails,
)
from airflow.configuration import conf
from airflow.models import Connection, DagModel
from airflow.models.asset import AssetModel
from airflow.models.taskinstance import TaskInstance
from airflow.secrets.environment_variables import CONN_ENV_PREFIX, EnvironmentVariablesBackend
from airflow.utils.session import create_session
from sqlalchemy import or_, select

from airflow_provider_pgtrickle.operators.outcome import run_token

#: The connection types that `PgTrickleHook` takes. Only those of our own type are asked without being chosen.
OURS = "pgtrickle"
_TYPES = (OURS, "postgres", "postgresql")
#: A task is cleared less often, or its log isn't linked.
_MOST_ROUNDS = 6
_MOST_RUNS = 500


def connections(user: BaseUser) -> list[dict[str, str]]:
    """The connections that may lead to stream tables and that the user may read: first our own type, by id.

    Airflow can't list what a secrets backend has, except the environment.
    """
    with create_session() as session:
        stored = session.execute(
            select(Connection.conn_id, Connection.conn_type).where(Connection.conn_type.in_(_TYPES))
        ).all()
    types = {str(conn_id): str(conn_type) for conn_id, conn_type in stored}
    permitted = get_auth_manager().get_authorized_connections(user=user, method="GET")
    found = {conn_id: conn_type for conn_id, conn_type in types.items() if conn_id in permitted}
    for conn_id, conn_type in _in_environment():
        if conn_type in _TYPES and may(user, "GET", conn_id):
            found.setdefault(conn_id, conn_type)
    return [
        {"conn_id": conn_id, "conn_type": conn_type}
        for conn_id, conn_type in sorted(found.items(), key=lambda item: (item[1] != OURS, item[0]))
    ]


def _in_environment() -> Iterable[tuple[str, str]]:
    backend = EnvironmentVariablesBackend()
    for variable in sorted(os.environ):
        # What follows another underscore belongs to a team.
        if not variable.startswith(CONN_ENV_PREFIX) or variable.startswith(f"{CONN_ENV_PREFIX}_"):
            continue
        conn_id = variable.removeprefix(CONN_ENV_PREFIX).lower()
        try:
            connection = backend.get_connection(conn_id)
        except Exception:  # nosec B112: somebody else's variable that can't be read is no connection
            continue
        if connection is not None and connection.conn_type:
            yield conn_id, str(connection.conn_type)


def may(user: BaseUser, method: str, conn_id: str) -> bool:
    """Whether the user may do this with the connection, by the check that guards Airflow's own routes."""
    team = Connection.get_team_name(conn_id) if conf.getboolean("core", "multi_team") else None
    return get_auth_manager().is_authorized_connection(
        method=cast(Any, method), details=ConnectionDetails(conn_id=conn_id, team_name=team), user=user
    )


def dags(user: BaseUser, initiators: Mapping[str, str | None], graphs: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The DAG that refreshes each stream table, as far as the user may see it.

    It is the one whose graph declares the table, or the one that refreshed it last: `initiators` has who did.
    """
    named = {name: _dag_candidates(graphs.get(name), initiators.get(name)) for name in initiators}
    wanted = {dag_id for candidates in named.values() for dag_id in candidates}
    with create_session() as session:
        rows = session.execute(
            select(DagModel.dag_id, DagModel.is_paused).where(DagModel.dag_id.in_(wanted), ~DagModel.is_stale)
        ).all()
    there = {str(dag_id): bool(paused) for dag_id, paused in rows if _may_dag(user, "GET", str(dag_id))}
    found = {}
    for name, candidates in named.items():
        dag_id = next((candidate for candidate in candidates if candidate in there), None)
        if dag_id is not None:
            found[name] = {"dag_id": dag_id, "is_paused": there[dag_id]}
    may_run = {dag_id for dag_id in there if _may_dag(user, "POST", dag_id, DagAccessEntity.RUN)}
    return {name: {**dag, "may_trigger": dag["dag_id"] in may_run} for name, dag in found.items()}


def gone(initiators: Mapping[str, str | None], owners: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The DAG that kept each stream table up to date, if this Airflow doesn't have it, whoever may see it.

    Where no task has refreshed a table yet, any DAG of the file that declares it may be the one.
    """
    mine = {name: owner for name, owner in owners.items() if not owner["removed_at"]}
    named = {
        name: _dag_candidates(mine[name]["graph"] if name in mine else None, initiator)
        for name, initiator in initiators.items()
    }
    files = {owner["file"] for owner in mine.values()}
    with create_session() as session:
        rows = session.execute(
            select(
                DagModel.dag_id, DagModel.is_stale, DagModel.bundle_name, DagModel.relative_fileloc, DagModel.fileloc
            ).where(
                or_(
                    DagModel.dag_id.in_({dag_id for candidates in named.values() for dag_id in candidates}),
                    DagModel.relative_fileloc.in_(files),
                    DagModel.fileloc.in_(files),
                )
            )
        ).all()
    known = {dag_id for dag_id, *_ in rows}
    live = {dag_id for dag_id, is_stale, *_ in rows if not is_stale}
    # A file that is in no bundle is kept with its whole path.
    places = {(bundle, file) for _, is_stale, bundle, file, _ in rows if not is_stale}
    places |= {("", path) for _, is_stale, _, _, path in rows if not is_stale}
    found = {}
    for name, candidates in named.items():
        owner = mine.get(name)
        is_refreshed = (initiators[name] or "").startswith("airflow ")
        is_declared = owner is not None and (owner["bundle"], owner["file"]) in places
        if candidates and not live & set(candidates) and (is_refreshed or not is_declared):
            # Of dotted names the shortest is the likeliest: the others have a part of a task's id.
            likely = owner["graph"] if owner is not None else candidates[-1]
            found[name] = next((candidate for candidate in candidates if candidate in known), likely)
    return found


def assets(user: BaseUser, conn_id: str, tables: Collection[str]) -> dict[str, str]:
    """The address of the asset of each table, stream table or source, that DAGs know and the user may see."""
    ends = [quote(name.rpartition(".")[2], safe=" ") for name in tables]
    named = or_(*(AssetModel.name.endswith(end, autoescape=True) for end in ends))
    with create_session() as session:
        rows = session.execute(select(AssetModel.id, AssetModel.extra).where(named)).all()
    manager = get_auth_manager()
    return {
        extra["table"]: f"assets/{asset_id}"
        for asset_id, extra in rows
        if extra.get("connection") == conn_id
        and extra.get("table") in tables
        and manager.is_authorized_asset(method="GET", details=AssetDetails(id=str(asset_id)), user=user)
    }


def _dag_candidates(graph: str | None, initiator: str | None) -> Sequence[str]:
    """Ids that a table's DAG may have, the likeliest first. Both a DAG's id and a task's may hold dots."""
    likely = [graph] if graph else []
    for text in (initiator or "").removeprefix("airflow ") if (initiator or "").startswith("airflow ") else "", graph:
        parts = (text or "").split(".")
        likely += [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
    return list(dict.fromkeys(likely))


def _may_dag(user: BaseUser, method: str, dag_id: str, entity: DagAccessEntity | None = None) -> bool:
    team = DagModel.get_team_name(dag_id) if conf.getboolean("core", "multi_team") else None
    return get_auth_manager().is_authorized_dag(
        method=cast(Any, method), access_entity=entity, details=DagDetails(id=dag_id, team_name=team), user=user
    )


def runs(user: BaseUser, history: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The address of the task instance, with its log, that ran a refresh, by `refresh_id`.

    A run's token is a digest of what names it, so the tokens of the task's last runs are computed and compared.
    """
    wanted: dict[str, list[int]] = {}
    initiators = set()
    for row in history:
        initiator = row["initiated_by"] or ""
        if row["run_token"] and initiator.startswith("airflow "):
            # A try adds its number, a unit of a whole graph its own part.
            token = row["run_token"].partition("#")[0].partition("/")[0]
            wanted.setdefault(token, []).append(row["refresh_id"])
            initiators.add(initiator.removeprefix("airflow "))
    found: dict[int, str] = {}
    for initiator in sorted(initiators):
        for dag_id, task_id, run_id, map_index, tries in _task_instances(initiator):
            if not _may_dag(user, "GET", dag_id, DagAccessEntity.TASK_INSTANCE):
                break
            for round_ in range(min(_MOST_ROUNDS, tries + 1)):
                ti = SimpleNamespace(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
                token = run_token(cast(Any, {"ti": ti}), round_)
                for refresh_id in wanted.get(token, ()):
                    found[refresh_id] = _address(dag_id, run_id, task_id, map_index)
    return found


def _task_instances(initiator: str) -> list[tuple[str, str, str, int, int]]:
    parts = initiator.split(".")
    pairs = [(".".join(parts[:n]), ".".join(parts[n:])) for n in range(len(parts) - 1, 0, -1)]
    with create_session() as session:
        for dag_id, task_id in pairs:
            rows = session.execute(
                select(TaskInstance.run_id, TaskInstance.map_index, TaskInstance.max_tries)
                .where(TaskInstance.dag_id == dag_id, TaskInstance.task_id == task_id)
                .order_by(TaskInstance.start_date.desc())
                .limit(_MOST_RUNS)
            ).all()
            if rows:
                return [(dag_id, task_id, str(run), int(index), int(most or 0)) for run, index, most in rows]
    return []


def _address(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    """The page of a task instance, below Airflow's base address."""
    mapped = f"/mapped/{map_index}" if map_index >= 0 else ""
    return f"dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}/tasks/{quote(task_id, safe='')}{mapped}"
