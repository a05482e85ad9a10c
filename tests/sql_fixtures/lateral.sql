-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.id, x.id AS first_order FROM customers c LEFT JOIN LATERAL (SELECT o.id FROM orders o WHERE o.customer = c.id ORDER BY o.id LIMIT 1) AS x ON true;

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
    __pgt_q8."customer" AS "k1"
  FROM "__pgt_window_orders" AS __pgt_q8
  WHERE
    (
      __pgt_q8."customer"
    ) IS DISTINCT FROM NULL
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q4."id"
  FROM (
    SELECT
      __pgt_q5."id"
    FROM (
      SELECT
        __pgt_q6."id" AS "id"
      FROM "shop"."customers" AS __pgt_q6
    ) AS __pgt_q5
    WHERE
      (
        __pgt_q5."id"
      ) IN (
        SELECT
          __pgt_q7."k1"
        FROM "__pgt_part_1" AS __pgt_q7
      )
  ) AS __pgt_q4
  UNION ALL
  SELECT
    -__pgt_q9."__pgt_w" AS "__pgt_w",
    __pgt_q9."id"
  FROM (
    SELECT
      __pgt_q10."__pgt_w",
      __pgt_q10."id"
    FROM (
      SELECT
        __pgt_q11."__pgt_w",
        __pgt_q11."id"
      FROM "__pgt_window_customers" AS __pgt_q11
    ) AS __pgt_q10
    WHERE
      (
        __pgt_q10."id"
      ) IN (
        SELECT
          __pgt_q12."k1"
        FROM "__pgt_part_1" AS __pgt_q12
      )
  ) AS __pgt_q9
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
  __pgt_q1."id" AS "id",
  __pgt_q1."id_3" AS "first_order"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id",
    __pgt_q3."id_3"
  FROM "__pgt_window_customers" AS __pgt_q2
  LEFT JOIN LATERAL (
    SELECT
      "o"."id"
    FROM "shop"."orders" AS "o"
    WHERE
      (
        "o"."customer" = __pgt_q2."id"
      )
    ORDER BY
      "o"."id"
    LIMIT 1
  ) AS __pgt_q3("id_3")
    ON (
      TRUE
    )
  UNION ALL
  SELECT
    __pgt_q13."__pgt_w",
    __pgt_q13."id",
    __pgt_q14."id_3"
  FROM "__pgt_delta_2" AS __pgt_q13
  LEFT JOIN LATERAL (
    SELECT
      "o"."id"
    FROM "shop"."orders" AS "o"
    WHERE
      (
        "o"."customer" = __pgt_q13."id"
      )
    ORDER BY
      "o"."id"
    LIMIT 1
  ) AS __pgt_q14("id_3")
    ON (
      TRUE
    )
  UNION ALL
  SELECT
    -__pgt_q15."__pgt_w" AS "__pgt_w",
    __pgt_q15."id",
    __pgt_q16."id_3"
  FROM "__pgt_delta_2" AS __pgt_q15
  LEFT JOIN LATERAL (
    SELECT
      "o"."id"
    FROM "__pgt_old_orders" AS "o"
    WHERE
      (
        "o"."customer" = __pgt_q15."id"
      )
    ORDER BY
      "o"."id"
    LIMIT 1
  ) AS __pgt_q16("id_3")
    ON (
      TRUE
    )
) AS __pgt_q1
