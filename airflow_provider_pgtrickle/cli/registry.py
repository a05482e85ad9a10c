"""Every command, in the order the help shows them. A new command is one line in its group's file."""

from __future__ import annotations

from airflow_provider_pgtrickle.cli import catalog, declare, gates, health, observe, query, refresh, verify
from airflow_provider_pgtrickle.cli.command import Command

_GROUPS = (catalog, declare, refresh, verify, observe, query, health, gates)


def commands() -> tuple[Command, ...]:
    """The commands of all groups."""
    return tuple(command for group in _GROUPS for command in group.COMMANDS)
