-- JSON_TABLE
SELECT a.id, q.v FROM a, JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$')) AS q;
SELECT a.id, q.n, q.v FROM a LEFT JOIN JSON_TABLE(a.j, '$[*]' COLUMNS (n FOR ORDINALITY, v int PATH '$')) AS q ON q.v > 1;
SELECT q.v, count(*) AS n FROM a, JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$')) AS q GROUP BY q.v;
SELECT a.id, q.* FROM a, JSON_TABLE(a.j, '$' COLUMNS (l int PATH '$.size()' DEFAULT 0 ON ERROR, NESTED PATH '$[*]' COLUMNS (v int PATH '$'))) AS q;
SELECT a.id, q.v FROM a, JSON_TABLE(a.j, '$[*] ? (@ > $least)' PASSING a.g AS least COLUMNS (v int PATH '$')) AS q;
SELECT id FROM a WHERE EXISTS (SELECT FROM JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$')) AS q WHERE q.v = a.g);
SELECT id, (SELECT sum(q.v) FROM JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$')) AS q) AS s FROM a;
SELECT a.id, b.y FROM a, JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$')) AS q JOIN b ON b.id = q.v;
SELECT v FROM JSON_TABLE('[1, 2]'::jsonb, '$[*]' COLUMNS (v int PATH '$')) AS q;
SELECT DISTINCT ON (a.g) a.g, q.v FROM a, JSON_TABLE(a.j, '$[*]' COLUMNS (v int PATH '$')) AS q ORDER BY a.g, q.v;

-- ROWS FROM
SELECT a.id, f.x, f.y FROM a, ROWS FROM (unnest(a.arr), generate_series(1, a.g)) AS f(x, y);
SELECT a.id, f.* FROM a LEFT JOIN ROWS FROM (unnest(a.arr), unnest(a.arr)) WITH ORDINALITY AS f(x, y, o) ON f.x > 1;
SELECT f.p, count(*) AS n FROM a, ROWS FROM (unnest(a.arr), regexp_split_to_table(a.x, ',')) AS f(p, q) GROUP BY f.p;
SELECT a.id, f.k, f.v FROM a, ROWS FROM (jsonb_to_recordset(jsonb_build_array(jsonb_build_object('k', a.g, 'v', a.x))) AS (k int, v text)) AS f;
SELECT a.id, (SELECT count(f.x) FROM ROWS FROM (unnest(a.arr), generate_series(1, 2)) AS f(x, y)) AS n FROM a;
SELECT f.x, f.y FROM ROWS FROM (generate_series(1, 3), generate_series(1, 2)) AS f(x, y);
SELECT f.* FROM ROWS FROM (unnest(ARRAY[1, 2]), unnest(ARRAY[3])) WITH ORDINALITY AS f(x, y, o);
SELECT a.id, (SELECT sum(f.o) FROM unnest(a.arr, a.arr) WITH ORDINALITY AS f(p, q, o)) AS s FROM a;

-- LATERAL functions of tables
SELECT a.id, u.v FROM a CROSS JOIN LATERAL unnest(a.arr) AS u(v);
SELECT a.id, u.v, w.s FROM a CROSS JOIN LATERAL unnest(a.arr) AS u(v) LEFT JOIN LATERAL generate_series(1, u.v) AS w(s) ON w.s > a.g;
SELECT a.id, e.key, e.value FROM a, jsonb_each(jsonb_build_object('g', a.g, 'x', a.x)) AS e;
SELECT a.id, l.* FROM a LEFT JOIN LATERAL (SELECT u.v, b.y FROM unnest(a.arr) AS u(v) JOIN b ON b.id = u.v) AS l ON true;
SELECT a.id, both_of(a.g) AS v FROM a;
SELECT b.id, f.v FROM b JOIN a ON a.g = b.g, both_of(a.id + b.id) AS f(v) WHERE f.v > 3;
SELECT f.v, count(*) AS n FROM a, LATERAL both_of(a.g) AS f(v) GROUP BY f.v HAVING count(*) > 1;
SELECT a.id, l.m FROM a, LATERAL (SELECT max(v) AS m FROM unnest(a.arr) AS u(v)) AS l;
SELECT a.id, f.* FROM a, LATERAL string_to_table(a.x, ',') WITH ORDINALITY AS f(w, o);
SELECT a.id, b.y FROM a, unnest(a.arr) AS q(v) JOIN b ON b.id = q.v;
SELECT a.id, q.v, b.y, k.t FROM a, unnest(a.arr) AS q(v) LEFT JOIN b ON b.id = q.v LEFT JOIN k ON k.g = b.g AND k.v > q.v;
SELECT a.id, q.v, b.y, w.s FROM k, a, unnest(a.arr) AS q(v) JOIN b ON b.id = q.v, generate_series(1, q.v) AS w(s) WHERE k.g = a.g;
SELECT a.id, (SELECT count(*) FROM unnest(a.arr) AS q(v) JOIN b ON b.id = q.v) AS n FROM a;
SELECT a.id, l.s FROM a, LATERAL (SELECT count(*) AS s FROM b WHERE b.g = a.g) AS l JOIN k ON k.v = l.s;

-- LIMIT in derived tables
SELECT count(*) AS n FROM (SELECT id FROM b ORDER BY p DESC NULLS LAST, id LIMIT 3) q;
SELECT a.id, q.y FROM a JOIN (SELECT id, g, y FROM b ORDER BY id LIMIT 2) q ON q.g = a.g;
SELECT g, sum(id) AS s FROM (SELECT id, g FROM b ORDER BY id DESC LIMIT 3 OFFSET 1) q GROUP BY g;
SELECT id FROM a WHERE id IN (SELECT id FROM b ORDER BY p, id LIMIT 2);
SELECT * FROM (SELECT id FROM a ORDER BY id LIMIT 2) q UNION ALL (SELECT id FROM b ORDER BY id DESC LIMIT 1);
WITH top AS (SELECT id, g FROM b ORDER BY p, id FETCH FIRST 3 ROWS ONLY) SELECT a.id, top.id AS t FROM a LEFT JOIN top USING (g);
SELECT id, (SELECT y FROM b WHERE b.g = a.g ORDER BY b.id LIMIT 1) AS y FROM a;
SELECT count(*) AS n FROM (SELECT g, count(*) AS c FROM b GROUP BY g ORDER BY count(*) DESC, g LIMIT 2) q;
SELECT q.id FROM (SELECT id, g FROM b ORDER BY g FETCH FIRST 2 ROWS WITH TIES) q;

-- DISTINCT ON in derived tables
SELECT g, y FROM (SELECT DISTINCT ON (g) g, y FROM b ORDER BY g, p DESC NULLS LAST, id) q WHERE y <> 'u';
SELECT a.id, q.y FROM a LEFT JOIN (SELECT DISTINCT ON (g) g, y FROM b ORDER BY g, id) q USING (g);
SELECT y, count(*) AS n FROM (SELECT DISTINCT ON (g) g, y FROM b ORDER BY g, id DESC) q GROUP BY y;
SELECT count(*) AS n FROM (SELECT DISTINCT ON (g, y) g, y, p FROM b ORDER BY g, y, p, id LIMIT 2) q;
SELECT id FROM a WHERE (g, id) IN (SELECT DISTINCT ON (g) g, id FROM b ORDER BY g, id);
SELECT g, y, p FROM (SELECT DISTINCT ON (g, y) g, y, p FROM b ORDER BY g, y, p, id OFFSET 1) q;
SELECT a.id, q.z FROM a JOIN (SELECT DISTINCT ON (upper(y)) upper(y) AS z, g FROM b ORDER BY upper(y), id DESC LIMIT 2) q USING (g);

-- GROUPING SETS
SELECT g, t, count(*) AS n, sum(v) AS s FROM k GROUP BY ROLLUP (g, t);
SELECT g, t, count(*) AS n FROM k GROUP BY CUBE (g, t) HAVING count(*) > 1;
SELECT g, t, grouping(g, t) AS w, sum(v) FILTER (WHERE v > 1) AS s FROM k GROUP BY GROUPING SETS ((g), (t), ());
SELECT g, count(DISTINCT t) AS n, string_agg(t, ',' ORDER BY t) AS ts FROM k GROUP BY ROLLUP (g);
SELECT a.g, b.y, count(*) AS n FROM a JOIN b ON a.g = b.g GROUP BY ROLLUP (a.g, b.y);
SELECT g, t, n, rank() OVER (PARTITION BY g ORDER BY n, t) AS r FROM (SELECT g, t, count(*) AS n FROM k GROUP BY CUBE (g, t)) q;
SELECT g, t, count(*) AS n, rank() OVER (PARTITION BY grouping(g, t) ORDER BY count(*), g, t) AS r FROM k GROUP BY ROLLUP (g, t);
SELECT q.g, q.n, a.id FROM (SELECT g, count(*) AS n FROM k GROUP BY ROLLUP (g)) q LEFT JOIN a ON a.g = q.g;
SELECT g, t, v, count(*) AS n FROM k GROUP BY ROLLUP (g), CUBE (t, v);
SELECT DISTINCT n FROM (SELECT g, t, count(*) AS n FROM k GROUP BY CUBE (g, t)) q;
SELECT g % 2 AS p, t, max(v) AS m FROM k GROUP BY GROUPING SETS ((g % 2, t), (g % 2), ());
SELECT g, t, count(*) AS n FROM k GROUP BY DISTINCT ROLLUP (g, t), ROLLUP (g);
SELECT g, t, (SELECT count(*) FROM b WHERE b.g = k.g) AS c, count(*) AS n FROM k GROUP BY ROLLUP (g, t);

-- NATURAL, USING and *
SELECT * FROM a NATURAL JOIN b;
SELECT * FROM b NATURAL LEFT JOIN k;
SELECT g, count(*) AS n FROM b NATURAL FULL JOIN k GROUP BY g;
SELECT j.g, j.y, a.id FROM (b FULL JOIN k USING (g)) AS j(g, bid, y, p, v, t) JOIN a ON a.g = j.g;
SELECT u.g, b.y, k.t FROM b JOIN k USING (g) AS u;
SELECT * FROM va NATURAL JOIN b;
SELECT k.*, b.id, b.y FROM k JOIN b USING (g);
