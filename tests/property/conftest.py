"""What the tests of this folder share: a connection each, and what its server has to call."""

from __future__ import annotations

import psycopg
import pytest

from tests.oracle.fixtures import installed, new_case, oracle_connection
from tests.property.calls import learn

__all__ = ["installed", "new_case", "oracle_connection"]


@pytest.fixture(scope="module", autouse=True)
def _known_calls(oracle_connection: psycopg.Connection) -> None:
    learn(oracle_connection)
