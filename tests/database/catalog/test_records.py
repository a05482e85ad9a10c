"""Rows of the catalog come back as the values they were written from."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StorageColumn
from airflow_provider_pgtrickle.engine.errors import StreamTableExists, UnknownStreamTable
from airflow_provider_pgtrickle.engine.names import QualifiedName


def declare(conn, name="totals", **columns):
    return records.insert(conn, schema="shop", name=name, original_query="q", defining_query="q", **columns)


def test_an_inserted_stream_table_is_read_back(conn):
    storage = (StorageColumn("n", "integer"), StorageColumn("__pgt_count", "bigint", "hidden"))
    table = declare(conn, storage=storage, identity=("n",), keyed=True, frontier={"sources": {}}, schedule="5m")
    assert records.get(conn, QualifiedName("shop", "totals")) == table
    assert (table.storage, table.identity, table.frontier) == (storage, ("n",), {"sources": {}})
    assert (table.status, table.refresh_mode, table.diamond_consistency) == ("INITIALIZING", "AUTO", "atomic")
    assert [c.name for c in table.visible] == ["n"]
    assert records.get_all(conn) == [table]
    assert records.by_ids(conn, [table.id]) == {table.id: table}


def test_an_empty_storage_is_allowed(conn):
    assert declare(conn, storage=()).storage == ()


def test_an_unknown_name_is_an_error_or_none(conn):
    with pytest.raises(UnknownStreamTable, match=r"no stream table shop\.nothing"):
        records.get(conn, QualifiedName("shop", "nothing"))
    assert records.find(conn, QualifiedName("shop", "nothing")) is None


def test_a_name_is_taken_once(conn):
    declare(conn)
    with pytest.raises(StreamTableExists, match=r"shop\.totals already"):
        declare(conn)


def test_columns_are_updated(conn):
    table = declare(conn)
    records.update(conn, table.id, status="ACTIVE", frontier={"a": 1}, name="sums")
    after = records.get(conn, QualifiedName("shop", "sums"))
    assert (after.status, after.frontier) == ("ACTIVE", {"a": 1})
    with pytest.raises(UnknownStreamTable):
        records.update(conn, -1, status="ACTIVE")


def test_dependencies_are_replaced_and_go_with_the_table(conn):
    table, other = declare(conn), declare(conn, "other")
    base = Dependency(table.id, 42, "TABLE", "public", "orders", columns_used=("a", "b"), cdc_mode="TRIGGER")
    upstream = Dependency(table.id, 43, "STREAM_TABLE", "shop", "other", source_pgt_id=other.id)
    records.replace_dependencies(conn, table.id, [upstream])
    records.replace_dependencies(conn, table.id, [base, upstream])
    assert records.dependencies(conn, table.id) == [base, upstream]
    assert records.dependencies(conn) == [base, upstream]
    assert [d.key for d in (base, upstream)] == ["42", f"pgt_{other.id}"]
    records.delete(conn, table.id)
    assert records.dependencies(conn) == []


def test_history_is_newest_first(conn):
    table = declare(conn)
    ids = [
        records.insert_history(conn, pgt_id=table.id, run_token="t", unit=["shop.totals"], action=action)
        for action in ("FULL", "DIFFERENTIAL")
    ]
    records.update_history(conn, ids[1], status="COMPLETED", rows_inserted=3, phases={"apply": 1.5})
    newest, oldest = records.history(conn, table.id, 5)
    assert (newest.action, newest.status, newest.rows_inserted, newest.phases) == (
        "DIFFERENTIAL", "COMPLETED", 3, {"apply": 1.5},
    )  # fmt: skip
    assert (oldest.status, oldest.unit) == ("RUNNING", ("shop.totals",))
    assert [r.refresh_id for r in records.history_of_run(conn, "t")] == ids
