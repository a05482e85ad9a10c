-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
SELECT c.id, o.id AS big FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > (SELECT avg(x.amount) FROM orders x);

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
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q7."__pgt_w",
    __pgt_q7."id" AS "id_2",
    __pgt_q7."customer",
    __pgt_q7."amount"
  FROM "__pgt_window_orders" AS __pgt_q7
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q9."amount") AS "agg"
  FROM "shop"."orders" AS __pgt_q9
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
), "__pgt_delta_3" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q12."agg"
  FROM (
    SELECT
      AVG(__pgt_q13."amount") AS "agg"
    FROM "shop"."orders" AS __pgt_q13
  ) AS __pgt_q12
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q14."agg"
  FROM (
    SELECT
      AVG(__pgt_q15."amount") AS "agg"
    FROM "__pgt_old_orders" AS __pgt_q15
  ) AS __pgt_q14
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q6."customer" AS "k1"
  FROM (
    SELECT
      __pgt_q8."__pgt_w",
      __pgt_q8."id_2",
      __pgt_q8."customer",
      __pgt_q8."amount",
      __pgt_q10."agg"
    FROM "__pgt_delta_1" AS __pgt_q8
    CROSS JOIN "__pgt_part_2" AS __pgt_q10
    UNION ALL
    SELECT
      __pgt_q16."__pgt_w",
      __pgt_q11."id" AS "id_2",
      __pgt_q11."customer",
      __pgt_q11."amount",
      __pgt_q16."agg"
    FROM "shop"."orders" AS __pgt_q11
    CROSS JOIN "__pgt_delta_3" AS __pgt_q16
    UNION ALL
    SELECT
      -__pgt_q17."__pgt_w" * __pgt_q18."__pgt_w" AS "__pgt_w",
      __pgt_q17."id_2",
      __pgt_q17."customer",
      __pgt_q17."amount",
      __pgt_q18."agg"
    FROM "__pgt_delta_1" AS __pgt_q17
    CROSS JOIN "__pgt_delta_3" AS __pgt_q18
  ) AS __pgt_q6
  WHERE
    (
      __pgt_q6."amount" > (
        __pgt_q6."agg"
      )
    )
    AND (
      __pgt_q6."customer"
    ) IS NOT NULL
), "__pgt_part_5" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q23."id" AS "k1"
  FROM (
    SELECT
      __pgt_q24."id"
    FROM (
      SELECT
        __pgt_q25."id" AS "id"
      FROM "shop"."customers" AS __pgt_q25
    ) AS __pgt_q24
    WHERE
      (
        __pgt_q24."id"
      ) IN (
        SELECT
          __pgt_q26."k1"
        FROM "__pgt_part_4" AS __pgt_q26
      )
  ) AS __pgt_q23
  WHERE
    (
      __pgt_q23."id"
    ) IS NOT NULL
), "__pgt_part_6" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q38."amount") AS "agg"
  FROM "__pgt_old_orders" AS __pgt_q38
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id",
  __pgt_q1."id_2" AS "big"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."id",
    __pgt_q28."id_2",
    __pgt_q28."customer",
    __pgt_q28."amount",
    __pgt_q28."agg"
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
        FROM "__pgt_part_4" AS __pgt_q5
      )
  ) AS __pgt_q2
  LEFT JOIN (
    SELECT
      __pgt_q19."id_2",
      __pgt_q19."customer",
      __pgt_q19."amount",
      __pgt_q27."agg"
    FROM (
      SELECT
        __pgt_q20."id_2",
        __pgt_q20."customer",
        __pgt_q20."amount"
      FROM (
        SELECT
          __pgt_q21."id" AS "id_2",
          __pgt_q21."customer" AS "customer",
          __pgt_q21."amount" AS "amount"
        FROM "shop"."orders" AS __pgt_q21
      ) AS __pgt_q20
      WHERE
        (
          __pgt_q20."customer"
        ) IN (
          SELECT
            __pgt_q22."k1"
          FROM "__pgt_part_5" AS __pgt_q22
        )
    ) AS __pgt_q19
    CROSS JOIN "__pgt_part_2" AS __pgt_q27
    WHERE
      (
        __pgt_q19."amount" > (
          __pgt_q27."agg"
        )
      )
  ) AS __pgt_q28
    ON (
      __pgt_q28."customer" = __pgt_q2."id"
    )
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q29."id",
    __pgt_q40."id_2",
    __pgt_q40."customer",
    __pgt_q40."amount",
    __pgt_q40."agg"
  FROM (
    SELECT
      __pgt_q30."id"
    FROM (
      SELECT
        __pgt_q31."id" AS "id"
      FROM "shop"."customers" AS __pgt_q31
    ) AS __pgt_q30
    WHERE
      (
        __pgt_q30."id"
      ) IN (
        SELECT
          __pgt_q32."k1"
        FROM "__pgt_part_4" AS __pgt_q32
      )
  ) AS __pgt_q29
  LEFT JOIN (
    SELECT
      __pgt_q33."id_2",
      __pgt_q33."customer",
      __pgt_q33."amount",
      __pgt_q39."agg"
    FROM (
      SELECT
        __pgt_q37."id" AS "id_2",
        __pgt_q37."customer" AS "customer",
        __pgt_q37."amount" AS "amount"
      FROM (
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
          AND (
            t."customer"
          ) IN (
            SELECT
              __pgt_q36."k1"
            FROM "__pgt_part_5" AS __pgt_q36
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
              AND (
                t."customer"
              ) IN (
                SELECT
                  __pgt_q34."k1"
                FROM "__pgt_part_5" AS __pgt_q34
              )
            UNION ALL
            SELECT
              -"__pgt_w",
              "id",
              "customer",
              "amount"
            FROM "__pgt_window_orders" AS c
            WHERE
              (
                c."customer"
              ) IN (
                SELECT
                  __pgt_q35."k1"
                FROM "__pgt_part_5" AS __pgt_q35
              )
          ) AS s
          GROUP BY
            s."id",
            s."customer",
            s."amount"
          HAVING
            SUM(s."__pgt_w") > 0
        ) AS u
      ) AS __pgt_q37
    ) AS __pgt_q33
    CROSS JOIN "__pgt_part_6" AS __pgt_q39
    WHERE
      (
        __pgt_q33."amount" > (
          __pgt_q39."agg"
        )
      )
  ) AS __pgt_q40
    ON (
      __pgt_q40."customer" = __pgt_q29."id"
    )
) AS __pgt_q1
