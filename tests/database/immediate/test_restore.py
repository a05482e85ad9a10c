"""IMMEDIATE tables that are dumped and restored elsewhere: a refresh brings them back to life."""

from __future__ import annotations

import psycopg

from tests.database.test_restore import _client, _copied, elsewhere

__all__ = ["elsewhere"]

TOTALS = "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g"
NAMED = "SELECT t.id, u.name FROM t JOIN u USING (g)"
PAIRS = "SELECT named.id, totals.n FROM named JOIN t USING (id) JOIN totals USING (g)"


def test_immediate_tables_restored_elsewhere(dsn15: str, elsewhere: str) -> None:
    queries = {"totals": TOTALS, "named": NAMED, "pairs": PAIRS}
    with psycopg.connect(dsn15, autocommit=True) as conn, _client(dsn15) as pt:
        # Oids of what comes after are others in the copy.
        conn.execute("CREATE TABLE before (id int); CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        conn.execute("CREATE TABLE u (g int PRIMARY KEY, name text)")
        conn.execute("INSERT INTO t SELECT i, i % 5, i FROM generate_series(1, 50) AS i")
        conn.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(0, 4) AS i")
        pt.install()
        for name, query in queries.items():
            pt.create_stream_table(name, query, refresh_mode="IMMEDIATE")
        conn.execute("UPDATE t SET v = v + 1; DROP TABLE before")
    _copied(dsn15, elsewhere)
    with psycopg.connect(elsewhere, autocommit=True) as conn, _client(elsewhere) as pt:
        pt.install()
        for name in queries:
            pt.refresh_stream_table(name)
        assert all(row["is_live"] for row in pt.status())
        for change in ("UPDATE t SET v = 0, g = 1", "DELETE FROM u WHERE g = 1", "DELETE FROM t WHERE id < 9"):
            conn.execute(change)
            for name, query in queries.items():
                assert pt.verify(name, refresh=False).differences == 0, (change, name)
                visible = conn.execute("SELECT pgtrickle.visible_columns(%s)", [name]).fetchone()
                assert visible is not None
                rows = f"SELECT {visible[0]} FROM {name}"
                assert conn.execute(f"({rows}) EXCEPT ALL ({query})").fetchall() == []
                assert conn.execute(f"({query}) EXCEPT ALL ({rows})").fetchall() == []
        for name in reversed(queries):
            pt.drop_stream_table(name)
        left = conn.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace"
        ).fetchall()
        assert left == []
