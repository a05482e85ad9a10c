SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM sale s FULL JOIN dept d ON d.id = s.shop AND s.n > 1 WHERE d.id = emp.dept)

SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM dept d LEFT JOIN LATERAL (SELECT s.n FROM sale s WHERE s.shop = d.id AND s.n > emp.grade) x ON true WHERE d.id = emp.dept AND x.n IS NULL)

SELECT id FROM emp WHERE NOT EXISTS (SELECT 1 FROM sale s RIGHT JOIN dept d ON s.shop = d.id AND s.n = emp.grade WHERE d.parent = emp.dept)

SELECT id FROM emp WHERE dept IN (SELECT d.id FROM dept d LEFT JOIN sale s ON s.shop = d.id AND s.n > emp.grade WHERE s.id IS NULL)

SELECT id, (SELECT count(s.id) FROM dept d LEFT JOIN sale s ON s.shop = d.id AND s.amount > emp.salary WHERE d.id = emp.dept) AS n FROM emp

SELECT dept, (SELECT max(x) FROM (SELECT count(*) FILTER (WHERE s.n > max(e.grade)) AS x FROM sale s WHERE s.shop = e.dept) q) AS m FROM emp e GROUP BY dept

SELECT (SELECT max(b.k + (SELECT count(*) FROM c WHERE c.i = a.i)) FROM b WHERE b.i = a.i) AS x, a.j FROM a

SELECT a.i, (SELECT sum((SELECT count(*) FROM b WHERE b.i = a.i AND b.k > c.z)) FROM c) AS x FROM a

SELECT a.i, (SELECT (SELECT max(a.j) + count(b.k) FROM b) FROM c ORDER BY 1 LIMIT 1) AS x FROM a GROUP BY a.i

SELECT a.i FROM a GROUP BY a.i HAVING (SELECT count(*) FROM b WHERE b.k < sum(a.j)) > 1

SELECT a.i, count(*) AS n FROM a GROUP BY a.i HAVING EXISTS (SELECT 1 FROM b WHERE b.i = a.i AND b.k < max(a.j))

SELECT 1 AS one FROM item HAVING EXISTS (SELECT 1 FROM a)

SELECT 1 AS one, count(*) OVER () AS n FROM item HAVING count(*) > 1

SELECT 1 AS one FROM item WHERE false HAVING true

SELECT count(*) AS n FROM item WHERE false

SELECT sum(c) AS s FROM item HAVING sum(c) IS NOT NULL

SELECT x.one, a.i FROM (SELECT 1 AS one FROM item HAVING count(*) > 2) x RIGHT JOIN a ON a.i = x.one

SELECT id, sum(grade) OVER (ORDER BY id ROWS BETWEEN (SELECT 1) PRECEDING AND (1 + 1) FOLLOWING) AS n FROM emp

SELECT id, sum(grade) OVER (ORDER BY id GROUPS (SELECT count(*) FROM c WHERE false) PRECEDING) AS n FROM emp

SELECT id, lag(id, (SELECT 1)) OVER (ORDER BY id) AS l, ntile((SELECT 2)) OVER (ORDER BY id) AS t FROM emp

SELECT doc, at::text AS at, count(*) AS n FROM wide WHERE doc = '{}' OR doc IS NULL GROUP BY GROUPING SETS (doc, at::text)

SELECT vec, span4, count(*) AS n FROM wide GROUP BY CUBE (vec, span4)

SELECT u, mood, ip, count(*) AS n FROM wide GROUP BY GROUPING SETS ((u, mood), ip, ())

SELECT money, vb, count(*) AS n FROM wide GROUP BY ROLLUP (money, vb)

SELECT a, b, rank() OVER (PARTITION BY a ORDER BY count(*) DESC, b) AS r, avg(sum(c)) OVER (PARTITION BY b) AS m FROM item GROUP BY a, b

SELECT x.i, avg(x.j) OVER (PARTITION BY y.k ORDER BY x.j RANGE UNBOUNDED PRECEDING) AS m, count(*) OVER (PARTITION BY x.i) AS n FROM a x JOIN b y ON x.i = y.i

SELECT i, u.i AS ui, (u.*)::text AS whole FROM a JOIN b USING (i) AS u -- refused: whole row of a join

SELECT q.i, q.n FROM (SELECT u.i, count(*) AS n FROM a JOIN b USING (i) AS u GROUP BY u.i) q LEFT JOIN c USING (i)

SELECT id FROM emp FOR UPDATE -- refused: lock

SELECT id FROM (SELECT id FROM emp FOR SHARE) q -- refused: lock

SELECT e.id, q.n FROM emp e, LATERAL (SELECT count(*) AS n FROM sale WHERE shop = e.dept HAVING count(*) > 1) q

SELECT e.id, q.n FROM emp e LEFT JOIN LATERAL (SELECT max(n) AS n FROM sale WHERE shop = e.dept GROUP BY product ORDER BY 1 DESC NULLS LAST LIMIT 1) q ON true

SELECT dept, array_agg(x ORDER BY x) AS xs FROM emp, LATERAL (SELECT DISTINCT grade AS x FROM emp e2 WHERE e2.dept = emp.dept) q GROUP BY dept

SELECT CASE WHEN i IN (SELECT i FROM b) THEN (SELECT max(z) FROM c WHERE c.i = a.i) ELSE (SELECT count(*) FROM b) END AS x, j FROM a

SELECT i FROM a WHERE (SELECT bool_or(k > a.j) FROM b WHERE b.i = a.i) IS NOT TRUE

SELECT i FROM a WHERE coalesce((SELECT max(k) FROM b WHERE b.i = a.i), 0) BETWEEN 1 AND (SELECT max(z) FROM c)

SELECT i, sum(j) AS s FROM a GROUP BY i HAVING sum(j) > ALL (SELECT k FROM b WHERE b.i = a.i)

SELECT count(DISTINCT (i, j)) AS n, count(DISTINCT i) FILTER (WHERE j > 1) AS m FROM a

SELECT i, string_agg(DISTINCT j::text, ',') AS l, array_agg(DISTINCT j ORDER BY j DESC NULLS LAST) AS m FROM a GROUP BY i

SELECT DISTINCT ON (i) i, (SELECT max(k) FROM b WHERE b.i = a.i) AS m, j FROM a ORDER BY i, m DESC, j

SELECT a.i FROM a WHERE a.j = (SELECT b.k FROM b WHERE b.i = a.i ORDER BY b.k OFFSET 1 LIMIT 1)
