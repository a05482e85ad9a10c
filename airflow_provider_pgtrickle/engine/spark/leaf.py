"""A leaf of a plan: rows that PostgreSQL computes and Spark reads, all at one exported snapshot.

A classic session reads through JDBC. A Connect client does where no password is sent, and else by COPY
(`read_by_copy`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokens import TokenType

from airflow_provider_pgtrickle.engine.catalog.database import JdbcTarget, pinning
from airflow_provider_pgtrickle.engine.catalog.search_path import PATH
from airflow_provider_pgtrickle.engine.catalog.zone import setting
from airflow_provider_pgtrickle.engine.spark.faults import translating
from airflow_provider_pgtrickle.engine.spark.read_by_copy import read_copied
from airflow_provider_pgtrickle.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A larger value hardly makes a read faster, and wide rows could exceed the executor's memory.
_FETCH_ROWS = 4000

#: Options of a JDBC session from its start. Spark asks for a read's columns in a session of its own, to which it
#: doesn't send `sessionInitStatement`, and planning that statement calls functions of constants.
_STARTUP = f"-c search_path={PATH.replace(' ', '')} -c default_transaction_read_only=on"


@dataclass(frozen=True)
class Snapshot:
    """What every reader of a refresh sees: `pg_export_snapshot()` of a transaction that is still open."""

    jdbc: JdbcTarget
    snapshot_id: str
    planner: tuple[tuple[str, str], ...] = ()
    """Planner settings of its readers."""
    timezone: str | None = None
    """The zone in which they evaluate their statements; None: UTC."""


@dataclass(frozen=True)
class Leaf:
    sql: str
    """It returns integers and texts. Other types are cast to text in it, so that PostgreSQL writes them."""
    slices: tuple[str, ...] = ()
    """Queries whose bag union is the leaf, each read by a task; if there are none, one task reads the leaf."""
    columns: tuple[str, ...] = ()
    """Names for the columns by position, for queries whose own names Spark would confuse ("A" and "a")."""


def read(spark: SparkSession, snapshot: Snapshot, leaf: Leaf) -> DataFrame:
    """The leaf's rows. Spark pushes nothing into its SQL, which holds already all that PostgreSQL should compute."""
    queries = leaf.slices or (leaf.sql,)
    if is_connect(spark) and not snapshot.jdbc.stands:
        enter = session_init(snapshot)
        return read_copied(spark, portable_dsn(snapshot.jdbc), enter, queries, leaf.columns)
    frames = [_partition(spark, snapshot, text, leaf.columns) for text in queries]
    return functools.reduce(lambda left, right: left.unionAll(right), frames)


def portable_dsn(jdbc: JdbcTarget) -> str:
    """The same target for libpq. It is complete, because executors lack our environment and password file.

    Where credentials stand there, libpq finds them like JDBC: by the same service, or in the same password file.
    """
    parameters = {name: value for name, value in jdbc.properties.items() if name != "driver"}
    return make_conninfo(jdbc.url.removeprefix("jdbc:"), **parameters)


def reader(snapshot_id: str) -> str:
    """The application_name of the sessions that read for a refresh."""
    return f"pgtrickle reader {snapshot_id}"


def session_init(snapshot: Snapshot) -> str:
    """The statements by which a reading session enters the snapshot.

    They run in the transaction of the read: with a fetch size set, Spark turns auto-commit off first.
    """
    settings = {
        **snapshot.jdbc.session,
        **dict(snapshot.planner),
        **dict(setting(snapshot.timezone)),
        "application_name": reader(snapshot.snapshot_id),
    }
    statements = [
        sql.SQL("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
        sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot.snapshot_id)),
        pinning(settings, local=True),
    ]
    return sql.SQL("; ").join(statements).as_string(None)


def _partition(spark: SparkSession, snapshot: Snapshot, text: str, columns: Sequence[str]) -> DataFrame:
    options = {
        **snapshot.jdbc.properties,
        "url": snapshot.jdbc.url,
        "driver": "org.postgresql.Driver",
        "options": _STARTUP,
        "query": _named(escape_placeholders(text), columns),
        "sessionInitStatement": session_init(snapshot),
        "fetchsize": str(_FETCH_ROWS),
        "pushDownPredicate": "false",
    }
    # Spark connects here already, to learn the columns.
    with translating():
        return spark.read.format("jdbc").options(**options).load()


def _named(text: str, columns: Sequence[str]) -> str:
    if not columns:
        return text
    names = sql.SQL(", ").join(map(sql.Identifier, columns)).as_string(None)
    return f"SELECT * FROM (\n{text}\n) AS leaf({names})"


#: In these tokens the driver takes a question mark for data.
_QUOTED = frozenset(
    {
        TokenType.STRING,
        TokenType.BYTE_STRING,
        TokenType.BIT_STRING,
        TokenType.HEX_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.UNICODE_STRING,
        TokenType.IDENTIFIER,
    }
)


def escape_placeholders(sql: str) -> str:
    """Double the question marks of operators, because the JDBC driver takes a single one for a parameter.

    >>> escape_placeholders("SELECT a ? 'why?', b ?| c FROM \\"t?\\"")
    'SELECT a ?? \\'why?\\', b ??| c FROM "t?"'
    """
    if "?" not in sql:
        return sql
    pieces, done = [], 0
    for token in Postgres().tokenize(sql):
        if token.token_type in _QUOTED:
            continue
        # Comments stand between tokens and stay unchanged.
        pieces += [sql[done : token.start], sql[token.start : token.end + 1].replace("?", "??")]
        done = token.end + 1
    return "".join([*pieces, sql[done:]])
