"""Lowering a plan to Spark: which of its nodes Spark computes, and what PostgreSQL hands it.

A node runs on Spark where everything in it is on the closed list (`closed`) and so are its inputs.
Every other subtree is a leaf: one PostgreSQL statement, read on the refresh's snapshot. The worst
case is a single leaf, which is exact by construction; nothing is ever approximated.
"""

from airflow_provider_pgtrickle.engine.dvm.lower.assign import lower
from airflow_provider_pgtrickle.engine.dvm.lower.plan import LeafPlan, SparkPlan

__all__ = ["LeafPlan", "SparkPlan", "lower"]
