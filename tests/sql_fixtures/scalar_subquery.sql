-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT id, amount - (SELECT avg(amount) FROM orders) AS above FROM orders;

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
    "old_amount" AS "amount"
  FROM "shop"."changes_orders"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q4."amount") AS "agg"
  FROM "shop"."orders" AS __pgt_q4
), "__pgt_old_orders" AS NOT MATERIALIZED (
  SELECT
    "id",
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
    u."amount"
  FROM (
    SELECT
      s."id" AS "id",
      s."amount" AS "amount",
      SUM(s."__pgt_w") AS __pgt_n
    FROM (
      SELECT
        1 AS "__pgt_w",
        "id",
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
        "amount"
      FROM "__pgt_window_orders" AS c
    ) AS s
    GROUP BY
      s."id",
      s."amount"
    HAVING
      SUM(s."__pgt_w") > 0
  ) AS u
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q7."agg"
  FROM (
    SELECT
      AVG(__pgt_q8."amount") AS "agg"
    FROM "shop"."orders" AS __pgt_q8
  ) AS __pgt_q7
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q9."agg"
  FROM (
    SELECT
      AVG(__pgt_q10."amount") AS "agg"
    FROM "__pgt_old_orders" AS __pgt_q10
  ) AS __pgt_q9
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_3" AS "id",
  __pgt_q1."above" AS "above"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id" AS "id_3",
    (
      __pgt_q2."amount" - (
        __pgt_q2."agg"
      )
    ) AS "above"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id",
      __pgt_q3."amount",
      __pgt_q5."agg"
    FROM "__pgt_window_orders" AS __pgt_q3
    CROSS JOIN "__pgt_part_1" AS __pgt_q5
    UNION ALL
    SELECT
      __pgt_q11."__pgt_w",
      __pgt_q6."id",
      __pgt_q6."amount",
      __pgt_q11."agg"
    FROM "shop"."orders" AS __pgt_q6
    CROSS JOIN "__pgt_delta_2" AS __pgt_q11
    UNION ALL
    SELECT
      -__pgt_q12."__pgt_w" * __pgt_q13."__pgt_w" AS "__pgt_w",
      __pgt_q12."id",
      __pgt_q12."amount",
      __pgt_q13."agg"
    FROM "__pgt_window_orders" AS __pgt_q12
    CROSS JOIN "__pgt_delta_2" AS __pgt_q13
  ) AS __pgt_q2
) AS __pgt_q1
