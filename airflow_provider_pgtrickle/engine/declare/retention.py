"""`keep`: of a query's rows only those of the last partitions are in the content.

    keep="2 years", partition_every="1 month"
    →  SELECT … WHERE day >= date_trunc('month', now() - interval '2 years')

The declared query gets that one condition, in which the clock is the data timestamp. So rows leave by a difference as
any others do, and FULL, `verify` and readers need to know nothing of it. The bound is where a partition begins: once
it has moved, a whole partition is out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.catalog.probe import Probe, are_one_query
from airflow_provider_pgtrickle.engine.declare.periods import Periods


class Declared(Protocol):
    """The options of a stream table, as given or as the catalog has them."""

    @property
    def partition_by(self) -> str | None: ...
    @property
    def partition_every(self) -> str | None: ...
    @property
    def keep(self) -> str | None: ...


@dataclass(frozen=True)
class Retention:
    partition_by: str
    partition_every: str
    keep: str

    @classmethod
    def of(cls, declared: Declared) -> Retention | None:
        """The retention that the options declare; None where everything is kept."""
        if declared.keep is None or declared.partition_by is None or declared.partition_every is None:
            return None
        return cls(declared.partition_by, declared.partition_every, declared.keep)

    def applied(self, conn: psycopg.Connection, probed: Probe) -> str:
        """The query's text with the condition, every name in it qualified."""
        types = {column.name: column.type for column in probed.columns}
        periods = Periods.of(self.partition_by, self.partition_every, types)
        bound = periods.kept_from(self.keep)
        filtered = dvm.within(probed.text, probed.schema, periods.column, bound)
        if filtered is not None and are_one_query(conn, probed.text, dvm.round_trip(probed.text) or ""):
            return filtered
        return (
            sql.SQL("SELECT * FROM ({}) AS kept WHERE {} >= {}")
            .format(
                sql.SQL(probed.canonical.rstrip().rstrip(";")),
                sql.Identifier("kept", periods.column),
                sql.SQL(bound),
            )
            .as_string(conn)
        )
