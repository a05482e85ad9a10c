"""From canonical PostgreSQL text to the operator tree.

PASSES reads as the list of what is rewritten before the tree is built. Subqueries are met while it is
built: `decorrelate` makes joins of those that say no more than a join; every other one is evaluated by
PostgreSQL as it is written, and `operators.dependent` differentiates what holds it.
"""

from airflow_provider_pgtrickle.engine.dvm.frontend.distinct_on import distinct_on
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import drop_limit
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_order import drop_order
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.engine.dvm.frontend.named_windows import named_windows
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse import refuse
from airflow_provider_pgtrickle.engine.dvm.frontend.whole_rows import whole_rows

PASSES = (
    inline_views, whole_rows, mark_sets, drop_limit, refuse, named_windows, distinct_on, drop_order,
)  # fmt: skip

__all__ = ["PASSES"]
