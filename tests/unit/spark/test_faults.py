"""Spark's long texts become one sentence of the right kind."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    EnvironmentFault,
    MemoryFault,
    PermissionFault,
    RefreshError,
    RoomFault,
    TransientFault,
    ValueFault,
)
from airflow_provider_pgtrickle.engine.spark.faults import translated

#: As Spark 4.2 gave them, shortened.
_JOB = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0\n"
_STANDING = (
    "Put it into the file that spark_credentials means (PGPASSFILE or ~/.pgpass, PGSERVICEFILE or ~/.pg_service.conf),"
    " on each machine of Spark and readable for it alone."
)
_OUT_OF_MEMORY = (
    "Spark ran out of memory. Give it more: raise spark_driver_memory, or spark.driver.memory and spark.executor.memory"
    " where Spark is started by you."
)


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        (
            _JOB + "org.postgresql.util.PSQLException: ERROR: division by zero\n\tat org.postgresql.core",
            ValueFault,
            "PostgreSQL reports: division by zero.",
        ),
        (
            "Caused by: org.postgresql.util.PSQLException: ERROR: permission denied for table orders\n\tat",
            PermissionFault,
            "permission denied for table orders.",
        ),
        (
            'PSQLException: FATAL: password authentication failed for user "app"',
            ConnectionFault,
            "PostgreSQL refuses the credentials.",
        ),
        (
            "java.lang.ClassNotFoundException: org.postgresql.Driver",
            EnvironmentFault,
            "Spark does not have the PostgreSQL JDBC driver. Start it with --jars and the driver's jar.",
        ),
        (
            _JOB + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
            TransientFault,
            "Spark lost an executor or its server during the computation.",
        ),
        (
            "py4j.protocol.Py4JNetworkError: Answer from Java side is empty",
            TransientFault,
            "Spark's driver has ended, or was ended, during the computation. Where its log tells of an"
            " OutOfMemoryError, raise spark_driver_memory, or spark.driver.memory where Spark is started by you.",
        ),
        (
            "An error occurred while calling o101.persist.\n: java.lang.OutOfMemoryError: Java heap space",
            MemoryFault,
            _OUT_OF_MEMORY,
        ),
        (
            _JOB + "ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited"
            " with code 52",
            MemoryFault,
            _OUT_OF_MEMORY,
        ),
        (
            _JOB + "org.postgresql.util.PSQLException: Ran out of memory retrieving query results.",
            MemoryFault,
            _OUT_OF_MEMORY,
        ),
        (
            _JOB + 'psycopg.errors.ConfigurationLimitExceeded: temporary file size exceeds "temp_file_limit" (1024kB)',
            MemoryFault,
            'temporary file size exceeds "temp_file_limit" (1024kB). Raise temp_file_limit for the refreshing role, or'
            " give the server more memory.",
        ),
        (
            "PSQLException: ERROR: out of memory\n  Detail: Failed on request of size 32.",
            MemoryFault,
            "out of memory. Raise temp_file_limit for the refreshing role, or give the server more memory.",
        ),
        (
            'PSQLException: ERROR: could not write to file "base/pgsql_tmp/1": No space left on device',
            RoomFault,
            "The disk is full, so nothing could be staged. Free space.",
        ),
        (
            "[FAILED_JDBC.CONNECTION] Failed JDBC\nCaused by: org.postgresql.util.PSQLException: Unable to parse URL"
            " jdbc:postgresql://?service=shop",
            ConnectionFault,
            "Where Spark runs there is no such service for PostgreSQL. " + _STANDING,
        ),
        (
            "The server requested SCRAM-based authentication, but no password was provided.",
            ConnectionFault,
            "Where Spark runs there is no password for PostgreSQL. " + _STANDING,
        ),
        ("[SOMETHING_NEW] all is lost\n\tat org.apache", RefreshError, "Spark reports: [SOMETHING_NEW] all is lost."),
    ],
)
def test_a_known_text_has_its_class_and_one_sentence(text, kind, sentence):
    error = translated(RuntimeError(text))
    assert type(error) is kind
    assert str(error) == sentence
