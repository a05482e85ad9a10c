"""The graph of stream tables as plain values: order, levels, components, diamonds, refresh units, schedules.

Pure (networkx only): it knows neither PostgreSQL nor Airflow.
"""

from airflow_provider_pgtrickle.engine.graph.dag import Graph
from airflow_provider_pgtrickle.engine.graph.diamonds import Diamond
from airflow_provider_pgtrickle.engine.graph.node import Node

__all__ = ["Diamond", "Graph", "Node"]
