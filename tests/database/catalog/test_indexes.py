"""A delta that has to scan for its rows says which index would spare it that."""

from __future__ import annotations

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle

JOIN = "SELECT c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"


TREE = (
    "WITH RECURSIVE r AS (SELECT id, 0 AS depth FROM node WHERE parent IS NULL"
    " UNION ALL SELECT n.id, r.depth + 1 FROM node n JOIN r ON n.parent = r.id) SELECT id, depth FROM r"
)


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


def test_a_recursion_names_the_index_that_its_step_walks_by(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn, PgTrickle(dsn) as pt:
        conn.execute("CREATE TABLE node (id int PRIMARY KEY, parent int)")
        pt.install()
        wanted = 'CREATE INDEX ON "public"."node" ("parent")'
        assert pt.validate_query(TREE).missing_indexes == (wanted,)
        conn.execute(wanted)
        assert pt.validate_query(TREE).missing_indexes == ()
