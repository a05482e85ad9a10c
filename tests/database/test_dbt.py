"""`dbt run` with real dbt: models become stream tables, their answers dbt's results, their manifest a graph."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowException
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle import cli
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.factory import dbt
from airflow_provider_pgtrickle.operators.dbt import DbtTestOperator
from airflow_provider_pgtrickle.requests import serve

ROOT = Path(__file__).parents[2]
#: In an environment of its own, because dbt and Airflow want different versions of the same packages.
DBT = ROOT / ".tools" / "dbt" / "bin" / "dbt"


@dataclass
class Project:
    """The project of tests/dbt on a database of its own."""

    folder: Path
    environment: dict[str, str]
    psql: psycopg.Connection[Any]

    def dbt(self, *arguments: str, code: int = 0) -> str:
        assert DBT.exists(), f"{DBT} is missing: make setup brings it"
        done = subprocess.run(
            [str(DBT), *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def results(self) -> dict[str, str]:
        """The status of each node of the last run."""
        told = json.loads((self.folder / "target" / "run_results.json").read_text())
        return {result["unique_id"].split(".")[2]: result["status"] for result in told["results"]}

    def answers(self) -> list[tuple[str, str, str | None]]:
        return self.psql.execute(
            "SELECT kind, pgt_name, coalesce(answer ->> 'action', error) FROM pgtrickle.pgt_requests"
            " ORDER BY request_id"
        ).fetchall()


@pytest.fixture
def project(dsn: str, admin_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Project]:
    shutil.copytree(ROOT / "tests" / "dbt" / "project", tmp_path / "project")
    assert cli.main(["dbt-package"]) == 0
    package = capsys.readouterr().out.strip()
    (tmp_path / "project" / "packages.yml").write_text(f"packages:\n  - local: {package}\n")
    given = conninfo_to_dict(dsn)
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "DATABASE": "dbname"}
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "DBT_"))},
        **{f"SHOP_{name}": str(given[key]) for name, key in names.items()},
        "SHOP_READER": "pg_read_all_data",
        "DBT_PROFILES_DIR": str(tmp_path / "project"),
    }
    with psycopg.connect(dsn, autocommit=True) as psql, PgTrickle(dsn) as client:
        psql.execute(
            "CREATE TABLE customers (id int PRIMARY KEY, country text);"
            "CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount int);"
            "INSERT INTO customers SELECT i, (ARRAY['at', 'de'])[1 + i % 2] FROM generate_series(1, 5) i;"
            "INSERT INTO orders SELECT i, 1 + i % 5, i FROM generate_series(1, 100) i"
        )
        client.install()
        yield Project(tmp_path / "project", environment, psql)


@pytest.fixture
def server(dsn: str, project: Project) -> Iterator[None]:
    """Somebody who serves requests, in PostgreSQL alone."""
    ending = threading.Event()

    def run() -> None:
        with PgTrickle(dsn, executor=lambda: PostgresExecutor(Database(dsn))) as client:
            for _ in serve(client, wait=True):
                if ending.is_set():
                    return

    thread = threading.Thread(target=run)
    thread.start()
    yield
    ending.set()
    # He looks whether it has ended after each request.
    project.psql.execute("SELECT pgtrickle.request_declare('public.last', 'SELECT 1 AS a', '{}', false)")
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.usefixtures("server")
def test_dbt_run_declares_refreshes_and_tests_stream_tables(project: Project) -> None:
    project.dbt("deps")
    project.dbt("build")
    assert set(project.results().values()) == {"success", "pass"}
    assert project.answers() == [("DECLARE", "customer_totals", None), ("DECLARE", "countries", None)]
    assert _is_right(project)
    declared = project.psql.execute(
        "SELECT schedule, tier FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'customer_totals'"
    ).fetchone()
    assert declared == ("5m", "warm")
    indexed = project.psql.execute(
        "SELECT count(*) FROM pg_indexes WHERE tablename = 'customer_totals' AND indexdef LIKE '%(total)'"
    ).fetchone()
    assert indexed == (1,)
    # A graph of the same project declares the same, so that its plan has nothing to change.
    tables = dbt.read(project.folder).tables
    for name, table in tables.items():
        stored = project.psql.execute(
            "SELECT original_query, schedule, tier FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s", [name]
        ).fetchone()
        assert stored is not None
        assert (stored[0].strip(), *stored[1:]) == (table.query, table.schedule, table.tier)
    assert [str(name) for name in dbt.read(project.folder).awaited] == ["analytics.known_customers"]

    project.psql.execute("UPDATE orders SET amount = 1000 WHERE id = 7; INSERT INTO customers VALUES (6, 'ch')")
    project.dbt("run")
    assert _is_right(project)
    assert project.answers()[2:] == [
        ("DECLARE", "customer_totals", None),
        ("REFRESH", "customer_totals", "DIFFERENTIAL"),
        ("DECLARE", "countries", None),
        # dbt has replaced all rows of known_customers, which are few.
        ("REFRESH", "countries", "DIFFERENTIAL"),
    ]

    model = project.folder / "models" / "customer_totals.sql"
    model.write_text(model.read_text().replace("count(*) as orders", "max(o.amount) as largest"))
    project.dbt("run", "--full-refresh", "--select", "customer_totals")
    assert project.answers()[-1] == ("REFRESH", "customer_totals", "FULL")
    assert project.psql.execute("SELECT max(largest) FROM analytics.customer_totals").fetchone() == (1000,)


@pytest.mark.usefixtures("server")
def test_the_task_for_dbts_tests_fails_where_one_does(project: Project) -> None:
    project.dbt("deps")
    project.dbt("run")
    task = DbtTestOperator(
        task_id="dbt-tests",
        dbt=str(DBT),
        project_dir=str(project.folder),
        models=["customer_totals"],
        env=project.environment,
    )
    task.execute({})
    project.psql.execute("INSERT INTO orders VALUES (101, NULL, 1)")
    number = project.psql.execute("SELECT pgtrickle.request_refresh('analytics.customer_totals')").fetchone()
    assert number is not None
    assert project.psql.execute("SELECT status FROM pgtrickle.wait_for_request(%s, 60)", number).fetchone() == ("DONE",)
    with pytest.raises(AirflowException, match="dbt test failed"):
        task.execute({})


@pytest.mark.usefixtures("server")
def test_what_can_not_be_declared_is_dbts_error(project: Project) -> None:
    project.dbt("deps")
    model = project.folder / "models" / "customer_totals.sql"
    model.write_text(model.read_text().replace("o.amount)", "o.amoun)"))
    told = project.dbt("run", "--select", "customer_totals", code=1)
    assert "o.amoun" in told
    # A table of that name that is no stream table.
    project.psql.execute("CREATE TABLE analytics.countries (country text)")
    told = project.dbt("run", "--select", "known_customers", "countries", code=1)
    assert "Run it once with --full-refresh, which drops it." in told


def test_without_a_server_dbt_says_what_is_missing_or_waits_for_none(project: Project) -> None:
    project.dbt("deps")
    told = project.dbt("run", "--select", "customer_totals", "--vars", "pgtrickle_wait_seconds: 1", code=1)
    assert "has no answer after 1 s (PENDING). Run `pgtrickle serve-requests`" in told
    told = project.dbt("run", "--select", "customer_totals", "--vars", "pgtrickle_wait_seconds: 0")
    assert "request 2" in told
    assert project.answers() == [("DECLARE", "customer_totals", None)] * 2


def _is_right(project: Project) -> bool:
    """Whether the two stream tables are their queries' answers."""
    totals = "SELECT customer_id, sum(amount) AS total, count(*) AS orders FROM public.orders GROUP BY 1"
    pairs = {
        "SELECT customer_id, total, orders FROM analytics.customer_totals": totals,
        "SELECT country, total FROM analytics.countries": (
            f"SELECT country, sum(total) FROM ({totals}) t JOIN public.customers c ON c.id = t.customer_id GROUP BY 1"
        ),
    }
    return all(
        sorted(project.psql.execute(stored).fetchall()) == sorted(project.psql.execute(query).fetchall())
        for stored, query in pairs.items()
    )
