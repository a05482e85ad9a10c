"""Two values of a stored column are the same by its type's equality, by their image, or by their text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.types import as_text, is_compared, is_its_image
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection

_DESCRIBE = """
WITH RECURSIVE kind(attnum, typid, depth) AS (
    SELECT attnum, atttypid, 0 FROM pg_catalog.pg_attribute
     WHERE attrelid = %(table)s::pg_catalog.regclass AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT k.attnum, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END, depth + 1
      FROM kind k JOIN pg_catalog.pg_type t ON t.oid = k.typid
     WHERE t.typtype = 'd' OR (t.typcategory = 'A' AND t.typelem <> 0)
)
SELECT DISTINCT ON (a.attnum)
       a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
            THEN pg_catalog.format_type(t.oid, CASE WHEN k.depth = 0 THEN a.atttypmod END) END,
       t.typtype, coalesce(c.collisdeterministic, true),
       -- Without its modifier, of which an expression may lose sight.
       pg_catalog.format_type(a.atttypid, -1) || CASE WHEN a.attcollation = own.typcollation THEN ''
            ELSE ' COLLATE ' || a.attcollation::pg_catalog.regcollation::text END
  FROM kind k
  JOIN pg_catalog.pg_type t ON t.oid = k.typid
  JOIN pg_catalog.pg_attribute a ON a.attrelid = %(table)s::pg_catalog.regclass AND a.attnum = k.attnum
  JOIN pg_catalog.pg_type own ON own.oid = a.atttypid
  LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
 ORDER BY a.attnum, k.depth DESC
"""


@dataclass(frozen=True)
class Column:
    """A stored column, and the way in which its values are compared."""

    name: str
    type: str
    equality: bool
    """The type can stand in GROUP BY. `json`, `xml` and `point` can't; their values are the same if their texts are."""
    exact: bool
    """Equal values also look the same."""
    passed: str = ""
    """The type and the collation of the column where a function returns it."""

    def of(self, relation: str) -> sql.Identifier:
        return sql.Identifier(relation, self.name)

    def text(self, relation: str) -> sql.Composed:
        """The value's text, which is compared byte by byte whatever the column's collation is."""
        value = self.of(relation).as_string(None)
        return sql.SQL('({} COLLATE "C")').format(sql.SQL(as_text(value, self.type)))

    def grouping(self, relation: str) -> list[sql.Composable]:
        """The expressions to group by, so that a group's values are equal and look the same."""
        return ([self.of(relation)] if self.equality else []) + ([] if self.exact else [self.text(relation)])

    def grouped(self, relation: str) -> sql.Composable:
        """The value of a group."""
        if self.equality:
            return self.of(relation)
        # All texts of a group are the same, so the least of them is the text. The type is PostgreSQL's own
        # `format_type` text.
        return sql.SQL("min({})::{} AS {}").format(self.text(relation), sql.SQL(self.type), sql.Identifier(self.name))

    def partition(self, relation: str) -> sql.Composable:
        """An expression that is the same for equal values, even if they look different."""
        return self.of(relation) if self.equality else self.text(relation)

    def same(self, left: str, right: str) -> sql.Composable:
        """The condition that two rows agree in this column; NULL agrees with NULL."""
        return sql.SQL("{} IS NOT DISTINCT FROM {}").format(self.partition(left), self.partition(right))

    def indistinct(self, left: str, right: str) -> sql.Composable:
        """The condition that two values are equal and look the same, as in one group of `grouping`."""
        if self.exact:
            return self.same(left, right)
        # Most are the same byte for byte, which is tested first, because to write them as text takes long.
        alike = sql.SQL("({} OR {} IS NOT DISTINCT FROM {})").format(
            look_alike([self], left, right), self.text(left), self.text(right)
        )
        return sql.SQL("{} AND {}").format(self.same(left, right), alike) if self.equality else alike


def describe(conn: Connection, table: sql.Identifier, names: Iterable[str]) -> tuple[Column, ...]:
    """The named columns of a table, in the order of `names`."""
    found = {
        name: _column(name, type_, base, kind, deterministic, passed)
        for name, type_, base, kind, deterministic, passed in conn.execute(_DESCRIBE, {"table": table.as_string(conn)})
    }
    return tuple(found[name] for name in names)


def agree(columns: Iterable[Column], left: str, right: str) -> sql.Composed:
    """The condition that two rows agree in all the columns."""
    return sql.SQL(" AND ").join([column.same(left, right) for column in columns] or [sql.SQL("true")])


def look_alike(columns: Iterable[Column], left: str, right: str) -> sql.Composed:
    """The condition that two rows are the same byte for byte."""
    # The rows are cast, because a bare ROW() on both sides would be compared column by column.
    rows = [
        sql.SQL("ROW({})::record").format(sql.SQL(", ").join(c.of(side) for c in columns)) for side in (left, right)
    ]
    return sql.SQL(" *= ").join(rows)


def _column(name: str, type_: str, base: str | None, kind: str, deterministic: bool, passed: str) -> Column:
    is_known, is_image = base is not None and is_compared(base), base is not None and is_its_image(base)
    exact = (is_image or kind == "e") and deterministic
    return Column(name, type_, exact or is_known or kind in ("r", "m"), exact, passed)
