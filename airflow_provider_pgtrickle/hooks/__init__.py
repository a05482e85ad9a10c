"""Where Airflow's connections become connections."""
