"""TPC-H on PostgreSQL: schema, data at any scale, the 22 queries, and the streams that change the data."""

from tests.benchmarks.tpch.load import load
from tests.benchmarks.tpch.queries import query
from tests.benchmarks.tpch.streams import change, delete_orders, insert_orders, update_dimensions

__all__ = ["change", "delete_orders", "insert_orders", "load", "query", "update_dimensions"]
