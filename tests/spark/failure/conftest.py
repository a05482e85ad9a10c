"""A shop for each test."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.spark.failure.shop import Shop


@pytest.fixture
def shop(dsn: str) -> Iterator[Shop]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield Shop(dsn, conn)
