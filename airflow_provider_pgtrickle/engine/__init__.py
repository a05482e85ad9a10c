"""What maintains stream tables: it needs PostgreSQL and Spark, and knows no Airflow.

Spark's drivers get this folder as a zip.
"""
