"""The oracle itself: it must see what is wrong, or its silence proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Contradiction, Maintained, Undefined, maintain

TABLE = ("CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)")


class Sabotaged:
    """A view whose delta was tampered with."""

    def __init__(self, view: object, delta: str | None) -> None:
        self._view, self._delta = view, delta

    def __getattr__(self, name: str) -> object:
        return getattr(self._view, name)

    def delta(self, binding: object) -> str | None:
        return self._delta


def test_a_correct_delta_passes(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        st = maintain(
            case, "SELECT k, v FROM t", ["UPDATE t SET v = 'three' WHERE k = 3"], ["DELETE FROM t WHERE k = 1"]
        )
        assert st.rows() == [(2, "two"), (3, "three")]


@pytest.mark.parametrize(
    ("delta", "complaint"),
    [
        (None, "missing"),
        ("SELECT 1 AS __pgt_w, 4 AS k, 'five'::text AS v", "too many"),
        ("SELECT 2 AS __pgt_w, 4 AS k, 'four'::text AS v", "too many"),
        ("SELECT -1 AS __pgt_w, 4 AS k, 'four'::text AS v", "never stored"),
        ("SELECT 1 AS __pgt_w, 1/0 AS k, 'four'::text AS v", "the delta fails where the query does not"),
    ],
)
def test_a_wrong_delta_is_seen(new_case: NewCase, delta: str | None, complaint: str) -> None:
    with new_case(*TABLE) as case:
        st = Maintained.create(case, "SELECT k, v FROM t")
        case.change("INSERT INTO t VALUES (4, 'four')")
        with pytest.raises(Contradiction, match=complaint):
            replace(st, view=Sabotaged(st.view, delta)).refresh()  # type: ignore[arg-type]


def test_values_that_are_equal_but_look_different_are_told_apart(new_case: NewCase) -> None:
    with new_case("CREATE TABLE t (n numeric)", "INSERT INTO t VALUES (1.0)") as case:
        st = Maintained.create(case, "SELECT n FROM t")
        case.change("UPDATE t SET n = 1.00")
        with pytest.raises(Contradiction, match="too many"):
            replace(st, view=Sabotaged(st.view, None)).refresh()  # type: ignore[arg-type]


def test_a_query_that_postgresql_refuses_is_nobodys_fault(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        st = Maintained.create(case, "SELECT 6 / k AS share FROM t")
        case.change("INSERT INTO t VALUES (0, 'zero')")
        with pytest.raises(Undefined, match="division by zero"):
            st.refresh()


def test_a_refused_statement_changes_nothing(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        assert case.change("INSERT INTO t VALUES (1, 'again')", "DELETE FROM t WHERE k = 2") == 1
        assert case.rows("SELECT k FROM t ORDER BY k") == [(1,), (3,)]


def test_truncation_is_answered_by_full(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        st = Maintained.create(case, "SELECT k, v FROM t")
        case.change("TRUNCATE t", "INSERT INTO t VALUES (9, 'nine')")
        assert st.refresh() == "FULL"
        assert st.rows() == [(9, "nine")]


def test_what_is_undone_did_not_happen(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        st = Maintained.create(case, "SELECT count(*) AS n FROM t")
        with case.undone():
            case.change("DELETE FROM t")
            assert replace(st).refresh() == "DIFFERENTIAL"
        assert st.rows() == [(3,)]
