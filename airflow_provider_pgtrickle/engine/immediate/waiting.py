"""Whether tables just refreshed wait for their writers to maintain them.

Each refresh asks, and mostly none does. So what lets writers maintain a table is imported only where one does.
"""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings


def enliven(database: Database, settings: Settings, refreshed: Collection[str]) -> list[QualifiedName]:
    """Let writers maintain those of the tables just refreshed that they should maintain, and don't yet; their names."""
    # In the session of the refresh, which is still open: mostly nothing is found, and a connection takes milliseconds.
    with database.glance() as conn:
        is_any = bool(records.not_yet_live(conn, refreshed))
    if not is_any:
        return []
    from airflow_provider_pgtrickle.engine.immediate import live

    return live.enliven(database, settings, refreshed)
