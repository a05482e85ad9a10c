SELECT a, b, grouping(a, b) AS g, sum(c) AS s, count(*) AS n FROM item GROUP BY ROLLUP (a, b)

SELECT a, b, grouping(a, b) AS g, sum(c) AS s FROM item GROUP BY CUBE (a, b)

SELECT a, b, sum(c) AS s FROM item GROUP BY GROUPING SETS ((a, b), (a), ())

SELECT a, b, c, count(*) AS n FROM item GROUP BY a, GROUPING SETS (b, c)

SELECT a, b, c, count(*) AS n FROM item GROUP BY ROLLUP (a), ROLLUP (b, c)

SELECT a, b, c, count(*) AS n FROM item GROUP BY GROUPING SETS (ROLLUP (a, b), CUBE (c))

SELECT a, b, count(*) AS n FROM item GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a)

SELECT a, b, count(*) AS n FROM item GROUP BY ROLLUP ((a, b))

SELECT a, sum(c) AS s, rank() OVER (ORDER BY sum(c) DESC, a) AS r FROM item GROUP BY ROLLUP (a)

SELECT a, b, sum(c) AS s, sum(sum(c)) OVER (PARTITION BY grouping(a, b)) AS t FROM item GROUP BY CUBE (a, b)

SELECT a, b, sum(sum(c)) OVER (ORDER BY a, b) AS r FROM item GROUP BY CUBE (a, b)

SELECT DISTINCT ON (b) b, a, sum(c) AS s FROM item GROUP BY CUBE (a, b) ORDER BY b, a, s

SELECT DISTINCT a, count(*) AS n FROM item GROUP BY ROLLUP (a, b)

SELECT 1 AS k, a, sum(c) AS s FROM item GROUP BY GROUPING SETS (1, 2)

SELECT 'x'::text AS k, sum(c) AS s FROM item GROUP BY ROLLUP ('x'::text)

SELECT x, y, count(*) AS n FROM (SELECT a AS x, a AS y FROM item) q GROUP BY GROUPING SETS (x, y) HAVING y IS NULL

SELECT x, y, count(*) AS n FROM (SELECT a AS x, b AS y FROM item) q GROUP BY GROUPING SETS (x, y)

SELECT x, not_x, count(*) AS n FROM (SELECT a > 1 AS x, NOT a > 1 AS not_x FROM item) q GROUP BY GROUPING SETS (x, not_x)

SELECT a, b, sum(c) AS s FROM item GROUP BY CUBE (a, b) HAVING sum(c) > 5

SELECT a, b, sum(c) AS s FROM item GROUP BY CUBE (a, b) HAVING grouping(a) = 1 OR a > 1

SELECT a, b, sum(c) FILTER (WHERE b > 1) AS s, array_agg(c ORDER BY c) AS l FROM item GROUP BY ROLLUP (a, b)

SELECT a + b AS ab, count(*) AS n, max(a + b) AS m FROM item GROUP BY ROLLUP (a + b)

SELECT coalesce(d, '?') AS d, grouping(d) AS g, count(*) AS n FROM item GROUP BY ROLLUP (d)

SELECT e.dept, d.name, count(*) AS n FROM emp e JOIN dept d ON d.id = e.dept GROUP BY ROLLUP (e.dept, d.name)

SELECT d.id, d.name, e.active, count(*) AS n FROM dept d JOIN emp e ON e.dept = d.id GROUP BY d.id, ROLLUP (e.active)

SELECT t.a, (SELECT count(*) FROM emp e WHERE e.dept = t.a) AS n, sum(t.c) AS s FROM item t GROUP BY ROLLUP (t.a)

SELECT * FROM (SELECT a, b, count(*) AS n FROM item GROUP BY CUBE (a, b)) q WHERE a IS NOT NULL

SELECT q.a, count(*) AS n FROM (SELECT a, b FROM item GROUP BY CUBE (a, b)) q GROUP BY q.a

SELECT q.a, i.b FROM (SELECT a, sum(c) AS s FROM item GROUP BY ROLLUP (a)) q LEFT JOIN item i ON i.a = q.a

SELECT a, count(*) AS n FROM item GROUP BY ROLLUP (a) UNION ALL SELECT b, count(*) FROM item GROUP BY ROLLUP (b)

SELECT grouping(a) AS g, grouping(b) AS h, grouping(a, b) AS gh, a, b FROM item GROUP BY GROUPING SETS ((a), (b), ())

SELECT a, b, c FROM item GROUP BY CUBE (a, b, c)

SELECT count(*) AS n FROM item GROUP BY GROUPING SETS ((), ())

SELECT a, count(*) AS n FROM item GROUP BY GROUPING SETS ((a), (a))

SELECT bits, mood, count(*) AS n FROM wide GROUP BY GROUPING SETS (bits, mood)

SELECT home, ints, count(*) AS n FROM wide GROUP BY ROLLUP (home, ints)

SELECT a, b, rank() OVER (PARTITION BY a ORDER BY count(*), b) AS r, avg(b) AS m FROM item GROUP BY a, b

SELECT a, min(sum(c)) OVER (PARTITION BY a) AS m FROM item GROUP BY GROUPING SETS ((a, b), (a))
SELECT a, sum(c) AS s, grouping(a) AS g FROM item GROUP BY a
SELECT a, b, grouping(b, a) AS g, count(*) AS n FROM item GROUP BY GROUPING SETS ((a, b)) HAVING grouping(a) = 0
