"""Names are read as PostgreSQL reads them, and bad ones are refused before they reach it."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("totals", QualifiedName("public", "totals")),
        ("Totals", QualifiedName("public", "totals")),
        ("sales.totals", QualifiedName("sales", "totals")),
        ("  sales . totals ", QualifiedName("sales", "totals")),
        ('"Sales"."My totals"', QualifiedName("Sales", "My totals")),
        ('sales."a.b"', QualifiedName("sales", "a.b")),
        ("ÄÖ_Ä", QualifiedName("public", "ÄÖ_Ä")),
        ("select", QualifiedName("public", "select")),
        ("x" * 63, QualifiedName("public", "x" * 63)),
    ],
)
def test_a_name_is_parsed_as_postgresql_would(text, expected):
    assert QualifiedName.parse(text) == expected


def test_an_unqualified_name_takes_the_default_schema():
    assert QualifiedName.parse("t", default_schema="Shop") == QualifiedName("Shop", "t")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ('""', "is empty"),
        ('s.""', "is empty"),
        ("a.b.c", "is not a name"),
        ("a b", "is not a name"),
        ("a.", "is not a name"),
        ('"a""b"', "is not a name"),
        ('a"b', "is not a name"),
        ("a'b", "holds a quote"),
        ("a\0b", "NUL"),
        ("x" * 64, "longer than 63 bytes"),
        ("é" * 32, "longer than 63 bytes"),
        ("__pgt_x", "reserved"),
        ('"__pgt_x"', "reserved"),
    ],
)
def test_a_bad_name_is_refused_with_a_reason(text, words):
    with pytest.raises(UsageError, match=words):
        QualifiedName.parse(text)


def test_quoting_doubles_quotes_of_names_that_came_from_the_catalog():
    assert QualifiedName("s", 'we"ird').quoted == '"s"."we""ird"'


def test_str_is_for_people():
    assert str(QualifiedName("Sales", "My totals")) == "Sales.My totals"
