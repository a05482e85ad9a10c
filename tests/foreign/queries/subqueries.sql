SELECT id FROM emp WHERE dept IN (SELECT id FROM dept WHERE budget > 100)

SELECT id FROM emp WHERE dept NOT IN (SELECT id FROM dept WHERE budget > 100)

SELECT id FROM emp WHERE (dept, grade) IN (SELECT shop, n FROM sale)

SELECT id FROM emp WHERE salary > ALL (SELECT amount FROM sale WHERE shop = emp.dept)

SELECT id FROM emp WHERE salary < ANY (SELECT amount FROM sale WHERE shop = emp.dept)

SELECT id FROM emp WHERE salary = SOME (SELECT amount FROM sale)

SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM sale WHERE shop = emp.dept)

SELECT id FROM emp WHERE NOT EXISTS (SELECT 1 FROM sale WHERE shop = emp.dept)

SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM sale WHERE shop = emp.dept) OR grade = 3

SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM sale s LEFT JOIN dept d ON d.id = s.shop AND d.budget > emp.salary WHERE s.shop = emp.dept)

SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM sale s LEFT JOIN dept d ON d.id = emp.dept WHERE s.n = emp.grade AND d.id IS NULL)

SELECT id, (SELECT name FROM dept WHERE id = emp.dept) AS d FROM emp

SELECT id, (SELECT max(amount) FROM sale WHERE shop = emp.dept) AS m FROM emp

SELECT id, (SELECT count(*) FROM sale WHERE shop = emp.dept) AS m FROM emp

SELECT id, (SELECT sum(amount) FROM sale) AS total FROM emp

SELECT id FROM emp WHERE salary > (SELECT avg(salary) FROM emp)

SELECT id FROM emp e WHERE salary > (SELECT avg(salary) FROM emp x WHERE x.dept = e.dept)

SELECT id, ARRAY(SELECT s.id FROM sale s WHERE s.shop = emp.dept ORDER BY s.id) AS sales FROM emp

SELECT id, CASE WHEN EXISTS (SELECT 1 FROM sale WHERE shop = emp.dept) THEN 'sells' ELSE 'idle' END AS what FROM emp

SELECT id, coalesce((SELECT max(n) FROM sale WHERE shop = emp.dept), -1) AS m FROM emp

SELECT id FROM emp WHERE (SELECT count(*) FROM sale WHERE shop = emp.dept) >= 2

SELECT id FROM emp WHERE grade = (SELECT min(n) FROM sale WHERE shop = emp.dept AND product = 'pen')

SELECT id FROM emp WHERE id IN (SELECT max(id) FROM emp GROUP BY dept)

SELECT id FROM emp WHERE id IN (SELECT DISTINCT boss FROM emp)

SELECT id FROM emp WHERE dept IN (SELECT shop FROM sale UNION SELECT id FROM dept WHERE mood = 'glad')

SELECT q.dept, q.n FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) q WHERE q.n = (SELECT max(n) FROM (SELECT count(*) AS n FROM emp GROUP BY dept) r)

SELECT id FROM emp WHERE NOT (salary > ANY (SELECT amount FROM sale))

SELECT id FROM emp WHERE (SELECT active) AND salary > (SELECT 10)

SELECT id FROM emp e WHERE EXISTS (SELECT 1 FROM emp x WHERE x.boss = e.id AND EXISTS (SELECT 1 FROM sale s WHERE s.shop = x.dept AND s.n > e.grade))

SELECT d.id, (SELECT e.name FROM emp e WHERE e.dept = d.id ORDER BY e.salary DESC, e.id LIMIT 1) AS top FROM dept d

SELECT d.id, (SELECT e.name FROM emp e WHERE e.id = d.id LIMIT 1) AS same FROM dept d

SELECT id FROM emp WHERE row(dept, grade) = (SELECT shop, n FROM sale WHERE id = 1)

SELECT id FROM emp WHERE (dept, grade) > ALL (SELECT shop, n FROM sale WHERE n < 3)

SELECT x.id FROM (SELECT * FROM emp WHERE active) x JOIN LATERAL (SELECT max(s.n) AS n FROM sale s WHERE s.shop = x.dept) y ON y.n > x.grade

SELECT (SELECT count(*) FROM emp) AS a, (SELECT count(*) FROM dept) AS b, (SELECT max(n) FROM sale) AS c

SELECT id, (SELECT count(*) FROM sale WHERE shop = emp.dept) + (SELECT count(*) FROM dept WHERE parent = emp.dept) AS n FROM emp

SELECT id, dept = ANY (SELECT shop FROM sale) AS sells FROM emp

SELECT id, dept IN (SELECT shop FROM sale WHERE n > 2) AS a, dept NOT IN (SELECT shop FROM sale) AS b FROM emp

SELECT id, (SELECT array_agg(x.v ORDER BY x.v) FROM (SELECT s.n AS v FROM sale s WHERE s.shop = emp.dept) x) AS l FROM emp

SELECT id, (SELECT string_agg(p, '/' ORDER BY p) FROM unnest(words) AS p) AS w FROM wide

SELECT id, (SELECT sum(x) FROM unnest(ints) AS x WHERE x > 1) AS s FROM wide

SELECT d.name, (WITH w AS (SELECT salary FROM emp WHERE dept = d.id) SELECT max(salary) FROM w) AS m FROM dept d
