"""A declaration is checked when the DAG file is parsed, and needs nothing but its text."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, SyntaxFault, UsageError


def test_its_options_are_as_the_client_takes_them() -> None:
    table = StreamTable("t", "SELECT 1 AS a", schedule="5m", refresh_mode="differential", tier="WARM")
    assert table.options["refresh_mode"] == "DIFFERENTIAL"
    assert table.options["tier"] == "warm"
    assert table.options["schedule"] == "5m"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "empty"),
        ({"name": "a.b.c"}, "is not a name"),
        ({"name": "x" * 64}, "63 bytes"),
        ({"schedule": "sometimes"}, "not a schedule"),
        ({"refresh_mode": "SLOW"}, "refresh_mode"),
        ({"refresh_mode": "IMMEDIATE", "schedule": "5m"}, "takes no schedule"),
        ({"refresh_mode": "IMMEDIATE", "cdc_mode": "wal"}, "cdc_mode 'wal' exclude each other"),
        ({"differential_max_change_ratio": 2}, "differential_max_change_ratio"),
        ({"depends_on": "orders"}, r"depends_on must be a list of names, not 'orders'"),
        ({"tags": [1]}, "tags must be a list"),
        ({"timezone": 1}, "timezone can't be 1"),
        ({"query": "SELECT a FROM WHERE b"}, "Syntax error"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_table(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PgTrickleError, match=message) as caught:
        StreamTable(**{"name": "totals", "query": "SELECT 1 AS a", **arguments})
    assert str(caught.value).startswith(f"{arguments.get('name', 'totals')}: ") or not arguments.get("name", "x")


def test_a_graph_s_time_zone_is_that_of_its_tables_unless_they_say_otherwise() -> None:
    tables = [
        StreamTable("silent", "SELECT 1 AS a"),
        StreamTable("own", "SELECT 1 AS a", timezone="Asia/Kolkata"),
        StreamTable("plain", "SELECT 1 AS a", timezone="utc"),
    ]
    StreamTableGraph("g", tables, "shop_pg", timezone="Europe/Oslo")
    assert [table.options["timezone"] for table in tables] == ["Europe/Oslo", "Asia/Kolkata", None]
    assert StreamTable("alone", "SELECT 1 AS a").options["timezone"] is None
    with pytest.raises(UsageError, match="timezone can't be ''"):
        StreamTableGraph("g", [StreamTable("t", "SELECT 1 AS a")], "shop_pg", timezone="")


def test_a_syntax_error_says_where() -> None:
    with pytest.raises(SyntaxFault, match=r"totals: .*line 2, column"):
        StreamTable("totals", "SELECT a,\nFROM WHERE b")


def test_the_graph_enforces_the_minimum_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    table = StreamTable("totals", "SELECT 1 AS a", schedule="5s")
    with pytest.raises(UsageError, match=r"totals: .*min_schedule_seconds"):
        StreamTableGraph("g", [table], "shop_pg")
    monkeypatch.setenv("PGTRICKLE_MIN_SCHEDULE_SECONDS", "1")
    assert StreamTableGraph("g", [table], "shop_pg").dags()


def test_its_asset_carries_the_connections_name_where_nobody_said_the_address() -> None:
    table = StreamTable("sales.totals", "SELECT 1 AS a")
    StreamTableGraph("g", [table], "shop_pg")
    assert table.asset.uri == "pgtrickle://shop_pg/sales/totals"
    assert table.asset.name == "shop_pg.sales.totals"
    assert table.asset.extra == {"table": "sales.totals", "connection": "shop_pg"}


def test_its_asset_carries_the_real_address_where_the_graph_knows_it() -> None:
    table = StreamTable('"My totals"', "SELECT 1 AS a")
    StreamTableGraph("g", [table], "shop_pg", database_uri="postgres://db.example.org:5433/shop")
    assert table.asset.uri == "postgres://db.example.org:5433/shop/public/My%20totals"
    assert table.asset.name == "db.example.org:5433/shop.My totals"


def test_a_table_has_one_home() -> None:
    table = StreamTable("totals", "SELECT 1 AS a")
    StreamTableGraph("g", [table], "shop_pg")
    with pytest.raises(UsageError, match="another database"):
        StreamTableGraph("h", [table], "other_pg")


def test_an_asset_taken_before_the_graph_was_declared_is_not_left_pointing_elsewhere() -> None:
    table = StreamTable("totals", "SELECT 1 AS a")
    _ = table.asset
    with pytest.raises(UsageError, match="after the graph was declared"):
        StreamTableGraph("g", [table], "shop_pg")
