"""A stream table that the statements of a case maintain: the oracle compares, and does nothing else."""

from __future__ import annotations

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.declare.definition import define
from airflow_provider_pgtrickle.engine.declare.existence import establish
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES
from airflow_provider_pgtrickle.engine.immediate import live
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from tests.oracle.arena import Case
from tests.oracle.declare import declare
from tests.oracle.harness import Maintained


class Live(Maintained):
    """An IMMEDIATE stream table in a case's transaction."""

    @classmethod
    def begin(cls, opened: Case, query: str, name: str = "st_0") -> Live:
        conn, path = opened.conn, f'"{opened.schema}", pg_temp'
        with conn.transaction():
            definition = define(conn, query, live.MODE, path)
            made = establish(conn, QualifiedName(opened.schema, name), definition, Options(refresh_mode=live.MODE))
            live.refuse(conn, Settings(), made)
            live.install(conn, made)
            cls._fill(conn, records.get(conn, made.qualified), tuple(sorted(definition.view.sources)))
            conn.execute("SELECT set_config('search_path', %s, true)", (f'"{opened.schema}", public',))
        storage = tuple((column.name, column.type) for column in made.storage)
        declared = declare(conn, opened.schema, query)
        return cls(opened, name, query, declared, definition.view, storage, 0, True)

    @staticmethod
    def _fill(conn: psycopg.Connection, made: records.StreamTable, keys: tuple[str, ...]) -> None:
        """What is there is a TRUNCATE's answer: the whole content less nothing."""
        truncated = sql.SQL('ARRAY[jsonb_populate_record(NULL::{}, \'{{"action": "T"}}\')]')
        arguments = [truncated.format(sql.Identifier(CHANGES, f"changes_{key}")) for key in keys]
        conn.execute("SELECT set_config('pgtrickle.refreshing', 'on', true)")
        conn.execute(
            sql.SQL("SELECT {}({})").format(
                sql.Identifier(CHANGES, f"maintain_{made.id}"), sql.SQL(", ").join(arguments)
            )
        )
        conn.execute("SELECT set_config('pgtrickle.refreshing', '', true)")
