-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount numeric(10,2), placed date);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, 1, 7.50, '2024-02-01');

-- query
SELECT id, customer, placed, sum(amount) OVER (PARTITION BY customer ORDER BY placed) AS so_far, rank() OVER (PARTITION BY customer ORDER BY placed, id) AS place FROM orders;

-- cycle
INSERT INTO orders VALUES (5, 1, 1.00, '2024-03-01'), (6, 2, 2.00, '2024-03-01');

-- cycle
UPDATE orders SET amount = 12.00, customer = 2 WHERE id = 2;

-- cycle
DELETE FROM orders WHERE customer = 1;
INSERT INTO orders VALUES (9, 2, NULL, NULL);

-- delta
π(ω(orders[(customer, placed) ≥ first(Δorders)])) − stored[(customer, placed) ≥ first(Δorders)]
