-- tables
CREATE TABLE customer (id int PRIMARY KEY, name text);
CREATE TABLE sale (customer int, amount int);
INSERT INTO customer VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd');
INSERT INTO sale VALUES (1, 10), (1, 20), (2, 5);

-- query
SELECT c.id, row_to_json(t.*)::text AS totals, t.* IS NULL AS bought_nothing FROM customer c LEFT JOIN (SELECT customer, sum(amount) AS total FROM sale GROUP BY customer) t ON t.customer = c.id;

-- cycle
INSERT INTO sale VALUES (3, 7), (1, 1);

-- cycle
DELETE FROM sale WHERE customer = 2;

-- delta
π((A ⟕ π(γ(sale))) − (A ⟕ π(γ(sale⁰))))
where
  A = customer[id ∈ customer of Δsale]
