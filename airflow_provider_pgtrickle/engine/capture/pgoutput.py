"""What PostgreSQL's `pgoutput` (protocol version 1, values as text) says of committed transactions.

    B transaction begins   R a relation as it is now   I +new   U −old +new   D −old   C it has committed

Only committed transactions are told, each as a whole, in the order of their commits. The changes of subtransactions
stand under their transaction. A value that is stored apart from its row and did not change is told as `UNCHANGED`; the
old row has it, if the table's replica identity covers it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_UINT32 = struct.Struct("!I").unpack_from
_BEGIN = struct.Struct("!QqI").unpack_from
_COMMIT = struct.Struct("!BQQq").unpack_from
_COUNT = struct.Struct("!H").unpack_from
_TYPE = struct.Struct("!Ii").unpack_from


#: Stands for a value that is stored apart from its row and did not change.
UNCHANGED = b"\0u"
#: Stands for NULL; no value holds it, because no text holds a NUL.
NULL = b"\0n"

Values = list[bytes]


@dataclass(frozen=True)
class Relation:
    """A table as it was when the rows that follow were written."""

    relid: int
    schema: str
    name: str
    columns: tuple[tuple[str, int, bool], ...]
    """Name and type of each published column, and whether old rows are told with it."""


@dataclass(frozen=True)
class Begin:
    commit_lsn: int
    """Where the record of its commit begins."""
    xid: int
    """The lower 32 bits of its number."""


def begin(message: bytes) -> Begin:
    commit_lsn, _, xid = _BEGIN(message, 1)
    return Begin(commit_lsn, xid)


def commit_end(message: bytes) -> int:
    """The position behind the record of a commit."""
    return int(_COMMIT(message, 1)[2])


def relation(message: bytes) -> Relation:
    relid = _UINT32(message, 1)[0]
    schema, position = _text(message, 5)
    name, position = _text(message, position)
    (count,) = _COUNT(message, position + 1)
    position += 3
    columns = []
    for _ in range(count):
        told = bool(message[position] & 1)
        column, position = _text(message, position + 1)
        columns.append((column, _TYPE(message, position)[0], told))
        position += 8
    return Relation(relid, schema or "pg_catalog", name, tuple(columns))


def rows(message: bytes) -> tuple[Values | None, Values | None]:
    """The old and the new row of an INSERT, UPDATE or DELETE; the old one is None where it wasn't told.

    Of an old row that is told by its key alone, the other columns are NULL.
    """
    old: Values | None = None
    if message[5] != 78:  # N
        old, position = values(message, 6)
        if position >= len(message):
            return old, None
        position += 1
    else:
        position = 6
    return old, values(message, position)[0]


def values(message: bytes, position: int) -> tuple[Values, int]:
    """The values of a row that begins at `position`, and where it ends."""
    found: Values = []
    append = found.append
    count = message[position] << 8 | message[position + 1]
    position += 2
    if len(message) < 256:
        # The length of each value is in the last of its four bytes. Most of a pump's time goes by here.
        for _ in range(count):
            kind = message[position]
            if kind == 116:  # t
                start = position + 5
                position = start + message[position + 4]
                append(message[start:position])
            else:
                append(NULL if kind == 110 else UNCHANGED)  # n, u
                position += 1
        return found, position
    for _ in range(count):
        kind = message[position]
        if kind == 116:
            start = position + 5
            position = start + _UINT32(message, position + 1)[0]
            append(message[start:position])
        else:
            append(NULL if kind == 110 else UNCHANGED)
            position += 1
    return found, position


def _text(message: bytes, position: int) -> tuple[str, int]:
    end = message.index(0, position)
    return message[position:end].decode(), end + 1


def parse_lsn(text: str) -> int:
    """The number of a position.

    >>> parse_lsn("1/10")
    4294967312
    """
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(number: int) -> str:
    """The position of a number, as PostgreSQL writes it.

    >>> lsn_text(4294967312)
    '1/10'
    """
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def widened(xid: int, near: int) -> int:
    """The full number of a transaction of which the log tells 32 bits, by a full number not far from it.

    >>> widened(5, (3 << 32) + 7), widened(0xFFFFFFFF, (3 << 32) + 7), widened(2, (2 << 32) + 0xFFFFFFF0)
    (12884901893, 12884901887, 12884901890)
    """
    ahead = (xid - near) & 0xFFFFFFFF
    return near + (ahead if ahead < 1 << 31 else ahead - (1 << 32))
