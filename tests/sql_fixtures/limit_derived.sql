-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT t.id, c.name FROM (SELECT id, customer FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 2) t LEFT JOIN customers c ON c.id = t.customer;

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
  __pgt_q1."id" AS "id",
  __pgt_q6."name" AS "name"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."id",
    __pgt_q2."customer"
  FROM (
    SELECT
      "id",
      "customer"
    FROM (
      SELECT
        "orders"."id",
        "orders"."customer"
      FROM "shop"."orders"
      ORDER BY
        "orders"."amount" DESC NULLS LAST,
        "orders"."id"
      LIMIT 2
    ) AS __pgt_q3("id", "customer")
  ) AS __pgt_q2
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q4."id",
    __pgt_q4."customer"
  FROM (
    SELECT
      "id",
      "customer"
    FROM (
      SELECT
        "orders"."id",
        "orders"."customer"
      FROM "__pgt_old_orders" AS "orders"
      ORDER BY
        "orders"."amount" DESC NULLS LAST,
        "orders"."id"
      LIMIT 2
    ) AS __pgt_q5("id", "customer")
  ) AS __pgt_q4
) AS __pgt_q1
LEFT JOIN "shop"."customers" AS __pgt_q6
  ON (
    __pgt_q6."id" = __pgt_q1."customer"
  )
