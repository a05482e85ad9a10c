"""The hook: either type of connection, extras for three readers, and no secret in what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from urllib.parse import quote

import pytest
import yaml
from airflow.sdk import BaseHook
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.backends.selection import backend_for
from airflow_provider_pgtrickle.backends.spark_submit import SparkSubmitBackend
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Callable[..., PgTrickleHook]:
    def make(uri: str, **extra: object) -> PgTrickleHook:
        query = f"?__extra__={quote(json.dumps(extra))}" if extra else ""
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_PG", uri + query)
        return PgTrickleHook(postgres_conn_id="shop_pg")

    return make


@pytest.mark.parametrize("kind", ["pgtrickle", "postgres"])
def test_both_types_of_connection_lead_to_the_database(
    connection: Callable[..., PgTrickleHook], dsn: str, kind: str
) -> None:
    hook = connection(f"{kind}://{dsn.split('://', 1)[1]}")
    with hook.get_client() as client:
        client.install()
    told = hook.test_connection()
    assert told[0]
    assert "with the pgtrickle catalog" in told[1]


def test_the_first_projects_compose_file_connects_its_services(monkeypatch: pytest.MonkeyPatch) -> None:
    file = resources.files("airflow_provider_pgtrickle.cli") / "first_project" / "compose.yaml"
    services = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    for name, value in services["airflow"]["environment"].items():
        monkeypatch.setenv(name, value)
    postgres = services["postgres"]["environment"]
    assert conninfo_to_dict(PgTrickleHook(postgres_conn_id="shop_pg").dsn) == {
        "host": "postgres",
        "port": "5432",
        "user": postgres["POSTGRES_USER"],
        "password": postgres["POSTGRES_PASSWORD"],
        "dbname": postgres["POSTGRES_DB"],
    }
    assert isinstance(backend_for("spark_default"), SparkSubmitBackend)
    assert BaseHook.get_connection("spark_default").host == "local[2]"


def test_extras_go_where_they_belong(connection: Callable[..., PgTrickleHook]) -> None:
    hook = connection(
        "pgtrickle://u:p@db:5433/shop", sslmode="require", min_schedule_seconds=5, cursor="dictcursor", nonsense=1
    )
    assert conninfo_to_dict(hook.dsn) == {
        "host": "db",
        "port": "5433",
        "user": "u",
        "password": "p",
        "dbname": "shop",
        "sslmode": "require",
    }
    assert hook.settings == {"min_schedule_seconds": 5}


def test_an_unknown_extra_does_not_keep_airflows_own_way_from_connecting(
    connection: Callable[..., PgTrickleHook], dsn: str
) -> None:
    hook = connection(f"pgtrickle://{dsn.split('://', 1)[1]}", nonsense=1, min_schedule_seconds=5)
    assert hook.get_first("SELECT 1") == (1,)


def test_a_connection_that_fails_is_told_without_its_password(
    connection: Callable[..., PgTrickleHook], dsn: str
) -> None:
    place = dsn.split("@", 1)[1]
    fine, told = connection(f"pgtrickle://nobody:hunter2@{place}").test_connection()
    assert not fine
    assert "nobody" in told
    assert "hunter2" not in told


def test_a_connection_of_another_type_is_refused(connection: Callable[..., PgTrickleHook]) -> None:
    with pytest.raises(UsageError, match="of type 'mysql'"):
        _ = connection("mysql://u:p@db/shop").dsn
