SELECT a.i, a.j, b.k FROM a, b WHERE a.i = b.i

SELECT a.i, b.k FROM a CROSS JOIN b

SELECT c.z, p.j FROM c, a p JOIN b q USING (i)

SELECT c.z, p.j, q.k FROM c LEFT JOIN (a p JOIN b q USING (i)) ON c.z = p.j

SELECT i, x.j, k, z FROM c FULL JOIN (a x FULL JOIN b USING (i)) USING (i)

SELECT * FROM a JOIN b USING (i)

SELECT * FROM a NATURAL JOIN b

SELECT * FROM a NATURAL LEFT JOIN b

SELECT * FROM a NATURAL FULL JOIN b

SELECT c.z, j, k FROM c, a NATURAL JOIN b

SELECT i, j, k FROM a RIGHT JOIN b USING (i)

SELECT t.z, x.i, x.j FROM c t, (a JOIN b USING (i)) AS x

SELECT t.z, x.p, x.q, x.r, x.s FROM c t JOIN (a JOIN b ON a.i = b.i) AS x (p, q, r, s) ON t.i = x.p

SELECT c.z, u.i, a.j FROM c, a JOIN b USING (i) AS u

SELECT u.i, v.i AS vi FROM (a FULL JOIN b USING (i) AS u) JOIN c USING (i) AS v

SELECT j1.i, j2.k FROM (a FULL JOIN b USING (i)) AS j1 JOIN b AS j2 ON j1.i = j2.i

SELECT i, count(*) AS n FROM a FULL JOIN b USING (i) FULL JOIN c USING (i) GROUP BY i

SELECT x.i, y.j FROM a x LEFT JOIN a y ON x.i = y.j AND x.j > 1

SELECT x.i, y.k, z.z FROM a x LEFT JOIN b y ON x.i = y.i LEFT JOIN c z ON z.i = y.k

SELECT x.i, y.k FROM a x LEFT JOIN b y ON x.i = y.i WHERE y.k IS NULL

SELECT x.i, y.k FROM a x LEFT JOIN b y ON x.i < y.k

SELECT x.i, y.k FROM a x FULL JOIN b y ON x.i = y.i AND y.k <> 2

SELECT x.i, y.k FROM a x FULL JOIN b y ON x.i = y.i WHERE coalesce(x.j, y.k) > 1

SELECT e.name, m.name AS boss FROM emp e LEFT JOIN emp m ON e.boss = m.id

SELECT e.name, d.name AS dept FROM emp e JOIN dept d ON d.id = e.dept AND d.budget > e.salary * 2

SELECT e.name, d.name AS dept FROM emp e LEFT JOIN dept d ON d.id = e.dept AND (e.active OR d.mood = 'glad')

SELECT d.name, s.n FROM dept d LEFT JOIN (SELECT dept, count(*) AS n FROM emp GROUP BY dept) s ON s.dept = d.id

SELECT d.name, s.n FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) s RIGHT JOIN dept d ON s.dept = d.id

SELECT d.name, e.name AS one FROM dept d, LATERAL (SELECT name FROM emp WHERE emp.dept = d.id ORDER BY salary DESC, id LIMIT 2) e

SELECT d.name, e.total FROM dept d LEFT JOIN LATERAL (SELECT sum(salary) AS total FROM emp WHERE emp.dept = d.id) e ON true

SELECT d.name, x.g FROM dept d CROSS JOIN LATERAL (VALUES (d.id), (d.parent)) AS x (g)

SELECT d.name, g FROM dept d, generate_series(1, d.id % 4) AS g

SELECT d.name, g.n, g.o FROM dept d, LATERAL generate_series(1, d.id % 3) WITH ORDINALITY AS g (n, o)

SELECT d.name, g FROM dept d LEFT JOIN LATERAL generate_series(1, d.id % 3) AS g ON g <> 2

SELECT w.id, x.e FROM wide w, unnest(w.ints) AS x (e)

SELECT w.id, x.e, x.p FROM wide w CROSS JOIN LATERAL unnest(w.words) WITH ORDINALITY AS x (e, p)

SELECT w.id, x.n, x.t FROM wide w, unnest(w.ints, w.words) AS x (n, t)

SELECT w.id, k.key, k.value FROM wide w, jsonb_each_text(w.doc) AS k

SELECT d.name, h.small, h.large FROM dept d, halves(d.id) AS h

SELECT d.id, u FROM dept d, upto(d.id % 3) u

SELECT x.i, y.i AS yi FROM a x JOIN a y ON x.i <~> y.i

SELECT x.i FROM a x WHERE (x.i, x.j) IN (SELECT b.i, b.k FROM b)

SELECT x.i, x.j FROM a x JOIN b y ON (x.i, x.j) = (y.i, y.k)

SELECT x.i, x.j, y.k FROM a x JOIN b y ON ROW(x.i, x.j) < ROW(y.i, y.k)

SELECT x.i, y.k FROM a x JOIN b y ON x.i IS NOT DISTINCT FROM y.i

SELECT d.name, e.name AS who FROM dept d JOIN emp e ON e.dept = d.id AND EXISTS (SELECT 1 FROM sale s WHERE s.shop = d.id)

SELECT d.name FROM dept d LEFT JOIN emp e ON e.dept = d.id AND e.salary > (SELECT avg(salary) FROM emp) GROUP BY d.name

SELECT a.i, b.k, c.z FROM a INNER JOIN (b INNER JOIN c ON b.i = c.i) ON a.i = b.i

SELECT a.i, b.k, c.z FROM (a LEFT JOIN b ON a.i = b.i) LEFT JOIN c ON b.k = c.z

SELECT a.i, b.k, c.z FROM a LEFT JOIN (b LEFT JOIN c ON b.k = c.z) ON a.i = b.i

SELECT a.i, b.k, c.z FROM a LEFT JOIN (b FULL JOIN c ON b.k = c.z) ON a.i = b.i

SELECT p.id, p.region, s.n FROM part p LEFT JOIN (SELECT region, count(*) AS n FROM part GROUP BY region) s USING (region)

SELECT b1.id, b2.v FROM base b1 JOIN base b2 ON b1.id = b2.v

SELECT e.id, r.n FROM emp e JOIN rich_depts r ON r.name = e.name

SELECT x.name, x.n FROM rich_depts x WHERE x.n > 1

SELECT d.name FROM dept d WHERE d.id IN (SELECT e.dept FROM emp e WHERE e.salary > 60) AND d.id NOT IN (SELECT s.shop FROM sale s WHERE s.shop IS NOT NULL)
