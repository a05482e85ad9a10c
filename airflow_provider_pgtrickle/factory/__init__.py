"""From declarations to DAGs: deterministic, without a database call, errors with their place."""
