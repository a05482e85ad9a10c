SELECT i FROM a UNION SELECT i FROM b

SELECT i FROM a UNION ALL SELECT i FROM b

SELECT i FROM a INTERSECT SELECT i FROM b

SELECT i FROM a EXCEPT SELECT i FROM b

SELECT i FROM a INTERSECT ALL SELECT i FROM b

SELECT i FROM a EXCEPT ALL SELECT i FROM b

SELECT i FROM a UNION SELECT i FROM b EXCEPT SELECT i FROM c

SELECT i FROM a UNION ALL (SELECT i FROM b INTERSECT SELECT i FROM c)

(SELECT i FROM a UNION SELECT i FROM b) EXCEPT ALL (SELECT i FROM c UNION ALL SELECT i FROM a)

SELECT i::numeric AS x FROM a UNION SELECT z FROM c

SELECT i AS x, 'a' AS t FROM a UNION ALL SELECT k, 'b' FROM b UNION ALL SELECT NULL, 'c' FROM c

SELECT i FROM a UNION ALL SELECT 7 UNION ALL SELECT k FROM b

SELECT name FROM dept UNION SELECT name FROM emp

SELECT v FROM wide UNION SELECT t FROM wide

SELECT c FROM wide UNION SELECT code FROM dept -- looks: which of equal values stays

SELECT count(*) AS n FROM (SELECT i FROM a UNION SELECT i FROM b) q

SELECT DISTINCT dept FROM emp

SELECT DISTINCT dept, active FROM emp

SELECT DISTINCT ON (dept) dept, id, salary FROM emp ORDER BY dept, salary DESC, id

SELECT DISTINCT ON (dept, active) dept, active, name FROM emp ORDER BY dept, active, hired, id

SELECT DISTINCT ON (grade % 2) grade % 2 AS g, id FROM emp ORDER BY grade % 2, id

SELECT DISTINCT ON (1) dept, id FROM emp ORDER BY 1, id

SELECT DISTINCT n FROM wide -- looks: which of 1.0 and 1.00 stays

SELECT DISTINCT ints, words FROM wide

SELECT DISTINCT home FROM wide

SELECT DISTINCT dept, count(*) AS n FROM emp GROUP BY dept, active

WITH big AS (SELECT * FROM emp WHERE salary > 40) SELECT dept, count(*) AS n FROM big GROUP BY dept

WITH x AS (SELECT i FROM a), y AS (SELECT i FROM x UNION SELECT k FROM b) SELECT y.i, x.i AS xi FROM y LEFT JOIN x USING (i)

WITH x AS MATERIALIZED (SELECT dept, sum(salary) AS s FROM emp GROUP BY dept) SELECT * FROM x WHERE s > (SELECT avg(s) FROM x)

WITH x AS NOT MATERIALIZED (SELECT dept, salary FROM emp) SELECT p.dept, count(*) AS n FROM x p JOIN x q USING (dept) GROUP BY p.dept

WITH t (p, q) AS (SELECT i, j FROM a) SELECT p + q AS s FROM t

WITH outermost AS (WITH inner_one AS (SELECT i FROM a) SELECT i FROM inner_one UNION ALL SELECT i FROM b) SELECT i, count(*) AS n FROM outermost GROUP BY i

WITH e AS (SELECT 1 AS one) SELECT one, i FROM e, a

WITH RECURSIVE down AS (SELECT id, parent, name, 0 AS depth FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent, t.name, d.depth + 1 FROM tree t JOIN down d ON t.parent = d.id) SELECT * FROM down

WITH RECURSIVE reach AS (SELECT id, parent FROM tree UNION SELECT r.id, t.parent FROM reach r JOIN tree t ON t.id = r.parent) SELECT * FROM reach

WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5) SELECT n.n, a.i FROM n LEFT JOIN a ON a.i = n.n

WITH RECURSIVE down AS (SELECT id, parent, 0 AS depth FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent, d.depth + 1 FROM tree t JOIN down d ON t.parent = d.id) SELECT depth, count(*) AS n FROM down GROUP BY depth

WITH RECURSIVE down AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent FROM tree t JOIN down d ON t.parent = d.id) SEARCH DEPTH FIRST BY id SET path SELECT id, path::text AS path FROM down

WITH RECURSIVE down AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent FROM tree t JOIN down d ON t.parent = d.id) SEARCH BREADTH FIRST BY id SET seq SELECT id, seq::text AS seq FROM down

WITH RECURSIVE down AS (SELECT id, parent FROM tree WHERE id = 1 UNION ALL SELECT t.id, t.parent FROM tree t JOIN down d ON t.parent = d.id) CYCLE id SET looped USING path SELECT id, looped, path::text AS path FROM down

WITH RECURSIVE down AS (SELECT id, parent FROM tree WHERE id = 1 UNION ALL SELECT t.id, t.parent FROM tree t JOIN down d ON t.parent = d.id) CYCLE id SET looped TO 'Y' DEFAULT 'N' USING path SELECT id, looped FROM down

SELECT id, salary FROM emp ORDER BY salary DESC, id LIMIT 3 -- topk

SELECT id, salary FROM emp ORDER BY id OFFSET 2 -- topk

SELECT id, salary FROM emp ORDER BY salary, id LIMIT 3 OFFSET 1 -- topk

SELECT id, grade FROM emp ORDER BY grade FETCH FIRST 2 ROWS WITH TIES -- topk

SELECT dept, count(*) AS n FROM emp GROUP BY dept ORDER BY n DESC, dept LIMIT 2 -- topk

SELECT id FROM emp LIMIT 0

SELECT count(*) AS n FROM emp LIMIT 1

SELECT i FROM a UNION ALL SELECT i FROM b ORDER BY 1 LIMIT 4 -- topk

SELECT id FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT ALL

SELECT * FROM (SELECT id, salary FROM emp ORDER BY salary DESC, id LIMIT 3) q WHERE id > 1

SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v (n, t)

VALUES (1, 'one'), (2, 'two')

SELECT v.n, a.j FROM (VALUES (1), (2), (NULL)) AS v (n) LEFT JOIN a ON a.i = v.n

SELECT 1 AS one, 'x' AS x

TABLE a

SELECT emp.* FROM emp

SELECT count(emp.*) AS n FROM emp

SELECT d.*, e.n FROM dept d JOIN (SELECT dept, count(*) AS n FROM emp GROUP BY dept) e ON e.dept = d.id
