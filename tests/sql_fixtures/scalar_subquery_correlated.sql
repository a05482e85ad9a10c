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
    AND xid < PG_SNAPSHOT_XMAX(CAST('102:102:' AS pg_snapshot))
    AND PG_VISIBLE_IN_SNAPSHOT(xid, CAST('102:102:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND xid < PG_SNAPSHOT_XMAX(CAST('102:102:' AS pg_snapshot))
    AND PG_VISIBLE_IN_SNAPSHOT(xid, CAST('102:102:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS (
  SELECT
    __pgt_q5."__pgt_w",
    __pgt_q5."id" AS "id"
  FROM "__pgt_window_customers" AS __pgt_q5
), "__pgt_part_2" AS (
  SELECT DISTINCT
    __pgt_q12."id" AS "k1"
  FROM "__pgt_delta_1" AS __pgt_q12
  WHERE
    (
      __pgt_q12."id"
    ) IS NOT NULL
), "__pgt_old_customers" AS NOT MATERIALIZED (
  SELECT
    "id"
  FROM "shop"."customers" AS t
  WHERE
    NOT (
      (
        t."id"
      ) IN (
        SELECT
          "id"
        FROM "__pgt_window_customers"
      )
    )
  UNION ALL
  SELECT
    u."id"
  FROM (
    SELECT
      s."id" AS "id",
      SUM(s."__pgt_w") AS __pgt_n
    FROM (
      SELECT
        1 AS "__pgt_w",
        "id"
      FROM "shop"."customers" AS t
      WHERE
        (
          t."id"
        ) IN (
          SELECT
            "id"
          FROM "__pgt_window_customers"
        )
      UNION ALL
      SELECT
        -"__pgt_w",
        "id"
      FROM "__pgt_window_customers" AS c
    ) AS s
    GROUP BY
      s."id"
    HAVING
      SUM(s."__pgt_w") > 0
  ) AS u
), "__pgt_window_orders" AS (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id",
    "new_customer" AS "customer"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND xid < PG_SNAPSHOT_XMAX(CAST('102:102:' AS pg_snapshot))
    AND PG_VISIBLE_IN_SNAPSHOT(xid, CAST('102:102:' AS pg_snapshot))
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
    AND xid < PG_SNAPSHOT_XMAX(CAST('102:102:' AS pg_snapshot))
    AND PG_VISIBLE_IN_SNAPSHOT(xid, CAST('102:102:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_3" AS (
  SELECT DISTINCT
    __pgt_q28."tie" AS "tie"
  FROM (
    SELECT
      __pgt_q29."__pgt_w",
      __pgt_q29."customer" AS "customer",
      __pgt_q29."customer" AS "tie"
    FROM (
      SELECT
        __pgt_q30."__pgt_w",
        __pgt_q30."id" AS "id_2",
        __pgt_q30."customer" AS "customer"
      FROM "__pgt_window_orders" AS __pgt_q30
    ) AS __pgt_q29
  ) AS __pgt_q28
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
), "__pgt_part_4" AS (
  SELECT DISTINCT
    __pgt_q19."tie" AS "k1"
  FROM (
    SELECT
      __pgt_q20."__pgt_w",
      __pgt_q20."tie",
      __pgt_q20."agg"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q21."tie",
        __pgt_q21."agg"
      FROM (
        SELECT
          __pgt_q22."tie",
          __pgt_q22."agg"
        FROM (
          SELECT
            __pgt_q23."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q24."customer" AS "customer",
              __pgt_q24."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q25."id_2",
                __pgt_q25."customer"
              FROM (
                SELECT
                  __pgt_q26."id" AS "id_2",
                  __pgt_q26."customer" AS "customer"
                FROM "shop"."orders" AS __pgt_q26
              ) AS __pgt_q25
              WHERE
                (
                  __pgt_q25."customer"
                ) IN (
                  SELECT
                    __pgt_q27."tie"
                  FROM "__pgt_part_3" AS __pgt_q27
                )
              UNION ALL
              SELECT
                __pgt_q25."id_2",
                __pgt_q25."customer"
              FROM (
                SELECT
                  __pgt_q26."id" AS "id_2",
                  __pgt_q26."customer" AS "customer"
                FROM "shop"."orders" AS __pgt_q26
              ) AS __pgt_q25
              WHERE
                __pgt_q25."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_3" AS __pgt_q31
                  WHERE
                    __pgt_q31."tie" IS NULL
                )
            ) AS __pgt_q24
          ) AS __pgt_q23
          GROUP BY
            __pgt_q23."tie"
        ) AS __pgt_q22
        WHERE
          (
            __pgt_q22."tie"
          ) IN (
            SELECT
              __pgt_q32."tie"
            FROM "__pgt_part_3" AS __pgt_q32
          )
          OR (
            __pgt_q22."tie" IS NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_3" AS __pgt_q33
              WHERE
                __pgt_q33."tie" IS NULL
            )
          )
      ) AS __pgt_q21
    ) AS __pgt_q20
    UNION ALL
    SELECT
      __pgt_q34."__pgt_w",
      __pgt_q34."tie",
      __pgt_q34."agg"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q35."tie",
        __pgt_q35."agg"
      FROM (
        SELECT
          __pgt_q36."tie",
          __pgt_q36."agg"
        FROM (
          SELECT
            __pgt_q37."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q38."customer" AS "customer",
              __pgt_q38."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q39."id_2",
                __pgt_q39."customer"
              FROM (
                SELECT
                  __pgt_q40."id" AS "id_2",
                  __pgt_q40."customer" AS "customer"
                FROM "__pgt_old_orders" AS __pgt_q40
              ) AS __pgt_q39
              WHERE
                (
                  __pgt_q39."customer"
                ) IN (
                  SELECT
                    __pgt_q41."tie"
                  FROM "__pgt_part_3" AS __pgt_q41
                )
              UNION ALL
              SELECT
                __pgt_q39."id_2",
                __pgt_q39."customer"
              FROM (
                SELECT
                  __pgt_q40."id" AS "id_2",
                  __pgt_q40."customer" AS "customer"
                FROM "__pgt_old_orders" AS __pgt_q40
              ) AS __pgt_q39
              WHERE
                __pgt_q39."customer" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_part_3" AS __pgt_q42
                  WHERE
                    __pgt_q42."tie" IS NULL
                )
            ) AS __pgt_q38
          ) AS __pgt_q37
          GROUP BY
            __pgt_q37."tie"
        ) AS __pgt_q36
        WHERE
          (
            __pgt_q36."tie"
          ) IN (
            SELECT
              __pgt_q43."tie"
            FROM "__pgt_part_3" AS __pgt_q43
          )
          OR (
            __pgt_q36."tie" IS NULL
            AND EXISTS(
              SELECT
                1
              FROM "__pgt_part_3" AS __pgt_q44
              WHERE
                __pgt_q44."tie" IS NULL
            )
          )
      ) AS __pgt_q35
    ) AS __pgt_q34
  ) AS __pgt_q19
  WHERE
    (
      __pgt_q19."tie"
    ) IS NOT NULL
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
        1 AS "__pgt_w",
        __pgt_q14."id",
        __pgt_q14."tie",
        __pgt_q14."agg"
      FROM (
        SELECT
          __pgt_q15."id",
          __pgt_q45."tie",
          __pgt_q45."agg"
        FROM (
          SELECT
            __pgt_q16."id"
          FROM (
            SELECT
              __pgt_q17."id" AS "id"
            FROM "__pgt_old_customers" AS __pgt_q17
          ) AS __pgt_q16
          WHERE
            (
              __pgt_q16."id"
            ) IN (
              SELECT
                __pgt_q18."k1"
              FROM "__pgt_part_4" AS __pgt_q18
            )
        ) AS __pgt_q15
        LEFT JOIN (
          SELECT
            __pgt_q46."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q47."customer" AS "customer",
              __pgt_q47."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q48."id_2",
                __pgt_q48."customer"
              FROM (
                SELECT
                  __pgt_q49."id" AS "id_2",
                  __pgt_q49."customer" AS "customer"
                FROM "shop"."orders" AS __pgt_q49
              ) AS __pgt_q48
              WHERE
                (
                  __pgt_q48."customer"
                ) IN (
                  SELECT
                    __pgt_q50."k1"
                  FROM "__pgt_part_4" AS __pgt_q50
                )
            ) AS __pgt_q47
          ) AS __pgt_q46
          GROUP BY
            __pgt_q46."tie"
        ) AS __pgt_q45
          ON (
            __pgt_q15."id" = __pgt_q45."tie"
          )
      ) AS __pgt_q14
    ) AS __pgt_q13
    UNION ALL
    SELECT
      __pgt_q51."__pgt_w",
      __pgt_q51."id",
      __pgt_q51."tie",
      __pgt_q51."agg"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q52."id",
        __pgt_q52."tie",
        __pgt_q52."agg"
      FROM (
        SELECT
          __pgt_q53."id",
          __pgt_q57."tie",
          __pgt_q57."agg"
        FROM (
          SELECT
            __pgt_q54."id"
          FROM (
            SELECT
              __pgt_q55."id" AS "id"
            FROM "__pgt_old_customers" AS __pgt_q55
          ) AS __pgt_q54
          WHERE
            (
              __pgt_q54."id"
            ) IN (
              SELECT
                __pgt_q56."k1"
              FROM "__pgt_part_4" AS __pgt_q56
            )
        ) AS __pgt_q53
        LEFT JOIN (
          SELECT
            __pgt_q58."tie",
            COUNT(*) AS "agg"
          FROM (
            SELECT
              __pgt_q59."customer" AS "customer",
              __pgt_q59."customer" AS "tie"
            FROM (
              SELECT
                __pgt_q60."id_2",
                __pgt_q60."customer"
              FROM (
                SELECT
                  __pgt_q61."id" AS "id_2",
                  __pgt_q61."customer" AS "customer"
                FROM "__pgt_old_orders" AS __pgt_q61
              ) AS __pgt_q60
              WHERE
                (
                  __pgt_q60."customer"
                ) IN (
                  SELECT
                    __pgt_q62."k1"
                  FROM "__pgt_part_4" AS __pgt_q62
                )
            ) AS __pgt_q59
          ) AS __pgt_q58
          GROUP BY
            __pgt_q58."tie"
        ) AS __pgt_q57
          ON (
            __pgt_q53."id" = __pgt_q57."tie"
          )
      ) AS __pgt_q52
    ) AS __pgt_q51
  ) AS __pgt_q2
) AS __pgt_q1
