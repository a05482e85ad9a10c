from tests.airflow.listened import catalog

__all__ = ["catalog"]
