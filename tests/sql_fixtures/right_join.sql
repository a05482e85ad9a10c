-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.id, o.id AS order_id, c.name FROM orders o RIGHT JOIN customers c ON c.id = o.customer;

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
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q5."__pgt_w",
    __pgt_q5."id" AS "id_2",
    __pgt_q5."name" AS "name"
  FROM "__pgt_window_customers" AS __pgt_q5
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
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q16."customer" AS "k1"
  FROM (
    SELECT
      __pgt_q17."__pgt_w",
      __pgt_q17."id" AS "id",
      __pgt_q17."customer" AS "customer"
    FROM "__pgt_window_orders" AS __pgt_q17
  ) AS __pgt_q16
  WHERE
    (
      __pgt_q16."customer"
    ) IS NOT NULL
), "__pgt_delta_3" AS MATERIALIZED (
  SELECT
    __pgt_q11."__pgt_w",
    __pgt_q11."id_2",
    __pgt_q11."name"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q12."id_2",
      __pgt_q12."name"
    FROM (
      SELECT
        __pgt_q13."id_2",
        __pgt_q13."name"
      FROM (
        SELECT
          __pgt_q14."id" AS "id_2",
          __pgt_q14."name" AS "name"
        FROM "shop"."customers" AS __pgt_q14
      ) AS __pgt_q13
      WHERE
        (
          __pgt_q13."id_2"
        ) IN (
          SELECT
            __pgt_q15."k1"
          FROM "__pgt_part_2" AS __pgt_q15
        )
    ) AS __pgt_q12
  ) AS __pgt_q11
  UNION ALL
  SELECT
    __pgt_q18."__pgt_w",
    __pgt_q18."id_2",
    __pgt_q18."name"
  FROM (
    SELECT
      -__pgt_q19."__pgt_w" AS "__pgt_w",
      __pgt_q19."id_2",
      __pgt_q19."name"
    FROM (
      SELECT
        __pgt_q20."__pgt_w",
        __pgt_q20."id_2",
        __pgt_q20."name"
      FROM "__pgt_delta_1" AS __pgt_q20
      WHERE
        (
          __pgt_q20."id_2"
        ) IN (
          SELECT
            __pgt_q21."k1"
          FROM "__pgt_part_2" AS __pgt_q21
        )
    ) AS __pgt_q19
  ) AS __pgt_q18
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
  __pgt_q1."id_3" AS "id",
  __pgt_q1."order_id" AS "order_id",
  __pgt_q1."name_2" AS "name"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id_2" AS "id_3",
    __pgt_q2."id" AS "order_id",
    __pgt_q2."name" AS "name_2"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id_2",
      __pgt_q3."name",
      __pgt_q3."id",
      __pgt_q3."customer"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."id_2",
        __pgt_q4."name",
        __pgt_q6."id",
        __pgt_q6."customer"
      FROM "__pgt_delta_1" AS __pgt_q4
      LEFT JOIN (
        SELECT
          __pgt_q7."id" AS "id",
          __pgt_q7."customer" AS "customer"
        FROM "shop"."orders" AS __pgt_q7
      ) AS __pgt_q6
        ON (
          __pgt_q4."id_2" = __pgt_q6."customer"
        )
    ) AS __pgt_q3
    UNION ALL
    SELECT
      __pgt_q8."__pgt_w",
      __pgt_q8."id_2",
      __pgt_q8."name",
      __pgt_q8."id",
      __pgt_q8."customer"
    FROM (
      SELECT
        __pgt_q9."__pgt_w" AS "__pgt_w",
        __pgt_q9."id_2",
        __pgt_q9."name",
        __pgt_q9."id",
        __pgt_q9."customer"
      FROM (
        SELECT
          __pgt_q10."__pgt_w",
          __pgt_q10."id_2",
          __pgt_q10."name",
          __pgt_q22."id",
          __pgt_q22."customer"
        FROM "__pgt_delta_3" AS __pgt_q10
        LEFT JOIN (
          SELECT
            __pgt_q23."id",
            __pgt_q23."customer"
          FROM (
            SELECT
              __pgt_q24."id" AS "id",
              __pgt_q24."customer" AS "customer"
            FROM "shop"."orders" AS __pgt_q24
          ) AS __pgt_q23
          WHERE
            (
              __pgt_q23."customer"
            ) IN (
              SELECT
                __pgt_q25."k1"
              FROM "__pgt_part_2" AS __pgt_q25
            )
        ) AS __pgt_q22
          ON (
            __pgt_q10."id_2" = __pgt_q22."customer"
          )
      ) AS __pgt_q9
    ) AS __pgt_q8
    UNION ALL
    SELECT
      __pgt_q26."__pgt_w",
      __pgt_q26."id_2",
      __pgt_q26."name",
      __pgt_q26."id",
      __pgt_q26."customer"
    FROM (
      SELECT
        -__pgt_q27."__pgt_w" AS "__pgt_w",
        __pgt_q27."id_2",
        __pgt_q27."name",
        __pgt_q27."id",
        __pgt_q27."customer"
      FROM (
        SELECT
          __pgt_q28."__pgt_w",
          __pgt_q28."id_2",
          __pgt_q28."name",
          __pgt_q29."id",
          __pgt_q29."customer"
        FROM "__pgt_delta_3" AS __pgt_q28
        LEFT JOIN (
          SELECT
            __pgt_q33."id" AS "id",
            __pgt_q33."customer" AS "customer"
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
                  __pgt_q32."k1"
                FROM "__pgt_part_2" AS __pgt_q32
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
                      __pgt_q30."k1"
                    FROM "__pgt_part_2" AS __pgt_q30
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
                      __pgt_q31."k1"
                    FROM "__pgt_part_2" AS __pgt_q31
                  )
              ) AS s
              GROUP BY
                s."id",
                s."customer"
              HAVING
                SUM(s."__pgt_w") > 0
            ) AS u
          ) AS __pgt_q33
        ) AS __pgt_q29
          ON (
            __pgt_q28."id_2" = __pgt_q29."customer"
          )
      ) AS __pgt_q27
    ) AS __pgt_q26
  ) AS __pgt_q2
) AS __pgt_q1
