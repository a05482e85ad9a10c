-- kept
WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM node WHERE parent IS NULL UNION ALL SELECT n.id, r.depth + 1 FROM node n JOIN r ON n.parent = r.id) SELECT id, depth FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r, edge e WHERE e.src = r.id) SELECT id FROM r ORDER BY id;
WITH RECURSIVE r(id) AS ((SELECT id FROM mark UNION ALL SELECT id FROM node WHERE label = 'a') UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r;
WITH RECURSIVE r(id) AS (VALUES (1), (4) UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r;
WITH RECURSIVE r(id, why) AS (SELECT 1, 'root'::text UNION SELECT e.dst, n.label FROM r JOIN edge e ON e.src = r.id JOIN node n ON n.id = e.dst) SELECT id, why FROM r;
WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM mark UNION SELECT e.dst, least(r.depth + 1, 5) FROM r JOIN edge e ON e.src = r.id) SELECT id, depth FROM r;
WITH RECURSIVE r(id, d) AS (SELECT id, NULL::date FROM mark UNION SELECT e.dst, date '2026-01-01' + e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id, d FROM r;
WITH RECURSIVE hub AS (SELECT src, count(*) AS n FROM edge GROUP BY src), r(id) AS (SELECT src FROM hub WHERE n > 1 UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id JOIN hub ON hub.src = r.id) SELECT id FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN (SELECT src, max(dst) AS dst FROM edge GROUP BY src) e ON e.src = r.id) SELECT id FROM r;
WITH RECURSIVE r(id, note) AS (SELECT id, note FROM mark UNION SELECT e.dst, m.note FROM r JOIN edge e ON e.src = r.id LEFT JOIN mark m ON m.id = e.dst) SELECT id, note FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id WHERE EXISTS (SELECT FROM node n WHERE n.id = e.dst) AND e.dst NOT IN (SELECT m.id FROM mark m WHERE m.id IS NOT NULL)) SELECT id FROM r;
WITH RECURSIVE r(id) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id AND e.dst < (SELECT count(*) FROM node)) SELECT id FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION ALL SELECT n.id FROM node n JOIN r ON n.parent = r.id AND n.label = ANY (ARRAY['a', 'b'])) SELECT id, upper(id::text) AS u FROM r;
WITH q AS (SELECT d.id FROM (WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r) d) SELECT q.id FROM q;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) CYCLE id SET looped USING way SELECT id, looped FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) CYCLE id SET looped TO 'Y' DEFAULT 'N' USING way SELECT id, looped, way::text AS way, array_length(way, 1) AS length FROM r;
WITH RECURSIVE r AS (SELECT id, 'root'::text AS why FROM mark UNION ALL SELECT e.dst, n.label FROM edge e JOIN r ON e.src = r.id LEFT JOIN node n ON n.id = e.dst) CYCLE id, why SET looped USING way SELECT * FROM (SELECT id, why, looped FROM r) q;
WITH RECURSIVE r AS (SELECT id, label FROM node WHERE parent IS NULL UNION ALL SELECT n.id, n.label FROM node n JOIN r ON n.parent = r.id) SEARCH DEPTH FIRST BY label, id SET place SELECT id, label FROM r ORDER BY place;
WITH RECURSIVE r AS (SELECT id, label FROM node WHERE parent IS NULL UNION SELECT n.id, n.label FROM node n JOIN r ON n.parent = r.id) SEARCH BREADTH FIRST BY label SET place SELECT id, place::text AS place FROM r ORDER BY place;
WITH RECURSIVE r AS (SELECT id, n FROM weight UNION ALL SELECT e.dst, r.n * e.n FROM r JOIN edge e ON e.src = r.id) SEARCH DEPTH FIRST BY n SET place CYCLE id SET looped USING way SELECT id, n, place::text AS place, way::text AS way FROM r;

-- kept in parts
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r WHERE id > 2;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id), s(id) AS (SELECT r.id FROM r UNION SELECT n.parent FROM node n JOIN s ON n.id = s.id) SELECT r.id, s.id AS up FROM r FULL JOIN s ON s.id = r.id;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id), s(id) AS (SELECT id FROM node WHERE parent IS NULL UNION SELECT n.id FROM node n JOIN s ON n.parent = s.id WHERE n.id IN (SELECT r.id FROM r)) SELECT id FROM s;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id), s(id) AS (SELECT id FROM node WHERE parent IS NULL UNION SELECT n.id FROM node n JOIN s ON n.parent = s.id) SELECT id FROM r UNION ALL SELECT id FROM s;
WITH q AS (SELECT d.id, d.depth FROM (WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM node WHERE parent IS NULL UNION ALL SELECT n.id, r.depth + 1 FROM node n JOIN r ON n.parent = r.id) SELECT id, depth FROM r WHERE depth < 3) d) SELECT depth, count(*) AS n FROM q GROUP BY depth;
SELECT id FROM mark WHERE id IN (WITH RECURSIVE r(id) AS (SELECT id FROM node WHERE parent IS NULL UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r);
SELECT m.id, x.n FROM mark m, (WITH RECURSIVE r(id) AS (SELECT id FROM node WHERE parent IS NULL UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT count(*) AS n FROM r) x;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) CYCLE id SET looped USING way SELECT id, count(*) AS n FROM r WHERE NOT looped GROUP BY id;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) CYCLE id SET looped USING way, s(id, way) AS (SELECT r.id, r.way::text FROM r WHERE r.looped UNION SELECT n.parent, s.way FROM node n JOIN s ON n.id = s.id) SELECT s.id, s.way FROM s WHERE s.id <> 1;
WITH RECURSIVE r AS (SELECT id FROM node WHERE parent IS NULL UNION ALL SELECT n.id FROM node n JOIN r ON n.parent = r.id) SEARCH DEPTH FIRST BY id SET place SELECT id, row_number() OVER (ORDER BY place) AS nth FROM r;
WITH RECURSIVE r AS (SELECT id, label FROM node WHERE parent IS NULL UNION ALL SELECT n.id, n.label FROM node n JOIN r ON n.parent = r.id) SEARCH BREADTH FIRST BY label, id SET place SELECT id, row_number() OVER (ORDER BY place DESC) AS nth FROM r;

-- computed anew
WITH RECURSIVE r(id, n) AS (SELECT id, 1.0 FROM mark UNION SELECT e.dst, r.n + e.n FROM r JOIN edge e ON e.src = r.id WHERE r.n < 5) SELECT id, n FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT DISTINCT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r;
WITH RECURSIVE r(id, nth) AS (SELECT id, 1::bigint FROM mark UNION SELECT n.id, row_number() OVER (ORDER BY n.id) FROM node n JOIN r ON n.parent = r.id) SELECT id, nth FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT unnest(ARRAY[e.dst, e.dst + 1]) FROM r JOIN edge e ON e.src = r.id AND r.id < 9) SELECT id FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT u.v FROM r JOIN edge e ON e.src = r.id AND r.id < 9, unnest(ARRAY[e.dst, e.dst + 1]) AS u(v)) SELECT id FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION SELECT l.dst FROM r, LATERAL (SELECT e.dst FROM edge e WHERE e.src = r.id ORDER BY e.dst LIMIT 1) l) SELECT id FROM r;
WITH RECURSIVE r(id, most) AS (SELECT id, 0 FROM mark UNION SELECT e.dst, (SELECT max(n.id) FROM node n WHERE n.id <= e.dst) FROM r JOIN edge e ON e.src = r.id) SELECT id, most FROM r;
SELECT m.id, (WITH RECURSIVE r(id) AS (SELECT m.id UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT count(*) FROM r) AS n FROM mark m;
WITH RECURSIVE r(id, n) AS (SELECT id, n FROM weight UNION ALL SELECT e.dst, e.n FROM r JOIN edge e ON e.src = r.id) CYCLE n SET looped USING way SELECT id, n, looped FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) CYCLE id SET looped USING way SELECT id, rank() OVER (ORDER BY way) AS nth FROM r;
WITH RECURSIVE r(id) AS (SELECT id FROM mark UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.id) CYCLE id SET looped USING way SELECT id, to_json(way)::text AS way FROM r;
WITH RECURSIVE r AS (SELECT id, label FROM node WHERE parent IS NULL UNION ALL SELECT n.id, n.label FROM node n JOIN r ON n.parent = r.id) SEARCH DEPTH FIRST BY label, id SET place SELECT id, row_number() OVER (ORDER BY place, id) AS nth FROM r;
