SELECT id, name::character varying(3) AS a, CAST(grade AS double precision) AS b, text(id) AS c, float8(grade) AS d, "numeric"(grade) AS e FROM emp

SELECT id, CAST(salary AS decimal(12, 1)) AS a, salary::real AS b, (grade::int)::boolean AS c, id::oid AS d, name::name AS e, left(name, 1)::"char" AS f FROM emp

SELECT id, timestamp with time zone '2020-01-01 00:00+00' AS a, time without time zone '10:00' AS b, bit varying '0101' AS c, double precision '1.5' AS d, "char" 'x' AS e FROM emp

SELECT id, X'1F' AS a, b'101' AS b, E'\x41\u00e9' AS c, U&'d!0061t' UESCAPE '!' AS d, $q$it's $$ $q$ AS e FROM emp

SELECT id, interval '90' minute AS a, interval '1 2:03:04.567' day to second(1) AS b, interval(0) '4.7 seconds' AS c, interval '1 year 2 months' AS d FROM emp

SELECT id, -grade ^ 2 AS a, - 2 + grade * 3 % 4 AS b, NOT active = (grade > 1) AS c, grade IS NULL = active AS d, 2 - -grade AS e FROM emp

SELECT id, grade BETWEEN 1 AND 3 = active AS a, (grade < 2) IS TRUE AS b, NOT grade IN (1, 2) AS c, NOT (name LIKE 'a%' OR name LIKE 'b%') AS d FROM emp

SELECT id, larger(id, b => 7) AS a, larger(b => 1, a => id) AS b, make_interval(hours => 2, mins => id) AS c, larger(id, b := 3) AS d FROM emp

SELECT id, joined(VARIADIC ARRAY[name, 'x']) AS a, joined(name) AS b, concat(VARIADIC ARRAY[name, nick]) AS c, format('%2$s %1$s', VARIADIC ARRAY[name, nick]) AS d FROM emp

SELECT id, (ARRAY[10, 20, 30])[1 + id % 3] AS a, (ARRAY[[1, 2], [3, 4]])[2][1] AS b, (ARRAY[1, 2, 3, 4])[2:3] AS c, (ARRAY[1, 2, 3])[:2] AS d, (ARRAY[1, 2, 3])[2:] AS e, (ARRAY[1, 2])[:] AS f FROM emp

SELECT id, (ROW('s', id)::place).number AS a, (ROW('s', id)::place).* FROM emp

SELECT w.id, (w.home).* FROM wide w

SELECT id, (SELECT (home).street) AS a, ROW(home, 1) IS NULL AS b, (home).number::text || '!' AS c FROM wide

SELECT w.id, (h).small AS small, (h).large AS large FROM (SELECT id, halves(id) AS h FROM wide) w

SELECT id, (halves(id)).* FROM emp

SELECT id, ROW(id, grade) = ROW(1, 1::smallint) AS a, ROW(id, grade) < ROW(3, 2) AS b, (id, name) >= (2, 'b') AS c, ROW(grade, nick) IS NOT DISTINCT FROM ROW(NULL, NULL) AS d FROM emp

SELECT id, ROW(id, name, grade) IN (ROW(1, 'ann', 1), ROW(2, 'bob', 2)) AS a, (id, name) NOT IN ((1, 'ann')) AS b FROM emp

SELECT id, ARRAY[ARRAY[id], ARRAY[grade::int]] AS a, ARRAY[name, nick::text] AS b, ARRAY[]::text[] AS c, ARRAY[NULL, id] AS d FROM emp

SELECT id, ARRAY(SELECT x * 2 FROM generate_series(1, id % 3) AS x ORDER BY x DESC) AS a, ARRAY(VALUES (1), (2)) AS b FROM emp

SELECT id, name COLLATE "C" > 'b' AS a, name < 'b' COLLATE "POSIX" AS b, (name || 'x') COLLATE "C" AS c, upper(name COLLATE pg_catalog."C") AS d FROM emp

SELECT id, name FROM emp ORDER BY name COLLATE "C", id LIMIT 4 -- topk

SELECT id, CASE WHEN grade IS NULL THEN NULL WHEN grade > 2 THEN grade * 2 ELSE CASE active WHEN true THEN 0 ELSE -1 END END AS a FROM emp

SELECT id, grade OPERATOR(pg_catalog.*) 2::smallint AS a, name OPERATOR(pg_catalog.||) 'x' AS b, OPERATOR(pg_catalog.-) id AS c, id OPERATOR(public.<~>) 3 AS d FROM emp

SELECT e.id, e.dept <~> ANY (ARRAY[1, 2]) AS a, 3 <~> ALL (ARRAY[e.id, 4]) AS b FROM emp e

SELECT id AS "select", name AS "From", grade AS "a b", dept AS "x""y" FROM emp

SELECT emp.id id, emp.name "Name", grade value FROM public.emp

SELECT public.emp.id, public.twice(public.emp.id) AS t FROM public.emp

SELECT /* what /* nested */ it is */ id, name FROM emp /* the end */

SELECT current_role = current_user AS never FROM emp -- full: clock or the session

SELECT id, pg_catalog.upper(name) AS u, pg_catalog."substring"(name, 1, 2) AS s, "left"(name, 2) AS l, "overlay"(name, 'x', 1, 1) AS o FROM emp

SELECT id, coalesce(nick, name) AS a, greatest(name, nick) AS b, least(grade, NULL, 3) AS c, nullif(name, nick) AS d, coalesce(NULL, grade) AS e FROM emp

SELECT id, (grade)::text AS a, (id + 1)::text || 'x' AS b, -1::int2 AS c, (-1)::int2 AS d, '5'::text::int AS e, ('{1,2}'::int[])[1] AS f FROM emp

SELECT id, 'infinity'::float8 AS a, '-inf'::float4 AS b, 'NaN'::numeric AS c, 'infinity'::date AS d, '-infinity'::timestamp AS e, 'epoch'::timestamptz AS f, 'allballs'::time AS g FROM emp

SELECT id, true AND NULL AS a, active OR NULL AS b, 't'::bool AS c, 'off'::boolean AS d, bool 'yes' AS e FROM emp

SELECT id, 1_000 AS a, 0x1F AS b, 0o17 AS c, 0b101 AS d, 1_0.5_0 AS e FROM emp -- from 16

SELECT id, 12345678901234567890 AS a, 1e-3 AS b, 5. AS c, 1.e2 AS d, 00012 AS e FROM emp
