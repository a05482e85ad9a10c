"""Functions and views of others behind a query: code that they may change, and that refreshes run.

The role itself, superusers and roles that may act as it have these rights anyway. The code of every other owner is
accepted as it is when the query is declared; a change has to be accepted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog.functions import CALLED
from airflow_provider_pgtrickle.engine.errors import PermissionFault

# A function can do whatever the functions that it calls can do.
_FOREIGN = f"""
    WITH RECURSIVE {CALLED}
    SELECT DISTINCT p.oid::bigint, 'the function ' || p.oid::regprocedure::text, pg_catalog.pg_get_userbyid(p.proowner),
           md5(concat_ws('|', p.prosrc, p.probin, p.prosqlbody::text, p.proconfig::text, p.prosecdef, p.prolang,
                         (SELECT a::text FROM pg_catalog.pg_aggregate a WHERE a.aggfnoid = p.oid)))
    FROM called c JOIN pg_catalog.pg_proc p ON p.oid = c.oid
    WHERE NOT pg_catalog.pg_has_role(p.proowner, current_user::name, 'MEMBER')
    UNION ALL
    SELECT c.oid::bigint, 'the view ' || c.oid::regclass::text, pg_catalog.pg_get_userbyid(c.relowner),
           md5(concat_ws('|', c.reloptions::text, r.ev_action::text))
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid AND r.rulename = '_RETURN'
    WHERE c.oid = ANY(%(views)s) AND NOT pg_catalog.pg_has_role(c.relowner, current_user::name, 'MEMBER')
    ORDER BY 2
"""  # noqa: S608 - two constants


@dataclass(frozen=True)
class ForeignCode:
    oid: int
    name: str
    """`the function f(integer)` or `the view v`, with its schema."""
    owner: str
    digest: str
    """A digest of its definition, which differs when the code was replaced."""


def foreign_code(conn: Connection, functions: Iterable[int], views: Iterable[int]) -> tuple[ForeignCode, ...]:
    """Those functions and views whose owner is neither the session's role nor somebody who has its rights anyway."""
    oids = {"oids": list(functions), "views": list(views)}
    return tuple(ForeignCode(*row) for row in conn.execute(_FOREIGN, oids)) if any(oids.values()) else ()


def refuse_unaccepted(found: Iterable[ForeignCode], accepted: Mapping[str, str] | None) -> None:
    """Raise an error for code that was not accepted, before any of it runs. `accepted` is None if none was recorded."""
    if accepted is None:
        return
    for code in found:
        if accepted.get(str(code.oid)) != code.digest:
            raise PermissionFault(
                f"{code.name[:1].upper()}{code.name[1:]} of role {code.owner} is not what it was when this was"
                " declared, and would run with the rights of the refreshing role",
                remedy="Look at it, and accept it as it is now with `pgtrickle alter NAME --accept` (accept=True).",
            )


def notices(found: Iterable[ForeignCode]) -> tuple[str, ...]:
    """What a declaration's author should know about this code."""
    return tuple(
        f"{code.name[:1].upper()}{code.name[1:]} of role {code.owner} runs with the rights of who refreshes;"
        " when that role changes it, refreshes stop until it is accepted again"
        for code in found
    )
