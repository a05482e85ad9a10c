-- tables
CREATE TABLE readings (id int PRIMARY KEY, sensor int, value numeric, steps int, ok boolean);
INSERT INTO readings VALUES (1, 1, 1.5, 3, true), (2, 1, 2.25, 5, false), (3, 2, 7, 6, true), (4, NULL, 4.125, 1, NULL);

-- query
SELECT sensor, sum(value) AS total, avg(value) AS mean, stddev(value) AS spread, var_pop(steps) AS variance, bool_and(ok) AS fine, bit_or(steps) AS bits FROM readings GROUP BY sensor;

-- cycle
UPDATE readings SET value = 1.125, ok = true WHERE id = 2;
INSERT INTO readings VALUES (5, 2, 1e3, 9, false);

-- cycle
DELETE FROM readings WHERE id IN (2, 3);
UPDATE readings SET steps = 8 WHERE id = 4;

-- cycle
DELETE FROM readings;
INSERT INTO readings VALUES (9, NULL, NULL, NULL, NULL);

-- delta
π(σ(A) + (γ(readings) if B)[sensor of B]) − C
where
  A = γ(γ(Δreadings) + π(C))
  B = σ(A)
  C = stored[sensor of γ(Δreadings)]
