-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY id) AS n, sum(amount) OVER (PARTITION BY customer) AS total FROM orders;

-- cycle
UPDATE orders SET amount = 12.00, customer = 2 WHERE id = 1;
INSERT INTO orders VALUES (5, 3, 1.00, '2024-03-01');

-- cycle
DELETE FROM orders WHERE customer = 2;

-- cycle
DELETE FROM orders;
INSERT INTO orders VALUES (9, NULL, NULL, NULL);

-- delta
ω(orders)[customer of Δorders] − stored[customer of Δorders]

-- sql
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
    __pgt_q8."customer" AS "customer"
  FROM "__pgt_window_orders" AS __pgt_q8
)
SELECT
  1 AS "__pgt_w",
  __pgt_q1."id",
  __pgt_q1."customer",
  __pgt_q1."n",
  __pgt_q1."total"
FROM (
  SELECT
    __pgt_q2."id",
    __pgt_q2."customer",
    __pgt_q2."n",
    __pgt_q2."total"
  FROM (
    SELECT
      __pgt_q3."id" AS "id",
      __pgt_q3."customer" AS "customer",
      __pgt_q3."win" AS "n",
      __pgt_q3."win_2" AS "total"
    FROM (
      SELECT
        __pgt_q4."id",
        __pgt_q4."customer",
        __pgt_q4."amount",
        ROW_NUMBER() OVER (PARTITION BY __pgt_q4."customer" ORDER BY __pgt_q4."id") AS "win",
        SUM(__pgt_q4."amount") OVER (PARTITION BY __pgt_q4."customer") AS "win_2"
      FROM (
        SELECT
          __pgt_q5."id",
          __pgt_q5."customer",
          __pgt_q5."amount"
        FROM (
          SELECT
            __pgt_q6."id" AS "id",
            __pgt_q6."customer" AS "customer",
            __pgt_q6."amount" AS "amount"
          FROM "shop"."orders" AS __pgt_q6
        ) AS __pgt_q5
        WHERE
          (
            __pgt_q5."customer"
          ) IN (
            SELECT
              __pgt_q7."customer"
            FROM "__pgt_part_1" AS __pgt_q7
          )
        UNION ALL
        SELECT
          __pgt_q5."id",
          __pgt_q5."customer",
          __pgt_q5."amount"
        FROM (
          SELECT
            __pgt_q6."id" AS "id",
            __pgt_q6."customer" AS "customer",
            __pgt_q6."amount" AS "amount"
          FROM "shop"."orders" AS __pgt_q6
        ) AS __pgt_q5
        WHERE
          __pgt_q5."customer" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_1" AS __pgt_q9
            WHERE
              __pgt_q9."customer" IS NOT DISTINCT FROM NULL
          )
      ) AS __pgt_q4
    ) AS __pgt_q3
  ) AS __pgt_q2
  WHERE
    (
      (
        __pgt_q2."customer"
      ) IN (
        SELECT
          __pgt_q10."customer"
        FROM "__pgt_part_1" AS __pgt_q10
      )
    )
    OR (
      __pgt_q2."customer" IS NOT DISTINCT FROM NULL
      AND EXISTS(
        SELECT
          1
        FROM "__pgt_part_1" AS __pgt_q11
        WHERE
          __pgt_q11."customer" IS NOT DISTINCT FROM NULL
      )
    )
) AS __pgt_q1
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q12."id",
  __pgt_q12."customer",
  __pgt_q12."n",
  __pgt_q12."total"
FROM (
  SELECT
    __pgt_q13."id",
    __pgt_q13."customer",
    __pgt_q13."n",
    __pgt_q13."total"
  FROM (
    SELECT
      __pgt_q14."id",
      __pgt_q14."customer",
      __pgt_q14."n",
      __pgt_q14."total"
    FROM "shop"."st_0" AS __pgt_q14
  ) AS __pgt_q13
  WHERE
    (
      __pgt_q13."customer"
    ) IN (
      SELECT
        __pgt_q15."customer"
      FROM "__pgt_part_1" AS __pgt_q15
    )
  UNION ALL
  SELECT
    __pgt_q13."id",
    __pgt_q13."customer",
    __pgt_q13."n",
    __pgt_q13."total"
  FROM (
    SELECT
      __pgt_q14."id",
      __pgt_q14."customer",
      __pgt_q14."n",
      __pgt_q14."total"
    FROM "shop"."st_0" AS __pgt_q14
  ) AS __pgt_q13
  WHERE
    __pgt_q13."customer" IS NOT DISTINCT FROM NULL
    AND EXISTS(
      SELECT
        1
      FROM "__pgt_part_1" AS __pgt_q16
      WHERE
        __pgt_q16."customer" IS NOT DISTINCT FROM NULL
    )
) AS __pgt_q12
