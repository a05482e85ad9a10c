"""A unit is refreshed: locked, observed, planned, computed, and written in one fenced transaction.

Nothing here knows Spark or Airflow.
"""
