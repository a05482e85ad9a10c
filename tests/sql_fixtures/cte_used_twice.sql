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
    __pgt_q15."customer" AS "customer"
  FROM (
    SELECT
      __pgt_q16."__pgt_w",
      __pgt_q16."id" AS "id",
      __pgt_q16."customer" AS "customer",
      __pgt_q16."amount" AS "amount"
    FROM "__pgt_window_orders" AS __pgt_q16
  ) AS __pgt_q15
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
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    __pgt_q6."__pgt_w",
    __pgt_q6."customer_2" AS "customer_3",
    __pgt_q6."total" AS "total_2"
  FROM (
    SELECT
      __pgt_q7."__pgt_w",
      __pgt_q7."customer" AS "customer_2",
      __pgt_q7."agg" AS "total"
    FROM (
      SELECT
        __pgt_q8."__pgt_w",
        __pgt_q8."customer",
        __pgt_q8."agg"
      FROM (
        SELECT
          1 AS "__pgt_w",
          __pgt_q9."customer",
          __pgt_q9."agg"
        FROM (
          SELECT
            __pgt_q10."customer",
            __pgt_q10."agg"
          FROM (
            SELECT
              __pgt_q11."customer",
              SUM(__pgt_q11."amount") AS "agg"
            FROM (
              SELECT
                __pgt_q12."id",
                __pgt_q12."customer",
                __pgt_q12."amount"
              FROM (
                SELECT
                  __pgt_q13."id" AS "id",
                  __pgt_q13."customer" AS "customer",
                  __pgt_q13."amount" AS "amount"
                FROM "shop"."orders" AS __pgt_q13
              ) AS __pgt_q12
              WHERE
                (
                  __pgt_q12."customer"
                ) IN (
                  SELECT
                    __pgt_q14."customer"
                  FROM "__pgt_part_1" AS __pgt_q14
                )
              UNION ALL
              SELECT
                __pgt_q12."id",
                __pgt_q12."customer",
                __pgt_q12."amount"
              FROM (
                SELECT
                  __pgt_q13."id" AS "id",
                  __pgt_q13."customer" AS "customer",
                  __pgt_q13."amount" AS "amount"
                FROM "shop"."orders" AS __pgt_q13
              ) AS __pgt_q12
              WHERE
                __pgt_q12."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_1" AS __pgt_q17
                  WHERE
                    __pgt_q17."customer" IS NULL
                )
            ) AS __pgt_q11
            GROUP BY
              __pgt_q11."customer"
          ) AS __pgt_q10
          WHERE
            (
              (
                __pgt_q10."customer"
              ) IN (
                SELECT
                  __pgt_q18."customer"
                FROM "__pgt_part_1" AS __pgt_q18
              )
            )
            OR (
              __pgt_q10."customer" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_1" AS __pgt_q19
                WHERE
                  __pgt_q19."customer" IS NULL
              )
            )
        ) AS __pgt_q9
      ) AS __pgt_q8
      UNION ALL
      SELECT
        __pgt_q20."__pgt_w",
        __pgt_q20."customer",
        __pgt_q20."agg"
      FROM (
        SELECT
          -1 AS "__pgt_w",
          __pgt_q21."customer",
          __pgt_q21."agg"
        FROM (
          SELECT
            __pgt_q22."customer",
            __pgt_q22."agg"
          FROM (
            SELECT
              __pgt_q23."customer",
              SUM(__pgt_q23."amount") AS "agg"
            FROM (
              SELECT
                __pgt_q27."id" AS "id",
                __pgt_q27."customer" AS "customer",
                __pgt_q27."amount" AS "amount"
              FROM (
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
                  AND (
                    t."customer"
                  ) IN (
                    SELECT
                      __pgt_q26."customer"
                    FROM "__pgt_part_1" AS __pgt_q26
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
                          __pgt_q24."customer"
                        FROM "__pgt_part_1" AS __pgt_q24
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
                          __pgt_q25."customer"
                        FROM "__pgt_part_1" AS __pgt_q25
                      )
                  ) AS s
                  GROUP BY
                    s."id",
                    s."customer",
                    s."amount"
                  HAVING
                    SUM(s."__pgt_w") > 0
                ) AS u
              ) AS __pgt_q27
              UNION ALL
              SELECT
                __pgt_q31."id" AS "id",
                __pgt_q31."customer" AS "customer",
                __pgt_q31."amount" AS "amount"
              FROM (
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
                  AND t."customer" IS NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_1" AS __pgt_q30
                    WHERE
                      __pgt_q30."customer" IS NULL
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
                      AND t."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_1" AS __pgt_q28
                        WHERE
                          __pgt_q28."customer" IS NULL
                      )
                    UNION ALL
                    SELECT
                      -"__pgt_w",
                      "id",
                      "customer",
                      "amount"
                    FROM "__pgt_window_orders" AS c
                    WHERE
                      c."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_1" AS __pgt_q29
                        WHERE
                          __pgt_q29."customer" IS NULL
                      )
                  ) AS s
                  GROUP BY
                    s."id",
                    s."customer",
                    s."amount"
                  HAVING
                    SUM(s."__pgt_w") > 0
                ) AS u
              ) AS __pgt_q31
            ) AS __pgt_q23
            GROUP BY
              __pgt_q23."customer"
          ) AS __pgt_q22
          WHERE
            (
              (
                __pgt_q22."customer"
              ) IN (
                SELECT
                  __pgt_q32."customer"
                FROM "__pgt_part_1" AS __pgt_q32
              )
            )
            OR (
              __pgt_q22."customer" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_1" AS __pgt_q33
                WHERE
                  __pgt_q33."customer" IS NULL
              )
            )
        ) AS __pgt_q21
      ) AS __pgt_q20
    ) AS __pgt_q7
  ) AS __pgt_q6
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    MAX(__pgt_q35."total_3") AS "agg_3"
  FROM (
    SELECT
      __pgt_q36."agg_2" AS "total_3"
    FROM (
      SELECT
        __pgt_q37."customer_4",
        SUM(__pgt_q37."amount_2") AS "agg_2"
      FROM (
        SELECT
          __pgt_q38."id" AS "id_2",
          __pgt_q38."customer" AS "customer_4",
          __pgt_q38."amount" AS "amount_2"
        FROM "shop"."orders" AS __pgt_q38
      ) AS __pgt_q37
      GROUP BY
        __pgt_q37."customer_4"
    ) AS __pgt_q36
  ) AS __pgt_q35
), "__pgt_delta_4" AS MATERIALIZED (
  SELECT
    __pgt_q46."__pgt_w",
    __pgt_q46."agg_3"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q47."agg_3"
    FROM (
      SELECT
        MAX(__pgt_q48."total_3") AS "agg_3"
      FROM (
        SELECT
          __pgt_q49."agg_2" AS "total_3"
        FROM (
          SELECT
            __pgt_q50."customer_4",
            SUM(__pgt_q50."amount_2") AS "agg_2"
          FROM (
            SELECT
              __pgt_q51."id" AS "id_2",
              __pgt_q51."customer" AS "customer_4",
              __pgt_q51."amount" AS "amount_2"
            FROM "shop"."orders" AS __pgt_q51
          ) AS __pgt_q50
          GROUP BY
            __pgt_q50."customer_4"
        ) AS __pgt_q49
      ) AS __pgt_q48
    ) AS __pgt_q47
  ) AS __pgt_q46
  UNION ALL
  SELECT
    __pgt_q52."__pgt_w",
    __pgt_q52."agg_3"
  FROM (
    SELECT
      -1 AS "__pgt_w",
      __pgt_q53."agg_3"
    FROM (
      SELECT
        MAX(__pgt_q54."total_3") AS "agg_3"
      FROM (
        SELECT
          __pgt_q55."agg_2" AS "total_3"
        FROM (
          SELECT
            __pgt_q56."customer_4",
            SUM(__pgt_q56."amount_2") AS "agg_2"
          FROM (
            SELECT
              __pgt_q57."id" AS "id_2",
              __pgt_q57."customer" AS "customer_4",
              __pgt_q57."amount" AS "amount_2"
            FROM "__pgt_old_orders" AS __pgt_q57
          ) AS __pgt_q56
          GROUP BY
            __pgt_q56."customer_4"
        ) AS __pgt_q55
      ) AS __pgt_q54
    ) AS __pgt_q53
  ) AS __pgt_q52
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."customer_6" AS "customer",
  __pgt_q1."total_4" AS "total"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."customer_3" AS "customer_6",
    __pgt_q2."total_2" AS "total_4"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."customer_3",
      __pgt_q3."total_2",
      __pgt_q3."agg_3"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."customer_3",
        __pgt_q4."total_2",
        __pgt_q4."agg_3"
      FROM (
        SELECT
          __pgt_q5."__pgt_w" AS "__pgt_w",
          __pgt_q5."customer_3",
          __pgt_q5."total_2",
          __pgt_q34."agg_3"
        FROM "__pgt_delta_2" AS __pgt_q5
        CROSS JOIN "__pgt_part_3" AS __pgt_q34
      ) AS __pgt_q4
      UNION ALL
      SELECT
        __pgt_q39."__pgt_w",
        __pgt_q39."customer_3",
        __pgt_q39."total_2",
        __pgt_q39."agg_3"
      FROM (
        SELECT
          __pgt_q45."__pgt_w" AS "__pgt_w",
          __pgt_q40."customer_3",
          __pgt_q40."total_2",
          __pgt_q45."agg_3"
        FROM (
          SELECT
            __pgt_q41."customer_2" AS "customer_3",
            __pgt_q41."total" AS "total_2"
          FROM (
            SELECT
              __pgt_q42."customer" AS "customer_2",
              __pgt_q42."agg" AS "total"
            FROM (
              SELECT
                __pgt_q43."customer",
                SUM(__pgt_q43."amount") AS "agg"
              FROM (
                SELECT
                  __pgt_q44."id" AS "id",
                  __pgt_q44."customer" AS "customer",
                  __pgt_q44."amount" AS "amount"
                FROM "shop"."orders" AS __pgt_q44
              ) AS __pgt_q43
              GROUP BY
                __pgt_q43."customer"
            ) AS __pgt_q42
          ) AS __pgt_q41
        ) AS __pgt_q40
        CROSS JOIN "__pgt_delta_4" AS __pgt_q45
      ) AS __pgt_q39
      UNION ALL
      SELECT
        __pgt_q58."__pgt_w",
        __pgt_q58."customer_3",
        __pgt_q58."total_2",
        __pgt_q58."agg_3"
      FROM (
        SELECT
          -__pgt_q59."__pgt_w" AS "__pgt_w",
          __pgt_q59."customer_3",
          __pgt_q59."total_2",
          __pgt_q59."agg_3"
        FROM (
          SELECT
            __pgt_q60."__pgt_w" * __pgt_q61."__pgt_w" AS "__pgt_w",
            __pgt_q60."customer_3",
            __pgt_q60."total_2",
            __pgt_q61."agg_3"
          FROM "__pgt_delta_2" AS __pgt_q60
          CROSS JOIN "__pgt_delta_4" AS __pgt_q61
        ) AS __pgt_q59
      ) AS __pgt_q58
    ) AS __pgt_q3
    WHERE
      __pgt_q3."total_2" = (
        __pgt_q3."agg_3"
      )
  ) AS __pgt_q2
) AS __pgt_q1
