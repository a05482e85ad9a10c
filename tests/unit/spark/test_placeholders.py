"""Question marks as the JDBC driver reads them."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.spark.leaf import escape_placeholders


@pytest.mark.parametrize("operator", ["?", "?|", "?&", "@?", "?-", "?#", "?||"])
def test_an_operators_question_mark_is_doubled(operator):
    assert escape_placeholders(f"SELECT a {operator} b") == f"SELECT a {operator.replace('?', '??')} b"


@pytest.mark.parametrize(
    "text", ["'?'", "'it''s ?'", r"E'\'?'", "$$?$$", "$q$ ? $$ ? $q$", '"a?"', "/* ? */ a", "a -- ?\n", "U&'?'"]
)
def test_a_question_mark_in_a_string_a_name_or_a_comment_is_kept(text):
    assert escape_placeholders(f"SELECT {text}") == f"SELECT {text}"
