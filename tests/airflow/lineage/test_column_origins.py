"""Which base columns an output column is made of, followed through everything a canonical query may hold."""

import pytest

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.lineage import Relation, column_origins

ORDERS = QualifiedName("public", "orders")
CUSTOMERS = QualifiedName("Shop", "Customers")
RECENT = QualifiedName("public", "recent")
RICH = QualifiedName("public", "rich")
RELATIONS = (
    Relation(ORDERS, (("id", "integer"), ("customer", "integer"), ("total", "numeric"))),
    Relation(CUSTOMERS, (("id", "integer"), ("Name", "text"))),
    Relation(RECENT, (("customer", "integer"), ("spent", "numeric"))),
    Relation(RICH, (("customer", "integer"),)),
)
VIEWS = {
    RECENT: "SELECT orders.customer, sum(orders.total) AS spent FROM public.orders GROUP BY orders.customer",
    RICH: "SELECT r.customer FROM public.recent r WHERE r.spent > 9",
}


@pytest.mark.parametrize(
    ("query", "origins"),
    [
        (
            'SELECT o.customer, c."Name" AS who FROM public.orders o JOIN "Shop"."Customers" c ON c.id = o.customer',
            {"customer": "public.orders.customer IDENTITY", "who": "Shop.Customers.Name IDENTITY"},
        ),
        (
            "SELECT sum(o.total) AS t, round(o.total, 2) AS r FROM public.orders o",
            {"t": "public.orders.total AGGREGATION", "r": "public.orders.total TRANSFORMATION"},
        ),
        ("SELECT v.spent * 2 AS double FROM public.recent v", {"double": "public.orders.total AGGREGATION"}),
        ("SELECT rich.customer FROM public.rich", {"customer": "public.orders.customer IDENTITY"}),
        (
            "WITH x AS (SELECT orders.id FROM public.orders) SELECT x.id FROM x"
            ' UNION ALL SELECT c.id FROM "Shop"."Customers" c',
            {"id": "Shop.Customers.id IDENTITY, public.orders.id IDENTITY"},
        ),
        (
            "SELECT (SELECT max(o.total) FROM public.orders o) AS most",
            {"most": "public.orders.total AGGREGATION"},
        ),
        (
            "SELECT row_number() OVER (PARTITION BY o.customer ORDER BY o.total) AS n FROM public.orders o",
            {"n": "public.orders.customer TRANSFORMATION, public.orders.total TRANSFORMATION"},
        ),
        ("SELECT count(*) AS n, 1 AS one FROM public.orders", {}),
    ],
    ids=["join", "expressions", "view", "view of a view", "union", "scalar subquery", "window", "no column"],
)
def test_the_origins_of(query: str, origins: dict[str, str]) -> None:
    found = column_origins(query, RELATIONS, VIEWS)
    told = {
        column: ", ".join(f"{origin.relation}.{origin.column} {origin.how}" for origin in of)
        for column, of in found.items()
    }
    assert told == origins


def test_a_query_that_cannot_be_followed_has_none_and_breaks_nothing() -> None:
    assert column_origins("SELECT FROM WHERE", RELATIONS, {}) == {}


def test_a_cte_that_is_named_like_a_view_is_not_the_view() -> None:
    query = "WITH recent AS (SELECT orders.id FROM public.orders) SELECT recent.id FROM recent"
    (origin,) = column_origins(query, RELATIONS, VIEWS)["id"]
    assert (origin.column, origin.how) == ("id", "IDENTITY")
