-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) AS n FROM customers c;

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
WITH "__pgt_window_customers" AS (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q5."__pgt_w",
    __pgt_q5."id" AS "id"
  FROM "__pgt_window_customers" AS __pgt_q5
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q12."id" AS "k1"
  FROM "__pgt_delta_1" AS __pgt_q12
  WHERE
    (
      __pgt_q12."id"
    ) IS NOT NULL
), "__pgt_window_orders" AS (
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
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q30."tie" AS "tie"
  FROM (
    SELECT
      __pgt_q31."__pgt_w",
      __pgt_q31."customer" AS "customer",
      __pgt_q31."customer" AS "tie"
    FROM (
      SELECT
        __pgt_q32."__pgt_w",
        __pgt_q32."id" AS "id_2",
        __pgt_q32."customer" AS "customer"
      FROM "__pgt_window_orders" AS __pgt_q32
    ) AS __pgt_q31
  ) AS __pgt_q30
), "__pgt_old_orders" AS NOT MATERIALIZED (
  SELECT
    "id",
    "customer"
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
      UNION ALL
      SELECT
        -"__pgt_w",
        "id",
        "customer"
      FROM "__pgt_window_orders" AS c
    ) AS s
    GROUP BY
      s."id",
      s."customer"
    HAVING
      SUM(s."__pgt_w") > 0
  ) AS u
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q21."tie" AS "k1"
  FROM (
    SELECT
      __pgt_q22."__pgt_w",
      __pgt_q22."tie",
      __pgt_q22."agg"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q23."tie",
        __pgt_q23."agg"
      FROM (
        SELECT
          __pgt_q24."tie",
          __pgt_q24."agg"
        FROM (
          SELECT
            __pgt_q25."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q26."customer" AS "customer",
              __pgt_q26."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q27."id_2",
                __pgt_q27."customer"
              FROM (
                SELECT
                  __pgt_q28."id" AS "id_2",
                  __pgt_q28."customer" AS "customer"
                FROM "shop"."orders" AS __pgt_q28
              ) AS __pgt_q27
              WHERE
                (
                  __pgt_q27."customer"
                ) IN (
                  SELECT
                    __pgt_q29."tie"
                  FROM "__pgt_part_3" AS __pgt_q29
                )
              UNION ALL
              SELECT
                __pgt_q27."id_2",
                __pgt_q27."customer"
              FROM (
                SELECT
                  __pgt_q28."id" AS "id_2",
                  __pgt_q28."customer" AS "customer"
                FROM "shop"."orders" AS __pgt_q28
              ) AS __pgt_q27
              WHERE
                __pgt_q27."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_3" AS __pgt_q33
                  WHERE
                    __pgt_q33."tie" IS NULL
                )
            ) AS __pgt_q26
          ) AS __pgt_q25
          GROUP BY
            __pgt_q25."tie"
        ) AS __pgt_q24
        WHERE
          (
            (
              __pgt_q24."tie"
            ) IN (
              SELECT
                __pgt_q34."tie"
              FROM "__pgt_part_3" AS __pgt_q34
            )
          )
          OR (
            __pgt_q24."tie" IS NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_3" AS __pgt_q35
              WHERE
                __pgt_q35."tie" IS NULL
            )
          )
      ) AS __pgt_q23
    ) AS __pgt_q22
    UNION ALL
    SELECT
      __pgt_q36."__pgt_w",
      __pgt_q36."tie",
      __pgt_q36."agg"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q37."tie",
        __pgt_q37."agg"
      FROM (
        SELECT
          __pgt_q38."tie",
          __pgt_q38."agg"
        FROM (
          SELECT
            __pgt_q39."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q40."customer" AS "customer",
              __pgt_q40."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q44."id" AS "id_2",
                __pgt_q44."customer" AS "customer"
              FROM (
                SELECT
                  "id",
                  "customer"
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
                      __pgt_q43."tie"
                    FROM "__pgt_part_3" AS __pgt_q43
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
                          __pgt_q41."tie"
                        FROM "__pgt_part_3" AS __pgt_q41
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
                          __pgt_q42."tie"
                        FROM "__pgt_part_3" AS __pgt_q42
                      )
                  ) AS s
                  GROUP BY
                    s."id",
                    s."customer"
                  HAVING
                    SUM(s."__pgt_w") > 0
                ) AS u
              ) AS __pgt_q44
              UNION ALL
              SELECT
                __pgt_q48."id" AS "id_2",
                __pgt_q48."customer" AS "customer"
              FROM (
                SELECT
                  "id",
                  "customer"
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
                    FROM "__pgt_part_3" AS __pgt_q47
                    WHERE
                      __pgt_q47."tie" IS NULL
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
                      AND t."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_3" AS __pgt_q45
                        WHERE
                          __pgt_q45."tie" IS NULL
                      )
                    UNION ALL
                    SELECT
                      -"__pgt_w",
                      "id",
                      "customer"
                    FROM "__pgt_window_orders" AS c
                    WHERE
                      c."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_part_3" AS __pgt_q46
                        WHERE
                          __pgt_q46."tie" IS NULL
                      )
                  ) AS s
                  GROUP BY
                    s."id",
                    s."customer"
                  HAVING
                    SUM(s."__pgt_w") > 0
                ) AS u
              ) AS __pgt_q48
            ) AS __pgt_q40
          ) AS __pgt_q39
          GROUP BY
            __pgt_q39."tie"
        ) AS __pgt_q38
        WHERE
          (
            (
              __pgt_q38."tie"
            ) IN (
              SELECT
                __pgt_q49."tie"
              FROM "__pgt_part_3" AS __pgt_q49
            )
          )
          OR (
            __pgt_q38."tie" IS NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_3" AS __pgt_q50
              WHERE
                __pgt_q50."tie" IS NULL
            )
          )
      ) AS __pgt_q37
    ) AS __pgt_q36
  ) AS __pgt_q21
  WHERE
    (
      __pgt_q21."tie"
    ) IS NOT NULL
), "__pgt_delta_5" AS MATERIALIZED (
  SELECT
    __pgt_q16."__pgt_w",
    __pgt_q16."id"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q17."id"
    FROM (
      SELECT
        __pgt_q18."id"
      FROM (
        SELECT
          __pgt_q19."id" AS "id"
        FROM "shop"."customers" AS __pgt_q19
      ) AS __pgt_q18
      WHERE
        (
          __pgt_q18."id"
        ) IN (
          SELECT
            __pgt_q20."k1"
          FROM "__pgt_part_4" AS __pgt_q20
        )
    ) AS __pgt_q17
  ) AS __pgt_q16
  UNION ALL
  SELECT
    __pgt_q51."__pgt_w",
    __pgt_q51."id"
  FROM (
    SELECT
      -__pgt_q52."__pgt_w" AS "__pgt_w",
      __pgt_q52."id"
    FROM (
      SELECT
        __pgt_q53."__pgt_w",
        __pgt_q53."id"
      FROM "__pgt_delta_1" AS __pgt_q53
      WHERE
        (
          __pgt_q53."id"
        ) IN (
          SELECT
            __pgt_q54."k1"
          FROM "__pgt_part_4" AS __pgt_q54
        )
    ) AS __pgt_q52
  ) AS __pgt_q51
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_3" AS "id",
  __pgt_q1."n" AS "n"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id" AS "id_3",
    (
      COALESCE(__pgt_q2."agg", 0)
    ) AS "n"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id",
      __pgt_q3."tie",
      __pgt_q3."agg"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."id",
        __pgt_q6."tie",
        __pgt_q6."agg"
      FROM "__pgt_delta_1" AS __pgt_q4
      LEFT JOIN (
        SELECT
          __pgt_q7."tie",
          COUNT(*) AS "agg"
        FROM (
          SELECT
            __pgt_q8."customer" AS "customer",
            __pgt_q8."customer" AS "tie"
          FROM (
            SELECT
              __pgt_q9."id_2",
              __pgt_q9."customer"
            FROM (
              SELECT
                __pgt_q10."id" AS "id_2",
                __pgt_q10."customer" AS "customer"
              FROM "shop"."orders" AS __pgt_q10
            ) AS __pgt_q9
            WHERE
              (
                __pgt_q9."customer"
              ) IN (
                SELECT
                  __pgt_q11."k1"
                FROM "__pgt_part_2" AS __pgt_q11
              )
          ) AS __pgt_q8
        ) AS __pgt_q7
        GROUP BY
          __pgt_q7."tie"
      ) AS __pgt_q6
        ON (
          __pgt_q4."id" = __pgt_q6."tie"
        )
    ) AS __pgt_q3
    UNION ALL
    SELECT
      __pgt_q13."__pgt_w",
      __pgt_q13."id",
      __pgt_q13."tie",
      __pgt_q13."agg"
    FROM (
      SELECT
        __pgt_q14."__pgt_w" AS "__pgt_w",
        __pgt_q14."id",
        __pgt_q14."tie",
        __pgt_q14."agg"
      FROM (
        SELECT
          __pgt_q15."__pgt_w",
          __pgt_q15."id",
          __pgt_q55."tie",
          __pgt_q55."agg"
        FROM "__pgt_delta_5" AS __pgt_q15
        LEFT JOIN (
          SELECT
            __pgt_q56."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q57."customer" AS "customer",
              __pgt_q57."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q58."id_2",
                __pgt_q58."customer"
              FROM (
                SELECT
                  __pgt_q59."id" AS "id_2",
                  __pgt_q59."customer" AS "customer"
                FROM "shop"."orders" AS __pgt_q59
              ) AS __pgt_q58
              WHERE
                (
                  __pgt_q58."customer"
                ) IN (
                  SELECT
                    __pgt_q60."k1"
                  FROM "__pgt_part_4" AS __pgt_q60
                )
            ) AS __pgt_q57
          ) AS __pgt_q56
          GROUP BY
            __pgt_q56."tie"
        ) AS __pgt_q55
          ON (
            __pgt_q15."id" = __pgt_q55."tie"
          )
      ) AS __pgt_q14
    ) AS __pgt_q13
    UNION ALL
    SELECT
      __pgt_q61."__pgt_w",
      __pgt_q61."id",
      __pgt_q61."tie",
      __pgt_q61."agg"
    FROM (
      SELECT
        -__pgt_q62."__pgt_w" AS "__pgt_w",
        __pgt_q62."id",
        __pgt_q62."tie",
        __pgt_q62."agg"
      FROM (
        SELECT
          __pgt_q63."__pgt_w",
          __pgt_q63."id",
          __pgt_q64."tie",
          __pgt_q64."agg"
        FROM "__pgt_delta_5" AS __pgt_q63
        LEFT JOIN (
          SELECT
            __pgt_q65."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q66."customer" AS "customer",
              __pgt_q66."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q70."id" AS "id_2",
                __pgt_q70."customer" AS "customer"
              FROM (
                SELECT
                  "id",
                  "customer"
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
                      __pgt_q69."k1"
                    FROM "__pgt_part_4" AS __pgt_q69
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
                          __pgt_q67."k1"
                        FROM "__pgt_part_4" AS __pgt_q67
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
                          __pgt_q68."k1"
                        FROM "__pgt_part_4" AS __pgt_q68
                      )
                  ) AS s
                  GROUP BY
                    s."id",
                    s."customer"
                  HAVING
                    SUM(s."__pgt_w") > 0
                ) AS u
              ) AS __pgt_q70
            ) AS __pgt_q66
          ) AS __pgt_q65
          GROUP BY
            __pgt_q65."tie"
        ) AS __pgt_q64
          ON (
            __pgt_q63."id" = __pgt_q64."tie"
          )
      ) AS __pgt_q62
    ) AS __pgt_q61
  ) AS __pgt_q2
) AS __pgt_q1
