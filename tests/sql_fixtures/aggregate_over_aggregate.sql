-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS x GROUP BY n;

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
    "new_customer" AS "customer"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id",
    "old_customer" AS "customer"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q10."customer" AS "customer"
  FROM "__pgt_window_orders" AS __pgt_q10
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q2."n",
    COALESCE(CAST(SUM(__pgt_q2."__pgt_n") AS BIGINT), 0) AS "__pgt_count"
  FROM (
    SELECT
      CAST((
        __pgt_q3."__pgt_w"
      ) AS BIGINT) AS "__pgt_n",
      __pgt_q3."agg" AS "n"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q4."customer",
        __pgt_q4."agg"
      FROM (
        SELECT
          __pgt_q5."customer",
          __pgt_q5."agg"
        FROM (
          SELECT
            __pgt_q6."customer",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q7."id",
              __pgt_q7."customer"
            FROM (
              SELECT
                __pgt_q8."id" AS "id",
                __pgt_q8."customer" AS "customer"
              FROM "shop"."orders" AS __pgt_q8
            ) AS __pgt_q7
            WHERE
              (
                __pgt_q7."customer"
              ) IN (
                SELECT
                  __pgt_q9."customer"
                FROM "__pgt_part_1" AS __pgt_q9
              )
            UNION ALL
            SELECT
              __pgt_q7."id",
              __pgt_q7."customer"
            FROM (
              SELECT
                __pgt_q8."id" AS "id",
                __pgt_q8."customer" AS "customer"
              FROM "shop"."orders" AS __pgt_q8
            ) AS __pgt_q7
            WHERE
              __pgt_q7."customer" IS NOT DISTINCT FROM NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_1" AS __pgt_q11
                WHERE
                  __pgt_q11."customer" IS NOT DISTINCT FROM NULL
              )
          ) AS __pgt_q6
          GROUP BY
            __pgt_q6."customer"
        ) AS __pgt_q5
        WHERE
          (
            (
              __pgt_q5."customer"
            ) IN (
              SELECT
                __pgt_q12."customer"
              FROM "__pgt_part_1" AS __pgt_q12
            )
          )
          OR (
            __pgt_q5."customer" IS NOT DISTINCT FROM NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_1" AS __pgt_q13
              WHERE
                __pgt_q13."customer" IS NOT DISTINCT FROM NULL
            )
          )
      ) AS __pgt_q4
      UNION ALL
      SELECT
        -1 AS "__pgt_w",
        __pgt_q14."customer",
        __pgt_q14."agg"
      FROM (
        SELECT
          __pgt_q15."customer",
          __pgt_q15."agg"
        FROM (
          SELECT
            __pgt_q16."customer",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q23."id" AS "id",
              __pgt_q23."customer" AS "customer"
            FROM (
              SELECT
                "id",
                "customer"
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
                    __pgt_q19."customer"
                  FROM "__pgt_part_1" AS __pgt_q19
                )
              UNION ALL
              SELECT
                u."id",
                u."customer"
              FROM (
                SELECT
                  s."id" AS "id",
                  s."customer" AS "customer",
                  SUM(s."__pgt_w") AS __pgt_n
                FROM (
                  SELECT
                    1 AS "__pgt_w",
                    "id",
                    "customer"
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
                        __pgt_q17."customer"
                      FROM "__pgt_part_1" AS __pgt_q17
                    )
                  UNION ALL
                  SELECT
                    -"__pgt_w",
                    "id",
                    "customer"
                  FROM "__pgt_window_orders" AS c
                  WHERE
                    (
                      c."customer"
                    ) IN (
                      SELECT
                        __pgt_q18."customer"
                      FROM "__pgt_part_1" AS __pgt_q18
                    )
                ) AS s
                GROUP BY
                  s."id",
                  s."customer"
                HAVING
                  SUM(s."__pgt_w") > 0
              ) AS u
            ) AS __pgt_q23
            UNION ALL
            SELECT
              __pgt_q24."id" AS "id",
              __pgt_q24."customer" AS "customer"
            FROM (
              SELECT
                "id",
                "customer"
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
                  FROM "__pgt_part_1" AS __pgt_q22
                  WHERE
                    __pgt_q22."customer" IS NOT DISTINCT FROM NULL
                )
              UNION ALL
              SELECT
                u."id",
                u."customer"
              FROM (
                SELECT
                  s."id" AS "id",
                  s."customer" AS "customer",
                  SUM(s."__pgt_w") AS __pgt_n
                FROM (
                  SELECT
                    1 AS "__pgt_w",
                    "id",
                    "customer"
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
                      FROM "__pgt_part_1" AS __pgt_q20
                      WHERE
                        __pgt_q20."customer" IS NOT DISTINCT FROM NULL
                    )
                  UNION ALL
                  SELECT
                    -"__pgt_w",
                    "id",
                    "customer"
                  FROM "__pgt_window_orders" AS c
                  WHERE
                    c."customer" IS NOT DISTINCT FROM NULL
                    AND EXISTS(
                      SELECT
                        1
                      FROM "__pgt_part_1" AS __pgt_q21
                      WHERE
                        __pgt_q21."customer" IS NOT DISTINCT FROM NULL
                    )
                ) AS s
                GROUP BY
                  s."id",
                  s."customer"
                HAVING
                  SUM(s."__pgt_w") > 0
              ) AS u
            ) AS __pgt_q24
          ) AS __pgt_q16
          GROUP BY
            __pgt_q16."customer"
        ) AS __pgt_q15
        WHERE
          (
            (
              __pgt_q15."customer"
            ) IN (
              SELECT
                __pgt_q25."customer"
              FROM "__pgt_part_1" AS __pgt_q25
            )
          )
          OR (
            __pgt_q15."customer" IS NOT DISTINCT FROM NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_1" AS __pgt_q26
              WHERE
                __pgt_q26."customer" IS NOT DISTINCT FROM NULL
            )
          )
      ) AS __pgt_q14
    ) AS __pgt_q3
  ) AS __pgt_q2
  GROUP BY
    __pgt_q2."n"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q31."n" AS "n"
  FROM "__pgt_part_2" AS __pgt_q31
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q28."n",
    __pgt_q28."customers",
    __pgt_q28."__pgt_count"
  FROM (
    SELECT
      __pgt_q29."n",
      __pgt_q29."customers",
      __pgt_q29."__pgt_count"
    FROM "shop"."st_0" AS __pgt_q29
  ) AS __pgt_q28
  WHERE
    (
      __pgt_q28."n"
    ) IN (
      SELECT
        __pgt_q30."n"
      FROM "__pgt_part_3" AS __pgt_q30
    )
), "__pgt_part_5" AS MATERIALIZED (
  SELECT
    __pgt_q1."n",
    CAST(SUM(__pgt_q1."__pgt_count") AS BIGINT) AS "__pgt_count"
  FROM (
    SELECT
      __pgt_q27."n",
      __pgt_q27."__pgt_count"
    FROM "__pgt_part_2" AS __pgt_q27
    UNION ALL
    SELECT
      __pgt_q32."n",
      __pgt_q32."__pgt_count"
    FROM "__pgt_part_4" AS __pgt_q32
  ) AS __pgt_q1
  GROUP BY
    __pgt_q1."n"
)
SELECT
  1 AS "__pgt_w",
  __pgt_q33."n",
  __pgt_q33."__pgt_count" AS "customers",
  __pgt_q33."__pgt_count"
FROM "__pgt_part_5" AS __pgt_q33
WHERE
  (
    (
      __pgt_q33."__pgt_count" > 0
    )
  )
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q34."n",
  __pgt_q34."customers",
  __pgt_q34."__pgt_count"
FROM "__pgt_part_4" AS __pgt_q34
