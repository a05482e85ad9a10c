SELECT id, n::numeric(6,1) AS a, n::int8 AS b, f8::numeric AS c, i8::float4 AS d, i2::text::int8 AS e, n::money AS f FROM wide WHERE n > 0

SELECT id, t::bytea AS a, convert_from(by, 'LATIN1') AS b, encode(by, 'base64') AS c, substring(by from 1 for 1) AS d, position('\x02'::bytea in by) AS e, length(by) AS f FROM wide WHERE t NOT LIKE '%\%'

SELECT id, c || '|' AS a, c = 'ab' AS b, c::text || '|' AS c1, char_length(c) AS d, bpchar 'x ' = c AS e, 'abcdef'::char(3) AS f, 'abcdef'::varchar(2) AS g, c::varchar AS h FROM wide

SELECT id, day::timestamp AS a, ts::timestamp(0) AS b, tz::time AS c, tz::timestamp AS d, day::timestamptz AS e, tm::time(0) AS f, (tm || '+02')::timetz AS g FROM wide WHERE tm IS NOT NULL

SELECT id, span::text AS a, span::interval day AS b, span::interval second(0) AS c, span / 2 AS d, - span AS e, span > '12 hours'::interval AS f, justify_interval(span) AS g FROM wide

SELECT id, mood = ANY (ARRAY['sad', 'glad']::mood[]) AS a, enum_last(mood) AS b, enum_range(mood, NULL) AS c, mood::text::mood AS d, greatest(mood, 'calm') AS e FROM wide

SELECT id, bits || vb AS a, bits::varbit AS b, bits::bit(2) AS c, vb::bit(3) AS d, length(vb) AS e, bit_count(bits) AS f, overlay(bits placing B'11' from 1) AS g, substring(bits from 2 for 2) AS h, set_bit(bits, 0, 1) AS i, bits >> 2 AS j, position(B'1' in bits) AS k FROM wide

SELECT id, money / 2 AS a, money / money AS b, money > 5::money AS c, money::text AS d, cashlarger(money, 2::money) AS e, 3 * money AS f, '$1.20'::money AS g FROM wide WHERE money <> 0::money

SELECT id, ip::text AS a, abbrev(net) AS b, broadcast(ip) AS c, netmask(net) AS d, hostmask(ip) AS e, set_masklen(ip, 4) AS f, inet_merge(ip, ip) AS g, ip - ip AS h, ~ ip AS i, ip & '0.0.0.255'::inet AS j, inet_same_family(ip, '::1') AS k FROM wide WHERE family(ip) = 4

SELECT id, ip <<= net AS a, ip && net AS b, net >> '10.1.0.0/16' AS c, ip::cidr AS d, macaddr8_set7bit(mac::macaddr8) AS e, ~ mac AS f, mac & 'ff:ff:ff:00:00:00' AS g FROM wide WHERE ip IS NULL OR masklen(ip) = 32

SELECT id, point(1, 2) <-> at AS a, at + point '(1,1)' AS b, at ~= point '(1,2)' AS c, circle(at, 2) @> point '(0,0)' AS d, box(at, point '(3,3)')::text AS e, lseg(at, point '(0,0)')::text AS f, area(box(at, point '(4,4)')) AS g, @-@ path '((0,0),(1,0))' AS h, (center(circle(at, 1)))[0] AS i FROM wide

SELECT id, span4 + int4range(4, 6) AS a, span4 <@ int4range(0, 10) AS b, span4 << int4range(7, 9) AS c, span4 &> int4range(0, 1) AS d, int4range(1, 5, '[]') AS e, '[1,3)'::int4range AS f, int4multirange(coalesce(span4, 'empty'), int4range(8, 9)) AS g FROM wide WHERE span4 && int4range(1, 4)

SELECT id, multirange(days) AS a, datemultirange(days, daterange('2021-01-01', '2021-02-01')) @> '2021-01-05'::date AS b, range_merge(int4multirange(span4, int4range(10, 12))) AS c, '{[1,3), [5,9)}'::int4multirange * int4multirange(span4) AS d, int4multirange(span4) - '{[2,3)}' AS e FROM wide WHERE span4 IS NOT NULL AND days IS NOT NULL

SELECT id, r FROM wide, unnest(int4multirange(coalesce(span4, 'empty'), int4range(20, 22))) AS r

SELECT id, tstzrange(tz, NULL) @> '2021-01-01'::timestamptz AS a, numrange(1.5, n + 2) AS b, int8range(1, i8) AS c, tsrange(ts, ts + '1 day') AS d FROM wide WHERE coalesce(n, 0) > 0 AND coalesce(i8, 2) > 0

SELECT id, words[1] AS a, words[2:2] AS b, ints = '{1,2}' AS c, ints < '{2}' AS d, ints || ARRAY[7, 8] AS e, array_dims(ints) AS f, array_ndims(ints) AS g, array_positions(ints, 2) AS h, array_fill(id, ARRAY[2]) AS i, trim_array(ARRAY[1, 2, 3], 1) AS j, array_lower(ints, 1) AS k FROM wide

SELECT id, 3 > ALL (ints) AS a, 'a' LIKE ANY (words) AS b, id = ANY (ARRAY[1, 2]::bigint[]) AS c, id <> ALL ('{1,2}') AS d, i2 < SOME (ints) AS e, ARRAY[id] <@ ints AS f FROM wide

SELECT id FROM wide WHERE id = ANY (ARRAY(SELECT i FROM a)) OR 2 = ANY (ints)

SELECT id, doc -> 'b' -> 0 AS a, doc -> 'b' ->> -1 AS b, (doc ->> 'a')::numeric + 1 AS c, doc['b'][1] AS d, doc @> '{"b": []}' AS e, '{"a": 1}'::jsonb <@ doc AS f, doc - ARRAY['a', 'b'] AS g, doc = '{}' AS h FROM wide

SELECT id, jsonb_path_query_array(doc, '$.b[*] ? (@ > $least)', '{"least": 1}') AS a, jsonb_path_match(doc, 'exists($.a)') AS b, jsonb_path_query_first(doc, 'lax $.a') AS c, doc @? '$.b[*] ? (@ == 2)' AS d, '$.a'::jsonpath::text AS e FROM wide

SELECT id, jsonb_insert(doc, '{x}', '1') AS a, jsonb_set_lax(doc, '{a}', NULL, true, 'delete_key') AS b, jsonb_object(ARRAY['k', t]) AS c, jsonb_build_object('n', n, 'nested', jsonb_build_array(id, NULL)) AS d, jsonb_object_keys(doc) AS e FROM wide WHERE doc IS NOT NULL AND t IS NOT NULL

SELECT id, json_array_length(js) AS a, js #>> '{0}' AS b, json_extract_path_text(js, 'a') AS c, json_strip_nulls(js) AS d, array_to_json(ints) AS e, to_json(t) AS f FROM wide WHERE js::text LIKE '[%'

SELECT w.id, j.* FROM wide w, JSON_TABLE(w.doc, '$.b[*]' AS root PASSING w.id AS lim COLUMNS (a text PATH '$', e boolean EXISTS PATH '$.z', q jsonb FORMAT JSON PATH '$' WITH WRAPPER NULL ON ERROR)) AS j -- from 17

SELECT id, js IS JSON AS a, t IS JSON OBJECT AS b, js::text IS NOT JSON ARRAY AS c, t IS JSON SCALAR AS d, '{"a":1}' IS JSON WITH UNIQUE KEYS AS e FROM wide -- from 16

SELECT id, JSON_OBJECT('a': id, 'b' VALUE t ABSENT ON NULL) AS a, JSON_ARRAY(id, t NULL ON NULL) AS b, JSON_OBJECT('k': n RETURNING jsonb) AS c FROM wide -- from 16

SELECT dept, JSON_ARRAYAGG(id ORDER BY id RETURNING jsonb) AS a, JSON_OBJECTAGG(id: name ABSENT ON NULL RETURNING jsonb) AS b FROM emp GROUP BY dept -- from 16

SELECT id, JSON_VALUE(doc, '$.a' RETURNING int NULL ON ERROR) AS a, JSON_QUERY(doc, '$.b' WITH WRAPPER) AS b, JSON_EXISTS(doc, '$.b[*] ? (@ > 1)') AS c, JSON_VALUE(doc, '$.z' DEFAULT 'none' ON EMPTY) AS d FROM wide WHERE doc IS NOT NULL -- from 17

SELECT w.id, j.n, j.a, j.v FROM wide w, JSON_TABLE(w.doc, '$' COLUMNS (n FOR ORDINALITY, a text PATH '$.a', NESTED PATH '$.b[*]' COLUMNS (v int PATH '$'))) AS j -- from 17

SELECT id, JSON(js::text) AS a, JSON_SCALAR(id) AS b, JSON_SERIALIZE(doc RETURNING text) AS c FROM wide -- from 17

SELECT id, vec @@ 'a & !c'::tsquery AS a, to_tsvector('english', t) @@ plainto_tsquery('english', 'ab') AS b, setweight(vec, 'B') AS c, 'a'::tsquery && 'b'::tsquery AS d, ts_headline('english', t, 'ab'::tsquery) AS e, phraseto_tsquery('simple', 'a b') AS f, vec || 'z'::tsvector AS g, strip(vec) AS h, numnode('a & b'::tsquery) AS i FROM wide

SELECT id, u::text LIKE '0%' AS a, u = '00000000-0000-0000-0000-000000000002' AS b, u IN ('00000000-0000-0000-0000-000000000002', 'aaaaaaaa-0000-0000-0000-000000000000') AS c FROM wide

SELECT id, size::int + 1 AS a, VALUE.v AS b FROM wide, (SELECT 3::positive AS v) AS VALUE

SELECT id, '16384'::oid AS a, 'emp'::regclass::oid > 0 AS b, 'int4'::regtype AS c, 'int4pl(int4,int4)'::regprocedure::text AS d, pg_typeof(n) AS e FROM wide

SELECT id, '0/16B3748'::pg_lsn AS a, '10:20:10,14'::pg_snapshot::text AS b, '5'::xid8 AS c, '(0,1)'::tid::text AS d FROM wide

SELECT id, xmlelement(name thing, xmlattributes(id AS num), t)::text AS a, xmlforest(id, v AS word)::text AS b, (xpath('/a/text()', '<a>x</a>'))[1]::text AS c, xmlconcat('<a/>', '<b/>')::text AS d, '<a/>'::xml IS DOCUMENT AS e, xmlserialize(CONTENT xmlparse(DOCUMENT '<r/>') AS text) AS f FROM wide -- with xml

SELECT id, x.k, x.o FROM wide w, XMLTABLE('/r/k' PASSING (xmlparse(DOCUMENT '<r><k>' || w.id || '</k><k>z</k></r>')) COLUMNS k text PATH '.' DEFAULT 'none', o FOR ORDINALITY) AS x -- with xml
