-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT customer, string_agg(id::text, ',' ORDER BY id) AS ids, count(DISTINCT placed) AS days FROM orders GROUP BY customer;

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
    "new_placed" AS "placed"
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
    "old_placed" AS "placed"
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
  __pgt_q1."customer",
  __pgt_q1."ids",
  __pgt_q1."days"
FROM (
  SELECT
    __pgt_q2."customer",
    __pgt_q2."ids",
    __pgt_q2."days"
  FROM (
    SELECT
      __pgt_q3."customer" AS "customer",
      __pgt_q3."agg" AS "ids",
      __pgt_q3."agg_2" AS "days"
    FROM (
      SELECT
        __pgt_q4."customer",
        STRING_AGG(CAST((
          __pgt_q4."id"
        ) AS TEXT), CAST(',' AS TEXT)
        ORDER BY
          __pgt_q4."id") AS "agg",
        COUNT(DISTINCT __pgt_q4."placed") AS "agg_2"
      FROM (
        SELECT
          __pgt_q5."id",
          __pgt_q5."customer",
          __pgt_q5."placed"
        FROM (
          SELECT
            __pgt_q6."id" AS "id",
            __pgt_q6."customer" AS "customer",
            __pgt_q6."placed" AS "placed"
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
          __pgt_q5."placed"
        FROM (
          SELECT
            __pgt_q6."id" AS "id",
            __pgt_q6."customer" AS "customer",
            __pgt_q6."placed" AS "placed"
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
      GROUP BY
        __pgt_q4."customer"
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
  __pgt_q12."customer",
  __pgt_q12."ids",
  __pgt_q12."days"
FROM (
  SELECT
    __pgt_q13."customer",
    __pgt_q13."ids",
    __pgt_q13."days"
  FROM (
    SELECT
      __pgt_q14."customer",
      __pgt_q14."ids",
      __pgt_q14."days"
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
    __pgt_q13."customer",
    __pgt_q13."ids",
    __pgt_q13."days"
  FROM (
    SELECT
      __pgt_q14."customer",
      __pgt_q14."ids",
      __pgt_q14."days"
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
