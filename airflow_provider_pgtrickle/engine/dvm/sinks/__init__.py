"""A sink turns a query's change into the true (−old, +new) pairs of the stored rows.

The first sink in SINKS that takes a query maintains it:

    recursive     of a recursion at the top it deletes what may be lost, and derives what is found again or is new
    recompute     of TopK, and of any other recursion at the top, it computes the query anew, less what is stored
    merge_add     of a top aggregate over exact numbers it adds the sums of the delta to the stored sums
    running       of a top window that runs it computes the rows behind the first changed one, on from the row before
    replace       of a top aggregate, window or set operation it computes the touched keys anew, less what is stored
    difference    of anything else it takes the algebra's own delta

And `frozen` keeps a copy of a table, which no query asks for.
"""

from airflow_provider_pgtrickle.engine.dvm.sinks.difference import Difference
from airflow_provider_pgtrickle.engine.dvm.sinks.merge_add import MergeAdd
from airflow_provider_pgtrickle.engine.dvm.sinks.recompute import Recompute
from airflow_provider_pgtrickle.engine.dvm.sinks.recursive import Recursive
from airflow_provider_pgtrickle.engine.dvm.sinks.replace import Replace
from airflow_provider_pgtrickle.engine.dvm.sinks.running import Running
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Sink

SINKS: tuple[type[Sink], ...] = (Recursive, Recompute, MergeAdd, Running, Replace, Difference)

__all__ = ["SINKS", "Sink"]
