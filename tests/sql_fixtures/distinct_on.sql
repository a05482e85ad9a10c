-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT DISTINCT ON (customer) customer, id, amount FROM orders ORDER BY customer, amount DESC NULLS LAST, id;

-- cycle
UPDATE orders SET amount = 12.00, customer = 2 WHERE id = 1;
INSERT INTO orders VALUES (5, 3, 1.00, '2024-03-01');

-- cycle
DELETE FROM orders WHERE customer = 2;

-- cycle
DELETE FROM orders;
INSERT INTO orders VALUES (9, NULL, NULL, NULL);

-- delta
WITH "__pgt_window_orders" AS (
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
    __pgt_q12."customer" AS "customer"
  FROM (
    SELECT
      __pgt_q13."__pgt_w",
      __pgt_q13."id" AS "id",
      __pgt_q13."customer" AS "customer",
      __pgt_q13."amount" AS "amount"
    FROM "__pgt_window_orders" AS __pgt_q13
  ) AS __pgt_q12
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."customer",
  __pgt_q1."id",
  __pgt_q1."amount"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."customer",
    __pgt_q2."id",
    __pgt_q2."amount"
  FROM (
    SELECT
      __pgt_q3."customer",
      __pgt_q3."id",
      __pgt_q3."amount"
    FROM (
      SELECT
        __pgt_q4."customer_3" AS "customer",
        __pgt_q4."id_3" AS "id",
        __pgt_q4."amount_3" AS "amount"
      FROM (
        SELECT
          __pgt_q5."customer_2" AS "customer_3",
          __pgt_q5."id_2" AS "id_3",
          __pgt_q5."amount_2" AS "amount_3"
        FROM (
          SELECT
            __pgt_q6."customer_2",
            __pgt_q6."id_2",
            __pgt_q6."amount_2",
            __pgt_q6."__pgt_rank"
          FROM (
            SELECT
              __pgt_q7."customer" AS "customer_2",
              __pgt_q7."id" AS "id_2",
              __pgt_q7."amount" AS "amount_2",
              __pgt_q7."win" AS "__pgt_rank"
            FROM (
              SELECT
                __pgt_q8."id",
                __pgt_q8."customer",
                __pgt_q8."amount",
                ROW_NUMBER() OVER (
                  PARTITION BY __pgt_q8."customer"
                  ORDER BY __pgt_q8."customer", __pgt_q8."amount" DESC NULLS LAST, __pgt_q8."id"
                ) AS "win"
              FROM (
                SELECT
                  __pgt_q9."id",
                  __pgt_q9."customer",
                  __pgt_q9."amount"
                FROM (
                  SELECT
                    __pgt_q10."id" AS "id",
                    __pgt_q10."customer" AS "customer",
                    __pgt_q10."amount" AS "amount"
                  FROM "shop"."orders" AS __pgt_q10
                ) AS __pgt_q9
                WHERE
                  (
                    __pgt_q9."customer"
                  ) IN (
                    SELECT
                      __pgt_q11."customer"
                    FROM "__pgt_part_1" AS __pgt_q11
                  )
                UNION ALL
                SELECT
                  __pgt_q9."id",
                  __pgt_q9."customer",
                  __pgt_q9."amount"
                FROM (
                  SELECT
                    __pgt_q10."id" AS "id",
                    __pgt_q10."customer" AS "customer",
                    __pgt_q10."amount" AS "amount"
                  FROM "shop"."orders" AS __pgt_q10
                ) AS __pgt_q9
                WHERE
                  __pgt_q9."customer" IS NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_1" AS __pgt_q14
                    WHERE
                      __pgt_q14."customer" IS NULL
                  )
              ) AS __pgt_q8
            ) AS __pgt_q7
          ) AS __pgt_q6
          WHERE
            (
              __pgt_q6."__pgt_rank" = 1
            )
        ) AS __pgt_q5
      ) AS __pgt_q4
    ) AS __pgt_q3
    WHERE
      (
        (
          __pgt_q3."customer"
        ) IN (
          SELECT
            __pgt_q15."customer"
          FROM "__pgt_part_1" AS __pgt_q15
        )
      )
      OR (
        __pgt_q3."customer" IS NULL
        AND EXISTS(
          SELECT
            1
          FROM "__pgt_part_1" AS __pgt_q16
          WHERE
            __pgt_q16."customer" IS NULL
        )
      )
  ) AS __pgt_q2
) AS __pgt_q1
UNION ALL
SELECT
  __pgt_q17."__pgt_w",
  __pgt_q17."customer",
  __pgt_q17."id",
  __pgt_q17."amount"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q18."customer",
    __pgt_q18."id",
    __pgt_q18."amount"
  FROM (
    SELECT
      __pgt_q19."customer",
      __pgt_q19."id",
      __pgt_q19."amount"
    FROM (
      SELECT
        __pgt_q20."customer",
        __pgt_q20."id",
        __pgt_q20."amount"
      FROM "shop"."st_0" AS __pgt_q20
    ) AS __pgt_q19
    WHERE
      (
        __pgt_q19."customer"
      ) IN (
        SELECT
          __pgt_q21."customer"
        FROM "__pgt_part_1" AS __pgt_q21
      )
    UNION ALL
    SELECT
      __pgt_q19."customer",
      __pgt_q19."id",
      __pgt_q19."amount"
    FROM (
      SELECT
        __pgt_q20."customer",
        __pgt_q20."id",
        __pgt_q20."amount"
      FROM "shop"."st_0" AS __pgt_q20
    ) AS __pgt_q19
    WHERE
      __pgt_q19."customer" IS NULL
      AND EXISTS(
        SELECT
          1
        FROM "__pgt_part_1" AS __pgt_q22
        WHERE
          __pgt_q22."customer" IS NULL
      )
  ) AS __pgt_q18
) AS __pgt_q17
