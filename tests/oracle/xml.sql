-- XMLTABLE
SELECT t.id, q.* FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v', w text PATH '.') AS q;
SELECT t.id, q.o, q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS o FOR ORDINALITY, v int PATH '@v') AS q;
SELECT t.id, q.v, q.w FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v' DEFAULT t.g, w text PATH 'none' DEFAULT 'no ' || t.id) AS q;
SELECT t.id, q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v' DEFAULT 0 NOT NULL, text text PATH '.') AS q;
SELECT t.id, q.* FROM t, XMLTABLE(XMLNAMESPACES('http://n' AS n, 'http://m' AS "Two m"), '/n:r/n:k' PASSING t.ns COLUMNS v int PATH '@v', m text PATH 'n:m') AS q;
SELECT t.id, q.* FROM t, XMLTABLE(('/r/' || t.p) PASSING t.x COLUMNS v int PATH ('@' || 'v'), w xml PATH '.') AS q;
SELECT t.id, q.d FROM t, XMLTABLE('/r/k' PASSING BY VALUE t.x COLUMNS "from" text PATH '@v', d numeric(10, 2)[] PATH 'none' DEFAULT '{}') AS q;
SELECT t.id, q.v FROM t LEFT JOIN XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q ON q.v > 1;
SELECT t.id, q.v, u.w FROM t CROSS JOIN LATERAL XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v', inner_ xml PATH '.') AS q LEFT JOIN LATERAL XMLTABLE('/k/@v' PASSING q.inner_ COLUMNS w text PATH '.') AS u ON true;
SELECT q.v, count(*) AS n, sum(t.g) AS s FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q GROUP BY q.v;
SELECT q.w, count(*) AS n FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS w text PATH '.') AS q GROUP BY q.w HAVING count(*) > 1;
SELECT t.id, b.y FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q JOIN b ON b.id = q.v;
SELECT b.id, q.v FROM b JOIN t ON t.g = b.g, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q WHERE q.v >= b.id;
SELECT id FROM t WHERE EXISTS (SELECT FROM XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q WHERE q.v = t.g);
SELECT id, (SELECT sum(q.v) FROM XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q) AS s FROM t;
SELECT b.id, (SELECT count(*) FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q WHERE q.v = b.id) AS n FROM b;
SELECT id FROM b WHERE id IN (SELECT q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q);
SELECT DISTINCT ON (t.g) t.g, q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q ORDER BY t.g, q.v, t.id;
SELECT t.id, q.o, sum(q.v) OVER (PARTITION BY t.id ORDER BY q.o) AS s FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS o FOR ORDINALITY, v int PATH '@v') AS q;
SELECT v FROM XMLTABLE('/r/k' PASSING XMLPARSE(DOCUMENT '<r><k v="1"/><k v="2"/></r>') COLUMNS v int PATH '@v') AS q;
WITH q AS (SELECT t.id, q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q) SELECT a.id, c.v FROM q AS a LEFT JOIN q AS c ON c.id = a.v;
SELECT t.id, q.v, o.n FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q, LATERAL (SELECT count(*) AS n FROM b WHERE b.id = q.v) AS o;
SELECT x.id, x.v FROM (SELECT t.id, q.v FROM t, XMLTABLE('/r/k' PASSING t.x COLUMNS v int PATH '@v') AS q) AS x UNION ALL SELECT id, g FROM b;
SELECT vx.id, vx.v FROM vx WHERE vx.v > 1;

-- the functions
SELECT id, (xpath('/r/k/@v', x))[1]::text AS v, cardinality(xpath('/r/k', x)) AS n FROM t;
SELECT t.id, u.v::text AS v FROM t, unnest(xpath('/r/k', t.x)) AS u(v);
SELECT t.id, u.v::text::int AS v, b.y FROM t, unnest(xpath('/r/k/@v', t.x)) AS u(v) JOIN b ON b.id = u.v::text::int;
SELECT xpath('/n:r/n:k/@v', ns, ARRAY[ARRAY['n', 'http://n']])::text[] AS v, count(*) AS n FROM t GROUP BY 1;
SELECT id FROM t WHERE xpath_exists('/r/k[@v = 2]', x) OR XMLEXISTS('//m' PASSING BY VALUE ns);
SELECT id, x IS DOCUMENT AS d, x IS NOT DOCUMENT AS n, xml_is_well_formed(p) AS w FROM t;
SELECT id, XMLELEMENT(NAME "T x", XMLATTRIBUTES(g, p AS "a&b", id AS text), p, XMLELEMENT(NAME inner_, x)) AS e FROM t;
SELECT id, XMLFOREST(g, p AS "what is", x AS x)::text AS f, XMLCONCAT(x, ns) AS c, XMLCOMMENT(p) AS m, XMLPI(NAME php, p) AS pi FROM t;
SELECT id, XMLROOT(XMLPARSE(DOCUMENT '<a>' || p || '</a>'), VERSION '1.1', STANDALONE YES) AS r, XMLROOT(x, VERSION NO VALUE) AS s FROM t WHERE x IS DOCUMENT;
SELECT id, XMLSERIALIZE(CONTENT x AS text) AS s, XMLSERIALIZE(CONTENT ns AS varchar) AS v, XMLPARSE(CONTENT p PRESERVE WHITESPACE) AS c FROM t;
SELECT id, p::xml AS c, x::text AS s FROM t;

-- xmlagg
SELECT g, XMLAGG(x ORDER BY id DESC) AS a FROM t GROUP BY g;
SELECT g, XMLAGG(XMLELEMENT(NAME i, XMLATTRIBUTES(id AS n), p) ORDER BY p, id) FILTER (WHERE id > 1) AS a, count(*) AS n FROM t GROUP BY g;
SELECT g, XMLAGG(x) AS a FROM t GROUP BY g;
SELECT g, XMLELEMENT(NAME all_, XMLAGG(XMLFOREST(y) ORDER BY id)) AS a FROM b GROUP BY g;
SELECT t.id, (SELECT XMLAGG(XMLELEMENT(NAME y, b.y) ORDER BY b.id) FROM b WHERE b.g = t.g) AS a FROM t;
SELECT t.id, q.* FROM t, XMLTABLE('/o/y' PASSING (SELECT XMLELEMENT(NAME o, XMLAGG(XMLELEMENT(NAME y, b.y) ORDER BY b.id)) FROM b WHERE b.g = t.g) COLUMNS y text PATH '.') AS q;
SELECT XMLAGG(x ORDER BY id) AS a FROM t;

-- columns of xml
SELECT id, x, ns FROM t;
SELECT x, ns FROM t;
SELECT t.x, b.y FROM t JOIN b USING (g);
SELECT b.id, t.x FROM b LEFT JOIN t ON t.g = b.g;
SELECT x FROM t UNION ALL SELECT ns FROM t;
SELECT x::text AS x, count(*) AS n FROM t GROUP BY x::text;
SELECT DISTINCT x::text AS x FROM t;
SELECT DISTINCT ON (g) g, x FROM t ORDER BY g, id;
SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM t;
SELECT g, array_agg(x ORDER BY id) AS xs FROM t GROUP BY g;
SELECT id, to_json(x) AS j, jsonb_build_object('x', x) AS b FROM t;
SELECT id, CASE WHEN g > 1 THEN x ELSE ns END AS c, coalesce(x, '<none/>') AS d FROM t;
SELECT t AS whole FROM t;
SELECT g, max(id) AS m FROM t WHERE x IS NOT NULL GROUP BY g;
SELECT b.id, q.x FROM b LEFT JOIN (SELECT g, x FROM t ORDER BY id LIMIT 2) q USING (g);
