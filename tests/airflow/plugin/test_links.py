"""The buttons on a task lead to pages that are there."""

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_pgtrickle.links import AssetLink, ExplainLink, RefreshHistoryLink


def link(kind: Any, **operator: Any) -> str:
    return kind().get_link(SimpleNamespace(**operator), ti_key=None)


@pytest.fixture(autouse=True)
def web_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/base/")


def test_history_and_explanation_lead_to_the_page_of_the_table() -> None:
    page = "https://airflow.example/base/plugin/stream-tables?conn_id=shop&stream_table=sales.totals"
    table = {"stream_table": "sales.totals", "postgres_conn_id": "shop"}
    assert link(RefreshHistoryLink, **table) == f"{page}&part=history"
    assert link(ExplainLink, **table) == f"{page}&part=explain"


def test_the_asset_link_narrows_the_list_of_assets() -> None:
    assert link(AssetLink, stream_table="sales.totals") == (
        "https://airflow.example/base/assets?name_pattern=.sales.totals"
    )


def test_a_unit_leads_to_its_first_table() -> None:
    assert link(RefreshHistoryLink, stream_tables=["public.a", "public.b"]).endswith(
        "stream_table=public.a&part=history"
    )


def test_an_operator_without_a_table_has_no_link() -> None:
    assert link(RefreshHistoryLink, postgres_conn_id="shop") == ""


def test_a_name_cannot_break_out_of_its_parameter() -> None:
    assert "stream_table=a%26conn_id%3Dother" in link(RefreshHistoryLink, stream_table="a&conn_id=other")
