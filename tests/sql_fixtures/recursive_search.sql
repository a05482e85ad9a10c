-- tables
CREATE TABLE node (id int PRIMARY KEY, parent int, name text);
INSERT INTO node VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, NULL), (4, 1, 'd, e');

-- query
WITH RECURSIVE r AS (SELECT id, name FROM node WHERE parent IS NULL UNION ALL SELECT n.id, n.name FROM node n JOIN r ON n.parent = r.id) SEARCH BREADTH FIRST BY name, id SET place SELECT id, name, place::text AS place FROM r;

-- cycle
INSERT INTO node VALUES (5, 3, 'NULL'), (6, 5, '');

-- cycle
UPDATE node SET parent = 4 WHERE id = 3;

-- cycle
UPDATE node SET name = NULL WHERE id = 2;
DELETE FROM node WHERE id = 6;

-- delta
π(N − D)
where
  N = least π(σ(node)) ⋉ D + π(node ⋈ (stored ▷ D)) ⋉ D + net⁺(A) ▷ D + π(node ⋈ N)
  D = least (neg A ∪ π(node ⋈ D)) ∩ stored
  A = π(π(σ(Δnode))) + π(Δnode ⋈ stored)
