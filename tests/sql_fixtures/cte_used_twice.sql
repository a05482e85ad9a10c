-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
WITH t AS (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) SELECT a.customer, a.total FROM t a WHERE a.total = (SELECT max(total) FROM t);

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
    __pgt_q9."customer" AS "customer"
  FROM "__pgt_window_orders" AS __pgt_q9
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."customer" AS "customer_3",
    __pgt_q2."agg" AS "total_2"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q3."customer",
      __pgt_q3."agg"
    FROM (
      SELECT
        __pgt_q4."customer",
        __pgt_q4."agg"
      FROM (
        SELECT
          __pgt_q5."customer",
          SUM(__pgt_q5."amount") AS "agg"
        FROM (
          SELECT
            __pgt_q6."id",
            __pgt_q6."customer",
            __pgt_q6."amount"
          FROM (
            SELECT
              __pgt_q7."id" AS "id",
              __pgt_q7."customer" AS "customer",
              __pgt_q7."amount" AS "amount"
            FROM "shop"."orders" AS __pgt_q7
          ) AS __pgt_q6
          WHERE
            (
              __pgt_q6."customer"
            ) IN (
              SELECT
                __pgt_q8."customer"
              FROM "__pgt_part_1" AS __pgt_q8
            )
          UNION ALL
          SELECT
            __pgt_q6."id",
            __pgt_q6."customer",
            __pgt_q6."amount"
          FROM (
            SELECT
              __pgt_q7."id" AS "id",
              __pgt_q7."customer" AS "customer",
              __pgt_q7."amount" AS "amount"
            FROM "shop"."orders" AS __pgt_q7
          ) AS __pgt_q6
          WHERE
            __pgt_q6."customer" IS NOT DISTINCT FROM NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_1" AS __pgt_q10
              WHERE
                __pgt_q10."customer" IS NOT DISTINCT FROM NULL
            )
        ) AS __pgt_q5
        GROUP BY
          __pgt_q5."customer"
      ) AS __pgt_q4
      WHERE
        (
          (
            __pgt_q4."customer"
          ) IN (
            SELECT
              __pgt_q11."customer"
            FROM "__pgt_part_1" AS __pgt_q11
          )
        )
        OR (
          __pgt_q4."customer" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_1" AS __pgt_q12
            WHERE
              __pgt_q12."customer" IS NOT DISTINCT FROM NULL
          )
        )
    ) AS __pgt_q3
    UNION ALL
    SELECT
      -1 AS "__pgt_w",
      __pgt_q13."customer",
      __pgt_q13."agg"
    FROM (
      SELECT
        __pgt_q14."customer",
        __pgt_q14."agg"
      FROM (
        SELECT
          __pgt_q15."customer",
          SUM(__pgt_q15."amount") AS "agg"
        FROM (
          SELECT
            __pgt_q22."id" AS "id",
            __pgt_q22."customer" AS "customer",
            __pgt_q22."amount" AS "amount"
          FROM (
            SELECT
              "id",
              "customer",
              "amount"
            FROM "shop"."orders" AS t
            WHERE
              NOT EXISTS(
                SELECT
                FROM "__pgt_window_orders" AS c
                WHERE
                  c."id" = t."id"
              )
              AND (
                t."customer"
              ) IN (
                SELECT
                  __pgt_q18."customer"
                FROM "__pgt_part_1" AS __pgt_q18
              )
            UNION ALL
            SELECT
              u."id",
              u."customer",
              u."amount"
            FROM (
              SELECT
                s."id" AS "id",
                s."customer" AS "customer",
                s."amount" AS "amount",
                SUM(s."__pgt_w") AS __pgt_n
              FROM (
                SELECT
                  1 AS "__pgt_w",
                  "id",
                  "customer",
                  "amount"
                FROM "shop"."orders" AS t
                WHERE
                  (
                    t."id"
                  ) IN (
                    SELECT
                      "id"
                    FROM "__pgt_window_orders"
                  )
                  AND (
                    t."customer"
                  ) IN (
                    SELECT
                      __pgt_q16."customer"
                    FROM "__pgt_part_1" AS __pgt_q16
                  )
                UNION ALL
                SELECT
                  -"__pgt_w",
                  "id",
                  "customer",
                  "amount"
                FROM "__pgt_window_orders" AS c
                WHERE
                  (
                    c."customer"
                  ) IN (
                    SELECT
                      __pgt_q17."customer"
                    FROM "__pgt_part_1" AS __pgt_q17
                  )
              ) AS s
              GROUP BY
                s."id",
                s."customer",
                s."amount"
              HAVING
                SUM(s."__pgt_w") > 0
            ) AS u
          ) AS __pgt_q22
          UNION ALL
          SELECT
            __pgt_q23."id" AS "id",
            __pgt_q23."customer" AS "customer",
            __pgt_q23."amount" AS "amount"
          FROM (
            SELECT
              "id",
              "customer",
              "amount"
            FROM "shop"."orders" AS t
            WHERE
              NOT EXISTS(
                SELECT
                FROM "__pgt_window_orders" AS c
                WHERE
                  c."id" = t."id"
              )
              AND t."customer" IS NOT DISTINCT FROM NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_1" AS __pgt_q21
                WHERE
                  __pgt_q21."customer" IS NOT DISTINCT FROM NULL
              )
            UNION ALL
            SELECT
              u."id",
              u."customer",
              u."amount"
            FROM (
              SELECT
                s."id" AS "id",
                s."customer" AS "customer",
                s."amount" AS "amount",
                SUM(s."__pgt_w") AS __pgt_n
              FROM (
                SELECT
                  1 AS "__pgt_w",
                  "id",
                  "customer",
                  "amount"
                FROM "shop"."orders" AS t
                WHERE
                  (
                    t."id"
                  ) IN (
                    SELECT
                      "id"
                    FROM "__pgt_window_orders"
                  )
                  AND t."customer" IS NOT DISTINCT FROM NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_1" AS __pgt_q19
                    WHERE
                      __pgt_q19."customer" IS NOT DISTINCT FROM NULL
                  )
                UNION ALL
                SELECT
                  -"__pgt_w",
                  "id",
                  "customer",
                  "amount"
                FROM "__pgt_window_orders" AS c
                WHERE
                  c."customer" IS NOT DISTINCT FROM NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_1" AS __pgt_q20
                    WHERE
                      __pgt_q20."customer" IS NOT DISTINCT FROM NULL
                  )
              ) AS s
              GROUP BY
                s."id",
                s."customer",
                s."amount"
              HAVING
                SUM(s."__pgt_w") > 0
            ) AS u
          ) AS __pgt_q23
        ) AS __pgt_q15
        GROUP BY
          __pgt_q15."customer"
      ) AS __pgt_q14
      WHERE
        (
          (
            __pgt_q14."customer"
          ) IN (
            SELECT
              __pgt_q24."customer"
            FROM "__pgt_part_1" AS __pgt_q24
          )
        )
        OR (
          __pgt_q14."customer" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_1" AS __pgt_q25
            WHERE
              __pgt_q25."customer" IS NOT DISTINCT FROM NULL
          )
        )
    ) AS __pgt_q13
  ) AS __pgt_q2
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    MAX(__pgt_q27."agg_2") AS "agg_3"
  FROM (
    SELECT
      __pgt_q28."customer" AS "customer_4",
      SUM(__pgt_q28."amount") AS "agg_2"
    FROM "shop"."orders" AS __pgt_q28
    GROUP BY
      __pgt_q28."customer"
  ) AS __pgt_q27
), "__pgt_old_orders" AS NOT MATERIALIZED (
  SELECT
    "id",
    "customer",
    "amount"
  FROM "shop"."orders" AS t
  WHERE
    NOT (
      (
        t."id"
      ) IN (
        SELECT
          "id"
        FROM "__pgt_window_orders"
      )
    )
  UNION ALL
  SELECT
    u."id",
    u."customer",
    u."amount"
  FROM (
    SELECT
      s."id" AS "id",
      s."customer" AS "customer",
      s."amount" AS "amount",
      SUM(s."__pgt_w") AS __pgt_n
    FROM (
      SELECT
        1 AS "__pgt_w",
        "id",
        "customer",
        "amount"
      FROM "shop"."orders" AS t
      WHERE
        (
          t."id"
        ) IN (
          SELECT
            "id"
          FROM "__pgt_window_orders"
        )
      UNION ALL
      SELECT
        -"__pgt_w",
        "id",
        "customer",
        "amount"
      FROM "__pgt_window_orders" AS c
    ) AS s
    GROUP BY
      s."id",
      s."customer",
      s."amount"
    HAVING
      SUM(s."__pgt_w") > 0
  ) AS u
), "__pgt_delta_4" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q32."agg_3"
  FROM (
    SELECT
      MAX(__pgt_q33."agg_2") AS "agg_3"
    FROM (
      SELECT
        __pgt_q34."customer" AS "customer_4",
        SUM(__pgt_q34."amount") AS "agg_2"
      FROM "shop"."orders" AS __pgt_q34
      GROUP BY
        __pgt_q34."customer"
    ) AS __pgt_q33
  ) AS __pgt_q32
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q35."agg_3"
  FROM (
    SELECT
      MAX(__pgt_q36."agg_2") AS "agg_3"
    FROM (
      SELECT
        __pgt_q37."customer" AS "customer_4",
        SUM(__pgt_q37."amount") AS "agg_2"
      FROM "__pgt_old_orders" AS __pgt_q37
      GROUP BY
        __pgt_q37."customer"
    ) AS __pgt_q36
  ) AS __pgt_q35
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."customer_3" AS "customer",
  __pgt_q1."total_2" AS "total"
FROM (
  SELECT
    __pgt_q26."__pgt_w",
    __pgt_q26."customer_3",
    __pgt_q26."total_2",
    __pgt_q29."agg_3"
  FROM "__pgt_delta_2" AS __pgt_q26
  CROSS JOIN "__pgt_part_3" AS __pgt_q29
  UNION ALL
  SELECT
    __pgt_q38."__pgt_w",
    __pgt_q30."customer" AS "customer_3",
    __pgt_q30."agg" AS "total_2",
    __pgt_q38."agg_3"
  FROM (
    SELECT
      __pgt_q31."customer",
      SUM(__pgt_q31."amount") AS "agg"
    FROM "shop"."orders" AS __pgt_q31
    GROUP BY
      __pgt_q31."customer"
  ) AS __pgt_q30
  CROSS JOIN "__pgt_delta_4" AS __pgt_q38
  UNION ALL
  SELECT
    -__pgt_q39."__pgt_w" * __pgt_q40."__pgt_w" AS "__pgt_w",
    __pgt_q39."customer_3",
    __pgt_q39."total_2",
    __pgt_q40."agg_3"
  FROM "__pgt_delta_2" AS __pgt_q39
  CROSS JOIN "__pgt_delta_4" AS __pgt_q40
) AS __pgt_q1
WHERE
  (
    __pgt_q1."total_2" = (
      __pgt_q1."agg_3"
    )
  )
