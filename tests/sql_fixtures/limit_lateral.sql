-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.id, l.id AS latest, l.amount FROM customers c LEFT JOIN LATERAL (SELECT o.id, o.amount FROM orders o WHERE o.customer = c.id ORDER BY o.placed DESC NULLS LAST, o.id LIMIT 1) l ON true;

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
    __pgt_q6."customer" AS "k1"
  FROM "__pgt_window_orders" AS __pgt_q6
  WHERE
    (
      __pgt_q6."customer"
    ) IS DISTINCT FROM NULL
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
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id",
  __pgt_q1."id_3" AS "latest",
  __pgt_q1."amount_2" AS "amount"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."id",
    __pgt_q7."id_3",
    __pgt_q7."amount_2"
  FROM (
    SELECT
      __pgt_q3."id"
    FROM (
      SELECT
        __pgt_q4."id" AS "id"
      FROM "shop"."customers" AS __pgt_q4
    ) AS __pgt_q3
    WHERE
      (
        __pgt_q3."id"
      ) IN (
        SELECT
          __pgt_q5."k1"
        FROM "__pgt_part_1" AS __pgt_q5
      )
  ) AS __pgt_q2
  LEFT JOIN LATERAL (
    SELECT
      "o"."id",
      "o"."amount"
    FROM "shop"."orders" AS "o"
    WHERE
      (
        "o"."customer" = __pgt_q2."id"
      )
    ORDER BY
      "o"."placed" DESC NULLS LAST,
      "o"."id"
    LIMIT 1
  ) AS __pgt_q7("id_3", "amount_2")
    ON (
      TRUE
    )
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q8."id",
    __pgt_q12."id_3",
    __pgt_q12."amount_2"
  FROM (
    SELECT
      __pgt_q9."id"
    FROM (
      SELECT
        __pgt_q10."id" AS "id"
      FROM "shop"."customers" AS __pgt_q10
    ) AS __pgt_q9
    WHERE
      (
        __pgt_q9."id"
      ) IN (
        SELECT
          __pgt_q11."k1"
        FROM "__pgt_part_1" AS __pgt_q11
      )
  ) AS __pgt_q8
  LEFT JOIN LATERAL (
    SELECT
      "o"."id",
      "o"."amount"
    FROM "__pgt_old_orders" AS "o"
    WHERE
      (
        "o"."customer" = __pgt_q8."id"
      )
    ORDER BY
      "o"."placed" DESC NULLS LAST,
      "o"."id"
    LIMIT 1
  ) AS __pgt_q12("id_3", "amount_2")
    ON (
      TRUE
    )
) AS __pgt_q1
