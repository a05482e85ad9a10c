SELECT id AS "Id", name AS "the name", salary AS "order" FROM emp

SELECT e."id", "e".name FROM emp AS "e"

SELECT id, 'it''s' AS a, E'tab\there' AS b, $$dollar$$ AS c, U&'\0061b' AS d, '' AS e FROM emp

SELECT id, 1e3 AS a, 1.50 AS b, -2 AS c, 9999999999 AS d, 0.1::float8 AS e, .5 AS f FROM emp

SELECT id, NULL::text AS a, NULL::int AS b, true AS c, 'now'::text AS d, '{}'::jsonb AS e FROM emp

SELECT id, date '2020-01-01' AS a, timestamp '2020-01-01 10:00' AS b, interval '1 day 2 hours' AS c, time '10:00' AS d, interval '1-2' year to month AS e FROM emp

SELECT id FROM emp WHERE active

SELECT id FROM emp WHERE NOT active

SELECT id FROM emp WHERE active IS NOT TRUE

SELECT id FROM emp WHERE active IS UNKNOWN

SELECT id FROM emp WHERE true

SELECT id FROM emp WHERE false

SELECT id FROM emp WHERE NULL

SELECT id FROM emp WHERE 1 = 1 AND 2 > 1

SELECT id FROM emp WHERE (dept = 1 OR dept = 2) AND (grade = 1 OR grade = 2 OR grade IS NULL)

SELECT id FROM emp WHERE NOT (dept = 1 AND grade = 2)

SELECT id FROM emp WHERE (id, grade) <> (1, 2)

SELECT id FROM emp WHERE (dept, grade) IN ((1, 2), (2, 3))

SELECT id FROM emp WHERE dept IN (1, 2, NULL)

SELECT id, name FROM emp ORDER BY name

SELECT i, i, j FROM a -- refused: more than once

SELECT count(*) AS "count", max(id) AS "max" FROM emp

SELECT e.* FROM emp e, dept d WHERE e.dept = d.id AND d.mood = 'glad'

SELECT d.mood, e.name FROM dept d JOIN emp e ON e.dept = d.id WHERE d.code = 'a'

SELECT d.code || '|' AS c, length(d.code) AS l FROM dept d

SELECT id, salary * 1.1 AS raised, salary + grade AS plus, salary::int % 7 AS rest FROM emp

SELECT id, hired + 30 AS later, extract(month FROM hired) AS m FROM emp WHERE hired >= '2020-01-01' AND hired < '2021-01-01'

SELECT id FROM part WHERE region = 'n'

SELECT id, region, v FROM part

SELECT id, v FROM base

SELECT id, v, tableoid = 'base'::regclass AS own FROM base -- full: names no column in sight

SELECT s.shop, s.product, sum(s.amount) AS total, sum(s.n) AS n, count(*) AS sales FROM sale s GROUP BY s.shop, s.product

SELECT to_char(sold, 'YYYY-MM') AS month, sum(amount) AS total FROM sale GROUP BY to_char(sold, 'YYYY-MM')

SELECT date_trunc('month', sold) AS month, count(*) AS n FROM sale GROUP BY 1

SELECT product, sum(amount) AS total, sum(amount) * 100 / sum(sum(amount)) OVER () AS share FROM sale GROUP BY product

SELECT shop, max(sold) AS last, min(sold) AS first, max(sold) - min(sold) AS days FROM sale GROUP BY shop

SELECT * FROM sale WHERE amount > (SELECT avg(amount) FROM sale s WHERE s.product = sale.product)

SELECT p.id, q.id AS nearest FROM point_of p JOIN point_of q ON p.id < q.id AND abs(p.x - q.x) + abs(p.y - q.y) < 4

SELECT label, count(*) FILTER (WHERE x > y) AS above, count(*) FILTER (WHERE x <= y) AS below FROM point_of GROUP BY label

SELECT (x, y) AS xy, id FROM point_of -- refused: pseudo-type

SELECT id, row_to_json(p) AS j FROM point_of p

SELECT id, to_jsonb(p) - 'label' AS j FROM point_of p

SELECT p AS whole, id FROM point_of p

SELECT (p).x AS px FROM (SELECT point_of AS p FROM point_of) q
