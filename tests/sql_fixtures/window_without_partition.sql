-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT id, rank() OVER (ORDER BY amount, id) AS r FROM orders;

-- cycle
UPDATE orders SET amount = 12.00, customer = 2 WHERE id = 1;
INSERT INTO orders VALUES (5, 3, 1.00, '2024-03-01');

-- cycle
DELETE FROM orders WHERE customer = 2;

-- cycle
DELETE FROM orders;
INSERT INTO orders VALUES (9, NULL, NULL, NULL);

-- delta
WITH "__pgt_window_orders" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id",
    "new_amount" AS "amount"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id",
    "old_amount" AS "amount"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    TRUE AS "k0"
  FROM "__pgt_window_orders" AS __pgt_q4
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    TRUE AS "k0"
  FROM "__pgt_window_orders" AS __pgt_q7
)
SELECT
  1 AS "__pgt_w",
  __pgt_q1."id",
  __pgt_q1."win" AS "r"
FROM (
  SELECT
    __pgt_q2."id",
    __pgt_q2."amount",
    RANK() OVER (ORDER BY __pgt_q2."amount", __pgt_q2."id") AS "win"
  FROM "shop"."orders" AS __pgt_q2
) AS __pgt_q1
WHERE
  (
    EXISTS(
      SELECT
        1
      FROM "__pgt_part_1" AS __pgt_q3
    )
  )
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q5."id",
  __pgt_q5."r"
FROM "shop"."st_0" AS __pgt_q5
WHERE
  (
    EXISTS(
      SELECT
        1
      FROM "__pgt_part_2" AS __pgt_q6
    )
  )
