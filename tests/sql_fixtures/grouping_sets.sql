-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT customer, placed, GROUPING(customer, placed) AS which, sum(amount) AS total FROM orders GROUP BY ROLLUP (customer, placed);

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
    "new_amount" AS "amount",
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
    "old_amount" AS "amount",
    "old_placed" AS "placed"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q10."customer" AS "customer",
    __pgt_q10."placed" AS "placed"
  FROM "__pgt_window_orders" AS __pgt_q10
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q35."customer" AS "customer"
  FROM "__pgt_window_orders" AS __pgt_q35
), "__pgt_old_orders" AS NOT MATERIALIZED (
  SELECT
    "id",
    "customer",
    "amount",
    "placed"
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
    u."amount",
    u."placed"
  FROM (
    SELECT
      s."id" AS "id",
      s."customer" AS "customer",
      s."amount" AS "amount",
      s."placed" AS "placed",
      SUM(s."__pgt_w") AS __pgt_n
    FROM (
      SELECT
        1 AS "__pgt_w",
        "id",
        "customer",
        "amount",
        "placed"
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
        "amount",
        "placed"
      FROM "__pgt_window_orders" AS c
    ) AS s
    GROUP BY
      s."id",
      s."customer",
      s."amount",
      s."placed"
    HAVING
      SUM(s."__pgt_w") > 0
  ) AS u
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."customer" AS "customer",
  __pgt_q1."placed" AS "placed",
  __pgt_q1."grouping" AS "which",
  __pgt_q1."agg" AS "total"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."customer",
    __pgt_q2."placed",
    __pgt_q2."agg",
    __pgt_q2."grouping"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."customer" AS "customer",
      __pgt_q3."placed" AS "placed",
      __pgt_q3."agg" AS "agg",
      0 AS "grouping"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q4."customer",
        __pgt_q4."placed",
        __pgt_q4."agg"
      FROM (
        SELECT
          __pgt_q5."customer",
          __pgt_q5."placed",
          __pgt_q5."agg"
        FROM (
          SELECT
            __pgt_q6."customer",
            __pgt_q6."placed",
            SUM(__pgt_q6."amount") AS "agg"
          FROM (
            SELECT
              __pgt_q7."id",
              __pgt_q7."customer",
              __pgt_q7."amount",
              __pgt_q7."placed"
            FROM (
              SELECT
                __pgt_q8."id" AS "id",
                __pgt_q8."customer" AS "customer",
                __pgt_q8."amount" AS "amount",
                __pgt_q8."placed" AS "placed"
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
              __pgt_q7."customer",
              __pgt_q7."amount",
              __pgt_q7."placed"
            FROM (
              SELECT
                __pgt_q8."id" AS "id",
                __pgt_q8."customer" AS "customer",
                __pgt_q8."amount" AS "amount",
                __pgt_q8."placed" AS "placed"
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
            __pgt_q6."customer",
            __pgt_q6."placed"
        ) AS __pgt_q5
        CROSS JOIN LATERAL (
          SELECT
            ROW(__pgt_q5."customer", __pgt_q5."placed") AS r
        ) AS __pgt_q13
        WHERE
          __pgt_q13.r IN (
            SELECT
              ROW(__pgt_q12."customer", __pgt_q12."placed")
            FROM "__pgt_part_1" AS __pgt_q12
          )
      ) AS __pgt_q4
      UNION ALL
      SELECT
        -1 AS "__pgt_w",
        __pgt_q14."customer",
        __pgt_q14."placed",
        __pgt_q14."agg"
      FROM (
        SELECT
          __pgt_q15."customer",
          __pgt_q15."placed",
          __pgt_q15."agg"
        FROM (
          SELECT
            __pgt_q16."customer",
            __pgt_q16."placed",
            SUM(__pgt_q16."amount") AS "agg"
          FROM (
            SELECT
              __pgt_q23."id" AS "id",
              __pgt_q23."customer" AS "customer",
              __pgt_q23."amount" AS "amount",
              __pgt_q23."placed" AS "placed"
            FROM (
              SELECT
                "id",
                "customer",
                "amount",
                "placed"
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
                u."customer",
                u."amount",
                u."placed"
              FROM (
                SELECT
                  s."id" AS "id",
                  s."customer" AS "customer",
                  s."amount" AS "amount",
                  s."placed" AS "placed",
                  SUM(s."__pgt_w") AS __pgt_n
                FROM (
                  SELECT
                    1 AS "__pgt_w",
                    "id",
                    "customer",
                    "amount",
                    "placed"
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
                    "customer",
                    "amount",
                    "placed"
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
                  s."customer",
                  s."amount",
                  s."placed"
                HAVING
                  SUM(s."__pgt_w") > 0
              ) AS u
            ) AS __pgt_q23
            UNION ALL
            SELECT
              __pgt_q24."id" AS "id",
              __pgt_q24."customer" AS "customer",
              __pgt_q24."amount" AS "amount",
              __pgt_q24."placed" AS "placed"
            FROM (
              SELECT
                "id",
                "customer",
                "amount",
                "placed"
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
                u."customer",
                u."amount",
                u."placed"
              FROM (
                SELECT
                  s."id" AS "id",
                  s."customer" AS "customer",
                  s."amount" AS "amount",
                  s."placed" AS "placed",
                  SUM(s."__pgt_w") AS __pgt_n
                FROM (
                  SELECT
                    1 AS "__pgt_w",
                    "id",
                    "customer",
                    "amount",
                    "placed"
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
                    "customer",
                    "amount",
                    "placed"
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
                  s."customer",
                  s."amount",
                  s."placed"
                HAVING
                  SUM(s."__pgt_w") > 0
              ) AS u
            ) AS __pgt_q24
          ) AS __pgt_q16
          GROUP BY
            __pgt_q16."customer",
            __pgt_q16."placed"
        ) AS __pgt_q15
        CROSS JOIN LATERAL (
          SELECT
            ROW(__pgt_q15."customer", __pgt_q15."placed") AS r
        ) AS __pgt_q26
        WHERE
          __pgt_q26.r IN (
            SELECT
              ROW(__pgt_q25."customer", __pgt_q25."placed")
            FROM "__pgt_part_1" AS __pgt_q25
          )
      ) AS __pgt_q14
    ) AS __pgt_q3
  ) AS __pgt_q2
  UNION ALL
  SELECT
    __pgt_q27."__pgt_w",
    __pgt_q27."customer",
    __pgt_q27."placed",
    __pgt_q27."agg",
    __pgt_q27."grouping"
  FROM (
    SELECT
      __pgt_q28."__pgt_w",
      __pgt_q28."customer" AS "customer",
      CAST(NULL AS DATE) AS "placed",
      __pgt_q28."agg" AS "agg",
      1 AS "grouping"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q29."customer",
        __pgt_q29."agg"
      FROM (
        SELECT
          __pgt_q30."customer",
          __pgt_q30."agg"
        FROM (
          SELECT
            __pgt_q31."customer",
            SUM(__pgt_q31."amount") AS "agg"
          FROM (
            SELECT
              __pgt_q32."id",
              __pgt_q32."customer",
              __pgt_q32."amount",
              __pgt_q32."placed"
            FROM (
              SELECT
                __pgt_q33."id" AS "id",
                __pgt_q33."customer" AS "customer",
                __pgt_q33."amount" AS "amount",
                __pgt_q33."placed" AS "placed"
              FROM "shop"."orders" AS __pgt_q33
            ) AS __pgt_q32
            WHERE
              (
                __pgt_q32."customer"
              ) IN (
                SELECT
                  __pgt_q34."customer"
                FROM "__pgt_part_2" AS __pgt_q34
              )
            UNION ALL
            SELECT
              __pgt_q32."id",
              __pgt_q32."customer",
              __pgt_q32."amount",
              __pgt_q32."placed"
            FROM (
              SELECT
                __pgt_q33."id" AS "id",
                __pgt_q33."customer" AS "customer",
                __pgt_q33."amount" AS "amount",
                __pgt_q33."placed" AS "placed"
              FROM "shop"."orders" AS __pgt_q33
            ) AS __pgt_q32
            WHERE
              __pgt_q32."customer" IS NOT DISTINCT FROM NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_2" AS __pgt_q36
                WHERE
                  __pgt_q36."customer" IS NOT DISTINCT FROM NULL
              )
          ) AS __pgt_q31
          GROUP BY
            __pgt_q31."customer"
        ) AS __pgt_q30
        WHERE
          (
            (
              __pgt_q30."customer"
            ) IN (
              SELECT
                __pgt_q37."customer"
              FROM "__pgt_part_2" AS __pgt_q37
            )
          )
          OR (
            __pgt_q30."customer" IS NOT DISTINCT FROM NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_2" AS __pgt_q38
              WHERE
                __pgt_q38."customer" IS NOT DISTINCT FROM NULL
            )
          )
      ) AS __pgt_q29
      UNION ALL
      SELECT
        -1 AS "__pgt_w",
        __pgt_q39."customer",
        __pgt_q39."agg"
      FROM (
        SELECT
          __pgt_q40."customer",
          __pgt_q40."agg"
        FROM (
          SELECT
            __pgt_q41."customer",
            SUM(__pgt_q41."amount") AS "agg"
          FROM (
            SELECT
              __pgt_q48."id" AS "id",
              __pgt_q48."customer" AS "customer",
              __pgt_q48."amount" AS "amount",
              __pgt_q48."placed" AS "placed"
            FROM (
              SELECT
                "id",
                "customer",
                "amount",
                "placed"
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
                    __pgt_q44."customer"
                  FROM "__pgt_part_2" AS __pgt_q44
                )
              UNION ALL
              SELECT
                u."id",
                u."customer",
                u."amount",
                u."placed"
              FROM (
                SELECT
                  s."id" AS "id",
                  s."customer" AS "customer",
                  s."amount" AS "amount",
                  s."placed" AS "placed",
                  SUM(s."__pgt_w") AS __pgt_n
                FROM (
                  SELECT
                    1 AS "__pgt_w",
                    "id",
                    "customer",
                    "amount",
                    "placed"
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
                        __pgt_q42."customer"
                      FROM "__pgt_part_2" AS __pgt_q42
                    )
                  UNION ALL
                  SELECT
                    -"__pgt_w",
                    "id",
                    "customer",
                    "amount",
                    "placed"
                  FROM "__pgt_window_orders" AS c
                  WHERE
                    (
                      c."customer"
                    ) IN (
                      SELECT
                        __pgt_q43."customer"
                      FROM "__pgt_part_2" AS __pgt_q43
                    )
                ) AS s
                GROUP BY
                  s."id",
                  s."customer",
                  s."amount",
                  s."placed"
                HAVING
                  SUM(s."__pgt_w") > 0
              ) AS u
            ) AS __pgt_q48
            UNION ALL
            SELECT
              __pgt_q49."id" AS "id",
              __pgt_q49."customer" AS "customer",
              __pgt_q49."amount" AS "amount",
              __pgt_q49."placed" AS "placed"
            FROM (
              SELECT
                "id",
                "customer",
                "amount",
                "placed"
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
                  FROM "__pgt_part_2" AS __pgt_q47
                  WHERE
                    __pgt_q47."customer" IS NOT DISTINCT FROM NULL
                )
              UNION ALL
              SELECT
                u."id",
                u."customer",
                u."amount",
                u."placed"
              FROM (
                SELECT
                  s."id" AS "id",
                  s."customer" AS "customer",
                  s."amount" AS "amount",
                  s."placed" AS "placed",
                  SUM(s."__pgt_w") AS __pgt_n
                FROM (
                  SELECT
                    1 AS "__pgt_w",
                    "id",
                    "customer",
                    "amount",
                    "placed"
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
                      FROM "__pgt_part_2" AS __pgt_q45
                      WHERE
                        __pgt_q45."customer" IS NOT DISTINCT FROM NULL
                    )
                  UNION ALL
                  SELECT
                    -"__pgt_w",
                    "id",
                    "customer",
                    "amount",
                    "placed"
                  FROM "__pgt_window_orders" AS c
                  WHERE
                    c."customer" IS NOT DISTINCT FROM NULL
                    AND EXISTS(
                      SELECT
                        1
                      FROM "__pgt_part_2" AS __pgt_q46
                      WHERE
                        __pgt_q46."customer" IS NOT DISTINCT FROM NULL
                    )
                ) AS s
                GROUP BY
                  s."id",
                  s."customer",
                  s."amount",
                  s."placed"
                HAVING
                  SUM(s."__pgt_w") > 0
              ) AS u
            ) AS __pgt_q49
          ) AS __pgt_q41
          GROUP BY
            __pgt_q41."customer"
        ) AS __pgt_q40
        WHERE
          (
            (
              __pgt_q40."customer"
            ) IN (
              SELECT
                __pgt_q50."customer"
              FROM "__pgt_part_2" AS __pgt_q50
            )
          )
          OR (
            __pgt_q40."customer" IS NOT DISTINCT FROM NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_2" AS __pgt_q51
              WHERE
                __pgt_q51."customer" IS NOT DISTINCT FROM NULL
            )
          )
      ) AS __pgt_q39
    ) AS __pgt_q28
  ) AS __pgt_q27
  UNION ALL
  SELECT
    __pgt_q52."__pgt_w",
    __pgt_q52."customer",
    __pgt_q52."placed",
    __pgt_q52."agg",
    __pgt_q52."grouping"
  FROM (
    SELECT
      __pgt_q53."__pgt_w",
      CAST(NULL AS INT) AS "customer",
      CAST(NULL AS DATE) AS "placed",
      __pgt_q53."agg" AS "agg",
      3 AS "grouping"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q54."agg"
      FROM (
        SELECT
          SUM(__pgt_q55."amount") AS "agg"
        FROM "shop"."orders" AS __pgt_q55
      ) AS __pgt_q54
      UNION ALL
      SELECT
        -1 AS "__pgt_w",
        __pgt_q56."agg"
      FROM (
        SELECT
          SUM(__pgt_q57."amount") AS "agg"
        FROM "__pgt_old_orders" AS __pgt_q57
      ) AS __pgt_q56
    ) AS __pgt_q53
  ) AS __pgt_q52
) AS __pgt_q1
