"""What an installed function looks like is known by its form, so the form changes with it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from airflow_provider_pgtrickle.engine.capture.layout import CapturedColumn, Frozen, Layout, Member, NamedColumn
from airflow_provider_pgtrickle.engine.capture.trigger_function import FORM, create_function
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: The text of the functions below, by form. A line is added, none is changed: other texts are another form.
TEXTS = {1: "f05390b584609daad8ccdb58357d4c2a", 2: "f05390b584609daad8ccdb58357d4c2a"}
#: The same of a table with frozen rows.
FROZEN = {1: "26dd5bf592e91f07e6b75dab9c77b94e", 2: "26dd5bf592e91f07e6b75dab9c77b94e"}
#: The same of a partitioned one whose changes are refused.
REFUSING = {2: "eb6d05334d0ea1ac04129382c9365ae3"}

_ID = CapturedColumn("id", 23, 23, '"pg_catalog"."int4"', None, None, ())
_TWICE = CapturedColumn("twice", 23, 23, '"pg_catalog"."int4"', None, "(n * 2)", (NamedColumn("n", 23, 23),))
_PLAIN = Layout(
    relid=1,
    name=QualifiedName("public", "t"),
    members=(Member(1, QualifiedName("public", "t"), True, False, True),),
    columns=(_ID,),
    key=("id",),
    pairing=("id",),
    is_live=False,
    is_counted=False,
    row_wise=False,
    by_wal=False,
)
_PARTITION = Member(2, QualifiedName("public", "t_1"), False, False, False)
_LAYOUTS = (
    _PLAIN,
    replace(_PLAIN, pairing=(), columns=(_ID, _TWICE)),
    replace(_PLAIN, columns=(), key=(), pairing=()),
    replace(_PLAIN, members=(replace(_PLAIN.members[0], routes=True), _PARTITION)),
    replace(_PLAIN, is_live=True, is_counted=True, is_append_only=True),
)
_REFUSING = replace(_PLAIN, members=_LAYOUTS[3].members, is_append_only=True)


def test_another_text_is_another_form():
    texts = "".join(create_function(layout, 9).as_string(None) for layout in _LAYOUTS)
    digest = hashlib.md5(texts.encode(), usedforsecurity=False).hexdigest()
    assert digest == TEXTS.get(FORM), "Raise FORM, so that install writes older functions anew, and add a line here."


def test_only_frozen_rows_are_looked_for():
    plain, frozen = (
        create_function(layout, 9).as_string(None)
        for layout in (_PLAIN, replace(_PLAIN, frozen=(Frozen(_TWICE, 2, "'5'::int4"),)))
    )
    assert "frozen" not in plain
    # The function that is looked for before a TRUNCATE is written by `format`.
    assert "((n * 2)) < '5'::int4" in frozen.replace("''", "'")
    digest = hashlib.md5(frozen.encode(), usedforsecurity=False).hexdigest()
    assert digest == FROZEN.get(FORM), "Raise FORM, so that install writes older functions anew, and add a line here."


def test_what_is_refused_in_new_partitions_is_captured_by_nobody_else():
    refusing = create_function(_REFUSING, 9).as_string(None)
    assert "TG_NAME IN ('pgtrickle_capture_1_came', 'pgtrickle_capture_1_left')" in refusing.replace("''", "'")
    digest = hashlib.md5(refusing.encode(), usedforsecurity=False).hexdigest()
    assert digest == REFUSING.get(FORM), "Raise FORM, so that install writes older functions anew, and add a line here."


def test_only_what_compares_texts_pays_for_their_settings():
    by_key, by_image = (create_function(layout, 9).as_string(None) for layout in _LAYOUTS[:2])
    assert "IntervalStyle" in by_image
    assert "__pgt_image" in by_image
    assert "IntervalStyle" not in by_key
    assert "::text" not in by_key
