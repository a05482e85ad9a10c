"""Canonical text to a sqlglot tree."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused


def parse(text: str) -> exp.Query:
    """The one query in `text`."""
    try:
        tree = sqlglot.parse_one(text, read="postgres")
    except RecursionError:
        raise Refused(Reason.TOO_LARGE, "nested too deeply", "It runs FULL; or split the query.") from None
    except SqlglotError as error:
        if "recursion depth" in str(error):
            raise Refused(Reason.TOO_LARGE, "nested too deeply", "It runs FULL; or split the query.") from None
        raise Refused(Reason.UNSUPPORTED_SYNTAX, str(error).splitlines()[0][:200]) from None
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    if not isinstance(tree, exp.Query):
        raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{type(tree).__name__} is no query")
    return tree
