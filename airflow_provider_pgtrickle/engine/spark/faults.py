"""Spark's and PostgreSQL's failures during a computation, as errors of the product."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from airflow_provider_pgtrickle.engine.catalog.faults import ROW_SECURITY
from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    EnvironmentFault,
    MemoryFault,
    PermissionFault,
    PgTrickleError,
    RefreshError,
    RoomFault,
    TransientFault,
    ValueFault,
)
from airflow_provider_pgtrickle.engine.spark import jvm

_Remedy = str | None
_MORE_MEMORY = "raise spark_driver_memory, or spark.driver.memory where Spark is started by you."
_STANDING = (
    "Put it into the file that spark_credentials means (PGPASSFILE or ~/.pgpass, PGSERVICEFILE or ~/.pg_service.conf),"
    " on each machine of Spark and readable for it alone."
)
#: The exit code of Spark's JVMs that end for want of memory.
_EXHAUSTED = 52
_DRIVER_GONE = r"Py4JNetworkError|builtins\.Connection\w*Error"
#: Errors are told by their text, because what an executor raises reaches the driver as text only, as through Connect.
_KNOWN: tuple[tuple[re.Pattern[str], type[PgTrickleError], str, _Remedy], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind, message, remedy)
    for pattern, kind, message, remedy in (
        (
            r"ClassNotFoundException: org\.postgresql\.Driver|No suitable driver",
            EnvironmentFault,
            "Spark does not have the PostgreSQL JDBC driver",
            "Start it with --jars and the driver's jar.",
        ),
        (
            r"No module named '(?:psycopg|pyarrow)",
            EnvironmentFault,
            "Spark's executors lack psycopg or pyarrow",
            "Install psycopg[binary] and pyarrow in the Python that they run.",
        ),
        (
            r"PYTHON_VERSION_MISMATCH|Constructor .* does not exist",
            EnvironmentFault,
            "The driver and the executors run different Pythons or PySparks",
            "Run one version of both everywhere.",
        ),
        (
            # An executor says by its exit code what it ended of, and the JDBC driver in words of its own.
            rf"OutOfMemoryError|Not enough memory to build and broadcast|exited with code {_EXHAUSTED}\b"
            r"|Ran out of memory retrieving query results",
            MemoryFault,
            "Spark ran out of memory",
            "Give it more: raise spark_driver_memory, or spark.driver.memory and spark.executor.memory where Spark is"
            " started by you.",
        ),
        (
            r"ExecutorLost|executor .* exited|worker lost|FetchFailed|StatusCode\.UNAVAILABLE|INVALID_HANDLE"
            r"|SparkContext was shut down|stopped SparkContext",
            TransientFault,
            "Spark lost an executor or its server during the computation",
            None,
        ),
        (
            _DRIVER_GONE,
            TransientFault,
            "Spark's driver has ended, or was ended, during the computation",
            f"Where its log tells of an OutOfMemoryError, {_MORE_MEMORY}",
        ),
        (
            r"no password (?:was provided|supplied)",
            ConnectionFault,
            "Where Spark runs there is no password for PostgreSQL",
            _STANDING,
        ),
        (
            r"Unable to parse URL jdbc:postgresql://\?service=|definition of service \"[^\"]*\" not found"
            r"|service file .* not found",
            ConnectionFault,
            "Where Spark runs there is no such service for PostgreSQL",
            _STANDING,
        ),
        (r"password authentication failed", ConnectionFault, "PostgreSQL refuses the credentials", None),
        (r"row-level security", PermissionFault, "", ROW_SECURITY),
        (r"permission denied", PermissionFault, "", None),
        (
            r"invalid snapshot identifier|snapshot \S+ does not exist",
            TransientFault,
            "The refresh's snapshot is gone: the transaction that held it open has ended",
            None,
        ),
        (r"No space left on device", RoomFault, "The disk is full, so nothing could be staged", "Free space."),
        (
            # The setting's name is the same in each language.
            r"temp_file_limit|ERROR: out of memory"
            r"|psycopg\.errors\.(?:OutOfMemory|InsufficientResources|ConfigurationLimitExceeded)",
            MemoryFault,
            "",
            "Raise temp_file_limit for the refreshing role, or give the server more memory.",
        ),
        (
            r"Connection to \S+ refused|connection attempt failed|connection refused|too many clients"
            r"|terminating connection|server closed the connection|FAILED_JDBC\.CONNECTION"
            r"|database system is (?:starting|shutting)",
            ConnectionFault,
            "PostgreSQL could not be reached from Spark",
            None,
        ),
        (r"deadlock detected|could not serialize|lock timeout", TransientFault, "", None),
    )
)
_OF_A_VALUE = re.compile(
    r"DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE"
)
_SERVER_MESSAGE = re.compile(r"(?:PSQLException: |psycopg\.errors\.\w+: )(?:ERROR: |FATAL: )?(?P<message>[^\n]+)")


@contextmanager
def translating() -> Iterator[None]:
    """In the block a failure becomes an error of the product, with the original as its cause."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, psycopg.Error, ConnectionError) as exc:
        raise translated(exc) from exc


def translated(exc: BaseException) -> PgTrickleError:
    """The error of the product for `exc`, in the server's own sentence if there is one."""
    text = "\n".join(f"{type(one).__module__}.{type(one).__name__}: {one}" for one in _chain(exc))
    found = _SERVER_MESSAGE.search(text)
    said = found["message"].strip() if found else ""
    if re.search(_DRIVER_GONE, text) and jvm.ended_with() == _EXHAUSTED:
        return RoomFault("Spark's driver ran out of memory", remedy=f"Give it more: {_MORE_MEMORY}")
    for pattern, kind, message, remedy in _KNOWN:
        if pattern.search(text):
            return kind(message or said or _first_line(exc), remedy=remedy)
    if said:
        return ValueFault(f"PostgreSQL reports: {said}")
    kind = ValueFault if _OF_A_VALUE.search(text) else RefreshError
    return kind(f"Spark reports: {_first_line(exc)}")


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """`exc` and its causes. A classic session has the JVM's chain of causes beside Python's."""
    while exc is not None:
        yield exc
        exc = getattr(exc, "_cause", None) or exc.__cause__


def _first_line(exc: BaseException) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[0] if lines else type(exc).__name__
