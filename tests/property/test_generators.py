"""The generators themselves: a query whose answer isn't a function of the data would accuse the innocent."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import assume, given, note
from psycopg import sql

from tests.oracle.arena import Case, case
from tests.property.test_properties import FEWER, Example, examples

_OTHER_PLANS = ("enable_hashagg", "enable_hashjoin", "enable_seqscan", "enable_nestloop", "enable_memoize")


def _answer(opened: Case, query: str) -> list[tuple]:
    try:
        with opened.conn.transaction():
            return opened.rows(f"SELECT x::text FROM ({query}) AS x ORDER BY 1")
    except psycopg.errors.DataError:
        assume(False)
        raise


def _turn_around(opened: Case, table: str) -> None:
    """The same rows in the opposite physical order."""
    name = sql.Identifier(opened.schema, table)
    # No references or triggers: nothing follows from it.
    opened.conn.execute("SET LOCAL session_replication_role = replica")
    opened.conn.execute(sql.SQL("CREATE TEMP TABLE around AS SELECT * FROM {} ORDER BY ctid DESC").format(name))
    opened.conn.execute(sql.SQL("DELETE FROM {}").format(name))
    opened.conn.execute(sql.SQL("INSERT INTO {} SELECT * FROM around").format(name))
    opened.conn.execute("DROP TABLE around")


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_an_answer_depends_on_the_data_alone(oracle_connection: psycopg.Connection, example: Example) -> None:
    world, query, _ = example
    note(query)
    with case(oracle_connection, world.ddl) as opened:
        opened.change(*world.rows)
        before = _answer(opened, query)
        for table in world.tables:
            _turn_around(opened, table.name)
        for setting in _OTHER_PLANS:
            opened.conn.execute("SELECT set_config(%s, 'off', true)", (setting,))
        assert _answer(opened, query) == before
