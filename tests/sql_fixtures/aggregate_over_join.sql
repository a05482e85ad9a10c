-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.country, sum(o.amount) AS total, count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.country;

-- cycle
UPDATE orders SET customer = 3 WHERE id = 1;
UPDATE customers SET name = 'Bob' WHERE id = 2;

-- cycle
DELETE FROM customers WHERE id = 1;
DELETE FROM orders WHERE id = 2;

-- cycle
INSERT INTO customers VALUES (4, 'Di', 'FR');
INSERT INTO orders VALUES (6, 4, 2.00, NULL), (7, 4, 3.00, NULL);

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
), "__pgt_window_customers" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id",
    "new_country" AS "country"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id",
    "old_country" AS "country"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q4."country",
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
      __pgt_q5."amount",
      __pgt_q5."id_2",
      __pgt_q5."country"
    FROM (
      SELECT
        __pgt_q6."__pgt_w",
        __pgt_q6."id",
        __pgt_q6."customer",
        __pgt_q6."amount",
        __pgt_q7."id" AS "id_2",
        __pgt_q7."country"
      FROM "__pgt_window_orders" AS __pgt_q6
      CROSS JOIN "shop"."customers" AS __pgt_q7
      WHERE
        (
          __pgt_q7."id" = __pgt_q6."customer"
        )
      UNION ALL
      SELECT
        __pgt_q9."__pgt_w",
        __pgt_q8."id",
        __pgt_q8."customer",
        __pgt_q8."amount",
        __pgt_q9."id" AS "id_2",
        __pgt_q9."country"
      FROM "shop"."orders" AS __pgt_q8
      CROSS JOIN "__pgt_window_customers" AS __pgt_q9
      WHERE
        (
          __pgt_q9."id" = __pgt_q8."customer"
        )
      UNION ALL
      SELECT
        -__pgt_q10."__pgt_w" * __pgt_q11."__pgt_w" AS "__pgt_w",
        __pgt_q10."id",
        __pgt_q10."customer",
        __pgt_q10."amount",
        __pgt_q11."id" AS "id_2",
        __pgt_q11."country"
      FROM "__pgt_window_orders" AS __pgt_q10
      CROSS JOIN "__pgt_window_customers" AS __pgt_q11
      WHERE
        (
          __pgt_q11."id" = __pgt_q10."customer"
        )
    ) AS __pgt_q5
  ) AS __pgt_q4
  GROUP BY
    __pgt_q4."country"
), "__pgt_part_2" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q16."country" AS "country"
  FROM "__pgt_part_1" AS __pgt_q16
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q13."country",
    __pgt_q13."total",
    __pgt_q13."n",
    __pgt_q13."__pgt_count",
    __pgt_q13."__pgt_sum",
    __pgt_q13."__pgt_nn"
  FROM (
    SELECT
      __pgt_q14."country",
      __pgt_q14."total",
      __pgt_q14."n",
      __pgt_q14."__pgt_count",
      __pgt_q14."__pgt_sum",
      __pgt_q14."__pgt_nn"
    FROM "shop"."st_0" AS __pgt_q14
  ) AS __pgt_q13
  WHERE
    (
      __pgt_q13."country"
    ) IN (
      SELECT
        __pgt_q15."country"
      FROM "__pgt_part_2" AS __pgt_q15
    )
  UNION ALL
  SELECT
    __pgt_q13."country",
    __pgt_q13."total",
    __pgt_q13."n",
    __pgt_q13."__pgt_count",
    __pgt_q13."__pgt_sum",
    __pgt_q13."__pgt_nn"
  FROM (
    SELECT
      __pgt_q14."country",
      __pgt_q14."total",
      __pgt_q14."n",
      __pgt_q14."__pgt_count",
      __pgt_q14."__pgt_sum",
      __pgt_q14."__pgt_nn"
    FROM "shop"."st_0" AS __pgt_q14
  ) AS __pgt_q13
  WHERE
    __pgt_q13."country" IS NOT DISTINCT FROM NULL
    AND EXISTS(
      SELECT
        1
      FROM "__pgt_part_2" AS __pgt_q17
      WHERE
        __pgt_q17."country" IS NOT DISTINCT FROM NULL
    )
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q3."country",
    CAST(SUM(__pgt_q3."__pgt_count") AS BIGINT) AS "__pgt_count",
    CAST(SUM(__pgt_q3."__pgt_sum") AS DECIMAL(38, 2)) AS "__pgt_sum",
    CAST(SUM(__pgt_q3."__pgt_nn") AS BIGINT) AS "__pgt_nn"
  FROM (
    SELECT
      __pgt_q12."country",
      __pgt_q12."__pgt_count",
      __pgt_q12."__pgt_sum",
      __pgt_q12."__pgt_nn"
    FROM "__pgt_part_1" AS __pgt_q12
    UNION ALL
    SELECT
      __pgt_q18."country",
      __pgt_q18."__pgt_count",
      __pgt_q18."__pgt_sum",
      __pgt_q18."__pgt_nn"
    FROM "__pgt_part_3" AS __pgt_q18
  ) AS __pgt_q3
  GROUP BY
    __pgt_q3."country"
), "__pgt_part_5" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q28."country" AS "country"
  FROM "__pgt_part_4" AS __pgt_q28
  WHERE
    (
      (
        (
          (
            __pgt_q28."__pgt_sum" - __pgt_q28."__pgt_sum"
          ) <> 0
        )
      )
    )
), "__pgt_part_6" AS MATERIALIZED (
  SELECT DISTINCT
    TRUE AS "k0"
  FROM "__pgt_part_4" AS __pgt_q31
  WHERE
    (
      (
        (
          (
            __pgt_q31."__pgt_sum" - __pgt_q31."__pgt_sum"
          ) <> 0
        )
      )
    )
)
SELECT
  1 AS "__pgt_w",
  __pgt_q1."country_2" AS "country",
  __pgt_q1."total",
  __pgt_q1."n",
  __pgt_q1."__pgt_count",
  __pgt_q1."__pgt_sum",
  __pgt_q1."__pgt_nn"
FROM (
  SELECT
    __pgt_q2."country" AS "country_2",
    (
      CASE WHEN __pgt_q2."__pgt_nn" > 0 THEN CAST(__pgt_q2."__pgt_sum" AS DECIMAL) END
    ) AS "total",
    __pgt_q2."__pgt_count" AS "n",
    __pgt_q2."__pgt_count" AS "__pgt_count",
    __pgt_q2."__pgt_sum" AS "__pgt_sum",
    __pgt_q2."__pgt_nn" AS "__pgt_nn"
  FROM (
    SELECT
      __pgt_q19."country",
      __pgt_q19."__pgt_count",
      __pgt_q19."__pgt_sum",
      __pgt_q19."__pgt_nn"
    FROM "__pgt_part_4" AS __pgt_q19
    WHERE
      (
        (
          __pgt_q19."__pgt_count" > 0
        )
        AND (
          NOT (
            (
              (
                (
                  __pgt_q19."__pgt_sum" - __pgt_q19."__pgt_sum"
                ) <> 0
              )
            )
          )
        )
      )
    UNION ALL
    SELECT
      __pgt_q20."country",
      __pgt_q20."__pgt_count",
      __pgt_q20."__pgt_sum",
      __pgt_q20."__pgt_nn"
    FROM (
      SELECT
        __pgt_q21."country",
        __pgt_q21."__pgt_count",
        __pgt_q21."__pgt_sum",
        __pgt_q21."__pgt_nn"
      FROM (
        SELECT
          __pgt_q22."country",
          __pgt_q22."__pgt_count",
          __pgt_q22."__pgt_sum",
          __pgt_q22."__pgt_nn"
        FROM (
          SELECT
            __pgt_q24."country",
            COUNT(*) AS "__pgt_count",
            CAST(COALESCE(SUM(__pgt_q23."amount"), 0) AS DECIMAL(38, 2)) AS "__pgt_sum",
            COUNT(__pgt_q23."amount") AS "__pgt_nn"
          FROM "shop"."orders" AS __pgt_q23
          CROSS JOIN (
            SELECT
              __pgt_q25."id_2",
              __pgt_q25."country"
            FROM (
              SELECT
                __pgt_q26."id" AS "id_2",
                __pgt_q26."country" AS "country"
              FROM "shop"."customers" AS __pgt_q26
            ) AS __pgt_q25
            WHERE
              (
                __pgt_q25."country"
              ) IN (
                SELECT
                  __pgt_q27."country"
                FROM "__pgt_part_5" AS __pgt_q27
              )
            UNION ALL
            SELECT
              __pgt_q25."id_2",
              __pgt_q25."country"
            FROM (
              SELECT
                __pgt_q26."id" AS "id_2",
                __pgt_q26."country" AS "country"
              FROM "shop"."customers" AS __pgt_q26
            ) AS __pgt_q25
            WHERE
              __pgt_q25."country" IS NOT DISTINCT FROM NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_5" AS __pgt_q29
                WHERE
                  __pgt_q29."country" IS NOT DISTINCT FROM NULL
              )
          ) AS __pgt_q24
          WHERE
            (
              __pgt_q24."id_2" = __pgt_q23."customer"
            )
          GROUP BY
            __pgt_q24."country"
        ) AS __pgt_q22
        WHERE
          (
            EXISTS(
              SELECT
                1
              FROM "__pgt_part_6" AS __pgt_q30
            )
          )
      ) AS __pgt_q21
      WHERE
        (
          (
            __pgt_q21."country"
          ) IN (
            SELECT
              __pgt_q32."country"
            FROM "__pgt_part_5" AS __pgt_q32
          )
        )
        OR (
          __pgt_q21."country" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_5" AS __pgt_q33
            WHERE
              __pgt_q33."country" IS NOT DISTINCT FROM NULL
          )
        )
    ) AS __pgt_q20
  ) AS __pgt_q2
) AS __pgt_q1
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q34."country",
  __pgt_q34."total",
  __pgt_q34."n",
  __pgt_q34."__pgt_count",
  __pgt_q34."__pgt_sum",
  __pgt_q34."__pgt_nn"
FROM "__pgt_part_3" AS __pgt_q34
