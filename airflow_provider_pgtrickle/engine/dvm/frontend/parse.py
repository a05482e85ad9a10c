"""Canonical text is parsed to a sqlglot tree."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_provider_pgtrickle.engine.dvm.budget import MAX_JOINS, check_words, too_large
from airflow_provider_pgtrickle.engine.dvm.dialect import CANONICAL, Constant, walk_of
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused

_CLAUSES = (exp.Filter, exp.WithinGroup)

#: A constant of so many characters or more is not parsed.
_LONG = 1_000
_TYPE = (
    r'::(?:"(?:[^"]|"")*+"|[a-z]++)(?:\."(?:[^"]|"")*+")?'
    r"(?: (?:precision|varying|with|without|time|zone))*+(?:\([\d,]++\))?(?:\[\])*+"
)
_STRING = r"[EBX]?'[^']*+(?:''[^']*+)*+'"
_PLAIN = rf"(?:\(?-?\d[\d.e+-]*+\)?|{_STRING}|NULL|true|false)(?:{_TYPE})*+"
#: This matches quoted names, too, in order to skip them: a quote inside a name begins no string.
_APART = re.compile(rf'"[^"]*+"|(?P<constant>{_STRING}|ARRAY\[{_PLAIN}(?:, {_PLAIN})*+\])')


def parse(text: str) -> exp.Query:
    """Return the one query in `text`."""
    tree = _values_written_out(read(text))
    _qualify_calls(tree)
    if sum(1 for _ in tree.find_all(exp.Join)) > MAX_JOINS:
        raise too_large("joins", MAX_JOINS)
    if not isinstance(tree, exp.Query):
        raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{type(tree).__name__} is no query")
    return tree


def read(text: str) -> exp.Expr:
    """Return the tree of `text` before anything is changed in it."""
    short, constants = _set_apart(text)
    check_words(short)
    try:
        tree = sqlglot.parse_one(short, read=CANONICAL)
    except RecursionError:
        raise Refused(Reason.TOO_LARGE, "nested too deeply", "It runs FULL; or split the query.") from None
    except SqlglotError as error:
        if "recursion depth" in str(error):
            raise Refused(Reason.TOO_LARGE, "nested too deeply", "It runs FULL; or split the query.") from None
        raise Refused(Reason.UNSUPPORTED_SYNTAX, str(error).splitlines()[0][:200]) from None
    if constants:
        for node in list(tree.find_all(exp.Literal)):
            if node.is_string and node.name in constants:
                node.replace(Constant(this=constants[node.name]))
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    return tree


def _set_apart(text: str) -> tuple[str, dict[str, str]]:
    """Return the text with a short name for each long constant, and the constants, which the algebra never looks into.

    a = ANY (ARRAY[1, 2, …])  →  a = ANY ('__pgt_constant_1')
    """
    constants: dict[str, str] = {}
    if len(text) < _LONG or "__pgt_constant_" in text:
        return text, constants

    def name(found: re.Match[str]) -> str:
        constant = found["constant"]
        if constant is None or len(constant) < _LONG:
            return found[0]
        constants[f"__pgt_constant_{len(constants) + 1}"] = constant
        return f"'{next(reversed(constants))}'"

    return _APART.sub(name, text), constants


def output_names(query: exp.Expr) -> list[str]:
    """Return the names of a query's columns as PostgreSQL gives them: those of its first branch."""
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.this
    return [i.alias_or_name or "?column?" for i in query.expressions]


def item_names(item: exp.CTE) -> list[str]:
    """Return the names of a WITH item's columns: first those that its alias gives, then its query's own, last those
    that SEARCH and CYCLE add."""
    given = [identifier.name for identifier in item.args["alias"].args.get("columns") or []]
    walk = walk_of(item)
    return [*given, *output_names(item.this)[len(given) :], *(walk.added if walk else ())]


def _values_written_out(tree: exp.Expr) -> exp.Expr:
    """Replace each VALUES that stands for a query by the SELECT that PostgreSQL takes it for."""
    for values in list(tree.find_all(exp.Values)):
        if values.alias or isinstance(values.parent, exp.Table):
            continue
        names = [f"column{n}" for n in range(1, len(values.expressions[0].expressions) + 1)]
        alias = exp.TableAlias(
            this=exp.to_identifier("*VALUES*", quoted=True), columns=[exp.to_identifier(n, quoted=True) for n in names]
        )
        select = exp.Select(
            expressions=[exp.column(n, table="*VALUES*", quoted=True) for n in names],
            **{clause: values.args.get(clause) for clause in ("with_", "order", "limit", "offset")},
        )
        parent = values.parent
        if isinstance(parent, exp.In):
            parent.set("expressions", None)
            parent.set("query", exp.Subquery(this=select))
        elif parent is None:
            tree = select
        else:
            values.replace(select)
        rows = exp.Values(expressions=values.expressions, alias=alias)
        select.set("from_", exp.From(this=rows))
    return tree


def _qualify_calls(tree: exp.Expr) -> None:
    """Make own.agg(a) FILTER (…) filter a call of own.agg; sqlglot parses it as a column of `own`."""
    for node in list(tree.find_all(exp.Column, exp.Dot)):
        clause = node.this if isinstance(node, exp.Column) else node.expression
        if not isinstance(clause, _CLAUSES):
            continue
        innermost = clause
        while isinstance(innermost.this, _CLAUSES):
            innermost = innermost.this
        schema = node.args["table"] if isinstance(node, exp.Column) else node.this
        innermost.set("this", exp.Dot(this=schema, expression=innermost.this))
        node.replace(clause)
