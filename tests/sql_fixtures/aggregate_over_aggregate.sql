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
WITH "__pgt_window_orders" AS (
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
    __pgt_q20."customer" AS "customer"
  FROM (
    SELECT
      __pgt_q21."__pgt_w",
      __pgt_q21."id" AS "id",
      __pgt_q21."customer" AS "customer"
    FROM "__pgt_window_orders" AS __pgt_q21
  ) AS __pgt_q20
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
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q10."n",
    COALESCE(CAST(SUM(__pgt_q10."__pgt_n") AS BIGINT), 0) AS "__pgt_count"
  FROM (
    SELECT
      CAST(__pgt_q11."__pgt_w" AS BIGINT) AS "__pgt_n",
      __pgt_q11."n"
    FROM (
      SELECT
        __pgt_q12."__pgt_w",
        __pgt_q12."agg" AS "n"
      FROM (
        SELECT
          __pgt_q13."__pgt_w",
          __pgt_q13."customer",
          __pgt_q13."agg"
        FROM (
          SELECT
            1 AS "__pgt_w",
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
                  __pgt_q17."id",
                  __pgt_q17."customer"
                FROM (
                  SELECT
                    __pgt_q18."id" AS "id",
                    __pgt_q18."customer" AS "customer"
                  FROM "shop"."orders" AS __pgt_q18
                ) AS __pgt_q17
                WHERE
                  (
                    __pgt_q17."customer"
                  ) IN (
                    SELECT
                      __pgt_q19."customer"
                    FROM "__pgt_part_1" AS __pgt_q19
                  )
                UNION ALL
                SELECT
                  __pgt_q17."id",
                  __pgt_q17."customer"
                FROM (
                  SELECT
                    __pgt_q18."id" AS "id",
                    __pgt_q18."customer" AS "customer"
                  FROM "shop"."orders" AS __pgt_q18
                ) AS __pgt_q17
                WHERE
                  __pgt_q17."customer" IS NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_1" AS __pgt_q22
                    WHERE
                      __pgt_q22."customer" IS NULL
                  )
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
                    __pgt_q23."customer"
                  FROM "__pgt_part_1" AS __pgt_q23
                )
              )
              OR (
                __pgt_q15."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_1" AS __pgt_q24
                  WHERE
                    __pgt_q24."customer" IS NULL
                )
              )
          ) AS __pgt_q14
        ) AS __pgt_q13
        UNION ALL
        SELECT
          __pgt_q25."__pgt_w",
          __pgt_q25."customer",
          __pgt_q25."agg"
        FROM (
          SELECT
            -1 AS "__pgt_w",
            __pgt_q26."customer",
            __pgt_q26."agg"
          FROM (
            SELECT
              __pgt_q27."customer",
              __pgt_q27."agg"
            FROM (
              SELECT
                __pgt_q28."customer",
                COUNT(*) AS "agg"
              FROM (
                SELECT
                  __pgt_q32."id" AS "id",
                  __pgt_q32."customer" AS "customer"
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
                        __pgt_q31."customer"
                      FROM "__pgt_part_1" AS __pgt_q31
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
                            __pgt_q29."customer"
                          FROM "__pgt_part_1" AS __pgt_q29
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
                            __pgt_q30."customer"
                          FROM "__pgt_part_1" AS __pgt_q30
                        )
                    ) AS s
                    GROUP BY
                      s."id",
                      s."customer"
                    HAVING
                      SUM(s."__pgt_w") > 0
                  ) AS u
                ) AS __pgt_q32
                UNION ALL
                SELECT
                  __pgt_q36."id" AS "id",
                  __pgt_q36."customer" AS "customer"
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
                      FROM "__pgt_part_1" AS __pgt_q35
                      WHERE
                        __pgt_q35."customer" IS NULL
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
                          FROM "__pgt_part_1" AS __pgt_q33
                          WHERE
                            __pgt_q33."customer" IS NULL
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
                          FROM "__pgt_part_1" AS __pgt_q34
                          WHERE
                            __pgt_q34."customer" IS NULL
                        )
                    ) AS s
                    GROUP BY
                      s."id",
                      s."customer"
                    HAVING
                      SUM(s."__pgt_w") > 0
                  ) AS u
                ) AS __pgt_q36
              ) AS __pgt_q28
              GROUP BY
                __pgt_q28."customer"
            ) AS __pgt_q27
            WHERE
              (
                (
                  __pgt_q27."customer"
                ) IN (
                  SELECT
                    __pgt_q37."customer"
                  FROM "__pgt_part_1" AS __pgt_q37
                )
              )
              OR (
                __pgt_q27."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_1" AS __pgt_q38
                  WHERE
                    __pgt_q38."customer" IS NULL
                )
              )
          ) AS __pgt_q26
        ) AS __pgt_q25
      ) AS __pgt_q12
    ) AS __pgt_q11
  ) AS __pgt_q10
  GROUP BY
    __pgt_q10."n"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q44."n" AS "n"
  FROM "__pgt_part_2" AS __pgt_q44
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q41."n",
    __pgt_q41."customers",
    __pgt_q41."__pgt_count"
  FROM (
    SELECT
      __pgt_q42."n",
      __pgt_q42."customers",
      __pgt_q42."__pgt_count"
    FROM "shop"."st_0" AS __pgt_q42
  ) AS __pgt_q41
  WHERE
    (
      __pgt_q41."n"
    ) IN (
      SELECT
        __pgt_q43."n"
      FROM "__pgt_part_3" AS __pgt_q43
    )
), "__pgt_part_5" AS MATERIALIZED (
  SELECT
    __pgt_q7."n",
    CAST(SUM(__pgt_q7."__pgt_count") AS BIGINT) AS "__pgt_count"
  FROM (
    SELECT
      __pgt_q8."n",
      __pgt_q8."__pgt_count"
    FROM (
      SELECT
        __pgt_q9."n" AS "n",
        __pgt_q9."__pgt_count" AS "__pgt_count"
      FROM "__pgt_part_2" AS __pgt_q9
    ) AS __pgt_q8
    UNION ALL
    SELECT
      __pgt_q39."n",
      __pgt_q39."__pgt_count"
    FROM (
      SELECT
        __pgt_q40."n" AS "n",
        __pgt_q40."__pgt_count" AS "__pgt_count"
      FROM "__pgt_part_4" AS __pgt_q40
    ) AS __pgt_q39
  ) AS __pgt_q7
  GROUP BY
    __pgt_q7."n"
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."n",
  __pgt_q1."customers",
  __pgt_q1."__pgt_count"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."n",
    __pgt_q2."customers",
    __pgt_q2."__pgt_count"
  FROM (
    SELECT
      __pgt_q3."n_2" AS "n",
      __pgt_q3."customers" AS "customers",
      __pgt_q3."__pgt_count" AS "__pgt_count"
    FROM (
      SELECT
        __pgt_q4."n" AS "n_2",
        __pgt_q4."__pgt_count" AS "customers",
        __pgt_q4."__pgt_count" AS "__pgt_count"
      FROM (
        SELECT
          __pgt_q5."n" AS "n",
          __pgt_q5."__pgt_count" AS "__pgt_count"
        FROM (
          SELECT
            __pgt_q6."n",
            __pgt_q6."__pgt_count"
          FROM "__pgt_part_5" AS __pgt_q6
          WHERE
            (
              __pgt_q6."__pgt_count" > 0
            )
        ) AS __pgt_q5
      ) AS __pgt_q4
    ) AS __pgt_q3
  ) AS __pgt_q2
) AS __pgt_q1
UNION ALL
SELECT
  __pgt_q45."__pgt_w",
  __pgt_q45."n",
  __pgt_q45."customers",
  __pgt_q45."__pgt_count"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q46."n",
    __pgt_q46."customers",
    __pgt_q46."__pgt_count"
  FROM "__pgt_part_4" AS __pgt_q46
) AS __pgt_q45
