"""`__pgt_row_id`: XXH64 (seed 42) of a canonical text of a row's identity columns.

PostgreSQL builds the text, and whoever holds it computes the hash: Spark by `xxhash64`, Python by `row_id` here.
Each value is `V<length>:<text>` and NULL is `N`, so no two tuples share a text. Equal values have equal
texts: trailing zeros of numerics and the sign of a float's zero are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import xxhash

from airflow_provider_pgtrickle.engine.dvm.emit import quote
from airflow_provider_pgtrickle.engine.dvm.types import base_type

SEED = 42


def canonical_sql(columns: Sequence[tuple[str, str]], alias: str) -> str:
    """Return the SQL of the canonical text of (name, type) columns of `alias`."""
    if not columns:
        return "''::text"
    return " || ".join(_value_sql(f"{alias}.{quote(name)}", type_name) for name, type_name in columns)


def _value_sql(column: str, type_name: str) -> str:
    """Return one value's SQL. It doesn't use IS NULL, which holds for ROW(NULL, NULL), too, though that is no NULL."""
    text = _text_sql(column, base_type(type_name))
    return f"CASE WHEN {column} IS NOT DISTINCT FROM NULL THEN 'N' ELSE 'V' || length({text}) || ':' || {text} END"


def _text_sql(column: str, base: str) -> str:
    if base == "numeric":
        return f"trim_scale({column})::text"
    if base in ("double precision", "real"):
        return f"({column} + 0)::text"
    if base == "citext":
        return f"lower({column}::text)"
    return f"{column}::text"


def server_row_id_sql(columns: Sequence[tuple[str, str]], alias: str) -> str:
    """Return the SQL of a row id that the server computes. Writers maintain IMMEDIATE tables, and have no XXH64."""
    return f'hashtextextended(({canonical_sql(columns, alias)}) COLLATE "C", {SEED})'


def canonical(texts: Iterable[str | None]) -> str:
    """Return the canonical text of values that are already written as PostgreSQL writes them.

    >>> canonical(["a", None, ""])
    'V1:aNV0:'
    """
    return "".join("N" if t is None else f"V{len(t)}:{t}" for t in texts)


def row_id(text: str) -> int:
    """Return the signed 64-bit hash of a canonical text.

    >>> row_id("")
    -7444071767201028348
    """
    value: int = xxhash.xxh64_intdigest(text.encode(), SEED)
    return value - (1 << 64) if value >= 1 << 63 else value
