"""Killed anywhere, each change is in its buffer exactly once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.capture import mode, pump, tracking, wal
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.database.wal.conftest import Shop

#: Every step of a pump and of the ways there and back: module, function, and whether the kill comes before or after.
STEPS = [
    (module, name, when)
    for module, names in (
        (pump, ("_copy", "_advance", "_pumped")),
        (wal, ("begin", "_publication", "publish", "end")),
        (tracking, ("attach", "_settle_mode", "go_over", "come_back")),
        (mode, ("drain", "_take_over", "_bring_back")),
    )
    for name in names
    for when in ("before", "after")
]


class Killed(BaseException):
    """As a signal ends a process, it passes every handler of errors."""


def _killing(step: Callable[..., Any], when: str, hits: list[str]) -> Callable[..., Any]:
    def run(*arguments: Any, **keywords: Any) -> Any:
        conn = next(a for a in arguments if isinstance(a, psycopg.Connection))
        done = None if when == "before" else step(*arguments, **keywords)
        if hits:
            return done if when == "after" else step(*arguments, **keywords)
        hits.append(when)
        # The server ends the session in the middle of whatever it does.
        with psycopg.connect(_dsn[0], autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (conn.info.backend_pid,))
        raise Killed

    return run


_dsn = [""]


@pytest.mark.parametrize(("module", "name", "when"), STEPS, ids=lambda v: getattr(v, "__name__", v).split(".")[-1])
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, when: str
) -> None:
    _dsn[0] = shop.dsn
    monkeypatch.setattr(pump, "_WORTH_ADVANCING", 1)
    tables = ("totals", "regions")
    shop.declare(*tables, cdc_mode="trigger")
    hits: list[str] = []
    # Where a function is looked up by another module, that one has its own name for it.
    step = _killing(getattr(module, name), when, hits)
    for place in (pump, wal, tracking, mode):
        if getattr(place, name, None) is getattr(module, name) and place is not module:
            monkeypatch.setattr(place, name, step)
    monkeypatch.setattr(module, name, step)

    number = 1000
    for wish in ("wal", "trigger", "trigger", "wal", "wal"):
        for table in tables:
            try:
                shop.pt.alter_stream_table(table, cdc_mode=wish)
            except (Killed, PgTrickleError, psycopg.Error):
                shop.pt.close()
        for table in tables:
            number += 1
            shop.conn.execute("INSERT INTO orders VALUES (%s, 3, 1, 'n')", (number,))
            shop.conn.execute("UPDATE orders SET amount = amount + 1 WHERE id % 7 = 3")
            shop.conn.execute("DELETE FROM orders WHERE id = (SELECT min(id) FROM orders)")
            try:
                shop.pt.refresh_stream_table(table)
            except (Killed, PgTrickleError, psycopg.Error):
                shop.pt.close()
    assert hits == [when]
    monkeypatch.undo()
    for table in tables:
        shop.pt.refresh_stream_table(table)
        assert shop.differences(table) == []
    # Nothing had to be computed anew: what was captured was always whole.
    found = shop.rows(
        "SELECT DISTINCT fallback_reason FROM pgtrickle.pgt_refresh_history"
        " WHERE action = 'FULL' AND fallback_reason IS NOT NULL"
    )
    assert found == [("never_populated",)]
    assert set(shop.modes().values()) == {"WAL"}
    assert len(shop.slots()) == 1
