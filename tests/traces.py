"""Where a word was left: in tables, in Airflow's metadata, in files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
from psycopg import sql


def in_database(dsn: str, word: str) -> list[str]:
    """The tables of a PostgreSQL database, and of its settings and functions, with the word in a row."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        tables = conn.execute(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            " UNION ALL VALUES ('pg_catalog', 'pg_proc'), ('pg_catalog', 'pg_settings')"
        ).fetchall()
        holding = "SELECT count(*) FROM {} t WHERE strpos(t::text, %s) > 0"
        found = [
            table
            for table in tables
            if conn.execute(sql.SQL(holding).format(sql.Identifier(*table)), [word]).fetchone() != (0,)
        ]
    return [".".join(table) for table in found]


def in_metadata(file: Path, word: str) -> list[str]:
    """The tables of Airflow's SQLite database with the word in a row: XComs, rendered templates, logs, DAGs."""
    with sqlite3.connect(file) as metadata:
        tables = [name for (name,) in metadata.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            name for name in tables if any(word in repr(row) for row in metadata.execute(f'SELECT * FROM "{name}"'))
        ]


def in_files(folder: Path, word: str) -> list[str]:
    """The files below a folder that hold the word."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix not in (".jar", ".db")]
    return [str(file) for file in files if word.encode() in file.read_bytes()]
