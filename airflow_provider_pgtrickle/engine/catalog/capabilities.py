"""What a server version can do. The only place where versions are compared."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import Connection

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault


@dataclass(frozen=True)
class Capabilities:
    """Abilities by name; ask for one of these, never for a version."""

    server_version: str
    nulls_not_distinct: bool
    """UNIQUE NULLS NOT DISTINCT (15)."""
    any_value: bool
    """The aggregate any_value (16)."""
    merge_returning: bool
    """MERGE … RETURNING merge_action() (17)."""
    merge_not_matched_by_source: bool
    """MERGE … WHEN NOT MATCHED BY SOURCE (17)."""
    json_table: bool
    """JSON_TABLE (17)."""
    returning_old_new: bool
    """RETURNING old.*, new.* (18)."""
    equal_keys_kept_apart: bool
    """GROUPING SETS tells equal keys apart (18)."""
    virtual_columns: bool
    """Generated columns that are computed when read (18)."""
    failover_slots: bool
    """Replication slots that a standby keeps, too (17)."""
    flushing_messages: bool
    """pg_logical_emit_message(…, flush) (17)."""
    publishes_generated: bool
    """Publications send stored generated columns (18)."""

    @classmethod
    def of(cls, conn: Connection) -> Capabilities:
        number = conn.info.server_version
        major = number // 10_000
        if major < 15:
            raise EnvironmentFault(
                f"PostgreSQL {major} is too old", remedy="Stream tables need PostgreSQL 15 or newer."
            )
        return cls(
            server_version=conn.info.parameter_status("server_version") or str(major),
            nulls_not_distinct=major >= 15,
            any_value=major >= 16,
            merge_returning=major >= 17,
            merge_not_matched_by_source=major >= 17,
            json_table=major >= 17,
            returning_old_new=major >= 18,
            equal_keys_kept_apart=major >= 18,
            virtual_columns=major >= 18,
            failover_slots=major >= 17,
            flushing_messages=major >= 17,
            publishes_generated=major >= 18,
        )
