-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer;

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
(Δorders ⋈ customers) + (orders ⋈ Δcustomers) − (Δorders ⋈ Δcustomers)

-- sql
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
), "__pgt_window_customers" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id",
    "new_name" AS "name"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id",
    "old_name" AS "name"
  FROM "shop"."changes_customers"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id",
  __pgt_q1."name" AS "name",
  __pgt_q1."amount" AS "amount"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id",
    __pgt_q2."customer",
    __pgt_q2."amount",
    __pgt_q3."id" AS "id_2",
    __pgt_q3."name"
  FROM "__pgt_window_orders" AS __pgt_q2
  CROSS JOIN "shop"."customers" AS __pgt_q3
  WHERE
    (
      __pgt_q3."id" = __pgt_q2."customer"
    )
  UNION ALL
  SELECT
    __pgt_q5."__pgt_w",
    __pgt_q4."id",
    __pgt_q4."customer",
    __pgt_q4."amount",
    __pgt_q5."id" AS "id_2",
    __pgt_q5."name"
  FROM "shop"."orders" AS __pgt_q4
  CROSS JOIN "__pgt_window_customers" AS __pgt_q5
  WHERE
    (
      __pgt_q5."id" = __pgt_q4."customer"
    )
  UNION ALL
  SELECT
    -__pgt_q6."__pgt_w" * __pgt_q7."__pgt_w" AS "__pgt_w",
    __pgt_q6."id",
    __pgt_q6."customer",
    __pgt_q6."amount",
    __pgt_q7."id" AS "id_2",
    __pgt_q7."name"
  FROM "__pgt_window_orders" AS __pgt_q6
  CROSS JOIN "__pgt_window_customers" AS __pgt_q7
  WHERE
    (
      __pgt_q7."id" = __pgt_q6."customer"
    )
) AS __pgt_q1
