-- tables
CREATE TABLE node (id int PRIMARY KEY, parent int, name text);
INSERT INTO node VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, NULL), (4, 1, 'd');

-- query
WITH RECURSIVE r AS (SELECT id, ARRAY[id] AS path, name FROM node WHERE parent IS NULL UNION ALL SELECT n.id, r.path || n.id, n.name FROM node n JOIN r ON n.parent = r.id) SELECT id, array_length(path, 1) AS length, upper(name) AS name FROM r;

-- cycle
INSERT INTO node VALUES (5, 3, 'e'), (6, 5, NULL);

-- cycle
UPDATE node SET parent = 4 WHERE id = 3;

-- cycle
UPDATE node SET name = 'root' WHERE id = 1;
DELETE FROM node WHERE id = 4;

-- delta
π(N − D)
where
  N = least π(σ(node)) ⋉ D + π(node ⋈ (stored ▷ D)) ⋉ D + net⁺(A) ▷ D + π(node ⋈ N)
  D = least (neg A ∪ π(node ⋈ D)) ∩ stored
  A = π(π(σ(Δnode))) + π(Δnode ⋈ stored)
