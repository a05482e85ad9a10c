"""Small databases to attack: sources of every kind, and stream tables over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["WORLDS", "World"]


@dataclass(frozen=True)
class World:
    """A database before the attack, and what is still written when it is over."""

    name: str
    ddl: str
    stream_tables: Mapping[str, str]
    afterwards: tuple[str, ...]
    """Ordinary writes, one to each kind of source: whoever captured too little or too much shows it here."""
    modes: Mapping[str, str]
    """Refresh modes of those that aren't AUTO."""


_T = """
CREATE TABLE t (id int PRIMARY KEY, g int, v int);
INSERT INTO t SELECT n, n % 4, n * 10 FROM generate_series(1, 12) AS n;
"""
_U = """
CREATE TABLE u (g int PRIMARY KEY, name text);
INSERT INTO u SELECT n, 'name ' || n FROM generate_series(0, 3) AS n;
"""
_OTHER = "CREATE SCHEMA other;"

JOINED = World(
    "joined",
    _OTHER + _T + _U,
    {
        "st_join": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
        "st_sum": "SELECT g, sum(v) AS total, count(*) AS n FROM t GROUP BY g",
        "st_over": "SELECT n, sum(total) AS total FROM st_sum GROUP BY n",
        # PostgreSQL alone computes it, in one unit with what it reads.
        "st_text": "SELECT g, s.total, o.total AS among, current_role::text AS r"
        " FROM st_sum s JOIN st_over o USING (n)",
    },
    (
        "INSERT INTO t (id, g, v) VALUES (901, 1, 5), (902, 2, 6)",
        "UPDATE t SET v = v + 3 WHERE id % 2 = 0",
        "DELETE FROM t WHERE id = (SELECT min(id) FROM t)",
        "UPDATE u SET name = name || '!' WHERE g = 1",
        "INSERT INTO u (g, name) VALUES (77, 'late')",
    ),
    {"st_join": "DIFFERENTIAL"},
)

SINGLE = World(
    "single",
    _OTHER
    + _T
    + """
CREATE TABLE k (a int, b text);
INSERT INTO k VALUES (1, 'x'), (1, 'x'), (2, 'y'), (3, NULL);
CREATE TABLE c (id int PRIMARY KEY, t_id int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO c SELECT n, n FROM generate_series(1, 6) AS n;
""",
    {
        "st_scan": "SELECT id, v FROM t WHERE g < 3",
        "st_top": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3",
        "st_bag": "SELECT a, b FROM k",
        "st_child": "SELECT t_id, count(*) AS n FROM c GROUP BY t_id",
    },
    (
        "INSERT INTO t (id, g, v) VALUES (901, 1, 5), (902, 2, 1000)",
        "UPDATE t SET v = v + 3 WHERE id % 2 = 0",
        "DELETE FROM t WHERE id = (SELECT min(id) FROM t)",
        "INSERT INTO k (a, b) VALUES (1, 'x'), (9, 'z')",
        "UPDATE k SET a = a + 1 WHERE a = 2",
        "UPDATE c SET t_id = 5 WHERE id = 6",
    ),
    {},
)

TREE = World(
    "tree",
    _OTHER
    + """
CREATE TABLE p (id int, part int, v int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY RANGE (id);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (0) TO (100);
CREATE TABLE p2b PARTITION OF p2 FOR VALUES FROM (100) TO (2000);
INSERT INTO p SELECT n, 1 + n % 2, n FROM generate_series(1, 10) AS n;
CREATE TABLE loose (id int NOT NULL, part int NOT NULL, v int);
INSERT INTO loose SELECT n, 3, n FROM generate_series(300, 303) AS n;
CREATE TABLE h (id int PRIMARY KEY, v int);
CREATE TABLE h1 (w int) INHERITS (h);
INSERT INTO h SELECT n, n FROM generate_series(1, 5) AS n;
INSERT INTO h1 SELECT n, n, n FROM generate_series(11, 14) AS n;
""",
    {
        "st_parts": "SELECT part, count(*) AS n, sum(v) AS total FROM p GROUP BY part",
        "st_rows": "SELECT id, part, v FROM p WHERE v > 2",
        "st_leaf": "SELECT id, v FROM p1",
        "st_heirs": "SELECT v, count(*) AS n FROM h GROUP BY v",
        "st_alone": "SELECT o.id, o.v, (SELECT count(*) FROM h WHERE h.v = o.v) AS n FROM ONLY h AS o",
    },
    (
        "INSERT INTO p (id, part, v) VALUES (901, 1, 5), (902, 2, 6)",
        "UPDATE p SET v = v + 1 WHERE id % 2 = 0",
        "UPDATE p SET part = 2 WHERE id = 4",
        "DELETE FROM p WHERE id = (SELECT min(id) FROM p)",
        "UPDATE p1 SET v = v + 7 WHERE id > 3",
        "INSERT INTO h (id, v) VALUES (901, 5)",
        "UPDATE h SET v = v + 1 WHERE id > 12",
        "UPDATE h1 SET v = v + 1 WHERE id = 11",
        "DELETE FROM h WHERE id = (SELECT min(id) FROM h)",
    ),
    {},
)

CODED = World(
    "coded",
    _OTHER
    + _U
    + """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN small AS int CHECK (VALUE < 100000);
CREATE TABLE w (id int PRIMARY KEY, g int, m mood, d small, r pair, v int);
INSERT INTO w SELECT n, n % 4, (ARRAY['sad', 'ok', 'glad'])[1 + n % 3]::mood, n, ROW(n, 'r' || n)::pair, n
    FROM generate_series(1, 12) AS n;
CREATE FUNCTION inner_one(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
CREATE FUNCTION outer_one(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT public.inner_one($1) * 2';
CREATE FUNCTION atomic_one(x int) RETURNS int IMMUTABLE LANGUAGE sql BEGIN ATOMIC SELECT inner_one(x) * 3; END;
CREATE FUNCTION plpgsql_one(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN public.inner_one($1) - 5; END';
CREATE FUNCTION add_up(bigint, int) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1 + $2';
CREATE AGGREGATE my_sum(int) (SFUNC = add_up, STYPE = bigint, INITCOND = '0');
CREATE FUNCTION name_of(int) RETURNS text STABLE LANGUAGE sql AS 'SELECT name FROM public.u WHERE g = $1';
CREATE FUNCTION later(int, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 > $2 + 1';
CREATE OPERATOR >>> (LEFTARG = int, RIGHTARG = int, FUNCTION = later);
CREATE VIEW inner_view AS SELECT w.id, w.g, w.v, outer_one(w.v) AS o FROM w;
CREATE VIEW outer_view AS SELECT inner_view.id, inner_view.o, u.name FROM inner_view JOIN u USING (g);
""",
    {
        "st_types": "SELECT id, m::text AS mood, d, (r).a AS a, r::text AS r FROM w",
        "st_moods": "SELECT m, count(*) AS n FROM w GROUP BY m",
        "st_functions": "SELECT id, outer_one(v) AS o, atomic_one(v) AS a, plpgsql_one(v) AS p FROM w WHERE v >>> 2",
        "st_aggregate": "SELECT g, my_sum(v) AS total FROM w GROUP BY g",
        "st_lookup": "SELECT id, name_of(g) AS name FROM w",
        "st_view": "SELECT id, o, name FROM outer_view",
    },
    (
        "INSERT INTO w (id, g, m, d, r, v) SELECT 901, 1, min(m), 5, NULL, 6 FROM w",
        "UPDATE w SET v = v + 3 WHERE id % 2 = 0",
        "DELETE FROM w WHERE id = (SELECT min(id) FROM w)",
        "UPDATE u SET name = name || '!' WHERE g = 1",
    ),
    {},
)

GATHERED = World(
    "gathered",
    _OTHER + _T + _U + "CREATE MATERIALIZED VIEW mv AS SELECT g, count(*) AS n FROM t GROUP BY g;",
    {
        "st_hidden": "SELECT n, count(*) AS c FROM (SELECT g, count(*) AS n FROM t GROUP BY g) AS q GROUP BY n",
        "st_rank": "SELECT g, rank() OVER (ORDER BY sum(v)) AS place FROM t GROUP BY g",
        "st_left": "SELECT u.name, max(t.v) AS most FROM u LEFT JOIN t ON t.g = u.g GROUP BY u.name",
        "st_mat": "SELECT mv.g, mv.n, u.name FROM mv JOIN u USING (g)",
    },
    (
        "INSERT INTO t (id, g, v) VALUES (901, 1, 5), (902, 2, 6)",
        "UPDATE t SET v = v + 3, g = 3 WHERE id % 2 = 0",
        "DELETE FROM t WHERE id = (SELECT min(id) FROM t)",
        "UPDATE u SET name = name || '!' WHERE g = 1",
    ),
    {},
)

WORLDS = {world.name: world for world in (JOINED, SINGLE, TREE, CODED, GATHERED)}
