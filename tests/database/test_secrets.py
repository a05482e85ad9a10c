"""What goes well and what fails leaves the password nowhere."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers, traces


def test_the_password_is_in_no_table_log_or_output(
    dsn: str, admin_dsn: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []

    class Failing(PostgresExecutor):
        def compute(self, *arguments: Any) -> Any:
            # As a driver's error may: with the whole connection string in it.
            raise RuntimeError(f"connection to {dsn} lost, password={servers.ORDINARY_PASSWORD}")

    database = Database(dsn)
    told.append(repr(database) + repr(database.jdbc))
    with psycopg.connect(dsn) as conn:
        conn.execute("CREATE TABLE public.t AS SELECT i AS id, i AS v FROM generate_series(1, 9) i")
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as pt:
        pt.install()
        pt.create_stream_table("public.st", "SELECT id, v FROM public.t", differential_max_change_ratio=0.0)
        pt.create_stream_table("public.sums", "SELECT sum(v) AS s FROM public.st")
        with psycopg.connect(dsn) as conn:
            conn.execute("UPDATE public.t SET v = 2 WHERE id = 1")
        pt.refresh(["public.st", "public.sums"])
    with psycopg.connect(dsn) as conn:
        conn.execute("UPDATE public.t SET v = 3 WHERE id = 1")
    with PgTrickle(dsn, executor=lambda: Failing(database)) as pt:
        with pytest.raises(RuntimeError):
            pt.refresh_stream_table("public.st")
        for refused in ("SELECT nothing FROM public.t", "SELEC", f"SELECT '{1}'::nonsense AS a"):
            with contextlib.suppress(PgTrickleError):
                pt.create_stream_table("public.bad", refused)
        told += [str(finding) for finding in pt.health()] + [str(row) for row in pt.history("public.st")]
    assert "FAILED" in "".join(told)
    assert traces.in_database(admin_dsn, servers.ORDINARY_PASSWORD) == []
    output = capfd.readouterr()
    assert servers.ORDINARY_PASSWORD not in "".join([*told, caplog.text, output.out, output.err])
