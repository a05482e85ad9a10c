"""Which types' equality means sameness: the one list of it, held against PostgreSQL."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.types import is_compared, is_its_image

SPELLINGS = {
    "smallint": "0 -0 +1 01 1",
    "integer": "0 -0 +1 01 1",
    "bigint": "0 -0 +1 01 1",
    "boolean": "t true yes on f 0",
    "text": "a A b",
    "character varying": "a A b",
    "name": "a A b",
    '"char"': "a A b",
    "date": "2024-02-29 20240229 infinity",
    "timestamp without time zone": "2024-01-01T00:00 2024-01-01T00:00:00.000 infinity",
    "timestamp with time zone": "2024-01-01T00:00+00 2024-01-01T01:00+01 infinity",
    "time without time zone": "00:00 00:00:00.000 24:00",
    "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 {A0EEBC999C0B4EF8BB6D6BB9BD380A11}",
    "bytea": r"\x61 a \x00",
    "oid": "1 01 2",
    "inet": "10.0.0.1 10.0.0.1/32 10.0.0.1/24 10.0.0.0/24 ::1 ::1/128 0:0::1 ::ffff:10.0.0.1",
    "cidr": "10 10.0.0.0/8 10.0.0.1/32 10.0.0.1 ::1 ::1/128",
    "macaddr": "08:00:2b:01:02:03 08-00-2B-01-02-03 0800.2b01.0203",
    "xid8": "1 01 2",
    "pg_lsn": "0/1 0/01 1/0",
}
LOOSE = {
    "numeric": "1 1.0 1.00",
    "real": "0 -0",
    "double precision": "0 -0",
    "interval": "24h 1d",
    "character": "a",
    "jsonb": "1 1.0",
}


def pairs(conn: psycopg.Connection, type_name: str, spellings: str) -> list[tuple[str, str]]:
    """Spellings that are equal, and look unlike."""
    statement = sql.SQL(
        "SELECT a::text, b::text FROM (SELECT s::{t} FROM unnest(%(s)s::text[]) AS s) AS x (a),"
        " (SELECT s::{t} FROM unnest(%(s)s::text[]) AS s) AS y (b) WHERE a = b AND a::text <> b::text"
    ).format(t=sql.SQL(type_name))
    return conn.execute(statement, {"s": spellings.split()}).fetchall()


@pytest.mark.parametrize("type_name", SPELLINGS)
def test_equal_values_of_these_types_look_alike(any_dsn: str, type_name: str) -> None:
    assert is_its_image(type_name)
    assert is_compared(type_name)
    with psycopg.connect(any_dsn) as conn:
        assert pairs(conn, type_name, SPELLINGS[type_name]) == []


@pytest.mark.parametrize("type_name", LOOSE)
def test_equal_values_of_other_types_may_not(any_dsn: str, type_name: str) -> None:
    assert not is_its_image(type_name)
    assert is_compared(type_name)
    if type_name == "character":  # whose blanks a cast to text drops
        return
    with psycopg.connect(any_dsn) as conn:
        assert pairs(conn, type_name, LOOSE[type_name]) != []


def test_every_type_of_the_list_is_tried() -> None:
    from airflow_provider_pgtrickle.engine.dvm import types

    assert set(SPELLINGS) == types._IMAGES
