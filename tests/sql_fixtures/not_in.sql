-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.id FROM customers c WHERE c.id NOT IN (SELECT customer FROM orders);

-- cycle
UPDATE orders SET customer = 3 WHERE id = 1;
UPDATE customers SET name = 'Bob' WHERE id = 2;

-- cycle
DELETE FROM customers WHERE id = 1;
DELETE FROM orders WHERE id = 2;

-- cycle
INSERT INTO customers VALUES (4, 'Di', 'FR');
INSERT INTO orders VALUES (6, 4, 2.00, NULL), (7, 4, 3.00, NULL);

-- cycle
DELETE FROM orders WHERE customer IS NULL;

-- delta
WITH "__pgt_window_customers" AS NOT MATERIALIZED (
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
), "__pgt_window_orders" AS NOT MATERIALIZED (
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
    TRUE AS "k0"
  FROM "__pgt_window_orders" AS __pgt_q7
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    __pgt_q3."__pgt_w",
    __pgt_q3."id"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q4."id"
    FROM "shop"."customers" AS __pgt_q4
    UNION ALL
    SELECT
      -__pgt_q5."__pgt_w" AS "__pgt_w",
      __pgt_q5."id"
    FROM "__pgt_window_customers" AS __pgt_q5
  ) AS __pgt_q3
  WHERE
    (
      EXISTS(
        SELECT
          1
        FROM "__pgt_part_1" AS __pgt_q6
      )
    )
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
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id"
  FROM "__pgt_window_customers" AS __pgt_q2
  WHERE
    (
      NOT (
        __pgt_q2."id" IN (
          SELECT
            "orders"."customer"
          FROM "shop"."orders"
        )
      )
    )
  UNION ALL
  SELECT
    __pgt_q8."__pgt_w",
    __pgt_q8."id"
  FROM "__pgt_delta_2" AS __pgt_q8
  WHERE
    (
      NOT (
        __pgt_q8."id" IN (
          SELECT
            "orders"."customer"
          FROM "shop"."orders"
        )
      )
    )
  UNION ALL
  SELECT
    -__pgt_q9."__pgt_w" AS "__pgt_w",
    __pgt_q9."id"
  FROM "__pgt_delta_2" AS __pgt_q9
  WHERE
    (
      NOT (
        __pgt_q9."id" IN (
          SELECT
            "orders"."customer"
          FROM "__pgt_old_orders" AS "orders"
        )
      )
    )
) AS __pgt_q1
