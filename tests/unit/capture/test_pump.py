"""What the messages of the log become in a buffer."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from airflow_provider_pgtrickle.engine.capture.pgoutput import NULL, Relation
from airflow_provider_pgtrickle.engine.capture.pump import Decoder, Target

_RELID, _INT, _TEXT = 16_400, 23, 25
_XID = 700
_ABSENT = object()

TARGET = Target(_RELID, "changes_16400", ("id", "note"), (_INT, _TEXT), ("id",), 100, None)


def _begin(commit_lsn: int = 200, xid: int = _XID) -> bytes:
    return b"B" + struct.pack("!QqI", commit_lsn, 0, xid)


def _commit(end: int = 250) -> bytes:
    return b"C" + struct.pack("!BQQq", 0, end - 50, end, 0)


def _relation(*columns: tuple[str, int, bool]) -> bytes:
    named = b"".join(
        bytes([told]) + name.encode() + b"\0" + struct.pack("!Ii", kind, -1) for name, kind, told in columns
    )
    return b"R" + struct.pack("!I", _RELID) + b"public\0orders\0f" + struct.pack("!H", len(columns)) + named


def _row(values: Sequence[object]) -> bytes:
    told = b""
    for value in values:
        if value is None:
            told += b"n"
        elif value is _ABSENT:
            told += b"u"
        else:
            text = str(value).encode()
            told += b"t" + struct.pack("!I", len(text)) + text
    return struct.pack("!H", len(values)) + told


def _change(kind: bytes, *sides: tuple[bytes, Sequence[object]]) -> bytes:
    return kind + struct.pack("!I", _RELID) + b"".join(name + _row(values) for name, values in sides)


FULL = _relation(("id", _INT, True), ("note", _TEXT, True))
KEY = _relation(("id", _INT, True), ("note", _TEXT, False))


def _rows(
    *messages: bytes, targets: Sequence[Target] = (TARGET,), known: bool = True, since: int = 0, sees: bool = True
) -> list[list[str | None]]:
    def of(relation: Relation) -> tuple[bool, Sequence[Target]]:
        assert (relation.relid, relation.schema, relation.name) == (_RELID, "public", "orders")
        return known, targets

    decoder = Decoder(of, near=_XID + 5, since=since, visible=lambda xid: sees)
    decoder.feed(messages)
    return [
        [None if field == NULL else field.decode() for field in row.split(b"\0f")]
        for _, rows in decoder.drain()
        for row in rows
    ]


HEAD = [str(_XID), "0/C8"]


@pytest.mark.parametrize("note", ["n", "", "a\tb\\n", "x" * 300, None])
def test_each_change_has_both_images(note: str | None) -> None:
    old, new = ("1", note), ("1", "new")
    assert _rows(
        _begin(),
        FULL,
        _change(b"I", (b"N", old)),
        _change(b"U", (b"O", old), (b"N", new)),
        _change(b"D", (b"O", new)),
        _commit(),
    ) == [
        [*HEAD, "I", *old, None, None],
        [*HEAD, "U", *new, *old],
        [*HEAD, "D", None, None, *new],
    ]


def test_a_value_stored_apart_comes_from_the_old_row() -> None:
    changed = _change(b"U", (b"O", ("1", "long")), (b"N", ("2", _ABSENT)))
    assert _rows(_begin(), FULL, changed) == [
        [*HEAD, "D", None, None, "1", "long"],
        [*HEAD, "I", "2", "long", None, None],
    ]


def test_an_update_of_what_nobody_reads_is_no_change() -> None:
    only_key = Target(_RELID, "changes_16400", ("id",), (_INT,), ("id",), 100, None)
    full = _change(b"U", (b"O", ("1", "a")), (b"N", ("1", "b")))
    by_key = _change(b"U", (b"N", ("1", "b")))
    assert _rows(_begin(), FULL, full, targets=[only_key]) == []
    assert _rows(_begin(), KEY, by_key, targets=[only_key]) == []


def test_where_old_values_are_not_told_one_mark_says_so() -> None:
    assert _rows(
        _begin(),
        KEY,
        _change(b"I", (b"N", ("1", "a"))),
        _change(b"U", (b"N", ("1", "b"))),
        _change(b"D", (b"K", ("1", None))),
    ) == [[*HEAD, "I", "1", "a", None, None], [*HEAD, "T", None, None, None, None]]


@pytest.mark.parametrize(
    "relation",
    [
        _relation(("id", _INT, True), ("note", _INT, True)),
        _relation(("id", _INT, True)),
        _relation(("id", _INT, True), ("notes", _TEXT, True)),
    ],
)
def test_a_table_of_another_shape_leaves_a_mark(relation: bytes) -> None:
    assert _rows(_begin(), relation, _change(b"I", (b"N", ("1", "2")))) == [[*HEAD, "T", None, None, None, None]]


def test_a_relation_that_nobody_knows_leaves_a_mark_where_it_may_have_belonged() -> None:
    change = _change(b"I", (b"N", ("1", "a")))
    assert _rows(_begin(), FULL, change, known=False) == [[*HEAD, "T", None, None, None, None]]
    assert _rows(_begin(), FULL, change, targets=[], known=False) == []


@pytest.mark.parametrize(("commit", "is_taken"), [(99, False), (100, True), (149, True), (150, False)])
def test_positions_part_what_triggers_captured(commit: int, is_taken: bool) -> None:
    target = Target(_RELID, "changes_16400", ("id", "note"), (_INT, _TEXT), ("id",), 100, 150)
    assert bool(_rows(_begin(commit), FULL, _change(b"I", (b"N", ("1", "a"))), targets=[target])) == is_taken


def test_what_was_pumped_or_isnt_seen_is_left_out() -> None:
    messages = (_begin(200), FULL, _change(b"I", (b"N", ("1", "a"))), _commit())
    assert len(_rows(*messages, since=200)) == 1
    assert _rows(*messages, since=201) == []
    assert _rows(*messages, sees=False) == []
