-- tables
CREATE TABLE sales (id int PRIMARY KEY, kind int, store int, price numeric(10,2));
CREATE TABLE kinds (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE stores (id int PRIMARY KEY, size int);
INSERT INTO kinds VALUES (1, 'M'), (2, 'S'), (3, 'X');
INSERT INTO stores VALUES (1, 3), (2, 1), (3, NULL);
INSERT INTO sales VALUES (1, 1, 1, 120), (2, 1, 2, 60), (3, 2, 2, 70), (4, 3, 3, 1), (5, NULL, 1, 110), (6, 1, NULL, NULL);

-- query
SELECT s.id, k.name, t.size FROM sales s, kinds k, stores t WHERE (s.kind = k.id AND s.store = t.id AND k.name = 'M' AND t.size = 3 AND s.price BETWEEN 100 AND 150) OR (s.kind = k.id AND s.store = t.id AND k.name = 'S' AND (t.size = 1 OR t.size IS NULL));

-- cycle
UPDATE sales SET kind = 2 WHERE id = 2;
UPDATE kinds SET name = 'S' WHERE id = 3;

-- cycle
DELETE FROM stores WHERE id = 2;
INSERT INTO sales VALUES (7, 1, 1, 130), (8, 3, 3, NULL);
UPDATE kinds SET name = 'M' WHERE id = 2;

-- cycle
INSERT INTO stores VALUES (2, 3);
DELETE FROM kinds WHERE id = 1;

-- delta
(((Δsales ⋈ kinds) + (sales ⋈ Δkinds) − (Δsales ⋈ Δkinds)) ⋈ stores)
