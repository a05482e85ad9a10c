"""Refreshes whose changes or contents are cut into slices that Spark's tasks carry, held against PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from tests.database.refresh.test_sliced import CUT, CYCLES, TABLES, WHOLE, differ, last


@pytest.mark.parametrize("kind", ["spark", "connect"])
def test_slices_write_what_the_query_says(request: pytest.FixtureRequest, dsn: str, kind: str) -> None:
    spark = request.getfixturevalue(kind)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(TABLES)
    small: dict[str, Any] = {"collect_max_rows": 5, "read_partition_rows": 20, "max_read_partitions": 4}
    with PgTrickle(dsn, spark, differential_max_change_ratio=0.0, **small) as pt:
        pt.install()
        queries = {**CUT, **WHOLE}
        for name, query in queries.items():
            pt.create_stream_table(name, query, schedule="5m", refresh_mode="DIFFERENTIAL")
        assert last(pt, "scan") == ("FULL", "sliced", 4)
        for statements in CYCLES:
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute(statements)
            for name, query in queries.items():
                result = pt.refresh_stream_table(name)
                action, way, reads = last(pt, name)
                assert (action, way) == ("DIFFERENTIAL", "sliced" if name in CUT else "pushed"), name
                assert ((reads > 1), result.spark_jobs) == (name in CUT, 1)
                assert differ(dsn, name, query) == []
        for name in ("scan", "filtered"):
            assert pt.refresh_stream_table(name, force_full=True).action == "FULL"
            assert last(pt, name) == ("FULL", "pushed", 1)
            assert differ(dsn, name, CUT[name]) == []
