"""The plugin's page and JSON, served by Airflow's own API server application."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
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
GRAPH, COSTS, ACTION = f"{CONNECTION}/graph", f"{CONNECTION}/costs", f"{CONNECTION}/action"
EXPLAIN, PLAN = f"{CONNECTION}/explain", f"{CONNECTION}/plan"
ROUTES = (
    TABLES,
    GRAPH,
    COSTS,
    f"{CONNECTION}/pending",
    f"{TABLE}?name=totals",
    f"{EXPLANATION}?name=totals",
    f"{EXPLAIN}?name=totals",
    f"{PLAN}?name=totals&refresh_id=1",
)
#: What the page's own requests have.
OURS = {app.CSRF_HEADER: "1"}


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


@pytest.mark.parametrize("path", ["/pgtrickle/", "/pgtrickle/page.js", "/pgtrickle/api/connections", *ROUTES])
def test_a_stranger_sees_nothing(stranger: TestClient, path: str) -> None:
    assert stranger.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/pgtrickle/docs", "/pgtrickle/redoc", "/pgtrickle/openapi.json"])
def test_no_route_describes_the_application(admin: TestClient, path: str) -> None:
    assert admin.get(path).status_code == 404


def test_who_may_not_see_connections_sees_no_stream_tables(stranger: TestClient) -> None:
    viewer = as_role(stranger, "viewer")
    assert viewer.get("/pgtrickle/page.js").status_code == 200
    assert viewer.get("/pgtrickle/api/connections").json() == []
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


@pytest.mark.parametrize(
    ("declared", "effective", "target"),
    [
        ("hot", "hot", 300),
        ("warm", "warm", 600),
        ("cold", "cold", None),
        ("frozen", "frozen", None),
        ("auto", "hot", 300),
    ],
)
def test_the_target_follows_the_tier(
    admin: TestClient, catalog: Catalog, declared: str, effective: str, target: float | None
) -> None:
    # Without a duration of its own in the row, as in tables of an earlier release.
    catalog.declare("totals", tier=declared, schedule="5m")
    catalog.refresh("totals", at="yesterday")
    (listed,) = admin.get(TABLES).json()
    for table in listed, admin.get(TABLE, params={"name": "totals"}).json():
        assert (table["tier"], table["effective_tier"], table["target_seconds"]) == (declared, effective, target)


def test_a_table_that_nobody_reads_any_more_has_no_target(admin: TestClient, catalog: Catalog) -> None:
    pgt_id = catalog.declare("totals", tier="auto", schedule="5m", effective_schedule="5 minutes")
    catalog.connection.execute(
        "INSERT INTO pgtrickle.pgt_use (pgt_id, scans, read_at) VALUES (%s, 3, now() - interval '3 days')", [pgt_id]
    )
    (listed,) = admin.get(TABLES).json()
    for table in listed, admin.get(TABLE, params={"name": "totals"}).json():
        assert (table["tier"], table["effective_tier"], table["target_seconds"]) == ("auto", "cold", None)


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


def test_the_script_is_asked_for_once(admin: TestClient) -> None:
    script = admin.get("/pgtrickle/page.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    again = admin.get("/pgtrickle/page.js", headers={"If-None-Match": script.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_an_old_address_leads_to_the_page(admin: TestClient) -> None:
    moved = admin.get("/pgtrickle/", params={"conn_id": "shop", "stream_table": "a.b"}, follow_redirects=False)
    assert moved.headers["Location"].endswith("/plugin/stream-tables?conn_id=shop&stream_table=a.b")


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
    (view,) = ours["react_apps"]
    assert (view["url_route"], view["bundle_url"]) == ("stream-tables", "pgtrickle/page.js")
    assert ours["fastapi_apps"][0]["url_prefix"] == "/pgtrickle"
    assert "password" not in json.dumps(ours)


def ask(client: TestClient, action: str, name: str = "totals", **more: Any) -> Any:
    return client.post(ACTION, json={"action": action, "name": name, **more}, headers=OURS)


def of(catalog: Catalog, column: str) -> Any:
    row = catalog.connection.execute(
        psycopg.sql.SQL("SELECT {} FROM pgtrickle.pgt_stream_tables").format(psycopg.sql.Identifier(column))
    ).fetchone()
    assert row is not None
    return row[0]


def test_a_gate_has_its_reason_and_who_closed_it(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    done = ask(admin, "gate", reason="stock-taking")
    assert (done.status_code, done.json()["done"].split(":")[0]) == (200, "public.totals is gated")
    assert (of(catalog, "is_gated"), of(catalog, "gated_reason")) == (True, "stock-taking (someone)")
    assert ask(admin, "ungate").status_code == 200
    assert (of(catalog, "is_gated"), of(catalog, "gated_reason")) == (False, None)


def test_a_halted_table_is_resumed_and_computes_nothing_here(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals", status="ERROR", consecutive_errors=3, last_error="no", refresh_mode="IMMEDIATE")
    assert ask(admin, "resume").status_code == 200
    assert (of(catalog, "status"), of(catalog, "consecutive_errors"), of(catalog, "last_error")) == ("ACTIVE", 0, None)


def test_an_action_is_in_airflows_audit_log(admin: TestClient, catalog: Catalog) -> None:
    from airflow.models import Log
    from airflow.utils.session import create_session

    catalog.declare("totals")
    ask(admin, "gate", reason="for the audit")
    with create_session() as session:
        entry = session.query(Log).filter(Log.event == "pgtrickle action").order_by(Log.id.desc()).first()
        assert entry is not None
        assert entry.extra is not None
        assert entry.owner == "someone"
        extra = json.loads(entry.extra)
    assert (extra["action"], extra["name"], extra["reason"]) == ("gate", "totals", "for the audit")
    assert extra["connection_id"] == CONN_ID


@pytest.mark.parametrize("headers", [{}, {**OURS, "Sec-Fetch-Site": "cross-site"}, {**OURS, "Sec-Fetch-Site": "none"}])
def test_another_site_can_do_nothing(admin: TestClient, catalog: Catalog, headers: dict[str, str]) -> None:
    catalog.declare("totals")
    refused = admin.post(ACTION, json={"action": "gate", "name": "totals"}, headers=headers)
    assert refused.status_code == 403
    assert of(catalog, "is_gated") is False


def test_a_form_can_do_nothing(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    assert admin.post(ACTION, data={"action": "gate", "name": "totals"}, headers=OURS).status_code == 422
    assert of(catalog, "is_gated") is False


@pytest.mark.parametrize(("role", "expected"), [("viewer", 403), ("user", 403), ("op", 200)])
def test_only_who_may_edit_the_connection_acts(
    stranger: TestClient, catalog: Catalog, role: str, expected: int
) -> None:
    catalog.declare("totals")
    assert ask(as_role(stranger, role), "gate").status_code == expected
    assert of(catalog, "is_gated") is (expected == 200)


def test_who_may_read_a_connection_and_not_edit_it_is_told_so(
    admin: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    allowed = SimpleAuthManager.is_authorized_connection

    def only_reading(self: Any, *, method: Any, user: Any, details: Any = None) -> bool:
        return method == "GET" and allowed(self, method=method, user=user, details=details)

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_connection", only_reading)
    catalog.declare("totals")
    assert admin.get(GRAPH).json()["may_edit"] is False
    assert admin.get(TABLE, params={"name": "totals"}).json()["may_edit"] is False
    assert ask(admin, "gate").status_code == 403


@pytest.mark.parametrize(("action", "full"), [("refresh", False), ("full_refresh", True)])
def test_a_refresh_that_no_dag_carries_out_is_requested(
    admin: TestClient, catalog: Catalog, action: str, full: bool
) -> None:
    # Its name is resolved by its table.
    catalog.connection.execute("CREATE TABLE totals ()")
    catalog.declare("totals")
    catalog.connection.execute("UPDATE pgtrickle.pgt_stream_tables SET pgt_relid = 'totals'::regclass")
    answer = ask(admin, action)
    asked = catalog.connection.execute(
        "SELECT request_id, kind, pgt_schema, pgt_name, force_full, status FROM pgtrickle.pgt_requests"
    ).fetchall()
    assert asked == [(1, "REFRESH", "public", "totals", full, "PENDING")]
    assert answer.json()["done"].startswith("Request 1 is written down")
    assert ask(admin, action, name="nothing").status_code == 404


def test_a_remedy_is_what_a_person_at_airflow_can_do(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    unknown = ask(admin, "gate", name="nothing").json()["detail"]
    assert unknown.endswith("pgtrickle status lists those there are.")
    catalog.connection.execute("DROP SCHEMA pgtrickle CASCADE")
    for answer in admin.get(f"{TABLE}?name=totals"), ask(admin, "gate"):
        assert answer.json()["detail"].endswith("Run `pgtrickle install`, or the task `plan` of its DAG.")


def test_an_unknown_action_is_refused(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    assert ask(admin, "drop").status_code == 422
    assert ask(admin, "gate", name="nothing").status_code == 404


def test_connections_are_listed_without_what_is_in_them(
    admin: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = catalog.dsn.replace("postgresql://", "pgtrickle://", 1)
    monkeypatch.setenv("AIRFLOW_CONN_A_SHOP", "pgtrickle://me:s3cret@127.0.0.1:1/shop")
    monkeypatch.setenv("AIRFLOW_CONN_B_SHOP", ours)
    monkeypatch.setenv("AIRFLOW_CONN_C_MAIL", "smtp://me:s3cret@127.0.0.1:1")
    catalog.declare("totals")
    answer = admin.get("/pgtrickle/api/connections")
    assert answer.json()[:2] == [
        # The one with stream tables first, whatever the others are called.
        {"conn_id": "b_shop", "conn_type": "pgtrickle", "stream_tables": 1, "failed": False},
        {"conn_id": "a_shop", "conn_type": "pgtrickle", "stream_tables": None, "failed": True},
    ]
    plain = {"conn_id": CONN_ID, "conn_type": "postgres", "stream_tables": None, "failed": False}
    assert plain in answer.json()
    assert "c_mail" not in answer.text
    assert "s3cret" not in answer.text
    assert catalog.connection.info.password not in answer.text


def test_a_connection_that_never_answers_does_not_hold_up_the_list(
    admin: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "COUNTED", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        dead = f"pgtrickle://me:s3cret@127.0.0.1:{mute.getsockname()[1]}/shop"
        for name in "ABCDEF":
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}_MUTE", dead)
        began = time.monotonic()
        listed = admin.get("/pgtrickle/api/connections").json()
        # Each would be given five seconds to connect.
        assert time.monotonic() - began < 4.5
        assert {c["conn_id"] for c in listed if c["failed"]} == {f"{name}_mute" for name in "abcdef"}


def test_a_database_without_a_catalog_is_no_error(admin: TestClient, catalog: Catalog) -> None:
    catalog.connection.execute("DROP SCHEMA pgtrickle CASCADE")
    for route in ("stream-tables", "pending", "costs"):
        assert admin.get(f"{CONNECTION}/{route}").json() == []
    graph = admin.get(GRAPH).json()
    assert (graph["installed"], graph["tables"]) == (False, [])


def test_the_graph_has_what_each_table_reads(admin: TestClient, catalog: Catalog) -> None:
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    catalog.declare("totals")
    catalog.capture("totals", "orders")
    graph = admin.get(GRAPH).json()
    assert [(read["source"], read["reader"], read["cdc_mode"]) for read in graph["reads"]] == [
        ("public.orders", "public.totals", "TRIGGER")
    ]
    assert graph["may_edit"] is True
    (source,) = admin.get(TABLE, params={"name": "totals"}).json()["sources"]
    assert (source["name"], source["quoted"], source["is_stream_table"]) == ("public.orders", None, False)
    catalog.connection.execute("INSERT INTO orders VALUES (1), (2)")
    (row,) = admin.get(f"{CONNECTION}/pending").json()
    assert (row["stream_table"], row["source_table"], row["pending_rows"]) == ("public.totals", "public.orders", 2)


def test_a_full_refresh_that_was_asked_for_was_not_avoidable(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    for reason in (None, "never_populated", "forced", "not_differentiable: it calls random()"):
        catalog.refresh("totals")
        catalog.connection.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET action = 'FULL', fallback_reason = %s, duration_ms = 7"
            " WHERE refresh_id = (SELECT max(refresh_id) FROM pgtrickle.pgt_refresh_history)",
            [reason],
        )
    (cost,) = admin.get(COSTS).json()
    assert (cost["refreshes"], cost["total_ms"]) == (4, 28)
    assert (cost["avoidable"], cost["avoidable_ms"]) == (1, 7)
    assert cost["avoidable_reason"] == "not_differentiable: it calls random()"


def test_a_content_that_an_altered_source_cost_was_avoidable(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    for reason in ("query_altered", "content_differs", "schema_changed"):
        catalog.refresh("totals")
        catalog.connection.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET action = 'REINITIALIZE', fallback_reason = %s, duration_ms = 7"
            " WHERE refresh_id = (SELECT max(refresh_id) FROM pgtrickle.pgt_refresh_history)",
            [reason],
        )
    (cost,) = admin.get(COSTS).json()
    assert (cost["avoidable"], cost["avoidable_ms"], cost["avoidable_reason"]) == (1, 7, "schema_changed")


def test_a_plan_is_given_for_a_refresh_of_the_table_only(admin: TestClient, catalog: Catalog) -> None:
    catalog.declare("totals")
    catalog.declare("other")
    catalog.refresh("totals")
    catalog.connection.execute("UPDATE pgtrickle.pgt_refresh_history SET plan = 'SELECT 1'")
    (row,) = admin.get(TABLE, params={"name": "totals"}).json()["history"]
    asked = {"name": "totals", "refresh_id": row["refresh_id"]}
    assert admin.get(PLAN, params=asked).json() == {"plan": "SELECT 1"}
    assert admin.get(PLAN, params={**asked, "name": "other"}).status_code == 404


def test_the_file_that_declares_a_table_is_told(admin: TestClient, catalog: Catalog) -> None:
    pgt_id = catalog.declare("totals")
    assert admin.get(TABLE, params={"name": "totals"}).json()["owner"] is None
    catalog.connection.execute(
        "INSERT INTO pgtrickle.pgt_owners (pgt_id, bundle, file, graph) VALUES (%s, 'dags', 'shop.py', 'shop')",
        [pgt_id],
    )
    assert admin.get(TABLE, params={"name": "totals"}).json()["owner"]["file"] == "shop.py"
    graph = admin.get(GRAPH).json()
    assert graph["owners"]["public.totals"]["graph"] == "shop"
    # This Airflow has no such DAG.
    assert graph["gone"] == {"public.totals": "shop"}
    assert admin.get(TABLE, params={"name": "totals"}).json()["gone"] == "shop"
