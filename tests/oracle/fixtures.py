"""The fixtures of every test that the oracle judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.migrate import install
from tests import servers
from tests.oracle import arena

NewCase = Callable[..., AbstractContextManager[arena.Case]]


# A connection lasts for one file: a process that shares the tests may crash its servers between two files.
@pytest.fixture(scope="module")
def oracle_connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """One connection to one database for all cases; ORACLE_DSN names a server that is already there."""
    yield from _connection(request, "ORACLE_DSN", "postgres18")


@pytest.fixture(scope="module")
def oracle_connection15(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """The same on PostgreSQL 15, which Debian builds with ICU and XML; the wheel's server has neither."""
    yield from _connection(request, "ORACLE_DSN15", "postgres15")


@pytest.fixture
def new_case(oracle_connection: psycopg.Connection) -> NewCase:
    """`with new_case("CREATE TABLE …", "INSERT …") as case:`"""
    return lambda *ddl: arena.case(oracle_connection, ddl)


@pytest.fixture
def new_case15(oracle_connection15: psycopg.Connection) -> NewCase:
    return lambda *ddl: arena.case(oracle_connection15, ddl)


@pytest.fixture(scope="module")
def installed(oracle_connection: psycopg.Connection) -> psycopg.Connection:
    """The connection to a database with the product's catalog in it."""
    install(oracle_connection)
    return oracle_connection


@pytest.fixture(scope="module")
def installed_beside(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """The same in a database of its own, for a case that stays open while the shared connection's does, too."""
    for conn in _connection(request, "ORACLE_DSN_BESIDE", "postgres18"):
        install(conn)
        yield conn


def _connection(request: pytest.FixtureRequest, variable: str, fixture: str) -> Iterator[psycopg.Connection]:
    dsn = os.environ.get(variable)
    if dsn:
        with arena.connect(dsn) as conn:
            yield conn
        return
    server = request.getfixturevalue(fixture)
    with servers.fresh_database(server) as name, arena.connect(server.dsn(name)) as conn:
        yield conn
