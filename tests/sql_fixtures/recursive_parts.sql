-- tables
CREATE TABLE needs (whole text, part text, n numeric);
INSERT INTO needs VALUES (NULL, 'car', 1), ('car', 'wheel', 4), ('car', 'engine', 1), ('wheel', 'nut', 5), ('engine', 'nut', 20);

-- query
WITH RECURSIVE b AS (SELECT part, n FROM needs WHERE whole IS NULL UNION ALL SELECT c.part, b.n * c.n FROM b JOIN needs c ON c.whole = b.part) SELECT part, n FROM b;

-- cycle
UPDATE needs SET n = 4.0 WHERE part = 'wheel';

-- cycle
INSERT INTO needs VALUES ('car', 'wheel', 1), ('nut', 'steel', 0.01);

-- cycle
DELETE FROM needs WHERE part = 'engine';

-- delta
N − D
where
  N = least σ(needs) ⋉ D + π((stored ▷ D) ⋈ needs) ⋉ D + net⁺(A) ▷ D + π(N ⋈ needs)
  D = least (neg A ∪ π(D ⋈ needs)) ∩ stored
  A = π(σ(Δneeds)) + π(stored ⋈ Δneeds)
