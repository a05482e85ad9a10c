-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT customer, amount FROM orders UNION VALUES (1, 10.00), (7, 7.50);

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
    "new_customer" AS "customer",
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
    "old_customer" AS "customer",
    "old_amount" AS "amount"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q2."customer_4",
    __pgt_q2."amount_4",
    COALESCE(CAST(SUM(__pgt_q2."__pgt_n") AS BIGINT), 0) AS "__pgt_count"
  FROM (
    SELECT
      CAST((
        __pgt_q3."__pgt_w"
      ) AS BIGINT) AS "__pgt_n",
      __pgt_q3."customer_4",
      __pgt_q3."amount_4"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."customer" AS "customer_4",
        __pgt_q4."amount" AS "amount_4"
      FROM "__pgt_window_orders" AS __pgt_q4
    ) AS __pgt_q3
  ) AS __pgt_q2
  GROUP BY
    __pgt_q2."customer_4",
    __pgt_q2."amount_4"
), "__pgt_part_2" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q10."customer_4" AS "customer_4",
    __pgt_q10."amount_4" AS "amount_4"
  FROM "__pgt_part_1" AS __pgt_q10
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q6."customer",
    __pgt_q6."amount",
    __pgt_q6."__pgt_count"
  FROM (
    SELECT
      __pgt_q7."customer",
      __pgt_q7."amount",
      __pgt_q7."__pgt_count"
    FROM (
      SELECT
        __pgt_q8."customer",
        __pgt_q8."amount",
        __pgt_q8."__pgt_count"
      FROM "shop"."st_0" AS __pgt_q8
    ) AS __pgt_q7
    WHERE
      (
        __pgt_q7."customer"
      ) IN (
        SELECT
          __pgt_q9."customer_4"
        FROM "__pgt_part_2" AS __pgt_q9
      )
    UNION ALL
    SELECT
      __pgt_q7."customer",
      __pgt_q7."amount",
      __pgt_q7."__pgt_count"
    FROM (
      SELECT
        __pgt_q8."customer",
        __pgt_q8."amount",
        __pgt_q8."__pgt_count"
      FROM "shop"."st_0" AS __pgt_q8
    ) AS __pgt_q7
    WHERE
      __pgt_q7."customer" IS NOT DISTINCT FROM NULL
      AND EXISTS(
        SELECT
          1
        FROM "__pgt_part_2" AS __pgt_q11
        WHERE
          __pgt_q11."customer_4" IS NOT DISTINCT FROM NULL
      )
  ) AS __pgt_q6
  CROSS JOIN LATERAL (
    SELECT
      ROW(__pgt_q6."customer", __pgt_q6."amount") AS r
  ) AS __pgt_q13
  WHERE
    __pgt_q13.r IN (
      SELECT
        ROW(__pgt_q12."customer_4", __pgt_q12."amount_4")
      FROM "__pgt_part_2" AS __pgt_q12
    )
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q1."customer_4",
    __pgt_q1."amount_4",
    CAST(SUM(__pgt_q1."__pgt_count") AS BIGINT) AS "__pgt_count"
  FROM (
    SELECT
      __pgt_q5."customer_4",
      __pgt_q5."amount_4",
      __pgt_q5."__pgt_count"
    FROM "__pgt_part_1" AS __pgt_q5
    UNION ALL
    SELECT
      __pgt_q14."customer" AS "customer_4",
      __pgt_q14."amount" AS "amount_4",
      __pgt_q14."__pgt_count"
    FROM "__pgt_part_3" AS __pgt_q14
  ) AS __pgt_q1
  GROUP BY
    __pgt_q1."customer_4",
    __pgt_q1."amount_4"
)
SELECT
  1 AS "__pgt_w",
  __pgt_q15."customer_4" AS "customer",
  __pgt_q15."amount_4" AS "amount",
  __pgt_q15."__pgt_count"
FROM "__pgt_part_4" AS __pgt_q15
WHERE
  (
    (
      __pgt_q15."__pgt_count" > 0
    )
  )
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q16."customer",
  __pgt_q16."amount",
  __pgt_q16."__pgt_count"
FROM "__pgt_part_3" AS __pgt_q16
