"""What PostgreSQL knows: the connection, the catalog's tables and records, the probing of queries."""
