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
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q9."id" AS "k1"
  FROM "__pgt_window_customers" AS __pgt_q9
  WHERE
    (
      __pgt_q9."id"
    ) IS DISTINCT FROM NULL
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
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    __pgt_q14."customer" AS "k1"
  FROM "__pgt_window_orders" AS __pgt_q14
  WHERE
    (
      __pgt_q14."customer"
    ) IS DISTINCT FROM NULL
), "__pgt_delta_3" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q10."id"
  FROM (
    SELECT
      __pgt_q11."id"
    FROM (
      SELECT
        __pgt_q12."id" AS "id"
      FROM "shop"."customers" AS __pgt_q12
    ) AS __pgt_q11
    WHERE
      (
        __pgt_q11."id"
      ) IN (
        SELECT
          __pgt_q13."k1"
        FROM "__pgt_part_2" AS __pgt_q13
      )
  ) AS __pgt_q10
  UNION ALL
  SELECT
    -__pgt_q15."__pgt_w" AS "__pgt_w",
    __pgt_q15."id"
  FROM (
    SELECT
      __pgt_q16."__pgt_w",
      __pgt_q16."id"
    FROM (
      SELECT
        __pgt_q17."__pgt_w",
        __pgt_q17."id"
      FROM "__pgt_window_customers" AS __pgt_q17
    ) AS __pgt_q16
    WHERE
      (
        __pgt_q16."id"
      ) IN (
        SELECT
          __pgt_q18."k1"
        FROM "__pgt_part_2" AS __pgt_q18
      )
  ) AS __pgt_q15
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q25."id" AS "k1"
  FROM "__pgt_delta_3" AS __pgt_q25
  WHERE
    (
      __pgt_q25."id"
    ) IS DISTINCT FROM NULL
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
      __pgt_q4."tie",
      __pgt_q4."agg"
    FROM "__pgt_window_customers" AS __pgt_q3
    LEFT JOIN (
      SELECT
        __pgt_q5."customer" AS "tie",
        COUNT(*) AS "agg"
      FROM (
        SELECT
          __pgt_q6."id_2",
          __pgt_q6."customer"
        FROM (
          SELECT
            __pgt_q7."id" AS "id_2",
            __pgt_q7."customer" AS "customer"
          FROM "shop"."orders" AS __pgt_q7
        ) AS __pgt_q6
        WHERE
          (
            __pgt_q6."customer"
          ) IN (
            SELECT
              __pgt_q8."k1"
            FROM "__pgt_part_1" AS __pgt_q8
          )
      ) AS __pgt_q5
      GROUP BY
        __pgt_q5."customer"
    ) AS __pgt_q4
      ON (
        __pgt_q3."id" = __pgt_q4."tie"
      )
    UNION ALL
    SELECT
      __pgt_q19."__pgt_w",
      __pgt_q19."id",
      __pgt_q20."tie",
      __pgt_q20."agg"
    FROM "__pgt_delta_3" AS __pgt_q19
    LEFT JOIN (
      SELECT
        __pgt_q21."customer" AS "tie",
        COUNT(*) AS "agg"
      FROM (
        SELECT
          __pgt_q22."id_2",
          __pgt_q22."customer"
        FROM (
          SELECT
            __pgt_q23."id" AS "id_2",
            __pgt_q23."customer" AS "customer"
          FROM "shop"."orders" AS __pgt_q23
        ) AS __pgt_q22
        WHERE
          (
            __pgt_q22."customer"
          ) IN (
            SELECT
              __pgt_q24."k1"
            FROM "__pgt_part_4" AS __pgt_q24
          )
      ) AS __pgt_q21
      GROUP BY
        __pgt_q21."customer"
    ) AS __pgt_q20
      ON (
        __pgt_q19."id" = __pgt_q20."tie"
      )
    UNION ALL
    SELECT
      -__pgt_q26."__pgt_w" AS "__pgt_w",
      __pgt_q26."id",
      __pgt_q27."tie",
      __pgt_q27."agg"
    FROM "__pgt_delta_3" AS __pgt_q26
    LEFT JOIN (
      SELECT
        __pgt_q28."customer" AS "tie",
        COUNT(*) AS "agg"
      FROM (
        SELECT
          __pgt_q32."id" AS "id_2",
          __pgt_q32."customer" AS "customer"
        FROM (
          SELECT
            "id",
            "customer"
          FROM "shop"."orders" AS t
          WHERE
            NOT EXISTS(
              SELECT
              FROM "__pgt_window_orders" AS c
              WHERE
                c."id" = t."id"
            )
            AND (
              t."customer"
            ) IN (
              SELECT
                __pgt_q31."k1"
              FROM "__pgt_part_4" AS __pgt_q31
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
                    __pgt_q29."k1"
                  FROM "__pgt_part_4" AS __pgt_q29
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
                    __pgt_q30."k1"
                  FROM "__pgt_part_4" AS __pgt_q30
                )
            ) AS s
            GROUP BY
              s."id",
              s."customer"
            HAVING
              SUM(s."__pgt_w") > 0
          ) AS u
        ) AS __pgt_q32
      ) AS __pgt_q28
      GROUP BY
        __pgt_q28."customer"
    ) AS __pgt_q27
      ON (
        __pgt_q26."id" = __pgt_q27."tie"
      )
  ) AS __pgt_q2
) AS __pgt_q1
