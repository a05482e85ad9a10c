"""The refresh unit: lock, snapshot, decide, compute, stage, and one fenced transaction. No Spark, no Airflow."""
