"""The plugin's page and its JSON, mounted in Airflow's API server under `/pgtrickle`."""
