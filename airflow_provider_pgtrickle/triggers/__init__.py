"""Triggers, which wait in the triggerer on an asynchronous PostgreSQL connection of their own or a shared one."""
