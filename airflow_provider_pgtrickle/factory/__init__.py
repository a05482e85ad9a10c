"""Makes DAGs from declarations: deterministically, without a database, with errors that say where."""
