"""Servers that are attacked."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests.attack.attack import Worlds


@pytest.fixture(scope="session")
def worlds18(postgres18: PostgresServer) -> Worlds:
    return Worlds(postgres18)


@pytest.fixture(scope="session")
def worlds15(postgres15: PostgresServer) -> Worlds:
    return Worlds(postgres15)
