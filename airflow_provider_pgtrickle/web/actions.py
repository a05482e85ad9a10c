"""What people with the right to edit a connection do to its stream tables on the page.

Nothing is computed in the API server: a refresh is asked of the DAG that owns the table, or written down as a request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import psycopg

from airflow_provider_pgtrickle.engine.catalog import migrate, records
from airflow_provider_pgtrickle.engine.catalog.database import scalar
from airflow_provider_pgtrickle.engine.declare.alter import alter
from airflow_provider_pgtrickle.engine.errors import UnknownStreamTable
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
from airflow_provider_pgtrickle.web.state import database_of


class Action(StrEnum):
    GATE = "gate"
    UNGATE = "ungate"
    RESUME = "resume"
    REFRESH = "refresh"
    FULL_REFRESH = "full_refresh"


def carry_out(connection_id: str, action: Action, name: str, reason: str | None, by: str) -> str:
    """Do it, and say in a sentence what was done."""
    qualified = QualifiedName.parse(name)
    hook = PgTrickleHook(postgres_conn_id=connection_id)
    with _transaction(hook) as conn:
        match action:
            case Action.GATE:
                told = f"{reason} ({by})" if reason else f"by {by}"
                records.update(conn, records.get(conn, qualified).id, is_gated=True, gated_reason=told)
                return f"{qualified} is gated: its refreshes are held back until somebody opens the gate."
            case Action.UNGATE:
                records.update(conn, records.get(conn, qualified).id, is_gated=False, gated_reason=None)
                return f"The gate of {qualified} is open: its next refresh runs."
            case Action.RESUME:
                # The status alone: what it computes again is its next refresh's, which needs a back end.
                alter(conn, Settings.load(**hook.settings), qualified, {"status": "ACTIVE"})
                return f"{qualified} is resumed: its next refresh runs."
            case Action.REFRESH | Action.FULL_REFRESH:
                return _request(conn, qualified, action is Action.FULL_REFRESH)


def _request(conn: psycopg.Connection, name: QualifiedName, full: bool) -> str:
    """A refresh that no DAG carries out is written down for whoever serves requests."""
    if records.find(conn, name) is None:
        raise UnknownStreamTable(f"There is no stream table named {name}")
    number = scalar(conn, "SELECT pgtrickle.request_refresh(%s, %s)", (name.quoted, full))
    return f"Request {number} is written down: a DAG of this database or `pgtrickle serve-requests` carries it out."


@contextmanager
def _transaction(hook: PgTrickleHook) -> Iterator[psycopg.Connection]:
    with database_of(hook).transaction() as conn:
        migrate.require(conn)
        yield conn
