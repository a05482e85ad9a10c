"""Spark's long texts become one sentence of the right kind."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    EnvironmentFault,
    PermissionFault,
    RefreshError,
    TransientFault,
    ValueFault,
)
from airflow_provider_pgtrickle.engine.spark.faults import translated

#: As Spark 4.2 gave them, shortened.
_JOB = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0\n"


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
            RefreshError,
            "Spark ran out of memory. Give it more: raise spark_driver_memory, or spark.driver.memory where Spark is"
            " started by you.",
        ),
        ("[SOMETHING_NEW] all is lost\n\tat org.apache", RefreshError, "Spark reports: [SOMETHING_NEW] all is lost."),
    ],
)
def test_a_known_text_has_its_class_and_one_sentence(text, kind, sentence):
    error = translated(RuntimeError(text))
    assert type(error) is kind
    assert str(error) == sentence
