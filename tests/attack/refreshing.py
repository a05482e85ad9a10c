"""A process that refreshes and refreshes, until it is told to stop or kills itself before some statement.

`python -m tests.attack.refreshing SEED [STATEMENTS]`, the database from PGTRICKLE_DSN; it ends when its input does.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
from collections import Counter
from typing import Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.attack.ledger import UNITS

__all__ = ["refreshing", "unhurt"]


def unhurt(dsn: str) -> PgTrickle:
    """A client that no number of kills makes suspend a table."""
    pt = PgTrickle(
        dsn,
        differential_max_change_ratio=0.0,
        retry_attempts=2,
        retry_base_seconds=0.02,
        max_consecutive_errors=1_000_000,
    )
    pt._given_executor = lambda: PostgresExecutor(pt.database)
    return pt


def refreshing(pt: PgTrickle, chance: random.Random, counts: Counter[str]) -> None:
    """One refresh of some unit."""
    try:
        for result in pt.refresh(chance.choice(UNITS)).values():
            counts[result.action] += 1
    except PgTrickleError as error:
        counts[type(error).__name__] += 1


class _Doomed(Database):
    """Ends its process before a statement."""

    left = sys.maxsize

    def connect(self, autocommit: bool = False, application_name: str = "pgtrickle") -> psycopg.Connection:
        conn = super().connect(autocommit, application_name)
        execute = conn.execute

        def ending(query: Any, *arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return execute(query, *arguments, **options)

        conn.execute = ending  # type: ignore[method-assign]
        return conn


def main() -> None:
    chance, counts = random.Random(sys.argv[1]), Counter[str]()
    with unhurt(os.environ["PGTRICKLE_DSN"]) as pt:
        pt.database = doomed = _Doomed(pt.database.dsn, pt.settings)
        if len(sys.argv) > 2:
            doomed.left = int(sys.argv[2])
        while not select.select([sys.stdin], [], [], 0)[0]:
            refreshing(pt, chance, counts)
    print(dict(counts))


if __name__ == "__main__":
    main()
