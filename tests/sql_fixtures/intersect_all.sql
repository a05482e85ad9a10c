-- tables
CREATE TABLE clicks (page text, visitor int);
CREATE TABLE blocked (page text, visitor int);
INSERT INTO clicks VALUES ('a', 1), ('a', 1), ('b', 2), (NULL, 3);
INSERT INTO blocked VALUES ('a', 1), (NULL, 3);

-- query
SELECT page, visitor FROM clicks INTERSECT ALL SELECT page, visitor FROM blocked;

-- cycle
INSERT INTO clicks VALUES ('b', 2), ('c', 1);
DELETE FROM blocked WHERE page = 'a';

-- cycle
DELETE FROM clicks WHERE page = 'a';
INSERT INTO blocked VALUES ('b', 2), (NULL, 3);

-- cycle
INSERT INTO clicks VALUES (NULL, 3), (NULL, 3);

-- delta
(clicks ∩ blocked)[(page, visitor) of (Δclicks + Δblocked)]
− stored[(page, visitor) of (Δclicks + Δblocked)]
