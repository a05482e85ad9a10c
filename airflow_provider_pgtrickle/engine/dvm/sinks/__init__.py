"""A sink turns a query's change into the true (−old, +new) pairs of the stored rows.

The first sink in SINKS that takes a query maintains it:

    recursive     a recursion at the top: lost rows are deleted and rederived, new rows are derived from new rows alone
    recompute     TopK that a change reaches, and any other recursion at the top: the query anew, less the stored rows
    merge_add     a top aggregate over exact numbers: the stored sums plus the sums of the delta
    replace       a top aggregate, window, DISTINCT or set operation: touched keys anew, less the stored rows
    difference    anything else: the algebra's own delta
"""

from airflow_provider_pgtrickle.engine.dvm.sinks.difference import Difference
from airflow_provider_pgtrickle.engine.dvm.sinks.merge_add import MergeAdd
from airflow_provider_pgtrickle.engine.dvm.sinks.recompute import Recompute
from airflow_provider_pgtrickle.engine.dvm.sinks.recursive import Recursive
from airflow_provider_pgtrickle.engine.dvm.sinks.replace import Replace
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Sink

SINKS: tuple[type[Sink], ...] = (Recursive, Recompute, MergeAdd, Replace, Difference)

__all__ = ["SINKS", "Sink"]
