"""The errors that a caller may catch; their tree is drawn in `engine.errors`."""

from airflow_provider_pgtrickle.engine.errors import *  # noqa: F403
