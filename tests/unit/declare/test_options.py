"""Every option that a stream table has, and what it refuses."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.declare.options import Options, check, partition_key
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.settings import Settings

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"schedule": "5m"}, {"schedule": "5m"}),
        ({"schedule": " @daily "}, {"schedule": "@daily"}),
        ({"schedule": "calculated"}, {"schedule": None}),
        ({"schedule": None}, {"schedule": None}),
        ({"refresh_mode": "auto"}, {"refresh_mode": "AUTO"}),
        ({"refresh_mode": "immediate", "schedule": "calculated"}, {"refresh_mode": "IMMEDIATE", "schedule": None}),
        ({"cdc_mode": "TRIGGER"}, {"cdc_mode": "trigger"}),
        ({"append_only": True}, {"append_only": True}),
        ({"append_only_breach": "Refuse"}, {"append_only_breach": "refuse"}),
        ({"frozen_before": {"orders.placed": "90  Days"}}, {"frozen_before": "orders.placed: 90 days"}),
        (
            {"frozen_before": 's.orders."At, then":2026-01-01T10:00Z , o.id: -5'},
            {"frozen_before": 's.orders."At, then": 2026-01-01 10:00, o.id: -5'},
        ),
        ({"frozen_before": {"o.at": date(2026, 1, 1)}}, {"frozen_before": "o.at: 2026-01-01"}),
        ({"frozen_before": "None"}, {"frozen_before": None}),
        ({"frozen_breach": "Ignore"}, {"frozen_breach": "ignore"}),
        ({"unit": " ledger "}, {"unit": "ledger"}),
        ({"unit": "none"}, {"unit": None}),
        ({"timezone": " Europe/Oslo "}, {"timezone": "Europe/Oslo"}),
        ({"timezone": "utc"}, {"timezone": None}),
        ({"float_sums": "Approximate"}, {"float_sums": "approximate"}),
        ({"tier": "Warm"}, {"tier": "warm"}),
        ({"differential_max_change_ratio": 0}, {"differential_max_change_ratio": 0.0}),
        ({"differential_max_change_ratio": None}, {"differential_max_change_ratio": None}),
        ({"verify_every": " 1d "}, {"verify_every": "1d"}),
        ({"verify_every": "@weekly"}, {"verify_every": "@weekly"}),
        ({"verify_every": "never"}, {"verify_every": None}),
        ({"partition_by": "day"}, {"partition_by": "RANGE (day)"}),
        ({"partition_by": "hash(a, b)"}, {"partition_by": "HASH (a, b)"}),
    ],
)
def test_an_option_is_stored_in_one_form(given: dict[str, Any], stored: dict[str, Any]) -> None:
    assert check(SETTINGS, given) == stored


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"schedule": "soon"}, "'soon' is not a schedule"),
        ({"schedule": "30s"}, "shorter than the minimum of 60 seconds"),
        ({"schedule": 300}, "A schedule must be text, not int"),
        ({"refresh_mode": "SOMETIMES"}, "refresh_mode can't be 'SOMETIMES'"),
        ({"refresh_mode": None}, "refresh_mode can't be None"),
        ({"refresh_mode": "immediate", "schedule": "5m"}, "refresh mode IMMEDIATE takes no schedule"),
        ({"refresh_mode": "IMMEDIATE", "cdc_mode": "wal"}, "cdc_mode 'wal' exclude each other"),
        ({"cdc_mode": "log"}, "cdc_mode can't be 'log'"),
        ({"append_only": "yes"}, "append_only can't be 'yes'"),
        ({"append_only_breach": "ask"}, "append_only_breach can't be 'ask'"),
        ({"frozen_breach": "end"}, "frozen_breach can't be 'end'"),
        ({"append_only": True, "refresh_mode": "IMMEDIATE"}, "No refresh of a stream table in refresh mode IMMEDIATE"),
        ({"unit": 7}, "A unit can't be 7"),
        ({"float_sums": "rough"}, "float_sums can't be 'rough'"),
        ({"unit": ""}, "A unit can't be ''"),
        ({"timezone": " "}, "timezone can't be ' '"),
        ({"timezone": 2}, "timezone can't be 2"),
        ({"diamond_consistency": "some"}, "diamond_consistency can't be 'some'"),
        ({"diamond_schedule_policy": "any"}, "diamond_schedule_policy can't be 'any'"),
        ({"tier": "tepid"}, "tier can't be 'tepid'"),
        ({"differential_max_change_ratio": 2}, "differential_max_change_ratio can't be 2"),
        ({"verify_every": "calculated"}, "verify_every can't be 'calculated'"),
        ({"verify_every": 7}, "verify_every can't be 7"),
        ({"verify_every": "often"}, "'often' is not a schedule"),
        ({"differential_max_change_ratio": True}, "differential_max_change_ratio can't be True"),
        ({"partition_by": "LIST (a, b)"}, "partition_by can't be 'LIST (a, b)'"),
        ({"partition_by": ""}, "partition_by can't be ''"),
        ({"colour": "red"}, "There is no option named 'colour'"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_a_remedy(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        Options.checked(SETTINGS, given)
    assert sentence in refused.value.message
    assert refused.value.remedy


def test_the_minimum_schedule_is_a_setting() -> None:
    assert check(Settings(min_schedule_seconds=1), {"schedule": "5s"}) == {"schedule": "5s"}


def test_options_name_the_catalogs_columns() -> None:
    columns = Options.checked(SETTINGS, {"cdc_mode": "trigger"}).catalog_columns()
    assert columns["requested_cdc_mode"] == "trigger"
    assert "cdc_mode" not in columns


def test_a_column_alone_partitions_by_range() -> None:
    assert partition_key("day") == ("RANGE", ("day",))
