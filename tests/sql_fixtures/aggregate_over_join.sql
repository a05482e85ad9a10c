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
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q15."__pgt_w",
    __pgt_q15."id" AS "id",
    __pgt_q15."customer" AS "customer",
    __pgt_q15."amount" AS "amount"
  FROM "__pgt_window_orders" AS __pgt_q15
), "__pgt_window_customers" AS (
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
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    __pgt_q22."__pgt_w",
    __pgt_q22."id" AS "id_2",
    __pgt_q22."country" AS "country"
  FROM "__pgt_window_customers" AS __pgt_q22
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q11."country",
    COALESCE(CAST(SUM(__pgt_q11."__pgt_n") AS BIGINT), 0) AS "__pgt_count",
    COALESCE(SUM(__pgt_q11."__pgt_n" * (
      CAST((
        __pgt_q11."amount"
      ) AS DECIMAL)
    )), 0) AS "__pgt_sum",
    CAST(COALESCE(
      SUM(__pgt_q11."__pgt_n") FILTER(WHERE
        (
          NOT (
            (
              __pgt_q11."amount"
            ) IS NULL
          )
        )),
      0
    ) AS BIGINT) AS "__pgt_nn"
  FROM (
    SELECT
      CAST(__pgt_q12."__pgt_w" AS BIGINT) AS "__pgt_n",
      __pgt_q12."id",
      __pgt_q12."customer",
      __pgt_q12."amount",
      __pgt_q12."id_2",
      __pgt_q12."country"
    FROM (
      SELECT
        __pgt_q13."__pgt_w",
        __pgt_q13."id",
        __pgt_q13."customer",
        __pgt_q13."amount",
        __pgt_q13."id_2",
        __pgt_q13."country"
      FROM (
        SELECT
          __pgt_q14."__pgt_w" AS "__pgt_w",
          __pgt_q14."id",
          __pgt_q14."customer",
          __pgt_q14."amount",
          __pgt_q16."id_2",
          __pgt_q16."country"
        FROM "__pgt_delta_1" AS __pgt_q14
        CROSS JOIN (
          SELECT
            __pgt_q17."id" AS "id_2",
            __pgt_q17."country" AS "country"
          FROM "shop"."customers" AS __pgt_q17
        ) AS __pgt_q16
        WHERE
          (
            __pgt_q16."id_2" = __pgt_q14."customer"
          )
      ) AS __pgt_q13
      UNION ALL
      SELECT
        __pgt_q18."__pgt_w",
        __pgt_q18."id",
        __pgt_q18."customer",
        __pgt_q18."amount",
        __pgt_q18."id_2",
        __pgt_q18."country"
      FROM (
        SELECT
          __pgt_q21."__pgt_w" AS "__pgt_w",
          __pgt_q19."id",
          __pgt_q19."customer",
          __pgt_q19."amount",
          __pgt_q21."id_2",
          __pgt_q21."country"
        FROM (
          SELECT
            __pgt_q20."id" AS "id",
            __pgt_q20."customer" AS "customer",
            __pgt_q20."amount" AS "amount"
          FROM "shop"."orders" AS __pgt_q20
        ) AS __pgt_q19
        CROSS JOIN "__pgt_delta_2" AS __pgt_q21
        WHERE
          (
            __pgt_q21."id_2" = __pgt_q19."customer"
          )
      ) AS __pgt_q18
      UNION ALL
      SELECT
        __pgt_q23."__pgt_w",
        __pgt_q23."id",
        __pgt_q23."customer",
        __pgt_q23."amount",
        __pgt_q23."id_2",
        __pgt_q23."country"
      FROM (
        SELECT
          -__pgt_q24."__pgt_w" AS "__pgt_w",
          __pgt_q24."id",
          __pgt_q24."customer",
          __pgt_q24."amount",
          __pgt_q24."id_2",
          __pgt_q24."country"
        FROM (
          SELECT
            __pgt_q25."__pgt_w" * __pgt_q26."__pgt_w" AS "__pgt_w",
            __pgt_q25."id",
            __pgt_q25."customer",
            __pgt_q25."amount",
            __pgt_q26."id_2",
            __pgt_q26."country"
          FROM "__pgt_delta_1" AS __pgt_q25
          CROSS JOIN "__pgt_delta_2" AS __pgt_q26
          WHERE
            (
              __pgt_q26."id_2" = __pgt_q25."customer"
            )
        ) AS __pgt_q24
      ) AS __pgt_q23
    ) AS __pgt_q12
  ) AS __pgt_q11
  GROUP BY
    __pgt_q11."country"
), "__pgt_part_4" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q32."country" AS "country"
  FROM "__pgt_part_3" AS __pgt_q32
), "__pgt_part_5" AS MATERIALIZED (
  SELECT
    __pgt_q29."country",
    __pgt_q29."total",
    __pgt_q29."n",
    __pgt_q29."__pgt_count",
    __pgt_q29."__pgt_sum",
    __pgt_q29."__pgt_nn"
  FROM (
    SELECT
      __pgt_q30."country",
      __pgt_q30."total",
      __pgt_q30."n",
      __pgt_q30."__pgt_count",
      __pgt_q30."__pgt_sum",
      __pgt_q30."__pgt_nn"
    FROM "shop"."st_0" AS __pgt_q30
  ) AS __pgt_q29
  WHERE
    (
      __pgt_q29."country"
    ) IN (
      SELECT
        __pgt_q31."country"
      FROM "__pgt_part_4" AS __pgt_q31
    )
  UNION ALL
  SELECT
    __pgt_q29."country",
    __pgt_q29."total",
    __pgt_q29."n",
    __pgt_q29."__pgt_count",
    __pgt_q29."__pgt_sum",
    __pgt_q29."__pgt_nn"
  FROM (
    SELECT
      __pgt_q30."country",
      __pgt_q30."total",
      __pgt_q30."n",
      __pgt_q30."__pgt_count",
      __pgt_q30."__pgt_sum",
      __pgt_q30."__pgt_nn"
    FROM "shop"."st_0" AS __pgt_q30
  ) AS __pgt_q29
  WHERE
    __pgt_q29."country" IS NULL
    AND EXISTS(
      SELECT
        1
      FROM "__pgt_part_4" AS __pgt_q33
      WHERE
        __pgt_q33."country" IS NULL
    )
), "__pgt_part_6" AS MATERIALIZED (
  SELECT
    __pgt_q8."country",
    CAST(SUM(__pgt_q8."__pgt_count") AS BIGINT) AS "__pgt_count",
    CAST(SUM(__pgt_q8."__pgt_sum") AS DECIMAL(38, 2)) AS "__pgt_sum",
    CAST(SUM(__pgt_q8."__pgt_nn") AS BIGINT) AS "__pgt_nn"
  FROM (
    SELECT
      __pgt_q9."country",
      __pgt_q9."__pgt_count",
      __pgt_q9."__pgt_sum",
      __pgt_q9."__pgt_nn"
    FROM (
      SELECT
        __pgt_q10."country" AS "country",
        __pgt_q10."__pgt_count" AS "__pgt_count",
        __pgt_q10."__pgt_sum" AS "__pgt_sum",
        __pgt_q10."__pgt_nn" AS "__pgt_nn"
      FROM "__pgt_part_3" AS __pgt_q10
    ) AS __pgt_q9
    UNION ALL
    SELECT
      __pgt_q27."country",
      __pgt_q27."__pgt_count",
      __pgt_q27."__pgt_sum",
      __pgt_q27."__pgt_nn"
    FROM (
      SELECT
        __pgt_q28."country" AS "country",
        __pgt_q28."__pgt_count" AS "__pgt_count",
        __pgt_q28."__pgt_sum" AS "__pgt_sum",
        __pgt_q28."__pgt_nn" AS "__pgt_nn"
      FROM "__pgt_part_5" AS __pgt_q28
    ) AS __pgt_q27
  ) AS __pgt_q8
  GROUP BY
    __pgt_q8."country"
), "__pgt_part_7" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q43."country" AS "country"
  FROM (
    SELECT
      __pgt_q44."country",
      __pgt_q44."__pgt_count",
      __pgt_q44."__pgt_sum",
      __pgt_q44."__pgt_nn"
    FROM "__pgt_part_6" AS __pgt_q44
    WHERE
      (
        (
          (
            __pgt_q44."__pgt_sum" - __pgt_q44."__pgt_sum"
          ) <> 0
        )
      )
  ) AS __pgt_q43
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."country",
  __pgt_q1."total",
  __pgt_q1."n",
  __pgt_q1."__pgt_count",
  __pgt_q1."__pgt_sum",
  __pgt_q1."__pgt_nn"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."country",
    __pgt_q2."total",
    __pgt_q2."n",
    __pgt_q2."__pgt_count",
    __pgt_q2."__pgt_sum",
    __pgt_q2."__pgt_nn"
  FROM (
    SELECT
      __pgt_q3."country_2" AS "country",
      __pgt_q3."total" AS "total",
      __pgt_q3."n" AS "n",
      __pgt_q3."__pgt_count" AS "__pgt_count",
      __pgt_q3."__pgt_sum" AS "__pgt_sum",
      __pgt_q3."__pgt_nn" AS "__pgt_nn"
    FROM (
      SELECT
        __pgt_q4."country" AS "country_2",
        (
          CASE WHEN __pgt_q4."__pgt_nn" > 0 THEN CAST(__pgt_q4."__pgt_sum" AS DECIMAL) END
        ) AS "total",
        __pgt_q4."__pgt_count" AS "n",
        __pgt_q4."__pgt_count" AS "__pgt_count",
        __pgt_q4."__pgt_sum" AS "__pgt_sum",
        __pgt_q4."__pgt_nn" AS "__pgt_nn"
      FROM (
        SELECT
          __pgt_q5."country",
          __pgt_q5."__pgt_count",
          __pgt_q5."__pgt_sum",
          __pgt_q5."__pgt_nn"
        FROM (
          SELECT
            __pgt_q6."country" AS "country",
            __pgt_q6."__pgt_count" AS "__pgt_count",
            __pgt_q6."__pgt_sum" AS "__pgt_sum",
            __pgt_q6."__pgt_nn" AS "__pgt_nn"
          FROM (
            SELECT
              __pgt_q7."country",
              __pgt_q7."__pgt_count",
              __pgt_q7."__pgt_sum",
              __pgt_q7."__pgt_nn"
            FROM "__pgt_part_6" AS __pgt_q7
            WHERE
              (
                __pgt_q7."__pgt_count" > 0
              )
              AND (
                NOT (
                  (
                    (
                      (
                        __pgt_q7."__pgt_sum" - __pgt_q7."__pgt_sum"
                      ) <> 0
                    )
                  )
                )
              )
          ) AS __pgt_q6
        ) AS __pgt_q5
        UNION ALL
        SELECT
          __pgt_q34."country",
          __pgt_q34."__pgt_count",
          __pgt_q34."__pgt_sum",
          __pgt_q34."__pgt_nn"
        FROM (
          SELECT
            __pgt_q35."country",
            __pgt_q35."__pgt_count",
            __pgt_q35."__pgt_sum",
            __pgt_q35."__pgt_nn"
          FROM (
            SELECT
              __pgt_q36."country",
              COUNT(*) AS "__pgt_count",
              CAST(COALESCE(SUM(__pgt_q36."amount"), 0) AS DECIMAL(38, 2)) AS "__pgt_sum",
              COUNT(__pgt_q36."amount") AS "__pgt_nn"
            FROM (
              SELECT
                __pgt_q37."id",
                __pgt_q37."customer",
                __pgt_q37."amount",
                __pgt_q39."id_2",
                __pgt_q39."country"
              FROM (
                SELECT
                  __pgt_q38."id" AS "id",
                  __pgt_q38."customer" AS "customer",
                  __pgt_q38."amount" AS "amount"
                FROM "shop"."orders" AS __pgt_q38
              ) AS __pgt_q37
              CROSS JOIN (
                SELECT
                  __pgt_q40."id_2",
                  __pgt_q40."country"
                FROM (
                  SELECT
                    __pgt_q41."id" AS "id_2",
                    __pgt_q41."country" AS "country"
                  FROM "shop"."customers" AS __pgt_q41
                ) AS __pgt_q40
                WHERE
                  (
                    __pgt_q40."country"
                  ) IN (
                    SELECT
                      __pgt_q42."country"
                    FROM "__pgt_part_7" AS __pgt_q42
                  )
                UNION ALL
                SELECT
                  __pgt_q40."id_2",
                  __pgt_q40."country"
                FROM (
                  SELECT
                    __pgt_q41."id" AS "id_2",
                    __pgt_q41."country" AS "country"
                  FROM "shop"."customers" AS __pgt_q41
                ) AS __pgt_q40
                WHERE
                  __pgt_q40."country" IS NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_7" AS __pgt_q45
                    WHERE
                      __pgt_q45."country" IS NULL
                  )
              ) AS __pgt_q39
              WHERE
                (
                  __pgt_q39."id_2" = __pgt_q37."customer"
                )
            ) AS __pgt_q36
            GROUP BY
              __pgt_q36."country"
          ) AS __pgt_q35
          WHERE
            (
              (
                __pgt_q35."country"
              ) IN (
                SELECT
                  __pgt_q46."country"
                FROM "__pgt_part_7" AS __pgt_q46
              )
            )
            OR (
              __pgt_q35."country" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_7" AS __pgt_q47
                WHERE
                  __pgt_q47."country" IS NULL
              )
            )
        ) AS __pgt_q34
      ) AS __pgt_q4
    ) AS __pgt_q3
  ) AS __pgt_q2
) AS __pgt_q1
UNION ALL
SELECT
  __pgt_q48."__pgt_w",
  __pgt_q48."country",
  __pgt_q48."total",
  __pgt_q48."n",
  __pgt_q48."__pgt_count",
  __pgt_q48."__pgt_sum",
  __pgt_q48."__pgt_nn"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q49."country",
    __pgt_q49."total",
    __pgt_q49."n",
    __pgt_q49."__pgt_count",
    __pgt_q49."__pgt_sum",
    __pgt_q49."__pgt_nn"
  FROM "__pgt_part_5" AS __pgt_q49
) AS __pgt_q48
