"""Refresh units of stream tables on Spark.

    spark-submit --jars postgresql.jar --py-files pgtrickle.zip refresh.py --tables a,b [--full] [--run-token T]
    SPARK_REMOTE=sc://host:15002 python refresh.py --tables a,b --tables c

Each --tables is one unit: one snapshot, one commit. They are refreshed in the order given; one that fails stops what
reads it and nothing else.

The database is the one that PGTRICKLE_DSN names: a connection string never stands among the arguments. What the
refresh did is in the history, under the run token; the line on standard output is for people.

Exit code: 0 done (also when there was nothing to do), 1 a refresh failed, 2 the call is wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError, redact
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import Executor
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_units
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.session import obtain

DONE, FAILED, MISUSED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Ours alone: what Spark and its gateway have to say is theirs to configure.
    logging.basicConfig(format="%(message)s")
    logging.getLogger("airflow_provider_pgtrickle").setLevel(logging.INFO)
    try:
        return _refresh(options)
    except UsageError as error:
        print(error, file=sys.stderr)
        return MISUSED
    except PgTrickleError as error:
        print(error, file=sys.stderr)
        return FAILED
    except Exception as error:
        # Ours to mend: the place is worth more than brevity, and still no credential may show.
        print(redact("".join(traceback.format_exception(error))), file=sys.stderr)
        return FAILED


def _refresh(options: argparse.Namespace) -> int:
    dsn = os.environ.get("PGTRICKLE_DSN")
    if not dsn:
        raise UsageError("PGTRICKLE_DSN is not set", remedy="Put the database's connection string there.")
    settings = Settings.load()
    database = Database(dsn, settings)

    def executor() -> Executor:
        # Only now: a unit without changes starts no Spark.
        return SparkExecutor(obtain(None, settings), database)

    # What submits this shows its log.
    with progress.heard(progress.Logged(logging.getLogger("airflow_provider_pgtrickle.progress"))):
        results = refresh_units(
            database,
            [[QualifiedName.parse(name) for name in unit.split(",")] for unit in options.tables],
            executor=executor,
            settings=settings,
            force_full=options.full,
            run_token=options.run_token,
            initiated_by=options.initiated_by,
            along=[QualifiedName.parse(name) for name in options.along.split(",") if name],
        )
    summary = [
        {"name": r.name, "action": r.action, "status": r.status, "run_token": r.run_token} for r in results.values()
    ]
    print(json.dumps(summary))
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="refresh.py", description="Refresh units of stream tables on Spark.")
    parser.add_argument(
        "--tables",
        required=True,
        action="append",
        metavar="A,B",
        help="one unit's stream tables, comma-separated; again for the next unit",
    )
    parser.add_argument("--full", action="store_true", help="recompute even where a difference would do")
    parser.add_argument("--along", default="", metavar="A,B", help="those of them that --full doesn't mean")
    parser.add_argument("--run-token", metavar="T", help="the run's name in the history; a new one when left out")
    parser.add_argument("--initiated-by", default="spark-submit", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
