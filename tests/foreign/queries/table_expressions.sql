SELECT * FROM (VALUES (1, 'a', NULL), (2, NULL, 3.5)) AS v (n, t, x) WHERE n IN (SELECT i FROM a)

SELECT v.column1 AS a, v.column2 AS b FROM (VALUES (1, 2), (3, 4)) v JOIN a ON a.i = v.column1

SELECT id, v.k, v.x FROM wide, LATERAL (VALUES ('i2', i2::numeric), ('n', n)) AS v (k, x)

SELECT g AS day FROM generate_series(timestamp '2020-01-01', '2020-01-05', '1 day') AS g

SELECT g::date AS day, count(s.id) AS n FROM generate_series(timestamp '2020-01-01', '2020-02-05', '1 day') AS g LEFT JOIN sale s ON s.sold = g::date GROUP BY g

SELECT e.id, x.a, x.b, x.ordinality FROM emp e, ROWS FROM (generate_series(1, e.id % 3), unnest(ARRAY['p', 'q'])) WITH ORDINALITY AS x (a, b, ordinality)

SELECT w.id, r.a, r.b FROM wide w, jsonb_to_record(w.doc) AS r (a text, b jsonb)

SELECT w.id, r.x, r.y FROM wide w, jsonb_to_recordset('[{"x": 1, "y": "p"}, {"x": 2}]') AS r (x int, y text) WHERE w.id < 5

SELECT w.id, p.street, p.number FROM wide w, jsonb_populate_record(NULL::place, '{"street": "s", "number": 4}') AS p

SELECT w.id, e.value, e.ordinality FROM wide w, jsonb_array_elements_text(CASE jsonb_typeof(w.doc -> 'b') WHEN 'array' THEN w.doc -> 'b' END) WITH ORDINALITY AS e

SELECT w.id, k FROM wide w, jsonb_object_keys(w.doc) AS k

SELECT w.id, m.m FROM wide w, regexp_matches(w.t, '([a-z])(b?)', 'g') AS m (m)

SELECT w.id, s.part, s.n FROM wide w, string_to_table(w.t, 'b') WITH ORDINALITY AS s (part, n)

SELECT w.id, s.n FROM wide w LEFT JOIN LATERAL generate_subscripts(w.ints, 1) AS s (n) ON true

SELECT x.i, x.p, y.p AS q FROM (a CROSS JOIN (VALUES (1), (2)) AS v (p)) AS x (i, j, p) JOIN (VALUES (1), (3)) AS y (p) ON x.p <= y.p

SELECT d.id, l.name, l.n FROM dept d LEFT JOIN LATERAL (SELECT e.name, count(*) OVER () AS n FROM emp e WHERE e.dept = d.id ORDER BY e.id LIMIT 1) l ON l.n > 1

SELECT d.id, l.m FROM dept d CROSS JOIN LATERAL (SELECT max(x) AS m FROM (SELECT salary FROM emp WHERE dept = d.id UNION ALL SELECT amount FROM sale WHERE shop = d.id) AS u (x)) l

SELECT d.id, l1.n, l2.m FROM dept d, LATERAL (SELECT count(*) AS n FROM emp WHERE dept = d.id) l1, LATERAL (SELECT count(*) AS m FROM sale WHERE sale.n = l1.n) l2

SELECT x.i FROM ONLY a x

SELECT id, v FROM ONLY base

SELECT id, v FROM base* AS b

SELECT q.x, q.y FROM (SELECT i, j FROM a) AS q (x, y)

SELECT q.x, q.j FROM (SELECT i, j FROM a) AS q (x)

SELECT t.p, t.q FROM a AS t (p, q) WHERE t.p = t.q

SELECT * FROM a AS t (p, q) JOIN b AS u (p, r) USING (p)

SELECT i, j, k, z FROM a NATURAL JOIN b NATURAL LEFT JOIN c

SELECT i, x.j, y.j AS yj FROM a x LEFT JOIN a y USING (i) WHERE i IS NOT NULL

SELECT (i + 1) AS i1, x.i IS NULL AS xn FROM a x FULL JOIN b y USING (i)

SELECT x.i FROM a x JOIN b y USING (i) JOIN c z USING (i) WHERE z.z > ALL (SELECT k FROM b WHERE b.i = x.i)

SELECT 1 AS one WHERE EXISTS (SELECT FROM a WHERE i = 2)

SELECT (SELECT count(*) FROM a) AS n WHERE (SELECT count(*) FROM b) > 2

SELECT DISTINCT ON (e.dept, d.mood) e.dept, d.mood, e.name FROM emp e JOIN dept d ON d.id = e.dept ORDER BY e.dept, d.mood DESC, e.salary DESC NULLS LAST, e.id

SELECT ALL dept FROM emp

SELECT DISTINCT row(dept, active)::text AS r FROM emp

SELECT (SELECT i FROM a UNION SELECT i FROM b ORDER BY 1 NULLS LAST LIMIT 1) AS first

(SELECT i FROM a ORDER BY i, j LIMIT 2) UNION ALL (SELECT k FROM b ORDER BY k, i LIMIT 1)

(SELECT i FROM a UNION ALL SELECT i FROM b) INTERSECT (SELECT i FROM c EXCEPT SELECT j FROM a)

((SELECT i FROM a EXCEPT ALL SELECT i FROM b) UNION ALL SELECT z FROM c) EXCEPT SELECT 1

SELECT i, j FROM a UNION (SELECT i, k FROM b EXCEPT SELECT i, z FROM c) ORDER BY i, j

SELECT x FROM (SELECT i AS x FROM a INTERSECT ALL SELECT k FROM b) q WHERE x > 1

SELECT i FROM a UNION ALL VALUES (1), (2)

VALUES (1, 'a') UNION ALL SELECT i, 'b' FROM a

SELECT i, count(*) AS n FROM (TABLE a UNION ALL TABLE b) AS q (i, j) GROUP BY i

SELECT id FROM emp ORDER BY grade DESC NULLS FIRST, id OFFSET 1 ROW FETCH NEXT 3 ROWS ONLY -- topk

SELECT id, name FROM emp ORDER BY 2 USING <, 1 LIMIT 3 -- topk

SELECT dept, max(salary) AS m FROM emp GROUP BY dept ORDER BY max(salary) DESC NULLS LAST, dept FETCH FIRST ROW ONLY -- topk

SELECT max(id) AS m FROM emp ORDER BY 1 LIMIT 5 -- topk

SELECT count(*) AS n FROM emp OFFSET 0

SELECT count(*) AS n FROM emp OFFSET 1

SELECT id FROM emp WHERE id = 3 OFFSET 1

SELECT max(grade) AS m FROM emp WHERE dept = 1 LIMIT 2 OFFSET 1

SELECT i, (SELECT count(*) FROM b WHERE b.i = a.i OFFSET 1) AS n FROM a

SELECT id FROM emp LIMIT 3 -- refused: LIMIT without ORDER BY

SELECT x FROM (VALUES (1) UNION SELECT i FROM a) q (x)

SELECT x, j FROM (VALUES (1), (4), (2) ORDER BY 1 LIMIT 2) q (x) LEFT JOIN a ON a.i = q.x

SELECT id, 1 IN (VALUES (1)) AS d, dept = ANY (VALUES (1), (2)) AS e, (VALUES (4)) AS f FROM emp

SELECT x.a, x.b, x.c FROM ROWS FROM (generate_series(1, 3), jsonb_to_record('{"b": "p"}') AS (b text, c int[])) AS x (a, b, c) JOIN a ON a.i = x.a

WITH RECURSIVE d AS (SELECT id, parent FROM tree UNION ALL SELECT t.id, t.parent FROM tree t JOIN d ON t.parent = d.id) SEARCH DEPTH FIRST BY id SET path, e AS (SELECT id, path::text AS p FROM d) SELECT * FROM e

WITH RECURSIVE down AS (SELECT id FROM tree WHERE parent IS NULL UNION SELECT t.id FROM tree t JOIN down d ON t.parent = d.id) SELECT id FROM emp WHERE id IN (SELECT id FROM down)

WITH RECURSIVE down AS (SELECT id FROM tree WHERE parent IS NULL UNION SELECT t.id FROM tree t JOIN down d ON t.parent = d.id) SELECT id, (SELECT count(*) FROM down WHERE down.id > emp.id) AS n FROM emp

SELECT id FROM emp FETCH FIRST 0 ROWS ONLY

SELECT id FROM emp LIMIT NULL

SELECT id FROM emp WHERE id = 3 LIMIT 1

SELECT 1 AS one LIMIT 1

SELECT sum(n) AS s FROM (SELECT n FROM sale ORDER BY id LIMIT 3) q

SELECT id FROM emp WHERE id IN (SELECT id FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT 2)

SELECT dept, name FROM (SELECT dept, name, row_number() OVER (PARTITION BY dept ORDER BY hired, id) AS n FROM emp) q WHERE n = 1

WITH x AS (SELECT i FROM a), y AS MATERIALIZED (SELECT i FROM x WHERE i > 1), z AS NOT MATERIALIZED (SELECT i, count(*) AS n FROM y GROUP BY i) SELECT z.n, y.i FROM z RIGHT JOIN y USING (i)

WITH x AS (WITH y AS MATERIALIZED (WITH z AS (SELECT j FROM a) SELECT j FROM z) SELECT j FROM y UNION SELECT k FROM b) SELECT sum(j) AS s FROM x

WITH emp AS (SELECT id, dept FROM emp WHERE active) SELECT dept, count(*) AS n FROM emp GROUP BY dept

WITH x AS (SELECT dept, sum(salary) AS s FROM emp GROUP BY dept), y AS (SELECT max(s) AS m FROM x) SELECT x.dept FROM x, y WHERE x.s = y.m

WITH x AS (SELECT id, parent FROM tree WHERE id < 9), y AS (WITH RECURSIVE r AS (SELECT id FROM x WHERE parent IS NULL UNION ALL SELECT x.id FROM x JOIN r ON x.parent = r.id) SELECT id FROM r) SELECT y.id, e.name FROM y LEFT JOIN emp e USING (id)

WITH x (n) AS (VALUES (1), (2), (3)) SELECT x.n, count(a.i) AS c FROM x LEFT JOIN a ON a.i = x.n GROUP BY x.n

WITH RECURSIVE up (id, parent, names) AS (SELECT id, parent, ARRAY[name] FROM tree UNION ALL SELECT u.id, t.parent, u.names || t.name FROM up u JOIN tree t ON t.id = u.parent) SELECT id, names FROM up WHERE parent IS NULL

WITH RECURSIVE down (id, root) AS (SELECT id, id FROM tree UNION SELECT t.id, d.root FROM down d JOIN tree t ON t.parent = d.id), sizes AS (SELECT root, count(*) AS n FROM down GROUP BY root) SELECT t.name, s.n FROM tree t JOIN sizes s ON s.root = t.id

WITH RECURSIVE walk AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent FROM tree t, walk w WHERE t.parent = w.id) SEARCH BREADTH FIRST BY id SET seq CYCLE id SET again USING trail SELECT id, seq::text AS seq, again, trail::text AS trail FROM walk

WITH RECURSIVE walk AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT t.id, t.parent FROM tree t, walk w WHERE t.parent = w.id) SEARCH DEPTH FIRST BY parent, id SET path CYCLE id SET state TO 1 DEFAULT 0 USING trail SELECT id, state, path::text AS path FROM walk WHERE state = 0

WITH RECURSIVE walk AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION SELECT t.id, t.parent FROM tree t, walk w WHERE t.parent = w.id) CYCLE id, parent SET state TO 'seen' DEFAULT 'new' USING trail SELECT count(*) AS n, max(state) AS s FROM walk

WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 6) SELECT n, (SELECT count(*) FROM a WHERE i = n) AS c FROM t
