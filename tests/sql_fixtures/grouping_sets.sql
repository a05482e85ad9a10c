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
WITH "__pgt_window_orders" AS (
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
    __pgt_q11."customer" AS "customer",
    __pgt_q11."placed" AS "placed"
  FROM (
    SELECT
      __pgt_q12."__pgt_w",
      __pgt_q12."id" AS "id",
      __pgt_q12."customer" AS "customer",
      __pgt_q12."amount" AS "amount",
      __pgt_q12."placed" AS "placed"
    FROM "__pgt_window_orders" AS __pgt_q12
  ) AS __pgt_q11
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
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q39."customer_3" AS "customer_3"
  FROM (
    SELECT
      __pgt_q40."__pgt_w",
      __pgt_q40."id" AS "id_2",
      __pgt_q40."customer" AS "customer_3",
      __pgt_q40."amount" AS "amount_2",
      __pgt_q40."placed" AS "placed_3"
    FROM "__pgt_window_orders" AS __pgt_q40
  ) AS __pgt_q39
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."customer_7" AS "customer",
  __pgt_q1."placed_7" AS "placed",
  __pgt_q1."which_4" AS "which",
  __pgt_q1."total_4" AS "total"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."customer_2" AS "customer_7",
    __pgt_q2."placed_2" AS "placed_7",
    __pgt_q2."which" AS "which_4",
    __pgt_q2."total" AS "total_4"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."customer" AS "customer_2",
      __pgt_q3."placed" AS "placed_2",
      0 AS "which",
      __pgt_q3."agg" AS "total"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."customer",
        __pgt_q4."placed",
        __pgt_q4."agg"
      FROM (
        SELECT
          1 AS "__pgt_w",
          __pgt_q5."customer",
          __pgt_q5."placed",
          __pgt_q5."agg"
        FROM (
          SELECT
            __pgt_q6."customer",
            __pgt_q6."placed",
            __pgt_q6."agg"
          FROM (
            SELECT
              __pgt_q7."customer",
              __pgt_q7."placed",
              SUM(__pgt_q7."amount") AS "agg"
            FROM (
              SELECT
                __pgt_q8."id",
                __pgt_q8."customer",
                __pgt_q8."amount",
                __pgt_q8."placed"
              FROM (
                SELECT
                  __pgt_q9."id" AS "id",
                  __pgt_q9."customer" AS "customer",
                  __pgt_q9."amount" AS "amount",
                  __pgt_q9."placed" AS "placed"
                FROM "shop"."orders" AS __pgt_q9
              ) AS __pgt_q8
              WHERE
                (
                  __pgt_q8."customer"
                ) IN (
                  SELECT
                    __pgt_q10."customer"
                  FROM "__pgt_part_1" AS __pgt_q10
                )
              UNION ALL
              SELECT
                __pgt_q8."id",
                __pgt_q8."customer",
                __pgt_q8."amount",
                __pgt_q8."placed"
              FROM (
                SELECT
                  __pgt_q9."id" AS "id",
                  __pgt_q9."customer" AS "customer",
                  __pgt_q9."amount" AS "amount",
                  __pgt_q9."placed" AS "placed"
                FROM "shop"."orders" AS __pgt_q9
              ) AS __pgt_q8
              WHERE
                __pgt_q8."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_1" AS __pgt_q13
                  WHERE
                    __pgt_q13."customer" IS NULL
                )
            ) AS __pgt_q7
            GROUP BY
              __pgt_q7."customer",
              __pgt_q7."placed"
          ) AS __pgt_q6
          CROSS JOIN LATERAL (
            SELECT
              ROW(__pgt_q6."customer", __pgt_q6."placed") AS r
          ) AS __pgt_q15
          WHERE
            __pgt_q15.r IN (
              SELECT
                ROW(__pgt_q14."customer", __pgt_q14."placed")
              FROM "__pgt_part_1" AS __pgt_q14
            )
        ) AS __pgt_q5
      ) AS __pgt_q4
      UNION ALL
      SELECT
        __pgt_q16."__pgt_w",
        __pgt_q16."customer",
        __pgt_q16."placed",
        __pgt_q16."agg"
      FROM (
        SELECT
          -1 AS "__pgt_w",
          __pgt_q17."customer",
          __pgt_q17."placed",
          __pgt_q17."agg"
        FROM (
          SELECT
            __pgt_q18."customer",
            __pgt_q18."placed",
            __pgt_q18."agg"
          FROM (
            SELECT
              __pgt_q19."customer",
              __pgt_q19."placed",
              SUM(__pgt_q19."amount") AS "agg"
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
                      __pgt_q22."customer"
                    FROM "__pgt_part_1" AS __pgt_q22
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
                          __pgt_q20."customer"
                        FROM "__pgt_part_1" AS __pgt_q20
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
                          __pgt_q21."customer"
                        FROM "__pgt_part_1" AS __pgt_q21
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
                __pgt_q27."id" AS "id",
                __pgt_q27."customer" AS "customer",
                __pgt_q27."amount" AS "amount",
                __pgt_q27."placed" AS "placed"
              FROM (
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
                  AND t."customer" IS NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_1" AS __pgt_q26
                    WHERE
                      __pgt_q26."customer" IS NULL
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
                      AND t."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_1" AS __pgt_q24
                        WHERE
                          __pgt_q24."customer" IS NULL
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
                      c."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_1" AS __pgt_q25
                        WHERE
                          __pgt_q25."customer" IS NULL
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
              ) AS __pgt_q27
            ) AS __pgt_q19
            GROUP BY
              __pgt_q19."customer",
              __pgt_q19."placed"
          ) AS __pgt_q18
          CROSS JOIN LATERAL (
            SELECT
              ROW(__pgt_q18."customer", __pgt_q18."placed") AS r
          ) AS __pgt_q29
          WHERE
            __pgt_q29.r IN (
              SELECT
                ROW(__pgt_q28."customer", __pgt_q28."placed")
              FROM "__pgt_part_1" AS __pgt_q28
            )
        ) AS __pgt_q17
      ) AS __pgt_q16
    ) AS __pgt_q3
  ) AS __pgt_q2
  UNION ALL
  SELECT
    __pgt_q30."__pgt_w",
    __pgt_q30."customer_4" AS "customer_7",
    __pgt_q30."placed_4" AS "placed_7",
    __pgt_q30."which_2" AS "which_4",
    __pgt_q30."total_2" AS "total_4"
  FROM (
    SELECT
      __pgt_q31."__pgt_w",
      __pgt_q31."customer_3" AS "customer_4",
      (
        __pgt_q31."agg_2"
      )[1] AS "placed_4",
      1 AS "which_2",
      __pgt_q31."agg_3" AS "total_2"
    FROM (
      SELECT
        __pgt_q32."__pgt_w",
        __pgt_q32."customer_3",
        __pgt_q32."agg_2",
        __pgt_q32."agg_3"
      FROM (
        SELECT
          1 AS "__pgt_w",
          __pgt_q33."customer_3",
          __pgt_q33."agg_2",
          __pgt_q33."agg_3"
        FROM (
          SELECT
            __pgt_q34."customer_3",
            __pgt_q34."agg_2",
            __pgt_q34."agg_3"
          FROM (
            SELECT
              __pgt_q35."customer_3",
              ARRAY_AGG(__pgt_q35."placed_3" ORDER BY CAST((
                __pgt_q35."placed_3"
              ) AS TEXT)) FILTER(WHERE
                FALSE) AS "agg_2",
              SUM(__pgt_q35."amount_2") AS "agg_3"
            FROM (
              SELECT
                __pgt_q36."id_2",
                __pgt_q36."customer_3",
                __pgt_q36."amount_2",
                __pgt_q36."placed_3"
              FROM (
                SELECT
                  __pgt_q37."id" AS "id_2",
                  __pgt_q37."customer" AS "customer_3",
                  __pgt_q37."amount" AS "amount_2",
                  __pgt_q37."placed" AS "placed_3"
                FROM "shop"."orders" AS __pgt_q37
              ) AS __pgt_q36
              WHERE
                (
                  __pgt_q36."customer_3"
                ) IN (
                  SELECT
                    __pgt_q38."customer_3"
                  FROM "__pgt_part_2" AS __pgt_q38
                )
              UNION ALL
              SELECT
                __pgt_q36."id_2",
                __pgt_q36."customer_3",
                __pgt_q36."amount_2",
                __pgt_q36."placed_3"
              FROM (
                SELECT
                  __pgt_q37."id" AS "id_2",
                  __pgt_q37."customer" AS "customer_3",
                  __pgt_q37."amount" AS "amount_2",
                  __pgt_q37."placed" AS "placed_3"
                FROM "shop"."orders" AS __pgt_q37
              ) AS __pgt_q36
              WHERE
                __pgt_q36."customer_3" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_2" AS __pgt_q41
                  WHERE
                    __pgt_q41."customer_3" IS NULL
                )
            ) AS __pgt_q35
            GROUP BY
              __pgt_q35."customer_3"
          ) AS __pgt_q34
          WHERE
            (
              (
                __pgt_q34."customer_3"
              ) IN (
                SELECT
                  __pgt_q42."customer_3"
                FROM "__pgt_part_2" AS __pgt_q42
              )
            )
            OR (
              __pgt_q34."customer_3" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_2" AS __pgt_q43
                WHERE
                  __pgt_q43."customer_3" IS NULL
              )
            )
        ) AS __pgt_q33
      ) AS __pgt_q32
      UNION ALL
      SELECT
        __pgt_q44."__pgt_w",
        __pgt_q44."customer_3",
        __pgt_q44."agg_2",
        __pgt_q44."agg_3"
      FROM (
        SELECT
          -1 AS "__pgt_w",
          __pgt_q45."customer_3",
          __pgt_q45."agg_2",
          __pgt_q45."agg_3"
        FROM (
          SELECT
            __pgt_q46."customer_3",
            __pgt_q46."agg_2",
            __pgt_q46."agg_3"
          FROM (
            SELECT
              __pgt_q47."customer_3",
              ARRAY_AGG(__pgt_q47."placed_3" ORDER BY CAST((
                __pgt_q47."placed_3"
              ) AS TEXT)) FILTER(WHERE
                FALSE) AS "agg_2",
              SUM(__pgt_q47."amount_2") AS "agg_3"
            FROM (
              SELECT
                __pgt_q51."id" AS "id_2",
                __pgt_q51."customer" AS "customer_3",
                __pgt_q51."amount" AS "amount_2",
                __pgt_q51."placed" AS "placed_3"
              FROM (
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
                  AND (
                    t."customer"
                  ) IN (
                    SELECT
                      __pgt_q50."customer_3"
                    FROM "__pgt_part_2" AS __pgt_q50
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
                          __pgt_q48."customer_3"
                        FROM "__pgt_part_2" AS __pgt_q48
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
                          __pgt_q49."customer_3"
                        FROM "__pgt_part_2" AS __pgt_q49
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
              ) AS __pgt_q51
              UNION ALL
              SELECT
                __pgt_q55."id" AS "id_2",
                __pgt_q55."customer" AS "customer_3",
                __pgt_q55."amount" AS "amount_2",
                __pgt_q55."placed" AS "placed_3"
              FROM (
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
                  AND t."customer" IS NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_2" AS __pgt_q54
                    WHERE
                      __pgt_q54."customer_3" IS NULL
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
                      AND t."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_2" AS __pgt_q52
                        WHERE
                          __pgt_q52."customer_3" IS NULL
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
                      c."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_2" AS __pgt_q53
                        WHERE
                          __pgt_q53."customer_3" IS NULL
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
              ) AS __pgt_q55
            ) AS __pgt_q47
            GROUP BY
              __pgt_q47."customer_3"
          ) AS __pgt_q46
          WHERE
            (
              (
                __pgt_q46."customer_3"
              ) IN (
                SELECT
                  __pgt_q56."customer_3"
                FROM "__pgt_part_2" AS __pgt_q56
              )
            )
            OR (
              __pgt_q46."customer_3" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_2" AS __pgt_q57
                WHERE
                  __pgt_q57."customer_3" IS NULL
              )
            )
        ) AS __pgt_q45
      ) AS __pgt_q44
    ) AS __pgt_q31
  ) AS __pgt_q30
  UNION ALL
  SELECT
    __pgt_q58."__pgt_w",
    __pgt_q58."customer_6" AS "customer_7",
    __pgt_q58."placed_6" AS "placed_7",
    __pgt_q58."which_3" AS "which_4",
    __pgt_q58."total_3" AS "total_4"
  FROM (
    SELECT
      __pgt_q59."__pgt_w",
      (
        __pgt_q59."agg_4"
      )[1] AS "customer_6",
      (
        __pgt_q59."agg_5"
      )[1] AS "placed_6",
      3 AS "which_3",
      __pgt_q59."agg_6" AS "total_3"
    FROM (
      SELECT
        __pgt_q60."__pgt_w",
        __pgt_q60."agg_4",
        __pgt_q60."agg_5",
        __pgt_q60."agg_6"
      FROM (
        SELECT
          1 AS "__pgt_w",
          __pgt_q61."agg_4",
          __pgt_q61."agg_5",
          __pgt_q61."agg_6"
        FROM (
          SELECT
            ARRAY_AGG(__pgt_q62."customer_5" ORDER BY CAST((
              __pgt_q62."customer_5"
            ) AS TEXT)) FILTER(WHERE
              FALSE) AS "agg_4",
            ARRAY_AGG(__pgt_q62."placed_5" ORDER BY CAST((
              __pgt_q62."placed_5"
            ) AS TEXT)) FILTER(WHERE
              FALSE) AS "agg_5",
            SUM(__pgt_q62."amount_3") AS "agg_6"
          FROM (
            SELECT
              __pgt_q63."id" AS "id_3",
              __pgt_q63."customer" AS "customer_5",
              __pgt_q63."amount" AS "amount_3",
              __pgt_q63."placed" AS "placed_5"
            FROM "shop"."orders" AS __pgt_q63
          ) AS __pgt_q62
        ) AS __pgt_q61
      ) AS __pgt_q60
      UNION ALL
      SELECT
        __pgt_q64."__pgt_w",
        __pgt_q64."agg_4",
        __pgt_q64."agg_5",
        __pgt_q64."agg_6"
      FROM (
        SELECT
          -1 AS "__pgt_w",
          __pgt_q65."agg_4",
          __pgt_q65."agg_5",
          __pgt_q65."agg_6"
        FROM (
          SELECT
            ARRAY_AGG(__pgt_q66."customer_5" ORDER BY CAST((
              __pgt_q66."customer_5"
            ) AS TEXT)) FILTER(WHERE
              FALSE) AS "agg_4",
            ARRAY_AGG(__pgt_q66."placed_5" ORDER BY CAST((
              __pgt_q66."placed_5"
            ) AS TEXT)) FILTER(WHERE
              FALSE) AS "agg_5",
            SUM(__pgt_q66."amount_3") AS "agg_6"
          FROM (
            SELECT
              __pgt_q67."id" AS "id_3",
              __pgt_q67."customer" AS "customer_5",
              __pgt_q67."amount" AS "amount_3",
              __pgt_q67."placed" AS "placed_5"
            FROM "__pgt_old_orders" AS __pgt_q67
          ) AS __pgt_q66
        ) AS __pgt_q65
      ) AS __pgt_q64
    ) AS __pgt_q59
  ) AS __pgt_q58
) AS __pgt_q1
