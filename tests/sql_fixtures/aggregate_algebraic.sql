-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT customer, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM orders GROUP BY customer;

-- cycle
UPDATE orders SET amount = 12.00, customer = 2 WHERE id = 1;
INSERT INTO orders VALUES (5, 3, 1.00, '2024-03-01');

-- cycle
DELETE FROM orders WHERE customer = 2;

-- cycle
DELETE FROM orders;
INSERT INTO orders VALUES (9, NULL, NULL, NULL);

-- delta
π(σ(A) + (γ(orders) if B)[customer of B]) − C
where
  A = γ(γ(Δorders) + C)
  B = σ(A)
  C = stored[customer of γ(Δorders)]

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
    __pgt_q4."customer",
    COALESCE(CAST(SUM(__pgt_q4."__pgt_n") AS BIGINT), 0) AS "__pgt_count",
    COALESCE(SUM(__pgt_q4."__pgt_n" * (
      CAST((
        __pgt_q4."amount"
      ) AS DECIMAL)
    )), 0) AS "__pgt_sum",
    CAST(COALESCE(
      SUM(__pgt_q4."__pgt_n") FILTER(WHERE
        (
          (
            __pgt_q4."amount"
          ) IS DISTINCT FROM NULL
        )),
      0
    ) AS BIGINT) AS "__pgt_nn"
  FROM (
    SELECT
      CAST((
        __pgt_q5."__pgt_w"
      ) AS BIGINT) AS "__pgt_n",
      __pgt_q5."id",
      __pgt_q5."customer",
      __pgt_q5."amount"
    FROM "__pgt_window_orders" AS __pgt_q5
  ) AS __pgt_q4
  GROUP BY
    __pgt_q4."customer"
), "__pgt_part_2" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q10."customer" AS "customer"
  FROM "__pgt_part_1" AS __pgt_q10
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q7."customer",
    __pgt_q7."n",
    __pgt_q7."total",
    __pgt_q7."mean",
    __pgt_q7."__pgt_count",
    __pgt_q7."__pgt_sum",
    __pgt_q7."__pgt_nn"
  FROM (
    SELECT
      __pgt_q8."customer",
      __pgt_q8."n",
      __pgt_q8."total",
      __pgt_q8."mean",
      __pgt_q8."__pgt_count",
      __pgt_q8."__pgt_sum",
      __pgt_q8."__pgt_nn"
    FROM "shop"."st_0" AS __pgt_q8
  ) AS __pgt_q7
  WHERE
    (
      __pgt_q7."customer"
    ) IN (
      SELECT
        __pgt_q9."customer"
      FROM "__pgt_part_2" AS __pgt_q9
    )
  UNION ALL
  SELECT
    __pgt_q7."customer",
    __pgt_q7."n",
    __pgt_q7."total",
    __pgt_q7."mean",
    __pgt_q7."__pgt_count",
    __pgt_q7."__pgt_sum",
    __pgt_q7."__pgt_nn"
  FROM (
    SELECT
      __pgt_q8."customer",
      __pgt_q8."n",
      __pgt_q8."total",
      __pgt_q8."mean",
      __pgt_q8."__pgt_count",
      __pgt_q8."__pgt_sum",
      __pgt_q8."__pgt_nn"
    FROM "shop"."st_0" AS __pgt_q8
  ) AS __pgt_q7
  WHERE
    __pgt_q7."customer" IS NOT DISTINCT FROM NULL
    AND EXISTS(
      SELECT
        1
      FROM "__pgt_part_2" AS __pgt_q11
      WHERE
        __pgt_q11."customer" IS NOT DISTINCT FROM NULL
    )
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q3."customer",
    CAST(SUM(__pgt_q3."__pgt_count") AS BIGINT) AS "__pgt_count",
    CAST(SUM(__pgt_q3."__pgt_sum") AS DECIMAL(38, 2)) AS "__pgt_sum",
    CAST(SUM(__pgt_q3."__pgt_nn") AS BIGINT) AS "__pgt_nn"
  FROM (
    SELECT
      __pgt_q6."customer",
      __pgt_q6."__pgt_count",
      __pgt_q6."__pgt_sum",
      __pgt_q6."__pgt_nn"
    FROM "__pgt_part_1" AS __pgt_q6
    UNION ALL
    SELECT
      __pgt_q12."customer",
      __pgt_q12."__pgt_count",
      __pgt_q12."__pgt_sum",
      __pgt_q12."__pgt_nn"
    FROM "__pgt_part_3" AS __pgt_q12
  ) AS __pgt_q3
  GROUP BY
    __pgt_q3."customer"
), "__pgt_part_5" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q21."customer" AS "customer"
  FROM "__pgt_part_4" AS __pgt_q21
  WHERE
    (
      (
        (
          (
            __pgt_q21."__pgt_sum" - __pgt_q21."__pgt_sum"
          ) <> 0
        )
      )
    )
), "__pgt_part_6" AS MATERIALIZED (
  SELECT DISTINCT
    TRUE AS "k0"
  FROM "__pgt_part_4" AS __pgt_q24
  WHERE
    (
      (
        (
          (
            __pgt_q24."__pgt_sum" - __pgt_q24."__pgt_sum"
          ) <> 0
        )
      )
    )
)
SELECT
  1 AS "__pgt_w",
  __pgt_q1."customer_2" AS "customer",
  __pgt_q1."n",
  __pgt_q1."total",
  __pgt_q1."mean",
  __pgt_q1."__pgt_count",
  __pgt_q1."__pgt_sum",
  __pgt_q1."__pgt_nn"
FROM (
  SELECT
    __pgt_q2."customer" AS "customer_2",
    __pgt_q2."__pgt_count" AS "n",
    (
      CASE WHEN __pgt_q2."__pgt_nn" > 0 THEN CAST(__pgt_q2."__pgt_sum" AS DECIMAL) END
    ) AS "total",
    (
      CASE
        WHEN __pgt_q2."__pgt_nn" > 0
        THEN CAST(__pgt_q2."__pgt_sum" AS DECIMAL) / __pgt_q2."__pgt_nn"
      END
    ) AS "mean",
    __pgt_q2."__pgt_count" AS "__pgt_count",
    __pgt_q2."__pgt_sum" AS "__pgt_sum",
    __pgt_q2."__pgt_nn" AS "__pgt_nn"
  FROM (
    SELECT
      __pgt_q13."customer",
      __pgt_q13."__pgt_count",
      __pgt_q13."__pgt_sum",
      __pgt_q13."__pgt_nn"
    FROM "__pgt_part_4" AS __pgt_q13
    WHERE
      (
        (
          __pgt_q13."__pgt_count" > 0
        )
        AND (
          NOT (
            (
              (
                (
                  __pgt_q13."__pgt_sum" - __pgt_q13."__pgt_sum"
                ) <> 0
              )
            )
          )
        )
      )
    UNION ALL
    SELECT
      __pgt_q14."customer",
      __pgt_q14."__pgt_count",
      __pgt_q14."__pgt_sum",
      __pgt_q14."__pgt_nn"
    FROM (
      SELECT
        __pgt_q15."customer",
        __pgt_q15."__pgt_count",
        __pgt_q15."__pgt_sum",
        __pgt_q15."__pgt_nn"
      FROM (
        SELECT
          __pgt_q16."customer",
          __pgt_q16."__pgt_count",
          __pgt_q16."__pgt_sum",
          __pgt_q16."__pgt_nn"
        FROM (
          SELECT
            __pgt_q17."customer",
            COUNT(*) AS "__pgt_count",
            CAST(COALESCE(SUM(__pgt_q17."amount"), 0) AS DECIMAL(38, 2)) AS "__pgt_sum",
            COUNT(__pgt_q17."amount") AS "__pgt_nn"
          FROM (
            SELECT
              __pgt_q18."id",
              __pgt_q18."customer",
              __pgt_q18."amount"
            FROM (
              SELECT
                __pgt_q19."id" AS "id",
                __pgt_q19."customer" AS "customer",
                __pgt_q19."amount" AS "amount"
              FROM "shop"."orders" AS __pgt_q19
            ) AS __pgt_q18
            WHERE
              (
                __pgt_q18."customer"
              ) IN (
                SELECT
                  __pgt_q20."customer"
                FROM "__pgt_part_5" AS __pgt_q20
              )
            UNION ALL
            SELECT
              __pgt_q18."id",
              __pgt_q18."customer",
              __pgt_q18."amount"
            FROM (
              SELECT
                __pgt_q19."id" AS "id",
                __pgt_q19."customer" AS "customer",
                __pgt_q19."amount" AS "amount"
              FROM "shop"."orders" AS __pgt_q19
            ) AS __pgt_q18
            WHERE
              __pgt_q18."customer" IS NOT DISTINCT FROM NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_5" AS __pgt_q22
                WHERE
                  __pgt_q22."customer" IS NOT DISTINCT FROM NULL
              )
          ) AS __pgt_q17
          GROUP BY
            __pgt_q17."customer"
        ) AS __pgt_q16
        WHERE
          (
            EXISTS(
              SELECT
                1
              FROM "__pgt_part_6" AS __pgt_q23
            )
          )
      ) AS __pgt_q15
      WHERE
        (
          (
            __pgt_q15."customer"
          ) IN (
            SELECT
              __pgt_q25."customer"
            FROM "__pgt_part_5" AS __pgt_q25
          )
        )
        OR (
          __pgt_q15."customer" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_5" AS __pgt_q26
            WHERE
              __pgt_q26."customer" IS NOT DISTINCT FROM NULL
          )
        )
    ) AS __pgt_q14
  ) AS __pgt_q2
) AS __pgt_q1
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q27."customer",
  __pgt_q27."n",
  __pgt_q27."total",
  __pgt_q27."mean",
  __pgt_q27."__pgt_count",
  __pgt_q27."__pgt_sum",
  __pgt_q27."__pgt_nn"
FROM "__pgt_part_3" AS __pgt_q27
