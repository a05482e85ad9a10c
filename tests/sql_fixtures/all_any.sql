-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT o.id FROM orders o WHERE o.amount >= ALL (SELECT x.amount FROM orders x) OR o.customer = ANY (SELECT id FROM customers WHERE country IS NULL);

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
    __pgt_q5."__pgt_w",
    __pgt_q5."id" AS "id",
    __pgt_q5."customer" AS "customer",
    __pgt_q5."amount" AS "amount"
  FROM "__pgt_window_orders" AS __pgt_q5
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
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    TRUE AS "k0"
  FROM (
    SELECT
      __pgt_q17."__pgt_w",
      __pgt_q17."id_2",
      __pgt_q17."country"
    FROM (
      SELECT
        __pgt_q18."__pgt_w",
        __pgt_q18."id" AS "id_2",
        __pgt_q18."country" AS "country"
      FROM "__pgt_window_customers" AS __pgt_q18
    ) AS __pgt_q17
    WHERE
      (
        __pgt_q17."country" IS NULL
      )
  ) AS __pgt_q16
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    TRUE AS "k0"
  FROM (
    SELECT
      __pgt_q21."__pgt_w",
      __pgt_q21."id" AS "id_3"
    FROM "__pgt_window_orders" AS __pgt_q21
  ) AS __pgt_q20
), "__pgt_delta_4" AS MATERIALIZED (
  SELECT
    __pgt_q9."__pgt_w",
    __pgt_q9."id",
    __pgt_q9."customer",
    __pgt_q9."amount"
  FROM (
    SELECT
      __pgt_q10."__pgt_w",
      __pgt_q10."id",
      __pgt_q10."customer",
      __pgt_q10."amount"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q11."id",
        __pgt_q11."customer",
        __pgt_q11."amount"
      FROM (
        SELECT
          __pgt_q12."id" AS "id",
          __pgt_q12."customer" AS "customer",
          __pgt_q12."amount" AS "amount"
        FROM "shop"."orders" AS __pgt_q12
      ) AS __pgt_q11
    ) AS __pgt_q10
    UNION ALL
    SELECT
      __pgt_q13."__pgt_w",
      __pgt_q13."id",
      __pgt_q13."customer",
      __pgt_q13."amount"
    FROM (
      SELECT
        -__pgt_q14."__pgt_w" AS "__pgt_w",
        __pgt_q14."id",
        __pgt_q14."customer",
        __pgt_q14."amount"
      FROM "__pgt_delta_1" AS __pgt_q14
    ) AS __pgt_q13
  ) AS __pgt_q9
  WHERE
    EXISTS(
      SELECT
        1
      FROM "__pgt_part_2" AS __pgt_q15
    )
    OR EXISTS(
      SELECT
        1
      FROM "__pgt_part_3" AS __pgt_q19
    )
), "__pgt_old_customers" AS NOT MATERIALIZED (
  SELECT
    "id",
    "country"
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
    u."id",
    u."country"
  FROM (
    SELECT
      s."id" AS "id",
      s."country" AS "country",
      SUM(s."__pgt_w") AS __pgt_n
    FROM (
      SELECT
        1 AS "__pgt_w",
        "id",
        "country"
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
        "id",
        "country"
      FROM "__pgt_window_customers" AS c
    ) AS s
    GROUP BY
      s."id",
      s."country"
    HAVING
      SUM(s."__pgt_w") > 0
  ) AS u
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
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_4" AS "id"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id" AS "id_4"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id",
      __pgt_q3."customer",
      __pgt_q3."amount"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."id",
        __pgt_q4."customer",
        __pgt_q4."amount"
      FROM "__pgt_delta_1" AS __pgt_q4
      WHERE
        (
          __pgt_q4."amount" >= ALL (
            SELECT
              x.amount
            FROM shop.orders AS x
          )
        )
        OR (
          __pgt_q4."customer" IN (
            SELECT
              customers.id
            FROM shop.customers
            WHERE
              (
                customers.country IS NULL
              )
          )
        )
    ) AS __pgt_q3
    UNION ALL
    SELECT
      __pgt_q6."__pgt_w",
      __pgt_q6."id",
      __pgt_q6."customer",
      __pgt_q6."amount"
    FROM (
      SELECT
        __pgt_q7."__pgt_w" AS "__pgt_w",
        __pgt_q7."id",
        __pgt_q7."customer",
        __pgt_q7."amount"
      FROM (
        SELECT
          __pgt_q8."__pgt_w",
          __pgt_q8."id",
          __pgt_q8."customer",
          __pgt_q8."amount"
        FROM "__pgt_delta_4" AS __pgt_q8
        WHERE
          (
            __pgt_q8."amount" >= ALL (
              SELECT
                x.amount
              FROM shop.orders AS x
            )
          )
          OR (
            __pgt_q8."customer" IN (
              SELECT
                customers.id
              FROM shop.customers
              WHERE
                (
                  customers.country IS NULL
                )
            )
          )
      ) AS __pgt_q7
    ) AS __pgt_q6
    UNION ALL
    SELECT
      __pgt_q22."__pgt_w",
      __pgt_q22."id",
      __pgt_q22."customer",
      __pgt_q22."amount"
    FROM (
      SELECT
        -__pgt_q23."__pgt_w" AS "__pgt_w",
        __pgt_q23."id",
        __pgt_q23."customer",
        __pgt_q23."amount"
      FROM (
        SELECT
          __pgt_q24."__pgt_w",
          __pgt_q24."id",
          __pgt_q24."customer",
          __pgt_q24."amount"
        FROM "__pgt_delta_4" AS __pgt_q24
        WHERE
          (
            __pgt_q24."amount" >= ALL (
              SELECT
                x.amount
              FROM "__pgt_old_orders" AS x
            )
          )
          OR (
            __pgt_q24."customer" IN (
              SELECT
                customers.id
              FROM "__pgt_old_customers" AS "customers"
              WHERE
                (
                  customers.country IS NULL
                )
            )
          )
      ) AS __pgt_q23
    ) AS __pgt_q22
  ) AS __pgt_q2
) AS __pgt_q1
