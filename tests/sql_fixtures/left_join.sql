-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer;

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
(Δorders ⟕ customers) + (A ⟕ customers) − (A ⟕ customers⁰)
where
  A = orders[customer ∈ id of Δcustomers] − Δorders[customer ∈ id of Δcustomers]

-- sql
WITH "__pgt_window_orders" AS NOT MATERIALIZED (
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
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q8."id" AS "k1"
  FROM "__pgt_window_customers" AS __pgt_q8
  WHERE
    (
      __pgt_q8."id"
    ) IS DISTINCT FROM NULL
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q4."id",
    __pgt_q4."customer"
  FROM (
    SELECT
      __pgt_q5."id",
      __pgt_q5."customer"
    FROM (
      SELECT
        __pgt_q6."id" AS "id",
        __pgt_q6."customer" AS "customer"
      FROM "shop"."orders" AS __pgt_q6
    ) AS __pgt_q5
    WHERE
      (
        __pgt_q5."customer"
      ) IN (
        SELECT
          __pgt_q7."k1"
        FROM "__pgt_part_1" AS __pgt_q7
      )
  ) AS __pgt_q4
  UNION ALL
  SELECT
    -__pgt_q9."__pgt_w" AS "__pgt_w",
    __pgt_q9."id",
    __pgt_q9."customer"
  FROM (
    SELECT
      __pgt_q10."__pgt_w",
      __pgt_q10."id",
      __pgt_q10."customer"
    FROM (
      SELECT
        __pgt_q11."__pgt_w",
        __pgt_q11."id",
        __pgt_q11."customer"
      FROM "__pgt_window_orders" AS __pgt_q11
    ) AS __pgt_q10
    WHERE
      (
        __pgt_q10."customer"
      ) IN (
        SELECT
          __pgt_q12."k1"
        FROM "__pgt_part_1" AS __pgt_q12
      )
  ) AS __pgt_q9
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q18."customer" AS "k1"
  FROM "__pgt_delta_2" AS __pgt_q18
  WHERE
    (
      __pgt_q18."customer"
    ) IS DISTINCT FROM NULL
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id",
  __pgt_q1."name" AS "name"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id",
    __pgt_q2."customer",
    __pgt_q3."id" AS "id_2",
    __pgt_q3."name"
  FROM "__pgt_window_orders" AS __pgt_q2
  LEFT JOIN "shop"."customers" AS __pgt_q3
    ON (
      __pgt_q3."id" = __pgt_q2."customer"
    )
  UNION ALL
  SELECT
    __pgt_q13."__pgt_w",
    __pgt_q13."id",
    __pgt_q13."customer",
    __pgt_q14."id_2",
    __pgt_q14."name"
  FROM "__pgt_delta_2" AS __pgt_q13
  LEFT JOIN (
    SELECT
      __pgt_q15."id_2",
      __pgt_q15."name"
    FROM (
      SELECT
        __pgt_q16."id" AS "id_2",
        __pgt_q16."name" AS "name"
      FROM "shop"."customers" AS __pgt_q16
    ) AS __pgt_q15
    WHERE
      (
        __pgt_q15."id_2"
      ) IN (
        SELECT
          __pgt_q17."k1"
        FROM "__pgt_part_3" AS __pgt_q17
      )
  ) AS __pgt_q14
    ON (
      __pgt_q14."id_2" = __pgt_q13."customer"
    )
  UNION ALL
  SELECT
    -__pgt_q19."__pgt_w" AS "__pgt_w",
    __pgt_q19."id",
    __pgt_q19."customer",
    __pgt_q20."id_2",
    __pgt_q20."name"
  FROM "__pgt_delta_2" AS __pgt_q19
  LEFT JOIN (
    SELECT
      __pgt_q24."id" AS "id_2",
      __pgt_q24."name" AS "name"
    FROM (
      SELECT
        "id",
        "name"
      FROM "shop"."customers" AS t
      WHERE
        NOT EXISTS(
          SELECT
          FROM "__pgt_window_customers" AS c
          WHERE
            c."id" = t."id"
        )
        AND (
          t."id"
        ) IN (
          SELECT
            __pgt_q23."k1"
          FROM "__pgt_part_3" AS __pgt_q23
        )
      UNION ALL
      SELECT
        u."id",
        u."name"
      FROM (
        SELECT
          s."id" AS "id",
          s."name" AS "name",
          SUM(s."__pgt_w") AS __pgt_n
        FROM (
          SELECT
            1 AS "__pgt_w",
            "id",
            "name"
          FROM "shop"."customers" AS t
          WHERE
            (
              t."id"
            ) IN (
              SELECT
                "id"
              FROM "__pgt_window_customers"
            )
            AND (
              t."id"
            ) IN (
              SELECT
                __pgt_q21."k1"
              FROM "__pgt_part_3" AS __pgt_q21
            )
          UNION ALL
          SELECT
            -"__pgt_w",
            "id",
            "name"
          FROM "__pgt_window_customers" AS c
          WHERE
            (
              c."id"
            ) IN (
              SELECT
                __pgt_q22."k1"
              FROM "__pgt_part_3" AS __pgt_q22
            )
        ) AS s
        GROUP BY
          s."id",
          s."name"
        HAVING
          SUM(s."__pgt_w") > 0
      ) AS u
    ) AS __pgt_q24
  ) AS __pgt_q20
    ON (
      __pgt_q20."id_2" = __pgt_q19."customer"
    )
) AS __pgt_q1
