"""A delta that has to scan for its rows says which index would spare it that."""

from __future__ import annotations

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle

JOIN = "SELECT c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"


def test_explain_names_the_index_that_is_missing_until_it_is_there(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn, PgTrickle(dsn) as pt:
        conn.execute("CREATE TABLE customers (id int PRIMARY KEY, name text)")
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount numeric)")
        pt.install()
        wanted = 'CREATE INDEX ON "public"."orders" ("customer_id")'
        assert pt.validate_query(JOIN).missing_indexes == (wanted,)
        assert wanted in str(pt.validate_query(JOIN))
        conn.execute(wanted)
        assert pt.validate_query(JOIN).missing_indexes == ()
