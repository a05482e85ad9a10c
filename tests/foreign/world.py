"""The database that the queries of this folder read, and the changes that it goes through.

Values come from small pools, so that rows join, tie and repeat. Floats are sums of quarters: adding them up is exact in
every order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
Pool = tuple[str, ...]

_IDS = tuple(str(n) for n in range(1, 13))
_FEW = ("1", "2", "3", "4", "NULL")
_SMALL = ("0", "1", "2", "3", "5", "-1", "NULL")
_WORDS = ("''", "'a'", "'ab'", "'abc'", "'xbx'", "'B'", "' a '", "NULL")
_SHORT = ("'a'", "'ab'", "'cd'", "'abc'", "NULL")
_DAYS = ("'2020-01-01'", "'2020-01-02'", "'2020-01-05'", "'2020-03-01'", "NULL")
_MOODS = ("'sad'", "'calm'", "'glad'", "NULL")
_BOOLS = ("true", "false", "NULL")
_QUARTERS = ("0", "0.25", "1.5", "-2.75", "10", "NULL")
_NUMBERS = ("1", "1.0", "1.00", "2.5", "-3.25", "0", "NULL")

#: Column by column, what its values are drawn from. The first column of a table with a key is the key.
TABLES: dict[str, dict[str, Pool]] = {
    "dept": {
        "id": ("1", "2", "3", "4", "5", "6"),
        "name": ("'north'", "'south'", "'east'", "'west'"),
        "code": ("'a'", "'b'", "'abc'", "NULL"),
        "budget": ("100.00", "250.50", "40.00", "NULL"),
        "parent": _FEW,
        "mood": _MOODS,
    },
    "emp": {
        "id": _IDS,
        "dept": _FEW,
        "boss": _FEW,
        "name": ("'ann'", "'bob'", "'cyd'", "'dan'", "'Ann'", "'north'"),
        "grade": _SMALL,
        "salary": ("10.00", "42.50", "60.00", "60.00", "99.99", "NULL"),
        "hired": _DAYS,
        "active": _BOOLS,
        "nick": _SHORT,
    },
    "item": {"a": _FEW, "b": _FEW, "c": ("1", "2", "7", "10", "NULL"), "d": ("'p'", "'q'", "NULL")},
    "wide": {
        "id": ("1", "2", "3", "4", "5", "6", "7", "8"),
        "i2": _SMALL,
        "i8": ("1", "2", "4000000000", "-7", "NULL"),
        "n": _NUMBERS,
        "f8": _QUARTERS,
        "f4": _QUARTERS,
        "t": _WORDS,
        "v": _SHORT,
        "c": ("'a'", "'ab'", "'ab  '", "NULL"),
        "bits": ("B'0000'", "B'0101'", "B'1111'", "NULL"),
        "vb": ("B''", "B'01'", "B'010'", "NULL"),
        "ok": _BOOLS,
        "day": _DAYS,
        "ts": ("'2020-01-01 10:00'", "'2020-02-03 04:05:06.5'", "NULL"),
        "tz": ("'2020-01-01 10:00+02'", "'2020-07-01 23:30-05'", "NULL"),
        "tm": ("'10:00'", "'23:59:59'", "NULL"),
        "span": ("'1 day'", "'24 hours'", "'1 month 2 days'", "NULL"),
        "u": ("'00000000-0000-0000-0000-000000000002'", "'aaaaaaaa-0000-0000-0000-000000000000'", "NULL"),
        "by": ("'\\x'", "'\\x0102'", "'\\xff'", "NULL"),
        "ip": ("'10.0.0.1'", "'10.0.0.1/8'", "'::1'", "NULL"),
        "net": ("'10.0.0.0/8'", "'192.168.0.0/16'", "NULL"),
        "mac": ("'08:00:2b:01:02:03'", "NULL"),
        "mood": _MOODS,
        "home": ("ROW('main', 1)", "ROW('main', NULL)", "ROW(NULL, NULL)", "NULL"),
        "size": ("1", "2", "NULL"),
        "span4": ("'[1,5)'", "'[2,3]'", "'empty'", "'(,4)'", "NULL"),
        "days": ("'[2020-01-01,2020-01-10)'", "'(,)'", "NULL"),
        "ints": ("'{1,2}'", "'{2,2,3}'", "'{}'", "'{NULL,1}'", "NULL"),
        "words": ("'{a,b}'", "'{b,NULL}'", "'{}'", "NULL"),
        "doc": ("""'{"a": 1, "b": [1, 2]}'""", """'{"a": null}'""", """'{"a": 1.0, "b": []}'""", "'{}'", "NULL"),
        "js": ("""'{"a": 1}'""", """'{"a":  1}'""", "'[]'", "NULL"),
        "money": ("1.50", "20", "NULL"),
        "at": ("'(1,2)'", "'(0,0)'", "NULL"),
        "vec": ("'a b'", "'b:2'", "NULL"),
    },
    "point_of": {"id": _IDS, "x": _SMALL, "y": _SMALL, "label": ("'p'", "'q'", "NULL")},
    "sale": {
        "id": _IDS,
        "shop": _FEW,
        "product": ("'pen'", "'ink'", "'pad'"),
        "sold": ("'2020-01-01'", "'2020-01-20'", "'2020-02-02'"),
        "amount": ("10.00", "12.50", "60.00", "99.00"),
        "n": ("1", "2", "3", "4"),
    },
    # A parent is always of a smaller number, or a walk would never end.
    "tree": {"id": _IDS, "parent": ("NULL", "1"), "name": ("'p'", "'q'")},
    "a": {"i": _FEW, "j": _FEW},
    "b": {"i": _FEW, "k": _FEW},
    "c": {"i": _FEW, "z": _FEW},
    "part": {"id": ("1", "2", "3", "4", "5"), "region": ("'n'", "'s'", "'w'"), "v": _SMALL},
    "base": {"id": _FEW, "v": _FEW},
    "child": {"id": _FEW, "v": _FEW, "w": _FEW},
}
_KEYS = {"dept": "id", "emp": "id", "wide": "id", "point_of": "id", "sale": "id", "tree": "id", "part": "id, region"}


def schema() -> str:
    return (FOLDER / "schema.sql").read_text()


class Changes:
    """The same history for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._moved = 0

    def first(self) -> Iterator[str]:
        for table in TABLES:
            for _ in range(8):
                yield self._insert(table)

    def cycle(self, tables: list[str]) -> Iterator[str]:
        """Some statements on each of the tables."""
        kinds: list[Callable[[str], str]] = [self._insert, self._insert, self._update, self._update, self._delete]
        for table in tables:
            for _ in range(self._random.randint(1, 3)):
                yield self._random.choice(kinds)(table)

    def _value(self, table: str, column: str, row: dict[str, str]) -> str:
        if table == "tree" and column == "parent":
            return self._random.choice(("NULL", *(n for n in _IDS if int(n) < int(row["id"]))))
        return self._random.choice(TABLES[table][column])

    def _insert(self, table: str) -> str:
        row: dict[str, str] = {}
        for column in TABLES[table]:
            row[column] = self._value(table, column, row)
        columns = ", ".join(row)
        statement = f"INSERT INTO {table} ({columns}) VALUES ({', '.join(row.values())})"
        if table not in _KEYS:
            return statement
        if self._random.random() < 0.4:
            changed = [c for c in row if c not in _KEYS[table].split(", ")]
            updates = ", ".join(f"{c} = excluded.{c}" for c in self._random.sample(changed, min(3, len(changed))))
            if table != "tree":
                return f"{statement} ON CONFLICT ({_KEYS[table]}) DO UPDATE SET {updates}"
        return f"{statement} ON CONFLICT DO NOTHING"

    def _update(self, table: str) -> str:
        columns = list(TABLES[table])
        changed = [c for c in columns if c != "id" and not (table == "tree" and c == "parent")]
        some = self._random.sample(changed, min(len(changed), self._random.randint(1, 3)))
        if table == "part":
            some = ["v"]
        assignments = ", ".join(f"{c} = {self._random.choice(TABLES[table][c])}" for c in some)
        if table == "emp" and self._random.random() < 0.2:
            # Keys change, too.
            self._moved += 100
            return f"UPDATE emp SET id = id + {self._moved} WHERE id = {self._random.choice(_IDS)}"
        return f"UPDATE {table} SET {assignments} WHERE {self._where(table)}"

    def _delete(self, table: str) -> str:
        return f"DELETE FROM {table} WHERE {self._where(table)}"

    def _where(self, table: str) -> str:
        column = self._random.choice([c for c in TABLES[table] if c not in ("at", "js", "home", "money")])
        return f"{column} IS NOT DISTINCT FROM {self._random.choice(TABLES[table][column])}"
