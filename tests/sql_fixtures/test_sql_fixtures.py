"""Each operator's delta as a formula that a reviewer can read, executed, and equal to what is written down.

A file has the sections `-- tables`, `-- query`, any number of `-- cycle`, and `-- delta`: the plan of the first cycle
in the algebra's notation, as `tests/unit/dvm/algebra.py` explains it. A few, one of each kind, have a last section
`-- sql`: the whole text that this cycle runs. With PGTRICKLE_REGENERATE=1 both are written anew, for the diff to be
reviewed; a file gets its SQL written down by an empty last section.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import sqlglot

from tests.answers import only
from tests.oracle import arena
from tests.oracle.arena import Case
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained
from tests.oracle.live import Live
from tests.unit.dvm.algebra import laid_out

FILES = sorted(Path(__file__).parent.glob("*.sql"))
_SECTION = re.compile(r"^-- (tables|query|cycle|delta|sql)(?: at [^\n]*)?\n", re.MULTILINE)
_INSTANT = re.compile(r"^-- cycle(?: at ([^\n]*))?\n", re.MULTILINE)

_NOTHING = "nothing can change"


@dataclass(frozen=True)
class Fixture:
    tables: list[str]
    query: str
    cycles: list[list[str]]
    delta: str
    sql: str | None
    instants: list[str | None]
    """The time to which the clock moves at each cycle; None where it stands still."""

    @classmethod
    def read(cls, path: Path) -> Fixture:
        text = path.read_text()
        pieces = _SECTION.split(text)[1:]
        sections = [(name, text.strip()) for name, text in zip(pieces[::2], pieces[1::2], strict=True)]
        found = dict(sections)
        return cls(
            tables=_statements(found["tables"]),
            query=found["query"].rstrip(";"),
            cycles=[_statements(text) for name, text in sections if name == "cycle"],
            delta=found.get("delta", ""),
            sql=found.get("sql"),
            instants=[instant or None for instant in _INSTANT.findall(text)],
        )


def _statements(text: str) -> list[str]:
    return [statement.strip() for statement in re.split(r";\s*(?:\n|$)", text) if statement.strip()]


def _readable(case: Case, delta: str | None) -> str:
    """The delta in lines, without what differs from run to run: the schema's name and the oids."""
    if delta is None:
        return _NOTHING
    # The schema first: its name ends in a number, too, which may be a table's.
    delta = delta.replace(case.schema, "shop")
    for key in case.buffers:
        (name,) = only(case.conn.execute("SELECT relname FROM pg_class WHERE oid = %s::text::oid", (key,)))
        delta = delta.replace(f"_{key}", f"_{name}")
    return sqlglot.transpile(delta, read="postgres", write="postgres", pretty=True)[0]


#: Those that writers can maintain: IMMEDIATE refuses the clock.
TIMELESS = [path for path in FILES if not any(Fixture.read(path).instants)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_fixture(new_case: NewCase, path: Path) -> None:
    fixture = Fixture.read(path)
    with new_case(*fixture.tables) as case:
        st = Maintained.create(case, fixture.query)
        case.change(*fixture.cycles[0])
        first, *others = fixture.instants
        bound = st.binding(at=first)
        plan, sql = st.view.plan(bound.changed), _readable(case, st.view.delta(bound))
        delta = _NOTHING if plan is None else laid_out(plan)
        assert st.refresh(instant=first) == "DIFFERENTIAL"
        for cycle, instant in zip(fixture.cycles[1:], others, strict=True):
            assert case.change(*cycle) == len(cycle)
            assert st.refresh(instant=instant) == "DIFFERENTIAL"
    if os.environ.get("PGTRICKLE_REGENERATE"):
        kept = path.read_text().split("-- delta\n")[0].rstrip()
        text = f"{kept}\n\n-- delta\n{delta}\n"
        path.write_text(text if fixture.sql is None else f"{text}\n-- sql\n{sql}\n")
    else:
        assert delta == fixture.delta
        assert fixture.sql is None or sql == fixture.sql


@pytest.mark.parametrize("path", TIMELESS, ids=lambda path: path.stem)
def test_fixture_in_the_writers_transaction(installed: psycopg.Connection, path: Path) -> None:
    """After every statement, and after a rollback to the savepoint before it, the content is the query's answer."""
    fixture = Fixture.read(path)
    with arena.case(installed, fixture.tables, by_product=True) as case:
        st = Live.begin(case, fixture.query)
        st.verify()
        for statement in (statement for cycle in fixture.cycles for statement in cycle):
            before = st.images()
            with installed.transaction(force_rollback=True):
                case.execute(statement)
                st.verify()
            assert st.images() == before
            case.execute(statement)
            st.verify()


def test_there_are_fixtures() -> None:
    assert len(FILES) >= 45
    assert 5 <= sum(Fixture.read(path).sql is not None for path in FILES) <= 8
