"""`pgtrickle`: stream tables from the command line.

`commands()` lists the whole interface; `airflow pgtrickle …` is made from the same list.
"""

from airflow_provider_pgtrickle.cli.entry import commands, main

__all__ = ["commands", "main"]
