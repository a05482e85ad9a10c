"""The plugin's page and JSON, served by Airflow's own API server application."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from airflow.utils.db import initdb
from fastapi.testclient import TestClient

from airflow_provider_pgtrickle.web import app, state
from tests.airflow.listened import CONN_ID, Catalog

CONNECTION = f"/pgtrickle/api/connections/{CONN_ID}"
TABLES = f"{CONNECTION}/stream-tables"
TABLE, EXPLANATION = f"{CONNECTION}/stream-table", f"{CONNECTION}/explanation"
ROUTES = (TABLES, f"{TABLE}?name=totals", f"{EXPLANATION}?name=totals")


@pytest.fixture(scope="module")
def application() -> Iterator[Any]:
    from airflow.api_fastapi.app import create_app

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW__API_AUTH__JWT_SECRET", secrets.token_urlsafe(64))
        initdb()
        yield create_app()


@pytest.fixture
def stranger(application: Any, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    # As the API server itself does: it reads connections from the metadata database.
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    with TestClient(application, base_url="http://localhost") as client:
        yield client


def as_role(client: TestClient, role: str) -> TestClient:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="someone", role=role))
    client.headers["Authorization"] = f"Bearer {token}"
    return client


@pytest.fixture
def admin(stranger: TestClient) -> TestClient:
    return as_role(stranger, "admin")


@pytest.mark.parametrize("path", ["/pgtrickle/", *ROUTES])
def test_a_stranger_sees_nothing(stranger: TestClient, path: str) -> None:
    assert stranger.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/pgtrickle/docs", "/pgtrickle/redoc", "/pgtrickle/openapi.json"])
def test_no_route_describes_the_application(admin: TestClient, path: str) -> None:
    assert admin.get(path).status_code == 404


def test_who_may_not_see_connections_sees_no_stream_tables(stranger: TestClient) -> None:
    viewer = as_role(stranger, "viewer")
    assert viewer.get("/pgtrickle/").status_code == 200
    for route in ROUTES:
        refused = viewer.get(route)
        assert refused.status_code == 403
        # The same answer whether there is such a connection or not, and whatever stands behind it.
        other = viewer.get(route.replace(CONN_ID, "elsewhere/and-nowhere"))
        assert (other.status_code, other.json()) == (refused.status_code, refused.json())
        assert CONN_ID not in refused.text


def test_a_table_that_writers_maintain_is_not_stale(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals", refresh_mode="IMMEDIATE", is_live=True)
    catalog.refresh("totals", at="yesterday")
    (row,) = admin.get(TABLES).json()
    assert (row["refresh_mode"], row["staleness_seconds"]) == ("IMMEDIATE", 0)


def test_an_odd_name_is_found(admin: TestClient, catalog: Catalog) -> None:
    odd = "a/b #1?&=é."
    catalog.declare(odd)
    catalog.refresh(odd, inserted=1)
    (row,) = admin.get(TABLES).json()
    assert row["quoted"] == f'public."{odd}"'
    found = admin.get(TABLE, params={"name": row["quoted"]})
    assert (found.status_code, found.json()["name"]) == (200, f"public.{odd}")
    assert admin.get(TABLE, params={"name": "a'b"}).status_code == 404


def test_a_connection_with_a_slash_in_its_id_is_found(
    admin: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import Connection

    dsn = Connection.from_uri(os.environ[f"AIRFLOW_CONN_{CONN_ID.upper()}"], "x").get_uri()
    monkeypatch.setenv("AIRFLOW_CONN_TEAM/SHOP", dsn)
    catalog.declare("totals")
    answer = admin.get("/pgtrickle/api/connections/team%2Fshop/stream-tables")
    assert [row["name"] for row in answer.json()] == ["public.totals"]


@pytest.mark.parametrize("route", ROUTES)
def test_a_database_that_is_locked_is_504_before_long(
    admin: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    catalog.declare("totals")
    monkeypatch.setattr(state, "LONGEST_STATEMENT", 1)
    with psycopg.connect(catalog.dsn) as other:
        other.execute("LOCK TABLE pgtrickle.pgt_stream_tables")
        answer = admin.get(route)
    assert (answer.status_code, answer.json()["detail"].split(".")[0]) == (504, "The database took too long to answer")


@pytest.mark.parametrize("route", ROUTES)
def test_a_server_that_never_answers_is_given_up(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        monkeypatch.setenv("AIRFLOW_CONN_MUTE", f"postgresql://me:s3cret@127.0.0.1:{port}/shop?connect_timeout=0")
        monkeypatch.setattr(state, "_CONNECT", 2)
        answer = admin.get(route.replace(CONN_ID, "mute"))
        assert answer.status_code == 502
        monkeypatch.setattr(app, "LONGEST", 0.5)
        assert admin.get(route.replace(CONN_ID, "mute")).status_code == 504
    assert "s3cret" not in answer.text


def test_the_page_runs_only_its_own_script(admin: TestClient) -> None:
    page = admin.get("/pgtrickle/")
    policy = page.headers["Content-Security-Policy"]
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert f'<script nonce="{nonce}">' in page.text
    assert "{{nonce}}" not in page.text
    assert admin.get("/pgtrickle/").headers["Content-Security-Policy"] != policy


def test_the_tables_come_as_json_without_a_credential(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    catalog.refresh("totals", inserted=3)
    catalog.declare("hidden", is_hidden=True)
    answer = admin.get(TABLES)
    assert answer.status_code == 200, answer.text
    (row,) = answer.json()
    assert (row["name"], row["status"], row["last_action"]) == ("public.totals", "ACTIVE", "DIFFERENTIAL")
    assert catalog.connection.info.password not in answer.text


def test_one_table_comes_with_its_history_newest_first(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals", original_query="SELECT 1 AS a -- mine")
    for inserted in (1, 2, 3):
        catalog.refresh("totals", inserted=inserted)
    found = admin.get(TABLE, params={"name": "totals", "limit": 2}).json()
    assert found["original_query"] == "SELECT 1 AS a -- mine"
    assert [row["rows_inserted"] for row in found["history"]] == [3, 2]


def test_a_table_that_is_not_there_is_404_in_one_sentence(admin: TestClient) -> None:
    answer = admin.get(TABLE, params={"name": "nothing"})
    assert (answer.status_code, answer.json()) == (404, {"detail": "There is no stream table named public.nothing."})


def test_a_connection_of_another_kind_is_not_dialled(admin: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MAIL", "smtp://me:s3cret@127.0.0.1:1")
    answer = admin.get("/pgtrickle/api/connections/mail/stream-tables")
    assert answer.status_code == 404
    assert "s3cret" not in answer.text


def test_a_database_that_is_down_is_502_without_its_password(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", "postgresql://me:s3cret@127.0.0.1:1/shop")
    answer = admin.get("/pgtrickle/api/connections/down/stream-tables")
    assert answer.status_code == 502
    assert "s3cret" not in answer.text


def test_airflow_lists_the_plugin_and_its_page_in_the_navigation(admin: TestClient) -> None:
    plugins = {plugin["name"]: plugin for plugin in admin.get("/api/v2/plugins").json()["plugins"]}
    ours = plugins["pgtrickle"]
    assert ours["external_views"][0]["href"] == "/pgtrickle/"
    assert ours["fastapi_apps"][0]["url_prefix"] == "/pgtrickle"
    assert "password" not in json.dumps(ours)
