-- tables
CREATE TABLE edge (src int, dst int, kind text);
CREATE TABLE root (id int, kind text);
INSERT INTO root VALUES (1, 'r'), (5, NULL);
INSERT INTO edge VALUES (1, 2, 'a'), (2, 3, NULL), (3, 1, 'a'), (3, 3, 'b'), (3, 4, 'b'), (5, 1, 'a'), (5, 1, 'a');

-- query
WITH RECURSIVE r(id, kind) AS (SELECT id, kind FROM root UNION ALL SELECT e.dst, e.kind FROM r JOIN edge e ON e.src = r.id) CYCLE id, kind SET looped TO 'Y' DEFAULT 'N' USING way SELECT id, looped, way::text AS way FROM r;

-- cycle
INSERT INTO edge VALUES (4, 2, NULL), (4, 4, NULL);

-- cycle
DELETE FROM edge WHERE src = 3 AND dst = 1;

-- cycle
UPDATE edge SET kind = NULL WHERE src IN (3, 5);

-- cycle
DELETE FROM root WHERE id = 5;
INSERT INTO root VALUES (3, 'b'), (3, 'b');

-- delta
π(N − D)
where
  N = least π(root) ⋉ D
      + π(σ((stored ▷ D) ⋈ edge)) ⋉ D
      + net⁺(π(σ(stored ⋈ Δedge))) ▷ D
      + π(σ(N ⋈ edge))
  D = least (neg π(σ(stored ⋈ Δedge)) ∪ π(σ(D ⋈ edge))) ∩ stored
