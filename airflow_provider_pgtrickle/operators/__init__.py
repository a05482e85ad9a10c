"""The operators. They are thin: hooks and back ends do the work, and PostgreSQL records it."""

from airflow_provider_pgtrickle.operators.cleanup import ChangeBufferCleanupOperator
from airflow_provider_pgtrickle.operators.declare import (
    StreamTableAlterOperator,
    StreamTableCreateOperator,
    StreamTableDropOperator,
)
from airflow_provider_pgtrickle.operators.plan import StreamTablePlanOperator
from airflow_provider_pgtrickle.operators.refresh import StreamTableRefreshOperator
from airflow_provider_pgtrickle.operators.refresh_graph import StreamTableGraphRefreshOperator
from airflow_provider_pgtrickle.operators.requests import StreamTableRequestsOperator
from airflow_provider_pgtrickle.operators.unit_state import StreamTableOutcomeOperator, StreamTableStateOperator
from airflow_provider_pgtrickle.operators.verify import StreamTableVerifyOperator

__all__ = [
    "ChangeBufferCleanupOperator",
    "StreamTableAlterOperator",
    "StreamTableCreateOperator",
    "StreamTableDropOperator",
    "StreamTableGraphRefreshOperator",
    "StreamTableOutcomeOperator",
    "StreamTablePlanOperator",
    "StreamTableRefreshOperator",
    "StreamTableRequestsOperator",
    "StreamTableStateOperator",
    "StreamTableVerifyOperator",
]
