"""The delta algebra: from a defining query to the query of its change.

Pure: sqlglot and plain values only; no driver, no Airflow, no Spark.
"""

from airflow_provider_pgtrickle.dvm.binding import Binding, Pending, SourceBinding, Window
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refusal
from airflow_provider_pgtrickle.dvm.schema import Schema, Source, SourceColumn
from airflow_provider_pgtrickle.dvm.view import TopK, View, analyze

__all__ = [
    "Binding",
    "Pending",
    "Reason",
    "Refusal",
    "Schema",
    "Source",
    "SourceBinding",
    "SourceColumn",
    "TopK",
    "View",
    "Window",
    "analyze",
]
