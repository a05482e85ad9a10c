"""Triggers: what waits in the triggerer, on one asynchronous PostgreSQL connection each or shared."""
