-- tables
CREATE TABLE f (id int PRIMARY KEY, a int, b int, price int);
CREATE TABLE a (id int PRIMARY KEY, kind text);
CREATE TABLE b (id int PRIMARY KEY, n int);
INSERT INTO f SELECT i, i % 7, i % 5, i FROM generate_series(1, 60) AS i;
INSERT INTO a SELECT i, CASE WHEN i % 2 = 0 THEN 'M' ELSE 'S' END FROM generate_series(0, 6) AS i;
INSERT INTO b SELECT i, i % 3 FROM generate_series(0, 4) AS i

-- query
SELECT f.id, f.price, a.kind FROM f, a, b
WHERE (f.a = a.id AND f.b = b.id AND a.kind = 'M' AND b.n = 1) OR (f.a = a.id AND f.b = b.id AND a.kind = 'S' AND b.n = 2)

-- cycle
UPDATE f SET price = price + 1 WHERE id % 3 = 0;
DELETE FROM f WHERE id = 7;
UPDATE a SET kind = 'M' WHERE id = 3;
UPDATE b SET n = n + 1 WHERE id < 3

-- cycle
INSERT INTO a VALUES (8, 'M');
UPDATE f SET a = 8 WHERE id < 9;
DELETE FROM b WHERE id = 4

-- delta
(A ⋈ b) + (f ⋈ a ⋈ Δb) − (A ⋈ Δb)
where
  A = (Δf ⋈ a) + (f ⋈ Δa) − (Δf ⋈ Δa)
