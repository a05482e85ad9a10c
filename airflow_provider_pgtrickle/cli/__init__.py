"""`pgtrickle`: stream tables from the command line.

`commands()` is the whole interface; `airflow pgtrickle …` is made from the same list.
"""

from airflow_provider_pgtrickle.cli.entry import main
from airflow_provider_pgtrickle.cli.registry import commands

__all__ = ["commands", "main"]
