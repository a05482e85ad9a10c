"""XML, which only a server that is built with libxml has: xml.sql's queries are kept by differences, and right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain

QUERIES = [line for line in Path(__file__).with_name("xml.sql").read_text().splitlines() if line[:2] not in ("", "--")]
TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, g int, p text, x xml, ns xml)",
    "CREATE TABLE b (id int PRIMARY KEY, g int, y text)",
    "CREATE VIEW vx AS SELECT t.id, q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q",
    """INSERT INTO t VALUES
    (1, 1, 'k', '<r><k v="1">a</k><k v="2">b</k></r>', '<r xmlns="http://n"><k v="3"><m>é</m></k></r>'),
    (2, 1, 'k', '<r><k v="1">a</k></r>', NULL), (3, 2, 'none', '<r> <k>?</k> </r>', '<m/>'), (4, NULL, NULL, NULL, NULL)
    """,
    "INSERT INTO b VALUES (1, 1, 'u'), (2, 2, 'v<w'), (3, NULL, NULL), (4, 1, 'u')",
)
CYCLES = (
    [
        """INSERT INTO t VALUES (5, 1, 'k', '<r><k v="1">a</k><k v="4"/></r>', '<r xmlns="http://n"/>')""",
        "INSERT INTO b VALUES (5, 2, '&')",
    ],
    [
        # The same document, otherwise written; and a row that changes only in what it looks like.
        """UPDATE t SET x = '<r><k v="1">a</k><k v=''2''>b</k></r>' WHERE id = 1""",
        """UPDATE t SET x = '<r><k v="3"/><k v="2"/><k v="3"/></r>', ns = NULL WHERE id = 3""",
        "UPDATE t SET g = coalesce(g, 0) + 1, p = p || ' ' WHERE id IN (2, 4)",
        "UPDATE b SET g = 2 WHERE id IN (1, 3)",
    ],
    ["DELETE FROM t WHERE id = 1", "UPDATE t SET id = 10 WHERE id = 2", "DELETE FROM b WHERE id = 2"],
    ["UPDATE t SET x = NULL WHERE id = 10", "UPDATE t SET x = ns WHERE id = 5", "UPDATE b SET y = y || '>'"],
    ["DELETE FROM t", """INSERT INTO t VALUES (1, 1, 'k', '<r><k v="1">a</k></r>', '<m><m/></m>')"""],
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_query_stays_differential_and_equal(new_case15: NewCase, query: str) -> None:
    with new_case15(*TABLES) as case:
        maintain(case, query.removesuffix(";"), *CYCLES)
