"""The engine that maintains stream tables. It needs PostgreSQL and Spark, and knows no Airflow.

Drivers on a Spark cluster get this folder as a zip.
"""
