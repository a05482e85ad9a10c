"""A shop's stream tables in an embedded PostgreSQL, refreshed by Airflow through a warm Spark.

`python -m airflow_provider_pgtrickle.demo` shows it once and leaves nothing running; `… up` keeps it running with
Airflow's UI and a writer that changes rows, `… down` stops that.
"""
