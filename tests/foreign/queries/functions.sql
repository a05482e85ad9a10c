SELECT id, substring(t, 1, 3) AS a, substr(t, 2) AS b, substring(t from 2 for 2) AS c, substring(t from 2) AS d FROM wide

SELECT id, substring(t from 'b.') AS a, substring(t similar '#"_#"%' escape '#') AS b FROM wide

SELECT id, strpos(t, 'b') AS a, position('b' in t) AS b, btrim(t) AS c, btrim(t, 'a') AS d FROM wide

SELECT id, trim(t) AS a, trim(leading 'a' from t) AS b, trim(trailing from t) AS c, trim(both 'xy' from t) AS d, ltrim(t) AS e, rtrim(t, 'x') AS f FROM wide

SELECT id, char_length(t) AS a, character_length(v) AS b, length(c) AS c, octet_length(t) AS d, bit_length(t) AS e FROM wide

SELECT id, ceiling(f8) AS a, ceil(n) AS b, floor(n) AS c, round(n) AS d, round(n, 1) AS e, trunc(n, 1) AS f, sign(n) AS g FROM wide

SELECT id, mod(i8, 3) AS a, i8 % 3 AS b, abs(n) AS c, div(n, 2) AS d, power(n, 2) AS e, sqrt(abs(n)) AS f FROM wide

SELECT id, n ^ 2 AS a, |/ abs(n) AS b, ||/ n AS c, @ n AS d, - n AS e, + n AS f FROM wide

SELECT id, exp(f8) > 1 AS a, ln(abs(n) + 1) AS b, log(abs(n) + 1) AS c, pi() > 3 AS d, degrees(f8) > 0 AS e FROM wide

SELECT id, i2 & 3::int2 AS a, i2 | 1::int2 AS b, i2 # 5::int2 AS c, ~ i2 AS d, i8 << 1 AS e, i8 >> 1 AS f FROM wide

SELECT id, greatest(i2, 3) AS a, least(i2, 3, id) AS b, coalesce(t, v, 'none') AS c, nullif(id, 2) AS d FROM wide

SELECT id, upper(t) AS a, lower(v) AS b, initcap(t) AS c, reverse(t) AS d, repeat(v, 2) AS e, lpad(t, 5, '*') AS f, rpad(t, 5) AS g FROM wide

SELECT id, left(t, 2) AS a, right(t, -1) AS b, replace(t, 'a', 'b') AS c, translate(t, 'ab', 'xy') AS d, split_part(t, 'b', 1) AS e FROM wide

SELECT id, concat(t, '-', v, id) AS a, concat_ws(',', t, v) AS b, t || v AS c, t || id AS d, format('%s-%I', t, v) AS e FROM wide WHERE v IS NOT NULL

SELECT id, overlay(t placing 'XX' from 2 for 1) AS a, overlay(t placing 'Y' from 1) AS b FROM wide

SELECT id, ascii(t) AS a, chr(65 + id % 20) AS b, md5(t) AS c, to_hex(id) AS d, quote_literal(t) AS e, quote_ident(v) AS f, starts_with(t, 'a') AS g, t ^@ 'a' AS h FROM wide

SELECT id, t LIKE 'a%' AS a, t NOT LIKE '%b' AS b, t ILIKE 'A_' AS c, t LIKE 'a#%' ESCAPE '#' AS d, t SIMILAR TO '(a|b)%' AS e FROM wide

SELECT id, t ~ '^a' AS a, t ~* 'B' AS b, t !~ 'c' AS c, t !~* 'C' AS d, t ~~ 'a%' AS e, t !~~ 'b%' AS f FROM wide

SELECT id, regexp_replace(t, 'a', 'z', 'g') AS a, regexp_match(t, '(.)b') AS b, regexp_split_to_array(t, 'b') AS c, regexp_replace(t, '[^a-z]', '') AS d FROM wide

SELECT id, regexp_count(t, 'a') AS a, regexp_like(t, 'b') AS b, regexp_substr(t, '.b') AS c, regexp_instr(t, 'b') AS d FROM wide

SELECT id, extract(year FROM day) AS a, extract(epoch FROM ts) AS b, date_part('month', day) AS c, extract(dow FROM ts) AS d, extract(hour FROM span) AS e FROM wide

SELECT id, date_trunc('month', ts) AS a, date_trunc('day', tz) AS b, date_trunc('hour', span) AS c, date_bin('15 minutes', ts, '2020-01-01') AS d FROM wide

SELECT id, age(ts, '2000-01-01') AS a, day + 1 AS b, day - '2020-01-01'::date AS c, ts + span AS d, ts - '1 day'::interval AS e, span * 2 AS f FROM wide

SELECT id, tz AT TIME ZONE 'UTC' AS a, ts AT TIME ZONE 'Europe/Berlin' AS b, tz::date AS c, timezone('America/New_York', ts) AS d FROM wide

SELECT id, make_date(2020, 1 + id % 12, 1) AS a, make_interval(days => id) AS b, to_date('2020' || lpad((1 + id % 12)::text, 2, '0'), 'YYYYMM') AS c, justify_hours(span) AS d FROM wide

SELECT id, to_char(day, 'YYYY-MM-DD') AS a, to_char(n, 'FM999.0') AS b, to_char(ts, 'Day') AS c, to_number('1' || id, '999') AS d FROM wide

SELECT id, (day, day + 10) OVERLAPS ('2020-01-05'::date, '2020-02-01'::date) AS a, isfinite(ts) AS b FROM wide

SELECT id, tm + '1 hour'::interval AS a, day + tm AS b, ts::time AS c, ts::date AS d, extract(minute FROM tm) AS e FROM wide

SELECT id, doc -> 'a' AS a, doc ->> 'a' AS b, doc #> '{b,0}' AS c, doc #>> '{b,0}' AS d, doc ? 'a' AS e, doc @> '{"a": 1}' AS f FROM wide

SELECT id, doc ?| ARRAY['a', 'z'] AS a, doc ?& ARRAY['a', 'b'] AS b, doc || '{"x": 1}' AS c, doc - 'a' AS d, doc #- '{b,0}' AS e, doc @? '$.a' AS f, doc @@ '$.a == 1' AS g FROM wide

SELECT id, doc['a'] AS a, jsonb_typeof(doc) AS b, jsonb_array_length(coalesce(doc -> 'b', '[]')) AS c, jsonb_build_object('id', id, 't', t) AS d, jsonb_set(doc, '{a}', '9') AS e FROM wide

SELECT id, to_jsonb(ints) AS a, jsonb_path_query_first(doc, '$.b[*]') AS b, jsonb_path_exists(doc, '$.b[*] ? (@ > 1)') AS c, jsonb_strip_nulls(doc) AS d, jsonb_pretty(doc) AS e FROM wide

SELECT id, js -> 'a' AS a, js ->> 'a' AS b, json_build_array(id, t) AS c, row_to_json(row(id, t)) AS d, json_typeof(js) AS e FROM wide

SELECT id, jsonb_array_elements(coalesce(doc -> 'b', '[]')) AS e FROM wide

SELECT id, ints[1] AS a, ints[1:2] AS b, array_length(ints, 1) AS c, cardinality(ints) AS d, ints || 9 AS e, array_append(ints, id) AS f, array_prepend(0, ints) AS g FROM wide

SELECT id, 2 = ANY (ints) AS a, 2 <> ALL (ints) AS b, ints @> ARRAY[1] AS c, ints && ARRAY[2, 3] AS d, ints <@ ARRAY[1, 2, 3] AS e, array_position(ints, 2) AS f FROM wide

SELECT id, array_to_string(words, ',') AS a, string_to_array(t, 'b') AS b, array_remove(ints, 2) AS c, array_replace(ints, 1, 7) AS d, array_cat(ints, ARRAY[5]) AS e, array_upper(ints, 1) AS f FROM wide

SELECT id, ARRAY[id, 2] AS a, ARRAY[[1, 2], [3, 4]] AS b, (ARRAY[t, v])[1] AS c, ARRAY[]::int[] AS d, '{1,2}'::int[] AS e FROM wide

SELECT id, span4 @> 3 AS a, span4 && int4range(2, 5) AS b, lower(span4) AS c, upper(span4) AS d, isempty(span4) AS e, span4 * int4range(1, 4) AS f, span4 -|- int4range(5, 6) AS g FROM wide

SELECT id, days @> '2020-01-05'::date AS a, daterange('2020-01-01', '2020-02-01') * days AS b, int4multirange(span4) AS c FROM wide

SELECT id, bits & B'0110' AS a, bits | B'0001' AS b, bits # B'1111' AS c, ~ bits AS d, bits << 1 AS e, get_bit(bits, 0) AS f, bits::int AS g, 5::bit(4) AS h, id::bit(8) AS i FROM wide

SELECT id, ip + 1 AS a, host(ip) AS b, masklen(net) AS c, ip << '10.0.0.0/8'::inet AS d, network(ip) AS e, family(ip) AS f, net >>= ip AS g, trunc(mac) AS h FROM wide

SELECT id, by || '\x01'::bytea AS a, encode(by, 'hex') AS b, decode('ff', 'hex') AS c, get_byte('\x0102'::bytea, 1) AS d, sha256(by) AS e, md5(by) AS f FROM wide

SELECT id, mood > 'sad' AS a, mood::text AS b, enum_range(NULL::mood) AS c, 'glad'::mood AS d, enum_first(mood) AS e FROM wide

SELECT id, (home).street AS a, (home).number + 1 AS b, home = ROW('main', 1)::place AS c, ROW(t, id)::place AS d, home IS NULL AS e, home IS NOT NULL AS f FROM wide

SELECT id, at[0] AS a, at <-> '(0,0)'::point AS b, point(id, id) <@ '((0,0),(9,9))'::box AS c FROM wide

SELECT id, vec @@ 'a'::tsquery AS a, to_tsvector('simple', t) AS b, to_tsquery('simple', 'a & b') AS c, ts_rank(vec, 'a') >= 0 AS d FROM wide

SELECT id, CASE WHEN id > 2 THEN 'big' WHEN id = 2 THEN 'two' ELSE 'one' END AS a, CASE id WHEN 1 THEN 'x' WHEN 2 THEN 'y' END AS b FROM wide

SELECT id, ok IS TRUE AS a, ok IS NOT TRUE AS b, ok IS FALSE AS c, ok IS NOT FALSE AS d, ok IS UNKNOWN AS e, ok IS NOT UNKNOWN AS f, NOT ok AS g FROM wide

SELECT id, id BETWEEN 1 AND 3 AS a, id NOT BETWEEN 2 AND 4 AS b, id BETWEEN SYMMETRIC 3 AND 1 AS c FROM wide

SELECT id FROM wide WHERE id BETWEEN 1 AND 9 AND i2 > 1

SELECT id FROM wide WHERE i2 > 1 AND id BETWEEN 1 AND 9 OR t BETWEEN 'a' AND 'b'

SELECT count(*) AS n FROM wide GROUP BY ok HAVING count(*) BETWEEN 1 AND 3 AND max(id) > 2

SELECT CASE WHEN id BETWEEN 1 AND 2 AND ok THEN 1 ELSE 0 END AS x, id FROM wide

SELECT e.id FROM emp e JOIN dept d ON d.id BETWEEN e.dept AND e.dept + 1 AND e.active

SELECT id FROM wide WHERE v IN ('ab', 'cd')

SELECT id FROM wide WHERE v NOT IN ('ab', 'cd') AND c IN ('ab', 'x')

SELECT id FROM dept WHERE name IN ('north', 'south') OR code IN ('a', 'b')

SELECT id FROM wide WHERE v = 'ab' OR c = 'ab' OR t = v

SELECT id FROM emp WHERE nick LIKE 'a%' AND nick = ANY (ARRAY['ab', 'abc'])

SELECT id FROM wide WHERE mood IN ('sad', 'glad') AND day IN ('2020-01-01', '2020-01-02')

SELECT id, id::text AS a, id::numeric(8,2) AS b, n::int AS c, t::varchar(2) AS d, CAST(f8 AS numeric(10,3)) AS e, v::char(2) AS f, day::text AS g, ok::int AS h FROM wide

SELECT id, n::text AS a, '12'::int + id AS b, id::float8 / 3 AS c, id / 2 AS d, id / 2.0 AS e, (id::text || '.5')::numeric AS f FROM wide

SELECT id, t COLLATE "C" AS a, t COLLATE "C" < v AS b, lower(t COLLATE "C") AS c FROM wide

SELECT id, num_nulls(t, v, n) AS a, num_nonnulls(t, v) AS b, t IS DISTINCT FROM v AS c, (id, i2) IS DISTINCT FROM (i2, id) AS d FROM wide

SELECT id, twice(id) AS a, larger(id) AS b, larger(a => id, b => 5) AS c, joined('x', t) AS d, joined(VARIADIC words) AS e FROM wide WHERE t IS NOT NULL AND words IS NOT NULL

SELECT id, id <~> 2 AS a, id OPERATOR(pg_catalog.+) 1 AS b FROM wide

SELECT id, size + 1 AS a, size::int AS b, 7::positive AS c FROM wide

SELECT id, width_bucket(n, 0, 10, 5) AS a, width_bucket(id, ARRAY[2, 4, 6]) AS b, gcd(id, 6) AS c, lcm(id, 4) AS d, factorial(id % 5) AS e, scale(n) AS f, trim_scale(n) AS g FROM wide

SELECT id, money + money AS a, money * 2 AS b, money::numeric AS c FROM wide

SELECT id, u AS a, u::text AS b, '00000000-0000-0000-0000-000000000001'::uuid < u AS c FROM wide

SELECT id, generate_series(1, id % 3) AS g FROM wide

SELECT id, unnest(ints) AS e, unnest(words) AS w FROM wide

SELECT id, regexp_split_to_table(t, 'b') AS p FROM wide

SELECT id, upto(id % 3) AS u FROM wide

SELECT id, (halves(id)).small AS s FROM wide

SELECT id, t IS NULL AS a, t ISNULL AS b, t NOTNULL AS c, (t, v) IS NULL AS d FROM wide

SELECT id, string_to_table(t, 'b') AS p FROM wide

SELECT id, normalize(t, NFC) AS a, t IS NORMALIZED AS b, unistr('\0061') AS c FROM wide

SELECT id, (SELECT x.a FROM (SELECT id AS a) AS x) AS y FROM wide

SELECT id, pg_typeof(id)::text AS a, row(id, t)::text AS b, hashtext(t) % 2 AS c FROM wide

SELECT id, i2 = 1 AS a, i2 <> 1 AS b, i2 != 1 AS c, i2 <= id AS d, i8 >= i2 AS e, n < f8 AS f FROM wide

SELECT id, json_build_object('a', id, 'b', doc) AS j, jsonb_build_array(t, ints) AS k FROM wide

SELECT id, lower(span4) IS NULL AS a, lower_inc(span4) AS b, upper_inf(span4) AS c, range_merge(span4, int4range(1, 2)) AS d FROM wide
