"""The delta algebra derives the query of a defining query's change.

The package is pure: it knows sqlglot and plain values only, and no driver, no Airflow and no Spark.
"""

from airflow_provider_pgtrickle.engine.dvm.binding import Binding, HandedOn, SourceBinding, Window
from airflow_provider_pgtrickle.engine.dvm.copies import Copy, columns_in, copying, instead
from airflow_provider_pgtrickle.engine.dvm.explain import Explanation
from airflow_provider_pgtrickle.engine.dvm.kept import Anew, InPlace, Kept, kept
from airflow_provider_pgtrickle.engine.dvm.lower import LeafPlan, SparkPlan
from airflow_provider_pgtrickle.engine.dvm.node import Open
from airflow_provider_pgtrickle.engine.dvm.pipeline import TopK
from airflow_provider_pgtrickle.engine.dvm.proof import as_of, readings
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refusal
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source, SourceColumn
from airflow_provider_pgtrickle.engine.dvm.view import View, analyze, refused, round_trip
from airflow_provider_pgtrickle.engine.dvm.within import within

__all__ = [
    "Anew",
    "Binding",
    "Copy",
    "Explanation",
    "HandedOn",
    "InPlace",
    "Kept",
    "LeafPlan",
    "Open",
    "Reason",
    "Refusal",
    "Schema",
    "Source",
    "SourceBinding",
    "SourceColumn",
    "SparkPlan",
    "TopK",
    "View",
    "Window",
    "analyze",
    "as_of",
    "columns_in",
    "copying",
    "instead",
    "kept",
    "readings",
    "refused",
    "round_trip",
    "within",
]
