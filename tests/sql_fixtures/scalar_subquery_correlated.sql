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
    __pgt_q3."__pgt_w",
    __pgt_q3."id"
  FROM "__pgt_window_customers" AS __pgt_q3
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q10."id" AS "k1"
  FROM "__pgt_delta_1" AS __pgt_q10
  WHERE
    (
      __pgt_q10."id"
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
    __pgt_q22."customer" AS "tie"
  FROM "__pgt_window_orders" AS __pgt_q22
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
    __pgt_q15."tie" AS "k1"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q16."tie",
      __pgt_q16."agg"
    FROM (
      SELECT
        __pgt_q17."tie",
        __pgt_q17."agg"
      FROM (
        SELECT
          __pgt_q18."customer" AS "tie",
          COUNT(*) AS "agg"
        FROM (
          SELECT
            __pgt_q19."id_2",
            __pgt_q19."customer"
          FROM (
            SELECT
              __pgt_q20."id" AS "id_2",
              __pgt_q20."customer" AS "customer"
            FROM "shop"."orders" AS __pgt_q20
          ) AS __pgt_q19
          WHERE
            (
              __pgt_q19."customer"
            ) IN (
              SELECT
                __pgt_q21."tie"
              FROM "__pgt_part_3" AS __pgt_q21
            )
          UNION ALL
          SELECT
            __pgt_q19."id_2",
            __pgt_q19."customer"
          FROM (
            SELECT
              __pgt_q20."id" AS "id_2",
              __pgt_q20."customer" AS "customer"
            FROM "shop"."orders" AS __pgt_q20
          ) AS __pgt_q19
          WHERE
            __pgt_q19."customer" IS NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_3" AS __pgt_q23
              WHERE
                __pgt_q23."tie" IS NULL
            )
        ) AS __pgt_q18
        GROUP BY
          __pgt_q18."customer"
      ) AS __pgt_q17
      WHERE
        (
          (
            __pgt_q17."tie"
          ) IN (
            SELECT
              __pgt_q24."tie"
            FROM "__pgt_part_3" AS __pgt_q24
          )
        )
        OR (
          __pgt_q17."tie" IS NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_3" AS __pgt_q25
            WHERE
              __pgt_q25."tie" IS NULL
          )
        )
    ) AS __pgt_q16
    UNION ALL
    SELECT
      -1 AS "__pgt_w",
      __pgt_q26."tie",
      __pgt_q26."agg"
    FROM (
      SELECT
        __pgt_q27."tie",
        __pgt_q27."agg"
      FROM (
        SELECT
          __pgt_q28."customer" AS "tie",
          COUNT(*) AS "agg"
        FROM (
          SELECT
            __pgt_q32."id" AS "id_2",
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
                  __pgt_q31."tie"
                FROM "__pgt_part_3" AS __pgt_q31
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
                      __pgt_q29."tie"
                    FROM "__pgt_part_3" AS __pgt_q29
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
                      __pgt_q30."tie"
                    FROM "__pgt_part_3" AS __pgt_q30
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
            __pgt_q36."id" AS "id_2",
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
                FROM "__pgt_part_3" AS __pgt_q35
                WHERE
                  __pgt_q35."tie" IS NULL
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
                    FROM "__pgt_part_3" AS __pgt_q33
                    WHERE
                      __pgt_q33."tie" IS NULL
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
                    FROM "__pgt_part_3" AS __pgt_q34
                    WHERE
                      __pgt_q34."tie" IS NULL
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
            __pgt_q27."tie"
          ) IN (
            SELECT
              __pgt_q37."tie"
            FROM "__pgt_part_3" AS __pgt_q37
          )
        )
        OR (
          __pgt_q27."tie" IS NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_3" AS __pgt_q38
            WHERE
              __pgt_q38."tie" IS NULL
          )
        )
    ) AS __pgt_q26
  ) AS __pgt_q15
  WHERE
    (
      __pgt_q15."tie"
    ) IS NOT NULL
), "__pgt_delta_5" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q11."id"
  FROM (
    SELECT
      __pgt_q12."id"
    FROM (
      SELECT
        __pgt_q13."id" AS "id"
      FROM "shop"."customers" AS __pgt_q13
    ) AS __pgt_q12
    WHERE
      (
        __pgt_q12."id"
      ) IN (
        SELECT
          __pgt_q14."k1"
        FROM "__pgt_part_4" AS __pgt_q14
      )
  ) AS __pgt_q11
  UNION ALL
  SELECT
    -__pgt_q39."__pgt_w" AS "__pgt_w",
    __pgt_q39."id"
  FROM (
    SELECT
      __pgt_q40."__pgt_w",
      __pgt_q40."id"
    FROM "__pgt_delta_1" AS __pgt_q40
    WHERE
      (
        __pgt_q40."id"
      ) IN (
        SELECT
          __pgt_q41."k1"
        FROM "__pgt_part_4" AS __pgt_q41
      )
  ) AS __pgt_q39
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
      __pgt_q4."__pgt_w",
      __pgt_q4."id",
      __pgt_q5."tie",
      __pgt_q5."agg"
    FROM "__pgt_delta_1" AS __pgt_q4
    LEFT JOIN (
      SELECT
        __pgt_q6."customer" AS "tie",
        COUNT(*) AS "agg"
      FROM (
        SELECT
          __pgt_q7."id_2",
          __pgt_q7."customer"
        FROM (
          SELECT
            __pgt_q8."id" AS "id_2",
            __pgt_q8."customer" AS "customer"
          FROM "shop"."orders" AS __pgt_q8
        ) AS __pgt_q7
        WHERE
          (
            __pgt_q7."customer"
          ) IN (
            SELECT
              __pgt_q9."k1"
            FROM "__pgt_part_2" AS __pgt_q9
          )
      ) AS __pgt_q6
      GROUP BY
        __pgt_q6."customer"
    ) AS __pgt_q5
      ON (
        __pgt_q4."id" = __pgt_q5."tie"
      )
    UNION ALL
    SELECT
      __pgt_q42."__pgt_w",
      __pgt_q42."id",
      __pgt_q43."tie",
      __pgt_q43."agg"
    FROM "__pgt_delta_5" AS __pgt_q42
    LEFT JOIN (
      SELECT
        __pgt_q44."customer" AS "tie",
        COUNT(*) AS "agg"
      FROM (
        SELECT
          __pgt_q45."id_2",
          __pgt_q45."customer"
        FROM (
          SELECT
            __pgt_q46."id" AS "id_2",
            __pgt_q46."customer" AS "customer"
          FROM "shop"."orders" AS __pgt_q46
        ) AS __pgt_q45
        WHERE
          (
            __pgt_q45."customer"
          ) IN (
            SELECT
              __pgt_q47."k1"
            FROM "__pgt_part_4" AS __pgt_q47
          )
      ) AS __pgt_q44
      GROUP BY
        __pgt_q44."customer"
    ) AS __pgt_q43
      ON (
        __pgt_q42."id" = __pgt_q43."tie"
      )
    UNION ALL
    SELECT
      -__pgt_q48."__pgt_w" AS "__pgt_w",
      __pgt_q48."id",
      __pgt_q49."tie",
      __pgt_q49."agg"
    FROM "__pgt_delta_5" AS __pgt_q48
    LEFT JOIN (
      SELECT
        __pgt_q50."customer" AS "tie",
        COUNT(*) AS "agg"
      FROM (
        SELECT
          __pgt_q54."id" AS "id_2",
          __pgt_q54."customer" AS "customer"
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
                __pgt_q53."k1"
              FROM "__pgt_part_4" AS __pgt_q53
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
                    __pgt_q51."k1"
                  FROM "__pgt_part_4" AS __pgt_q51
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
                    __pgt_q52."k1"
                  FROM "__pgt_part_4" AS __pgt_q52
                )
            ) AS s
            GROUP BY
              s."id",
              s."customer"
            HAVING
              SUM(s."__pgt_w") > 0
          ) AS u
        ) AS __pgt_q54
      ) AS __pgt_q50
      GROUP BY
        __pgt_q50."customer"
    ) AS __pgt_q49
      ON (
        __pgt_q48."id" = __pgt_q49."tie"
      )
  ) AS __pgt_q2
) AS __pgt_q1
