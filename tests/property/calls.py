"""Calls of functions, operators and aggregates, drawn from what the server has: `pg_proc` and `pg_operator`.

Only what is immutable, and what has a value for every value of the pools: where PostgreSQL refuses a row, nothing
can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import psycopg
from hypothesis import strategies as st
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.references import STEADY
from tests.property import kinds
from tests.property.kinds import Column, Kind, key

#: The columns that fit an argument of a type, and what a result of the type is, the first of them.
_BY_TYPE: dict[str, tuple[Kind, ...]] = {
    "integer": (kinds.INT, kinds.POSITIVE),
    "smallint": (kinds.SMALL,),
    "bigint": (kinds.BIGINT,),
    "numeric": (kinds.NUMERIC, kinds.MONEY, kinds.FIXED),
    "double precision": (kinds.ROUGH, kinds.FLOAT),
    "text": (kinds.TEXT, kinds.VARCHAR, kinds.LABEL, kinds.CHAR),
    "character": (kinds.CHAR,),
    "boolean": (kinds.BOOL,),
    "date": (kinds.DATE,),
    "bit": (kinds.BIT,),
    "bit varying": (kinds.VARBIT,),
    "int4range": (kinds.RANGE,),
    "int4multirange": (kinds.MULTIRANGE,),
    "integer[]": (kinds.INTS,),
    "text[]": (kinds.ARRAY,),
    "json": (kinds.JSON,),
    "jsonb": (kinds.JSONB,),
    "inet": (kinds.INET, kinds.CIDR),
    "cidr": (kinds.CIDR,),
    "uuid": (kinds.UUID,),
    "bytea": (kinds.BYTES,),
    "timestamp without time zone": (kinds.TIMESTAMP,),
    "timestamp with time zone": (kinds.TIMESTAMPTZ,),
    "time without time zone": (kinds.TIME,),
    "interval": (kinds.INTERVAL,),
    "anyelement": (kinds.INT,),
    "anynonarray": (kinds.INT,),
    "anyarray": (kinds.INTS,),
    "anycompatible": (kinds.INT,),
    "anycompatiblearray": (kinds.INTS,),
    "anyrange": (kinds.RANGE,),
    "anymultirange": (kinds.MULTIRANGE,),
    "anyenum": (kinds.MOOD,),
}
#: What expressions make of the pools' values.
_BEYOND = {
    "double precision": ("0", "-1", "-0.5", "4000000000", "1e30"),
    "numeric": ("0", "-1", "4000000000", "1e30"),
    "integer": ("-3", "12", "100"),
    "bigint": ("-3", "-4000000000", "100"),
    "text": ("' '", "'é'", "'a,b'", "'\\'"),
}
#: Equal bits of these may look different, or they are of no fixed length: handed on only.
_OPAQUE = ("character", "bit", "bit varying", "character varying")

# Names of which some overload is volatile are left out: the oracle's own declaration looks at names alone.
_FUNCTIONS = """
SELECT p.proname, p.prokind, array(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n)
       ORDER BY n), format_type(p.prorettype, NULL)
FROM pg_proc p JOIN pg_type r ON r.oid = p.prorettype AND (r.typtype <> 'p' OR r.typname LIKE 'any%%')
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.provariadic = 0 AND NOT p.proretset AND p.pronargs > 0
  AND p.provolatile = 'i' AND p.prokind IN ('f', 'a')
  AND (p.prokind = 'f' OR (SELECT aggkind FROM pg_aggregate WHERE aggfnoid = p.oid) = 'n')
  AND NOT EXISTS (SELECT FROM pg_proc o WHERE o.proname = p.proname AND o.provolatile <> 'i'
                  AND NOT (o.provolatile = 's' AND o.proname = ANY (%s)))
ORDER BY p.proname, p.oid"""
_OPERATORS = """
SELECT o.oprname, CASE WHEN o.oprleft <> 0 THEN ARRAY[format_type(o.oprleft, NULL)] ELSE '{}' END
       || format_type(o.oprright, NULL), format_type(o.oprresult, NULL)
FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND p.provolatile = 'i' ORDER BY o.oprname, o.oid"""


@dataclass(frozen=True)
class Signature:
    form: str
    arguments: tuple[str, ...]
    result: Kind
    is_aggregate: bool = False


@dataclass
class Known:
    """What the server of this session has, once `learn` asked it."""

    functions: tuple[Signature, ...] = ()
    aggregates: tuple[Signature, ...] = ()


KNOWN = Known()


def learn(conn: psycopg.Connection) -> None:
    """Ask for all signatures over the types of the pools, and try each on all of its values."""
    found: list[Signature] = []
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL statement_timeout = '10s'")
        conn.execute("CREATE SCHEMA types_of_the_pools")
        conn.execute("SET LOCAL search_path = types_of_the_pools")
        for statement in kinds.TYPES:
            conn.execute(statement)
        found.extend(s for s in _signatures(conn) if _is_total(conn, s))
    KNOWN.functions = tuple(s for s in found if not s.is_aggregate)
    KNOWN.aggregates = tuple(s for s in found if s.is_aggregate)
    _fitting.cache_clear()


def _signatures(conn: psycopg.Connection) -> Iterator[Signature]:
    for name, kind, arguments, result in conn.execute(_FUNCTIONS, (list(STEADY | {"age"}),)).fetchall():
        call = f"pg_catalog.{sql.Identifier(name).as_string(conn)}"
        listed = ", ".join(["{}"] * len(arguments))
        # An aggregate that isn't told an order gives whatever the order of rows makes of it.
        form = f"{call}({listed} ORDER BY {listed})" if kind == "a" else f"{call}({listed})"
        if all(a in _BY_TYPE for a in arguments):
            yield Signature(form, tuple(arguments), _result(arguments, result), kind == "a")
    for name, arguments, result in conn.execute(_OPERATORS).fetchall():
        if all(a in _BY_TYPE for a in arguments):
            form = f"({{}} {name} {{}})" if len(arguments) == 2 else f"({name} {{}})"
            yield Signature(form, tuple(arguments), _result(arguments, result))


def _result(arguments: list[str], result: str) -> Kind:
    if result in _OPAQUE or result not in _BY_TYPE:
        return Kind(result, (), comparable=False)
    return _BY_TYPE[result][0]


def _is_total(conn: psycopg.Connection, signature: Signature) -> bool:
    pools = [
        tuple(dict.fromkeys((*(v for kind in _BY_TYPE[a] for v in kind.literals), *_BEYOND.get(a, ()), "NULL")))
        for a in signature.arguments
    ]
    casts = [_argument_type(a) for a in signature.arguments]
    tables = ", ".join(
        f"(VALUES {', '.join(f'(({v})::{cast})' for v in pool)}) AS v{n}(x)"
        for n, (pool, cast) in enumerate(zip(pools, casts, strict=True))
    )
    call = _filled(signature, [f"v{n}.x" for n in range(len(pools))])
    try:
        with conn.transaction():
            conn.execute(f"SELECT count(({call})::text) FROM {tables}" if not signature.is_aggregate else
                         f"SELECT ({call})::text FROM {tables}")  # fmt: skip
    except psycopg.Error:
        return False
    return True


def _argument_type(argument: str) -> str:
    return argument if not argument.startswith("any") else _BY_TYPE[argument][0].type


def _filled(signature: Signature, arguments: list[str]) -> str:
    return (
        signature.form.format(*arguments, *arguments) if signature.is_aggregate else signature.form.format(*arguments)
    )


@cache
def _fitting(kind: Kind, is_aggregate: bool) -> tuple[tuple[Signature, int], ...]:
    """Which argument of which signature a column of the kind may be."""
    known = KNOWN.aggregates if is_aggregate else KNOWN.functions
    return tuple((s, n) for s in known for n, a in enumerate(s.arguments) if kind in _BY_TYPE[a])


@st.composite
def calls(draw: st.DrawFn, columns: tuple[Column, ...], *, is_aggregate: bool = False) -> Column | None:
    """A call over one or several of the columns, literals for the rest; None where nothing takes any of them."""
    column = draw(st.sampled_from(columns))
    if is_aggregate:
        column = key(column)
        columns = tuple(c for c in columns if c.kind.comparable and c.kind.told_apart is None)
    found = _fitting(column.kind, is_aggregate)
    if not found:
        return None
    signature, position = draw(st.sampled_from(found))
    arguments = []
    for number, argument in enumerate(signature.arguments):
        fitting = [c for c in columns if c.kind in _BY_TYPE[argument]]
        if number == position:
            given = column.name
        elif bool(fitting) and draw(st.booleans()):
            given = draw(st.sampled_from(fitting)).name
        else:
            given = draw(_BY_TYPE[argument][0].literal())
        arguments.append(f"({given})::{_argument_type(argument)}")
    return Column(_filled(signature, arguments), signature.result)
