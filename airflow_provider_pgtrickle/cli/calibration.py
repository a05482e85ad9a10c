"""calibrate: measure what rows cost here, by refreshes of a table that is made for it and dropped afterwards."""

from __future__ import annotations

import argparse
import secrets
from typing import TYPE_CHECKING

from psycopg import sql

from airflow_provider_pgtrickle.cli.command import Answer, Command, argument
from airflow_provider_pgtrickle.engine.names import QualifiedName

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.client import PgTrickle

_ROWS, _CHANGES = 100_000, 10_000
_REPEATS = 3
_QUERY = sql.SQL("SELECT id, g, v FROM {table}")


def calibrate(client: PgTrickle, arguments: argparse.Namespace) -> Answer:
    measured = measure(client, spark=arguments.spark)
    return Answer(rows=[{"constant": name, "value": value} for name, value in measured.items()])


def measure(client: PgTrickle, *, spark: bool = False) -> dict[str, float]:
    """Measure and store the constants that predictions begin with; without `spark` those of Spark stay as they are."""
    from airflow_provider_pgtrickle.engine.refresh.cost import CONSTANTS

    schema = f"pgtrickle_calibration_{secrets.token_hex(4)}"
    name = QualifiedName(schema, "measured").quoted
    try:
        _make(client, schema)
        query = _QUERY.format(table=sql.Identifier(schema, "t")).as_string(None)
        client.create_stream_table(name, query, placement="database", differential_max_change_ratio=0.0)
        full = _last(client, name)
        one = _median(client, schema, name, 1)
        many = _median(client, schema, name, _CHANGES)
        constants = {
            "row_us": max(full - one, 1.0) * 1000 / _ROWS,
            "change_us": max(many - one, 0.1) * 1000 / _CHANGES,
        }
        if spark:
            client.alter_stream_table(name, placement="spark")
            _median(client, schema, name, 1)  # the first one starts what isn't warm yet
            one_there = _median(client, schema, name, 1)
            many_there = _median(client, schema, name, _CHANGES)
            constants["spark_ms"] = max(one_there - one, 1.0)
            pushed = max(many_there - one_there, 0.1) / max(many - one, 0.1)
            # What a row takes in the other ways follows from what it takes in one statement.
            shares = {way: CONSTANTS[way] for way in ("pushed_share", "sliced_share", "lowered_share")}
            constants |= {way: max(pushed, 0.1) * share / shares["pushed_share"] for way, share in shares.items()}
    finally:
        _drop(client, schema, name)
    constants = {constant: round(value, 3) for constant, value in constants.items()}
    with client.database.transaction() as conn:
        conn.cursor().executemany(
            "INSERT INTO pgtrickle.pgt_calibration (name, value) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value, measured_at = pg_catalog.clock_timestamp()",
            list(constants.items()),
        )
    return constants


def _make(client: PgTrickle, schema: str) -> None:
    with client.database.transaction() as conn:
        conn.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        table = sql.Identifier(schema, "t")
        conn.execute(sql.SQL("CREATE TABLE {} (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)").format(table))
        conn.execute(
            sql.SQL("INSERT INTO {} SELECT i, i %% 100, 0 FROM generate_series(1, %s) AS i").format(table), [_ROWS]
        )
        conn.execute(sql.SQL("ANALYZE {}").format(table))


def _median(client: PgTrickle, schema: str, name: str, rows: int) -> float:
    """The middle one of some refreshes of this many changed rows."""
    taken = []
    for _ in range(_REPEATS):
        with client.database.transaction() as conn:
            conn.execute(sql.SQL("UPDATE {} SET v = v + 1 WHERE id <= %s").format(sql.Identifier(schema, "t")), [rows])
        client.refresh_stream_table(name)
        taken.append(_last(client, name))
    return sorted(taken)[len(taken) // 2]


def _last(client: PgTrickle, name: str) -> float:
    return float(client.history(name, 1)[0]["actual_ms"])


def _drop(client: PgTrickle, schema: str, name: str) -> None:
    client.drop_stream_table(name, if_exists=True)
    with client.database.transaction() as conn:
        conn.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


COMMANDS = (
    Command(
        "calibrate",
        "Measure in some seconds what rows cost here, where predictions of costs begin.",
        calibrate,
        (argument("--spark", action="store_true", help="measure Spark, too, which is started for it"),),
    ),
)
