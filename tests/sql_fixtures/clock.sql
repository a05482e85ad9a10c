-- tables
CREATE TABLE e (id int PRIMARY KEY, g int, v int, at timestamptz);
CREATE INDEX ON e (at);
INSERT INTO e SELECT n, n % 3, n, timestamptz '2026-03-28 12:00+00' - n * interval '1 day' FROM generate_series(1, 20) n;

-- query
SELECT g, sum(v) AS s, count(*) FILTER (WHERE at > now() - interval '1 day') AS latest
FROM e WHERE at > now() - interval '7 days' AND at <= now() GROUP BY g

-- cycle at 2026-03-29 06:00+00
INSERT INTO e VALUES (21, 1, 5, '2026-03-28 11:00+00'), (22, 2, 7, '2026-03-30 09:00+00'), (23, 1, 1, NULL);
DELETE FROM e WHERE id = 2

-- cycle at 2026-03-30 10:00+00
UPDATE e SET v = v + 1 WHERE id IN (3, 21)

-- cycle at 2026-05-01 00:00+00
INSERT INTO e VALUES (24, 0, 9, '2026-04-29 00:00+00')

-- cycle at 2026-03-28 12:00+00
DELETE FROM e WHERE id = 24

-- delta
π(σ(γ(A + B))) − B
where
  A = γ(τ⁰(σ(τ⁰(Δe) + τ(moved(e)) − τ⁰(moved(e)))) + τ(moved(σ(τ(e)))) − τ⁰(moved(σ(τ(e)))))
  B = stored[g of A]
