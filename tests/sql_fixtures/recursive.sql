-- tables
CREATE TABLE node (id int PRIMARY KEY, parent int);
INSERT INTO node VALUES (1, NULL), (2, 1), (3, 2), (4, 1);

-- query
WITH RECURSIVE tree AS (SELECT id, 0 AS depth FROM node WHERE parent IS NULL UNION ALL SELECT n.id, t.depth + 1 FROM node n JOIN tree t ON n.parent = t.id) SELECT id, depth FROM tree;

-- cycle
INSERT INTO node VALUES (5, 3), (6, 5);

-- cycle
UPDATE node SET parent = 4 WHERE id = 3;

-- cycle
DELETE FROM node WHERE id = 4;

-- delta
N − D
where
  N = least π(σ(node)) ⋉ D + π(node ⋈ (stored ▷ D)) ⋉ D + net⁺(A) ▷ D + π(node ⋈ N)
  D = least (neg A ∪ π(node ⋈ D)) ∩ stored
  A = π(π(σ(Δnode))) + π(Δnode ⋈ stored)
