"""The small tables that most traps are laid on."""

GROUPS = (
    "CREATE TABLE t (id int PRIMARY KEY, g text, v int, n numeric)",
    "INSERT INTO t VALUES (1, 'a', 10, 1.5), (2, 'a', NULL, 2.25), (3, 'b', 30, NULL), (4, NULL, 5, 4),"
    " (5, NULL, 6, 5)",
)
PAIRS = (
    "CREATE TABLE l (id int PRIMARY KEY, k int, x text)",
    "CREATE TABLE r (id int PRIMARY KEY, k int, y text)",
    "INSERT INTO l VALUES (1, 1, 'l1'), (2, 2, 'l2'), (3, NULL, 'l3'), (4, 1, 'l4')",
    "INSERT INTO r VALUES (1, 1, 'r1'), (2, 3, 'r2'), (3, NULL, 'r3'), (4, 1, 'r4')",
)
KEYLESS = (
    "CREATE TABLE l (k int, x text)",
    "CREATE TABLE r (k int, y text)",
    "INSERT INTO l VALUES (1, 'a'), (1, 'a'), (2, 'b'), (NULL, 'c')",
    "INSERT INTO r VALUES (1, 'z'), (1, 'z'), (NULL, 'c')",
)
