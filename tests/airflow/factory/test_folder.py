"""Stream tables from .sql files."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_pgtrickle import StreamTableGraph
from airflow_provider_pgtrickle.engine.errors import SyntaxFault, UsageError
from airflow_provider_pgtrickle.factory.folder import stream_tables


def folder(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / f"{name}.sql").write_text(text)
    return path


def test_options_stand_in_the_comment_on_top(tmp_path: Path) -> None:
    folder(tmp_path, totals="/*\nschedule: 5m\nrefresh_mode: FULL\n*/\nSELECT 1 AS a;\n")
    (table,) = stream_tables(tmp_path)
    assert (table.name, table.schedule, table.refresh_mode, table.query) == ("totals", "5m", "FULL", "SELECT 1 AS a")


def test_writers_may_maintain_a_file_s_table(tmp_path: Path) -> None:
    folder(tmp_path, t="-- refresh_mode: IMMEDIATE\nSELECT 1 AS a")
    (table,) = stream_tables(tmp_path)
    assert (table.refresh_mode, table.schedule, table.is_immediate) == ("IMMEDIATE", None, True)
    folder(tmp_path, t="-- refresh_mode: IMMEDIATE\n-- schedule: 5m\nSELECT 1 AS a")
    with pytest.raises(UsageError, match=r"t\.sql: A stream table in refresh mode IMMEDIATE takes no schedule"):
        stream_tables(tmp_path)


def test_line_comments_serve_as_well(tmp_path: Path) -> None:
    folder(tmp_path, t="-- ---\n-- name: sales.totals\n-- schedule: '@daily'\n-- ---\nSELECT 1 AS a")
    (table,) = stream_tables(tmp_path)
    assert (table.name, table.schedule) == ("sales.totals", "@daily")


def test_how_often_to_verify_may_be_said_there(tmp_path: Path) -> None:
    folder(tmp_path, t="-- schedule: @hourly\n-- verify_every: @daily\nSELECT 1 AS a")
    (table,) = stream_tables(tmp_path)
    assert (table.schedule, table.verify_every) == ("@hourly", "@daily")


def test_a_time_zone_may_be_said_there(tmp_path: Path) -> None:
    folder(tmp_path, t="-- timezone: Europe/Oslo\nSELECT 1 AS a")
    (table,) = stream_tables(tmp_path)
    assert table.options["timezone"] == "Europe/Oslo"


def test_prose_on_top_is_just_a_comment(tmp_path: Path) -> None:
    folder(tmp_path, t="-- The totals of it all\nSELECT 1 AS a")
    (table,) = stream_tables(tmp_path)
    assert table.schedule is None
    assert table.query.endswith("SELECT 1 AS a")


@pytest.mark.parametrize(
    ("header", "schedule"),
    [
        ("-- schedule: @hourly\n", "@hourly"),
        ("-- schedule: */5 * * * *\n", "*/5 * * * *"),
        ("/*\nschedule: * * * * *\n*/", "* * * * *"),
        ("-- schedule: 0 3 * * 1-5\n-- tier: hot\n", "0 3 * * 1-5"),
        ("-- schedule: '5m' # often\n", "5m"),
        ("-- What was sold.\n-- schedule: 5m\n", "5m"),
        ("-- What was sold.\n\n-- schedule: 5m\n", "5m"),
        ("/* Copyright 2026: us */\n-- schedule: @daily\n\n-- and more\n", "@daily"),
        ("-- schedule: 5m\n\n-- tier: cold\n", "5m"),
        ("\ufeff-- schedule: 5m\n", "5m"),
        ("-- Note: this is prose\n-- https://example.org/x: y\n", None),
    ],
)
def test_schedules_are_written_as_they_are_and_prose_may_stand_before(
    tmp_path: Path, header: str, schedule: str | None
) -> None:
    folder(tmp_path, t=f"{header}SELECT 1 AS a")
    (table,) = stream_tables(tmp_path)
    assert table.schedule == schedule
    assert table.query.endswith("SELECT 1 AS a")
    assert table.tier == ("cold" if "cold" in header else "hot")


def test_files_come_in_the_order_of_their_names_from_subfolders_too(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    folder(tmp_path, b="SELECT 1 AS a", c="SELECT 1 AS a")
    folder(tmp_path / "deep", a="SELECT 1 AS a")
    assert [table.name for table in stream_tables(tmp_path)] == ["b", "c", "a"]


def test_the_place_of_an_error_is_the_files(tmp_path: Path) -> None:
    folder(tmp_path, t="/*\nschedule: 5m\n*/\n\nSELECT a\nFROM WHERE")
    with pytest.raises(SyntaxFault, match=r"t\.sql, line 6, column"):
        stream_tables(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/*\nshedule: 5m\n*/ SELECT 1 AS a", r"t\.sql: no option is named 'shedule'"),
        ("/*\ntier: [\n*/ SELECT 1 AS a", r"t\.sql: the header is no YAML \(line 3\)"),
        ("-- description: what: it is\nSELECT 1 AS a", "quotes around a value that holds a colon"),
        ("/*\nschedule: soon\n*/ SELECT 1 AS a", r"t\.sql: 'soon' is not a schedule"),
    ],
)
def test_a_bad_header_names_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        stream_tables(folder(tmp_path, t=text))


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"No \.sql file"):
        stream_tables(tmp_path)


def test_a_relative_path_starts_at_the_calling_file() -> None:
    graph = StreamTableGraph.from_folder("sql_shop", "../../../dags/sql_shop", "shop_pg")
    assert sorted(table.name for table in graph.tables) == ["daily_sales", "good_days", "product_sales"]
