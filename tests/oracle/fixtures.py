"""The fixtures of every test that the oracle judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest

from tests import servers
from tests.oracle import arena

NewCase = Callable[..., AbstractContextManager[arena.Case]]


@pytest.fixture(scope="session")
def oracle_connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """One connection to one database for all cases; ORACLE_DSN names a server that is already there."""
    dsn = os.environ.get("ORACLE_DSN")
    if dsn:
        with arena.connect(dsn) as conn:
            yield conn
        return
    server = request.getfixturevalue("postgres18")
    with servers.fresh_database(server) as name, arena.connect(server.dsn(name)) as conn:
        yield conn


@pytest.fixture
def new_case(oracle_connection: psycopg.Connection) -> NewCase:
    """`with new_case("CREATE TABLE …", "INSERT …") as case:`"""

    def opened(*ddl: str) -> AbstractContextManager[arena.Case]:
        return arena.case(oracle_connection, ddl)

    return opened
