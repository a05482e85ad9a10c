SELECT id, dept, rank() OVER (PARTITION BY dept ORDER BY salary) AS r FROM emp

SELECT id, dense_rank() OVER w AS a, row_number() OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b FROM emp WINDOW w AS (PARTITION BY dept ORDER BY salary, id)

SELECT id, sum(salary) OVER (PARTITION BY dept) AS s, sum(salary) OVER () AS t FROM emp

SELECT id, sum(salary) OVER (ORDER BY id) AS running FROM emp

SELECT id, sum(grade) OVER (ORDER BY id ROWS 2 PRECEDING) AS s FROM emp

SELECT id, sum(grade) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM emp

SELECT id, sum(grade) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS s FROM emp

SELECT id, sum(grade) OVER (ORDER BY salary RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING) AS s FROM emp

SELECT id, count(*) OVER (ORDER BY hired RANGE BETWEEN '30 days'::interval PRECEDING AND CURRENT ROW) AS s FROM emp

SELECT id, sum(grade) OVER (ORDER BY dept GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS s FROM emp WHERE id < 1000

SELECT id, lag(salary) OVER (ORDER BY id) AS a, lead(salary, 2, 0.00) OVER (PARTITION BY dept ORDER BY id) AS b FROM emp

SELECT id, first_value(name) OVER w AS a, last_value(name) OVER w AS b, nth_value(name, 2) OVER w AS c FROM emp WINDOW w AS (PARTITION BY dept ORDER BY id)

SELECT id, ntile(3) OVER (ORDER BY id) AS n, percent_rank() OVER (ORDER BY id) AS p, cume_dist() OVER (ORDER BY grade) AS c FROM emp

SELECT dept, sum(salary) AS s, rank() OVER (ORDER BY sum(salary) DESC, dept) AS r FROM emp GROUP BY dept

SELECT dept, active, sum(count(*)) OVER (PARTITION BY dept) AS s FROM emp GROUP BY dept, active

SELECT a, b, rank() OVER (PARTITION BY a ORDER BY count(*), b) AS r, avg(b) AS m FROM item GROUP BY a, b

SELECT e.id, avg(e.salary) OVER (PARTITION BY d.name) AS m FROM emp e JOIN dept d ON d.id = e.dept

SELECT id, count(*) FILTER (WHERE active) OVER (PARTITION BY dept) AS n FROM emp

SELECT id, string_agg(name, ',') OVER (PARTITION BY dept ORDER BY id) AS names FROM emp

SELECT * FROM (SELECT id, dept, row_number() OVER (PARTITION BY dept ORDER BY salary DESC, id) AS r FROM emp) q WHERE r <= 2

SELECT id, rank() OVER (ORDER BY grade) - rank() OVER (ORDER BY grade DESC) AS d FROM emp

SELECT id, max(salary) OVER (PARTITION BY dept) - salary AS below FROM emp

SELECT id, a, sum(a) OVER (PARTITION BY b) AS s FROM (SELECT id, grade AS a, dept AS b FROM emp WHERE active) q

SELECT id, sum(sum(grade)) OVER (PARTITION BY dept) AS s FROM emp GROUP BY id, dept

SELECT id, product(grade::int) OVER (PARTITION BY dept) AS p FROM emp

SELECT id, count(*) OVER (PARTITION BY (SELECT count(*) FROM dept WHERE dept.id = emp.dept)) AS n FROM emp

SELECT id, count(*) OVER (ORDER BY id ROWS (SELECT 1) PRECEDING) AS n FROM emp

SELECT id, percentile.p FROM emp, LATERAL (SELECT cume_dist() OVER (ORDER BY s.amount) AS p FROM sale s WHERE s.shop = emp.dept ORDER BY s.id LIMIT 1) percentile

SELECT id, row_number() OVER () AS n FROM emp WHERE id = 1

SELECT DISTINCT dept, count(*) OVER (PARTITION BY dept) AS n FROM emp

SELECT id, first_value(grade) OVER (PARTITION BY dept ORDER BY hired DESC NULLS LAST, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS f FROM emp

SELECT id, avg(grade) OVER (PARTITION BY dept, active) AS a, avg(grade) OVER (PARTITION BY dept) AS b, avg(grade) OVER () AS c FROM emp

SELECT shop, sold, sum(sum(amount)) OVER (PARTITION BY shop ORDER BY sold) AS running FROM sale GROUP BY shop, sold

SELECT id, lag(id, 1) OVER (PARTITION BY mood ORDER BY id) AS before FROM wide

SELECT id, rank() OVER (ORDER BY n) AS r FROM wide

SELECT id, min(f8) OVER (PARTITION BY ok) AS m FROM wide

SELECT id, lag(id) OVER later AS before, avg(grade) OVER (whole) AS a FROM emp WINDOW whole AS (), later AS (whole ORDER BY id)

SELECT id, sum(grade) OVER (w) AS s, count(*) OVER w AS n, max(id) OVER (w ORDER BY id) AS m FROM emp WINDOW w AS (PARTITION BY dept)
