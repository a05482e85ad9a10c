-- tables
CREATE TABLE sales (id int PRIMARY KEY, day int, amount int);
CREATE TABLE spans (days int);
INSERT INTO spans VALUES (1);
INSERT INTO sales VALUES (1, 1, 10), (2, 2, 20), (3, 4, 5), (4, 4, 7);

-- query
SELECT id, sum(amount) OVER (ORDER BY day RANGE (SELECT max(days) FROM spans) PRECEDING) AS recent FROM sales;

-- cycle
INSERT INTO spans VALUES (2);

-- cycle
UPDATE sales SET day = 3 WHERE id = 4;
DELETE FROM spans WHERE days = 1;

-- cycle
INSERT INTO sales VALUES (5, 5, 1);
UPDATE spans SET days = 0;

-- delta
μ − stored
