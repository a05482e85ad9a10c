SELECT count(*) AS n, count(grade) AS g, count(DISTINCT dept) AS d FROM emp

SELECT avg(grade) AS a, sum(grade) AS s, min(grade) AS lo, max(grade) AS hi FROM emp

SELECT sum(i8) AS a, avg(i8) AS b, sum(n) AS c, avg(n) AS d FROM wide

SELECT sum(f8) AS a, avg(f8) AS b, sum(f4) AS c FROM wide

SELECT sum(span) AS a, avg(span) AS b, min(span) AS c, max(tm) AS d FROM wide -- looks: 1 day and 24 hours are one interval

SELECT sum(money) AS a, max(money) AS b FROM wide

SELECT stddev(salary) AS a, stddev_pop(salary) AS b, variance(grade) AS c, var_pop(grade) AS d, var_samp(salary) AS e FROM emp

SELECT corr(x, y) AS a, covar_pop(x, y) AS b, covar_samp(x, y) AS c, regr_slope(y, x) AS d, regr_count(y, x) AS e FROM point_of

SELECT dept, bool_and(active) AS a, bool_or(active) AS b, every(active) AS c FROM emp GROUP BY dept

SELECT bit_and(i2) AS a, bit_or(i2) AS b, bit_xor(i2) AS c, bit_or(bits) AS d FROM wide

SELECT dept, string_agg(name, ',' ORDER BY name, id) AS names FROM emp GROUP BY dept

SELECT dept, string_agg(name, ',') AS names FROM emp GROUP BY dept

SELECT dept, array_agg(id ORDER BY id DESC) AS ids FROM emp GROUP BY dept

SELECT dept, array_agg(DISTINCT grade) AS grades FROM emp GROUP BY dept

SELECT dept, array_agg(nick ORDER BY nick NULLS FIRST, id) FILTER (WHERE active) AS nicks FROM emp GROUP BY dept

SELECT dept, json_agg(name ORDER BY id) AS a, jsonb_agg(id ORDER BY id) AS b FROM emp GROUP BY dept

SELECT dept, json_object_agg(id, name ORDER BY id) AS a, jsonb_object_agg(id, salary) AS b FROM emp GROUP BY dept

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) AS a, percentile_disc(0.25) WITHIN GROUP (ORDER BY id) AS b FROM emp

SELECT dept, percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY salary) AS a FROM emp GROUP BY dept

SELECT dept, mode() WITHIN GROUP (ORDER BY grade) AS m FROM emp GROUP BY dept

SELECT dept, rank(3) WITHIN GROUP (ORDER BY grade) AS r, dense_rank(3) WITHIN GROUP (ORDER BY grade) AS d FROM emp GROUP BY dept

SELECT dept, product(grade::int) AS p FROM emp GROUP BY dept

SELECT dept, product(grade::int) FILTER (WHERE grade < 5) AS p, count(*) FILTER (WHERE active) AS n FROM emp GROUP BY dept

SELECT dept, max(name) AS m, min(hired) AS h, max(nick) AS v FROM emp GROUP BY dept

SELECT mood, max(c) AS c, min(v) AS v, max(ip) AS ip, min(u::text) AS u FROM wide GROUP BY mood

SELECT max(ints) AS i, min(words) AS w, max(home::text) AS h FROM wide

SELECT range_agg(span4) AS r, range_intersect_agg(span4) AS s FROM wide

SELECT dept, count(*) AS n FROM emp GROUP BY dept HAVING count(*) > 1

SELECT dept, sum(salary) AS s FROM emp GROUP BY dept HAVING sum(salary) > (SELECT avg(salary) FROM emp)

SELECT dept, sum(salary) AS s FROM emp GROUP BY dept HAVING NOT bool_or(active)

SELECT count(*) AS n FROM (SELECT 1 AS one FROM emp HAVING true) q

SELECT 1 AS one FROM emp HAVING 1 < 2

SELECT 1 AS one FROM emp HAVING 1 > 2

SELECT 1 AS one FROM emp HAVING count(*) > 5

SELECT 'x' AS x FROM emp GROUP BY ()

SELECT count(*) AS n FROM emp GROUP BY ()

SELECT dept + 1 AS d, count(*) AS n FROM emp GROUP BY dept + 1

SELECT dept % 2 AS d, grade % 2 AS g, count(*) AS n FROM emp GROUP BY 1, 2

SELECT upper(name) AS u, count(*) AS n FROM emp GROUP BY upper(name) ORDER BY 1

SELECT d.id, d.name, count(e.id) AS n FROM dept d LEFT JOIN emp e ON e.dept = d.id GROUP BY d.id

SELECT dept, count(*) AS n, count(*) * 2 + max(grade) AS x FROM emp GROUP BY dept

SELECT dept, sum(CASE WHEN active THEN salary ELSE 0 END) AS s, sum(CASE WHEN active THEN 1 END) AS n FROM emp GROUP BY dept

SELECT dept, sum(salary) / nullif(count(*), 0) AS s, round(avg(salary), 2) AS a FROM emp GROUP BY dept

SELECT dept, sum(DISTINCT grade) AS a, avg(DISTINCT grade) AS b FROM emp GROUP BY dept

SELECT max(n) AS m FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) q

SELECT n, count(*) AS how_many FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) q GROUP BY n

SELECT dept, count(*) AS n FROM emp WHERE salary > 20 GROUP BY dept, active

SELECT d, count(*) AS n FROM item GROUP BY d

SELECT a, b, count(*) AS n, sum(c) AS s FROM item GROUP BY a, b

SELECT sum(a + b) AS s, sum(a) + sum(b) AS t, sum(a * b * c) AS u FROM item

SELECT (SELECT count(*) FROM item i WHERE i.a = max(e.grade)) AS x FROM emp e

SELECT dept, (SELECT count(*) FROM sale s WHERE s.shop = e.dept) AS x FROM emp e GROUP BY dept

SELECT e.dept, (SELECT max(s.amount + sum(e.salary)) FROM sale s WHERE s.shop = e.dept) AS x FROM emp e GROUP BY e.dept

SELECT (SELECT max((SELECT b.k FROM b WHERE b.i = a.i ORDER BY b.k LIMIT 1))) AS x FROM a

SELECT a.i, (SELECT max((SELECT sum(b.k) FROM b WHERE b.i = a.i))) AS x FROM a GROUP BY a.i

SELECT a.i, (SELECT sum(a.j) FILTER (WHERE b.k > 2) FROM b) AS x FROM a

SELECT dept, string_agg(DISTINCT nick, '-' ORDER BY nick) AS x, count(DISTINCT (grade, active)) AS y FROM emp GROUP BY dept

SELECT a.i, (SELECT count(b.k) + max(a.j) FROM b) AS x FROM a GROUP BY a.i

SELECT dept, any_value(dept) AS a FROM emp GROUP BY dept -- from 16

SELECT id % 3 AS k, min(at[0]) AS x FROM wide GROUP BY id % 3

SELECT count(*) AS n FROM base

SELECT region, sum(v) AS s FROM part GROUP BY region

SELECT mood, count(*) AS n FROM wide GROUP BY mood

SELECT c, count(*) AS n FROM wide GROUP BY c -- looks: which of equal values stands for both

SELECT n, count(*) AS k FROM wide GROUP BY n -- looks: which of 1.0 and 1.00 stands for both

SELECT f8, count(*) AS k FROM wide GROUP BY f8 -- looks: which of 0 and -0 stands for both

SELECT ints, count(*) AS k FROM wide GROUP BY ints

SELECT home, count(*) AS k FROM wide GROUP BY home

SELECT span4, days, count(*) AS k FROM wide GROUP BY span4, days

SELECT bits, vb, count(*) AS k FROM wide GROUP BY bits, vb

SELECT doc, count(*) AS k FROM wide GROUP BY doc -- looks: which of 1 and 1.0 stands for both

SELECT span, count(*) AS k FROM wide GROUP BY span -- looks: which of 1 day and 24 hours stands for both

SELECT ip, net, mac, count(*) AS k FROM wide GROUP BY ip, net, mac
