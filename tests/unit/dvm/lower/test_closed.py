"""What Spark may compute, with the types that its values have; everything else stays in PostgreSQL."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, rewrite
from airflow_provider_pgtrickle.engine.dvm.lower.carriers import Kind, carrier_of, decimal
from airflow_provider_pgtrickle.engine.dvm.lower.closed import NotClosed, close, close_predicate

ENV = {
    "s": carrier_of("smallint"),
    "i": carrier_of("integer"),
    "b": carrier_of("bigint"),
    "d": carrier_of("numeric(10,2)"),
    "e": carrier_of("numeric(12,4)"),
    "wide": carrier_of("numeric(38,10)"),
    "n": carrier_of("numeric"),
    "f": carrier_of("double precision"),
    "t": carrier_of("text"),
    "c": carrier_of("character(5)"),
    "day": carrier_of("date"),
    "at": carrier_of("timestamp with time zone"),
    "j": carrier_of("jsonb"),
    "ok": carrier_of("boolean"),
}


def _bound(text: str) -> exp.Expr:
    return rewrite(
        sqlglot.parse_one(text, read="postgres"), lambda n: column(n.name) if isinstance(n, exp.Column) else None
    )


@pytest.mark.parametrize(
    ("expression", "spark"),
    [
        ("i", "int"),
        ("i + b", "bigint"),
        ("i * 2", "int"),
        ("-b", "bigint"),
        ("d + e", "decimal(13,4)"),
        ("d - i", "decimal(13,2)"),
        ("d * e", "decimal(23,6)"),
        ("d * (1 - d)", "decimal(24,4)"),
        ("d * i", "decimal(21,2)"),
        ("1.5", "decimal(2,1)"),
        ("0.05", "decimal(2,2)"),
        ("4000000000", "bigint"),
        ("coalesce(d, 0)", "decimal(12,2)"),
        ("CASE WHEN i > 1 THEN d ELSE 0 END", "decimal(12,2)"),
        ("CASE WHEN ok THEN 1 END", "int"),
        ("greatest(i, b)", "bigint"),
        ("i::bigint", "bigint"),
        ("d::numeric", "decimal(10,2)"),
        ("d::numeric(14,4)", "decimal(14,4)"),
        ("'x'::text", "string"),
        ("NULL::integer", "void"),
        ("count(*)", "bigint"),
        ("count(t)", "bigint"),
        ("count(DISTINCT day)", "bigint"),
        ("sum(i)", "bigint"),
        ("sum(b)", "decimal(38,0)"),
        ("sum(d)", "decimal(20,2)"),
        ("sum(d) FILTER (WHERE t = t)", "decimal(20,2)"),
        ("min(d)", "decimal(10,2)"),
        ("max(i)", "int"),
    ],
)
def test_is_closed_with_its_type(expression: str, spark: str) -> None:
    _, carrier = close(_bound(expression), ENV)
    assert carrier.spark == spark


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("i / 2", "PostgreSQL's division of integers truncates, Spark's does not"),
        ("i % 2", "the sign of a remainder and its zero divisor"),
        ("d / 3", "the digits of a quotient"),
        ("s + 1", "a smallint overflows earlier in PostgreSQL"),
        ("wide * wide", "Spark would drop digits after the point"),
        ("f + 1", "floats add up in other orders"),
        ("sum(f)", "floats add up in other orders"),
        ("avg(d)", "the digits of a quotient"),
        ("sum(DISTINCT i)", "not on the list"),
        ("min(t)", "text has a collation"),
        ("t > t", "text has a collation"),
        ("t < 'a'::text", "text has a collation"),
        ("t = c", "char(n) is compared without its padding"),
        ("day < day", "dates travel as text"),
        ("t || 'x'::text", "not on the list"),
        ("upper(t)", "not on the list"),
        ("t LIKE '%a'", "not on the list"),
        ("j = j", "jsonb is carried, never looked at"),
        ("n = n", "numeric without precision is carried, never looked at"),
        ("sum(n)", "numeric without precision is carried, never looked at"),
        ("'x'", "a literal of unknown type"),
        ("greatest(t, t)", "text has a collation"),
        ("CASE i WHEN 1 THEN 2 END", "not on the list"),
        ("coalesce(d, e)", "a value's own digits would change"),
        ("nullif(i, 1)", "not on the list"),
        ("d::numeric(10,1)", "rounding"),
        ("d::integer", "rounding"),
        ("i IN (SELECT i)", "a subquery"),
    ],
)
def test_is_not_closed(expression: str, why: str) -> None:
    with pytest.raises(NotClosed):
        close(_bound(expression), ENV)


@pytest.mark.parametrize(
    "predicate", ["i = b", "d > 1.50", "t = t", "day = day", "NOT ok", "t IS NULL", "i = 1 AND (d < e OR at <> at)"]
)
def test_predicates_that_are_closed(predicate: str) -> None:
    assert close_predicate(_bound(predicate), ENV) is not None


@pytest.mark.parametrize("predicate", ["i", "i + 1", "t"])
def test_only_booleans_are_predicates(predicate: str) -> None:
    with pytest.raises(NotClosed):
        close_predicate(_bound(predicate), ENV)


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("integer", Kind.INT),
        ("numeric(38,10)", Kind.DEC),
        ("numeric(39,10)", Kind.OPAQUE),
        ("numeric", Kind.OPAQUE),
        ("numeric(10,-2)", Kind.OPAQUE),
        ("double precision", Kind.OPAQUE),
        ("character varying(20)", Kind.TEXT),
        ("character(3)", Kind.KEY),
        ("timestamp(3) with time zone", Kind.KEY),
        ("uuid", Kind.KEY),
        ("integer[]", Kind.OPAQUE),
        ("bytea", Kind.OPAQUE),
        ("interval", Kind.OPAQUE),
    ],
)
def test_how_a_type_travels(type_name: str, kind: Kind) -> None:
    assert carrier_of(type_name).kind is kind


@pytest.mark.parametrize(
    ("precision", "scale", "spark"),
    [(38, 10, "decimal(38,10)"), (39, 6, "decimal(38,6)"), (39, 7, None), (60, 0, "decimal(38,0)")],
)
def test_a_result_wider_than_38_digits_keeps_six_after_the_point(precision: int, scale: int, spark: str | None) -> None:
    made = decimal(precision, scale)
    assert (made.spark if made else None) == spark
