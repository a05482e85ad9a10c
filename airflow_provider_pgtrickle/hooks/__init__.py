"""The hook that makes a client of an Airflow connection."""
