"""Ranges of ctid: how many, and that each page belongs to exactly one."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.refresh.slices import ctid_slices
from airflow_provider_pgtrickle.engine.settings import Settings

SETTINGS = Settings(read_partition_rows=1000, max_read_partitions=4)


def test_a_small_table_is_not_cut():
    assert ctid_slices("s", "t", 100, 1000, SETTINGS) == ()


def test_a_table_never_analyzed_is_not_cut():
    assert ctid_slices("s", "t", 0, -1, SETTINGS) == ()


def test_there_are_never_more_slices_than_pages_or_than_allowed():
    assert len(ctid_slices("s", "t", 3, 1_000_000, SETTINGS)) == 3
    assert len(ctid_slices("s", "t", 10_000, 1_000_000, SETTINGS)) == 4


def test_each_range_begins_where_the_one_before_ends_and_the_outer_ones_are_open():
    assert ctid_slices("s", "t", 30, 3000, SETTINGS) == (
        """"s"."t"."ctid" < '(10,0)'::tid""",
        """"s"."t"."ctid" >= '(10,0)'::tid AND "s"."t"."ctid" < '(20,0)'::tid""",
        """"s"."t"."ctid" >= '(20,0)'::tid""",
    )


def test_names_are_quoted():
    first, *_ = ctid_slices('A "b"', "T", 30, 3000, SETTINGS)
    assert first.startswith('"A ""b"""."T"."ctid"')
