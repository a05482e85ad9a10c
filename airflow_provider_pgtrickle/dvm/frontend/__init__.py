"""From canonical PostgreSQL text to the operator tree.

PASSES reads as the list of what is rewritten before the tree is built. There is no pass for
EXISTS, IN, NOT IN, ANY, ALL or scalar subqueries: PostgreSQL evaluates them as they are written
and `operators.dependent` differentiates whatever holds them.
"""

from airflow_provider_pgtrickle.dvm.frontend.distinct_on import distinct_on
from airflow_provider_pgtrickle.dvm.frontend.drop_order import drop_order
from airflow_provider_pgtrickle.dvm.frontend.grouping_sets import grouping_sets
from airflow_provider_pgtrickle.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.dvm.frontend.refuse import refuse

PASSES = (inline_views, refuse, mark_sets, distinct_on, grouping_sets, drop_order)

__all__ = ["PASSES"]
