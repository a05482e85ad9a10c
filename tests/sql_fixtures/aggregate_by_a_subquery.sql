-- tables
CREATE TABLE sale (id int PRIMARY KEY, day int, amount int);
CREATE TABLE season (name text, first int, last int);
INSERT INTO sale VALUES (1, 3, 10), (2, 5, 20), (3, 9, 5);
INSERT INTO season VALUES ('spring', 1, 4), ('summer', 5, 8);

-- query
SELECT ARRAY(SELECT s.name FROM season s WHERE sale.day BETWEEN s.first AND s.last) AS seasons, count(*) AS n FROM sale GROUP BY ARRAY(SELECT s.name FROM season s WHERE sale.day BETWEEN s.first AND s.last);

-- cycle
INSERT INTO season VALUES ('autumn', 8, 10);

-- cycle
UPDATE sale SET day = 2 WHERE id = 2;

-- delta
σ(γ(A + B)) − B
where
  A = γ(π(sale if Δseason) − π⁰(sale if Δseason))
  B = stored[seasons ∈ key of A]
