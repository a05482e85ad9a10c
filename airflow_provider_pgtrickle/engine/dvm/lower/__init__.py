"""Lowering a plan to Spark decides which of its nodes Spark computes, and which rows PostgreSQL hands to it.

A node runs on Spark if everything in it is on the closed list (`closed`), and everything in its inputs is, too.
Every other subtree is a leaf: one PostgreSQL statement, read on the refresh's snapshot. The worst
case is a single leaf, which is exact by construction; nothing is ever approximated.
"""

from airflow_provider_pgtrickle.engine.dvm.lower.plan import Describe, LeafPlan, Slices, SparkPlan

__all__ = ["Describe", "LeafPlan", "Slices", "SparkPlan"]
