"""A psql script in pieces, as the measurement of PostgreSQL's own tests plays it."""

from __future__ import annotations

from tests.benchmarks.psql_script import Statement, statements

SCRIPT = r"""
\set name :folder '/t.data'
-- a comment; with a semicolon
COPY t FROM :'name';
SELECT ';' AS a, $$;$$ AS b, E'\';' AS c /* nested /* ; */ */, x::text FROM t
  WHERE a[1:2] IS NULL;
copy t from stdin;
1	;
2	\N
\.
\d t
SELECT 1 \gset
CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM u; DELETE FROM v);
"""


def test_a_script_falls_into_its_statements() -> None:
    copied, selected, given, asked, rule = statements(SCRIPT, {"folder": "/it's"})
    assert copied == Statement("COPY t FROM '/it''s/t.data'")
    assert selected.text.startswith("SELECT ';' AS a, $$;$$ AS b, E'\\';' AS c ")
    assert selected.text.endswith("x::text FROM t\n  WHERE a[1:2] IS NULL")
    assert given == Statement("copy t from stdin", rows="1\t;\n2\t\\N\n")
    assert asked == Statement("SELECT 1", ordered="\\gset")
    assert rule.text.endswith("(DELETE FROM u; DELETE FROM v)")
