SELECT id, extract(century FROM ts) AS a, extract(isodow FROM day) AS b, extract(doy FROM day) AS c, extract(quarter FROM ts) AS d, extract(week FROM ts) AS e, extract(isoyear FROM day) AS f, extract(milliseconds FROM tm) AS g, extract(microseconds FROM ts) AS h, extract(decade FROM ts) AS i, extract(julian FROM day) AS j, extract(timezone FROM tz) AS k, extract('day' FROM span) AS l FROM wide

SELECT id, ts AT TIME ZONE INTERVAL '+02:00' AS a, tz AT TIME ZONE 'America/New_York' AT TIME ZONE 'UTC' AS b, (ts AT TIME ZONE 'UTC')::date AS d FROM wide

SELECT id, (day, '10 days'::interval) OVERLAPS (date '2020-01-03', date '2020-01-04') AS a, (tm, tm + '1 hour') OVERLAPS (time '10:30', time '11:00') AS b, (ts, ts) OVERLAPS (timestamp '2020-01-01', timestamp '2021-01-01') AS c FROM wide

SELECT id, date_trunc('week', ts) AS a, date_trunc('day', tz, 'Europe/Berlin') AS b, date_bin('1 hour', ts, '2000-01-01 00:30') AS c, make_timestamp(2020, 1, 1, id % 24, 0, 0) AS d, make_time(id % 24, 5, 1.5) AS e, make_timestamptz(2020, 1, 1, 1, 1, 1, 'UTC') AS f, to_timestamp(id) AS g, to_timestamp('2020 Jan', 'YYYY Mon') AS h FROM wide

SELECT id, ts - ts AS a, day - 3 AS b, tm - tm AS c, ts + '2 days' AS d, '1 month' + ts AS e, date '2020-03-01' - day AS f, span + span AS g, ts > day AS h, age(timestamp '2020-02-01', ts) AS i FROM wide

SELECT id, day IN (date '2020-01-01', date '2020-01-02') AS a, ts BETWEEN '2020-01-01' AND '2020-12-31' AS b, day <> ALL (ARRAY[date '2020-01-05']) AS c, tz >= '2020-01-01T00:00:00Z' AS d FROM wide

SELECT id, to_char(tz, 'HH24:MI TZ') AS a, to_char(span, 'HH12:MI:SS') AS b, to_char(i8, '999G999PR') AS c, to_char(f8, '9.99EEEE') AS d, to_char(id, 'RN') AS e, to_number('12,454.8-', '99G999D9S') AS f, to_date('05 Dec 2000', 'DD Mon YYYY') AS g FROM wide

SELECT id, regexp_replace(t, '(.)(b)', '\2\1') AS a, regexp_replace(t, 'A', 'x', 1, 0, 'i') AS b, regexp_matches(t, 'a') AS c, (regexp_match(t, '(a)(b)?'))[2] AS d, substring(t, '#"a#"%', '#') AS e, t ~ '\d' AS f, t ~ E'\\w' AS g FROM wide

SELECT id, t LIKE '\_%' AS a, t LIKE '%' || v || '%' AS b, t NOT SIMILAR TO '%(b|d)%' AS c, t SIMILAR TO 'x!%' ESCAPE '!' AS d, t ILIKE ANY (ARRAY['a%', 'X%']) AS e, t NOT LIKE ALL (ARRAY['a%', 'b%']) AS f, t NOT ILIKE 'A%' AS g FROM wide

SELECT id, format('%s|%-5s|%L', t, v, t) AS a, format('%%') AS b, quote_nullable(v) AS c, concat_ws('-', VARIADIC words) AS d, left(t, -1) || right(t, 1) AS e, string_to_array('a,b', ',', 'b') AS f, array_to_string(ints, ',', '*') AS g, parse_ident('a.b') AS h FROM wide

SELECT id, trim(both from t) AS a, trim('a' from t) AS b, trim(leading from c) AS c, rtrim(t) AS d, btrim(by, '\xff'::bytea) AS e, trim(trailing '\x02'::bytea from by) AS f, lpad(v, 8) AS g, to_hex(i8) AS h, ltrim(t, 'ax') AS i, trim(both 'a', 'x') AS j FROM wide

SELECT id, overlay(t placing 'zz' from 2) AS a, position('b' in t) AS b, substring(t for 2) AS c, substring(t from 2) AS d, substring(by from 2) AS e, overlay(by placing '\x00'::bytea from 1 for 1) AS f, substr(t, 0, 2) AS g, "position"(t, 'a') AS h FROM wide

SELECT id, encode(sha512(by), 'hex') AS a, md5(t) AS b, crc32(by) AS c, reverse(v) AS d FROM wide -- from 18

SELECT id, casefold(t COLLATE "C") AS a, uuid_extract_version(u) AS b, array_sort(ints) AS c, array_reverse(ints) AS d, gamma(2) AS e, to_bin(id) AS f FROM wide -- from 18

SELECT id, trunc(n) AS a, round(f8) AS b, ceil(f8::numeric) AS c, sign(i2) AS d, cbrt(27) AS e, mod(n, 2) AS f, div(i8, 3) AS g, exp(0.0) AS h, log(2.0, 8.0) AS i, min_scale(n) AS j, abs(i8) AS k, power(2::numeric, id) AS l, atan2(1, 2) AS m, sind(30) AS n0, numeric '5' % 3 AS o, n / 3 AS p FROM wide WHERE n IS NOT NULL

SELECT id, @ (i2 - 5) AS a, |/ id AS b, ||/ 27 AS c, 2 ^ id AS d, 2.0 ^ 0.5 AS e, -2 ^ 2 AS f, 7 % 4 AS g, id |1 AS h, f8 ^ 2 AS i FROM wide

SELECT id, ok AND n > 1 AS a, ok IS DISTINCT FROM true AS b, (ok, id) IS NOT NULL AS c, n IS NOT DISTINCT FROM NULL AS d, num_nulls(VARIADIC ints) AS e, ok <> (id > 3) AS f, ok::text AS g, bool(i2::int) AS h FROM wide

SELECT mood, count(*) FILTER (WHERE ok) AS a, sum(i2) FILTER (WHERE n > 1) AS b, string_agg(t, ',' ORDER BY id) FILTER (WHERE t <> '') AS c, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FILTER (WHERE ok) AS d, bool_and(ok) FILTER (WHERE id > 2) AS e FROM wide GROUP BY mood

SELECT dept, percentile_cont(0.5) WITHIN GROUP (ORDER BY salary DESC) AS a, percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY name) AS b, mode() WITHIN GROUP (ORDER BY grade DESC) AS c, percent_rank(20) WITHIN GROUP (ORDER BY salary) AS d, cume_dist(2, 'b') WITHIN GROUP (ORDER BY grade, name) AS e FROM emp GROUP BY dept

SELECT dept, string_agg(DISTINCT name, ';' ORDER BY name DESC) AS a, array_agg(ROW(id, name)::text ORDER BY id) AS b, jsonb_object_agg(name, grade ORDER BY id) AS c, count(DISTINCT nick) AS d, array_agg(ARRAY[id, grade::int] ORDER BY id) AS e FROM emp GROUP BY dept

SELECT regr_intercept(y, x) AS a, regr_r2(y, x) AS b, regr_avgx(y, x) AS c, regr_sxy(y, x) AS d, stddev_samp(x) AS e, bit_xor(x) AS f, string_agg(label::bytea, '\x2c' ORDER BY id) AS g FROM point_of

SELECT dept, max(ROW(salary, id)::text) AS m, min(active::int) AS a, sum(grade::int8) AS s, sum(grade) FILTER (WHERE true) AS t, count(*) AS "count(*)" FROM emp GROUP BY emp.dept HAVING bool_or(active) IS NOT FALSE

SELECT id, count(*) OVER w AS a, sum(grade) OVER (w RANGE UNBOUNDED PRECEDING EXCLUDE GROUP) AS b FROM emp WINDOW w AS (PARTITION BY dept ORDER BY salary NULLS FIRST)

SELECT id, array_agg(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE NO OTHERS) AS a, sum(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS b, min(id) OVER (ORDER BY grade GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS c FROM emp

SELECT id, lag(name, 2, 'none') OVER w2 AS a, nth_value(id, 2) OVER (w1 ORDER BY id) AS b, ntile(2) OVER w2 AS c FROM emp WINDOW w1 AS (PARTITION BY active), w2 AS (w1 ORDER BY id)

SELECT id, sum(salary) OVER (ORDER BY hired RANGE BETWEEN '1 month' PRECEDING AND '1 day' FOLLOWING EXCLUDE TIES) AS s, max(hired) OVER (PARTITION BY dept ORDER BY hired DESC NULLS LAST) - hired AS d FROM emp

SELECT id, percentile.a FROM (SELECT id, avg(salary) OVER (PARTITION BY dept ORDER BY id RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS a FROM emp) AS percentile WHERE a > 30

SELECT d.id, e.r FROM dept d JOIN (SELECT dept, rank() OVER (ORDER BY count(*) DESC, dept) AS r, sum(count(*)) OVER (ORDER BY dept) AS run FROM emp GROUP BY dept) e ON e.dept = d.id WHERE e.run > 1

SELECT id FROM emp WHERE name = ANY (SELECT name FROM dept) AND grade <> ALL (SELECT n FROM sale WHERE shop = emp.dept)

SELECT id FROM emp WHERE (grade, dept) = ANY (SELECT n, shop FROM sale) OR (grade, dept) <> ALL (SELECT n, shop FROM sale)

SELECT id FROM emp WHERE name LIKE ANY (SELECT name || '%' FROM dept) OR ROW(id, dept) > (SELECT max(id), max(shop) FROM sale)

SELECT id, EXISTS (TABLE a) AS a, EXISTS (VALUES (1)) AS b, (VALUES (1), (2) ORDER BY 1 DESC LIMIT 1) AS c, NOT EXISTS (SELECT FROM b WHERE b.i = emp.dept) AS d FROM emp

SELECT a, grouping((SELECT 1)) AS g FROM item GROUP BY a, (SELECT 1)

SELECT (SELECT grouping(a)) AS g, a, count(*) AS n FROM item GROUP BY ROLLUP (a)

SELECT id, has_it FROM (SELECT id, nick IS NOT NULL AND nick <> '' AS has_it FROM emp) q WHERE has_it IS NOT FALSE

SELECT id, int4(salary) AS a, text(name) AS b, date(hired) AS c, "time"(hired::timestamp) AS d, "interval"('1 day'::text) AS e, "bit"(id, 4) AS f, bpchar(name) AS g FROM emp
SELECT id, tm AT TIME ZONE 'Europe/Oslo' IS NULL AS c FROM wide -- full: timezone
