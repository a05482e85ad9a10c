"""Stream tables with columns of xml, which has no equality, and over XMLTABLE: by real refreshes, on PostgreSQL 15.

The embedded server has no libxml. The queries' width is asked in `tests/oracle/xml.sql`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.database.reported.conftest import Site, site_at

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, g int, x xml)",
    "CREATE TABLE b (id int PRIMARY KEY, y xml)",
    """INSERT INTO t SELECT n, n % 3, format('<r><k v="%s">a</k><k v="%s"/></r>', n, n % 2)::xml
         FROM generate_series(1, 40) n""",
    "INSERT INTO b SELECT n, XMLELEMENT(NAME y, n % 2) FROM generate_series(0, 9) n",
)
QUERIES = {
    "keyed": "SELECT id, x FROM t WHERE g < 2",
    "bag": "SELECT t.x, b.y FROM t JOIN b ON b.id = t.g",
    "lateral": "SELECT t.id, q.o, q.w, b.y FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS o FOR ORDINALITY, v int PATH"
    " '@v' DEFAULT 0, w xml PATH '.') AS q JOIN b ON b.id = q.v",
    "counted": "SELECT q.v, count(*) AS n FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q"
    " GROUP BY q.v",
    "gathered": "SELECT g, XMLAGG(x ORDER BY id) AS xs, count(*) AS n FROM t GROUP BY g",
}
CHANGES = (
    # Some elements are the same, otherwise written.
    "INSERT INTO t VALUES (50, 1, '<r/>'), (51, 2, NULL); UPDATE t SET x = '<r><k v=\"3\"/></r>' WHERE id % 7 = 0;"
    "UPDATE t SET x = replace(x::text, '<k v=\"1\"/>', '<k v=''1''></k>')::xml; UPDATE b SET y = '<y/>' WHERE id = 1",
    "DELETE FROM t WHERE id % 5 = 0; UPDATE t SET g = g + 1 WHERE id < 9; DELETE FROM b WHERE id = 2;"
    "UPDATE t SET x = NULL WHERE id > 30; INSERT INTO b VALUES (2, NULL), (11, '<y>0</y>')",
)


@pytest.fixture
def site(dsn15: str) -> Iterator[Site]:
    for site in site_at(dsn15, placement="database"):
        site.run(*TABLES)
        yield site


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "IMMEDIATE"])
def test_contents_follow_their_queries(site: Site, mode: str) -> None:
    for name, query in QUERIES.items():
        site.declare(name, query, refresh_mode=mode)
    for changes in CHANGES:
        site.run(changes)
        for name, query in QUERIES.items():
            if mode == "DIFFERENTIAL":
                assert site.refresh(name).action in ("DIFFERENTIAL", "NO_DATA"), name
            assert site.differs(name, query) == [], name
            assert site.client.verify(name).differences == 0
    for name, query in QUERIES.items():
        full = site.refresh(name, force_full=True)
        assert (full.action, full.rows_inserted, full.rows_deleted) == (
            "FULL" if mode == "DIFFERENTIAL" else mode,
            0,
            0,
        )
        assert site.differs(name, query) == []
