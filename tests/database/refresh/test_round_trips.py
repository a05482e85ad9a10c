"""What a small refresh costs is mostly how often it asks, so the number of its statements is held: no milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

Counted = Callable[[Callable[[], Any]], int]


def _no_executor() -> NoReturn:
    raise EnvironmentFault("An executor was asked for")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """How many statements an action sends. It must not open a connection."""
    execute = psycopg.Cursor.execute

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a warm refresh opened a connection")

    def count(action: Callable[[], Any]) -> int:
        sent = []

        def note(*args: Any, **kwargs: Any) -> Any:
            sent.append(args[1])
            return execute(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Cursor, "execute", note)
            patched.setattr(psycopg, "connect", refuse)
            action()
        return len(sent)

    return count


def test_one_changed_row_and_a_chain_ask_no_more_than_they_need(dsn: str, counted: Counted) -> None:
    with (
        PgTrickle(dsn, executor=_no_executor, placement="database", differential_max_change_ratio=0.0) as pt,
        psycopg.connect(dsn, autocommit=True) as conn,
    ):
        pt.install()
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        conn.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 100) i")
        conn.execute("ANALYZE t")
        names = [f"public.st{number}" for number in range(5)]
        for number, name in enumerate(names):
            source = f"st{number - 1}" if number else "t"
            pt.create_stream_table(name, f"SELECT id, v + 1 AS v FROM {source}")
        conn.execute("ANALYZE")

        def changed(action: Callable[[], Any]) -> int:
            conn.execute("UPDATE t SET v = v + 1 WHERE id = 1")
            return counted(action)

        changed(lambda: pt.refresh(names))
        one = changed(lambda: pt.refresh_stream_table(names[0]))
        unit = changed(lambda: pt.refresh(names))
        nothing = counted(lambda: pt.refresh_stream_table(names[0]))
        # Two of them ask how the sources are captured, because this server's wal_level is logical.
        assert nothing <= 27
        assert one <= 45
        assert unit <= one + 4 * 15
