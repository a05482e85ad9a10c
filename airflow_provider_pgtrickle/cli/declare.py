"""create, alter, drop: commands that declare stream tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.cli.command import NAME, Answer, Argument, Command, argument
from airflow_provider_pgtrickle.engine.errors import UsageError

#: The options of a stream table that create and alter share. An absent option stays as it is.
_OPTIONS: tuple[Argument, ...] = (
    argument("--schedule", help="5m, a cron expression (UTC), or 'calculated': as its readers need it"),
    argument("--refresh-mode", type=str.upper, metavar="MODE", help="AUTO, DIFFERENTIAL, FULL or IMMEDIATE"),
    argument(
        "--append-only",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="sources only grow",
    ),
    argument("--append-only-breach", metavar="end|refuse", help="what an UPDATE or DELETE of a source does to that"),
    argument("--frozen-before", metavar="COLUMN:BOUND|none", help="rows that don't change: 'orders.placed: 90 days'"),
    argument("--frozen-breach", metavar="refuse|ignore", help="what becomes of a change of such a row"),
    argument(
        "--diamond-consistency", metavar="none|atomic", help="whether what one source reaches twice is refreshed as one"
    ),
    argument("--diamond-schedule-policy", metavar="fastest|slowest", help="a unit is due when any or all of it is"),
    argument("--cdc-mode", metavar="auto|trigger|wal", help="how changes of its sources are captured"),
    argument(
        "--tier",
        metavar="hot|warm|cold|frozen|auto",
        help="as scheduled, half as often, on demand, never, or as it is read",
    ),
    argument(
        "--differential-max-change-ratio", type=float, metavar="RATIO", help="above it a refresh runs FULL; 0: never"
    ),
    argument(
        "--partition-every", metavar="LENGTH|value|none", help="partitions that refreshes make: '1 month', '1000'"
    ),
    argument("--keep", metavar="LENGTH|all", help="how far back its partitions go, such as '2 years'"),
    argument("--verify-every", metavar="1d|never", help="how often its DAG compares the content with the query"),
    argument("--placement", metavar="spark|auto|database", help="where its changes are computed"),
    argument("--timezone", metavar="ZONE", help="by which its query casts times and reads the clock; else UTC"),
    argument("--unit", metavar="NAME|none", help="the unit that it is in: its tables are refreshed together"),
    argument("--float-sums", metavar="exact|approximate", help="whether sums over floats may be off by rounding"),
    argument(
        "--unlogged-buffers",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="capture without a log; after a crash of the server it runs FULL once",
    ),
)
_QUERY: tuple[Argument, ...] = (
    argument("--query", help="the defining SELECT; '-' reads it from standard input"),
    argument("--query-file", type=Path, metavar="FILE", help="a file that holds the defining SELECT"),
)

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle


def create(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    query = query_of(arguments)
    if query is None:
        raise UsageError("A stream table needs a query", remedy="Pass --query or --query-file.")
    declare = client.create_stream_table
    if arguments.or_replace:
        declare = client.create_or_replace_stream_table
    elif arguments.if_not_exists:
        declare = client.create_stream_table_if_not_exists
    options = _given(arguments, "partition_by")
    table = declare(arguments.name, query, initialize=arguments.initialize, **options)
    state = "populated" if table.is_populated else "not populated yet"
    return Answer(
        text=f"Stream table {table.qualified} is there, {state}, in mode {table.refresh_mode}.",
        data={"name": str(table.qualified), "status": table.status, "refresh_mode": table.refresh_mode},
    )


def alter(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    changes = _given(arguments, "status")
    query = query_of(arguments)
    if query is not None:
        changes["query"] = query
    if arguments.accept:
        changes["accept"] = True
    if not changes:
        raise UsageError("There is nothing to alter", remedy="Name what to change, such as --schedule 10m.")
    if arguments.plan:
        if query is None:
            raise UsageError("--plan says what a query will cost", remedy="Pass --query or --query-file.")
        cost = client.cost_of_query(arguments.name, query)
        data = {"name": arguments.name, "kept": cost.kept, "why_anew": cost.why, "rows": cost.rows}
        return Answer(text=f"{arguments.name}: {cost}.", data=data)
    table = client.alter_stream_table(arguments.name, **changes)
    return Answer(text=f"Altered {table.qualified}.", data={"name": str(table.qualified), "altered": sorted(changes)})


def drop(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    dropped = client.drop_stream_table(arguments.name, cascade=arguments.cascade, if_exists=arguments.if_exists)
    words = f"Dropped {', '.join(dropped)}." if dropped else f"There was no stream table {arguments.name}."
    return Answer(text=words, data={"dropped": dropped})


def query_of(arguments: argparse.Namespace) -> str | None:
    """The query that was typed, or read from a file or from standard input."""
    if arguments.query and arguments.query_file:
        raise UsageError("Both --query and --query-file are given", remedy="Pass one of them.")
    if arguments.query == "-":
        return sys.stdin.read()
    if arguments.query_file is None:
        return arguments.query
    try:
        return arguments.query_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{arguments.query_file} can't be read: {reason}") from None


def _given(arguments: argparse.Namespace, *more: str) -> dict[str, Any]:
    names = [option.flags[0].removeprefix("--").replace("-", "_") for option in _OPTIONS]
    values = {name: getattr(arguments, name) for name in (*names, *more)}
    return {name: value for name, value in values.items() if value is not None}


COMMANDS = (
    Command(
        "create",
        "Declare a stream table and fill it.",
        create,
        (
            NAME,
            *_QUERY,
            *_OPTIONS,
            argument("--partition-by", metavar="KEY", help="'RANGE (day)', 'LIST (region)' or 'HASH (id)'"),
            argument("--or-replace", action="store_true", help="change it where it is there and differs"),
            argument("--if-not-exists", action="store_true", help="leave it alone where it is there"),
            argument(
                "--initialize", action=argparse.BooleanOptionalAction, default=True, help="fill it now (the default)"
            ),
        ),
    ),
    Command(
        "alter",
        "Change a stream table's schedule, mode, status, options or query.",
        alter,
        (
            NAME,
            *_QUERY,
            *_OPTIONS,
            argument("--status", type=str.upper, metavar="active|suspended", help="suspend it, or resume it"),
            argument("--plan", action="store_true", help="only say what the new query will cost"),
            argument(
                "--accept", action="store_true", help="take functions and views of others as they are now (roles.md)"
            ),
        ),
    ),
    Command(
        "drop",
        "Drop a stream table with its triggers and buffers.",
        drop,
        (
            NAME,
            argument("--cascade", action="store_true", help="drop what reads it too"),
            argument("--if-exists", action="store_true", help="don't fail where there is none"),
        ),
    ),
)
