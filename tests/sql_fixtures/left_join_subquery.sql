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
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q8."amount") AS "agg"
  FROM "shop"."orders" AS __pgt_q8
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
), "__pgt_delta_2" AS MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    __pgt_q11."agg"
  FROM (
    SELECT
      AVG(__pgt_q12."amount") AS "agg"
    FROM "shop"."orders" AS __pgt_q12
  ) AS __pgt_q11
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q13."agg"
  FROM (
    SELECT
      AVG(__pgt_q14."amount") AS "agg"
    FROM "__pgt_old_orders" AS __pgt_q14
  ) AS __pgt_q13
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q6."customer" AS "k1"
  FROM (
    SELECT
      __pgt_q7."__pgt_w",
      __pgt_q7."id" AS "id_2",
      __pgt_q7."customer",
      __pgt_q7."amount",
      __pgt_q9."agg"
    FROM "__pgt_window_orders" AS __pgt_q7
    CROSS JOIN "__pgt_part_1" AS __pgt_q9
    UNION ALL
    SELECT
      __pgt_q15."__pgt_w",
      __pgt_q10."id" AS "id_2",
      __pgt_q10."customer",
      __pgt_q10."amount",
      __pgt_q15."agg"
    FROM "shop"."orders" AS __pgt_q10
    CROSS JOIN "__pgt_delta_2" AS __pgt_q15
    UNION ALL
    SELECT
      -__pgt_q16."__pgt_w" * __pgt_q17."__pgt_w" AS "__pgt_w",
      __pgt_q16."id" AS "id_2",
      __pgt_q16."customer",
      __pgt_q16."amount",
      __pgt_q17."agg"
    FROM "__pgt_window_orders" AS __pgt_q16
    CROSS JOIN "__pgt_delta_2" AS __pgt_q17
  ) AS __pgt_q6
  WHERE
    (
      __pgt_q6."amount" > (
        __pgt_q6."agg"
      )
    )
    AND (
      __pgt_q6."customer"
    ) IS DISTINCT FROM NULL
), "__pgt_part_4" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q22."id" AS "k1"
  FROM (
    SELECT
      __pgt_q23."id"
    FROM (
      SELECT
        __pgt_q24."id" AS "id"
      FROM "shop"."customers" AS __pgt_q24
    ) AS __pgt_q23
    WHERE
      (
        __pgt_q23."id"
      ) IN (
        SELECT
          __pgt_q25."k1"
        FROM "__pgt_part_3" AS __pgt_q25
      )
  ) AS __pgt_q22
  WHERE
    (
      __pgt_q22."id"
    ) IS DISTINCT FROM NULL
), "__pgt_part_5" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q37."amount") AS "agg"
  FROM "__pgt_old_orders" AS __pgt_q37
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id",
  __pgt_q1."id_2" AS "big"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."id",
    __pgt_q27."id_2",
    __pgt_q27."customer",
    __pgt_q27."amount",
    __pgt_q27."agg"
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
        FROM "__pgt_part_3" AS __pgt_q5
      )
  ) AS __pgt_q2
  LEFT JOIN (
    SELECT
      __pgt_q18."id_2",
      __pgt_q18."customer",
      __pgt_q18."amount",
      __pgt_q26."agg"
    FROM (
      SELECT
        __pgt_q19."id_2",
        __pgt_q19."customer",
        __pgt_q19."amount"
      FROM (
        SELECT
          __pgt_q20."id" AS "id_2",
          __pgt_q20."customer" AS "customer",
          __pgt_q20."amount" AS "amount"
        FROM "shop"."orders" AS __pgt_q20
      ) AS __pgt_q19
      WHERE
        (
          __pgt_q19."customer"
        ) IN (
          SELECT
            __pgt_q21."k1"
          FROM "__pgt_part_4" AS __pgt_q21
        )
    ) AS __pgt_q18
    CROSS JOIN "__pgt_part_1" AS __pgt_q26
    WHERE
      (
        __pgt_q18."amount" > (
          __pgt_q26."agg"
        )
      )
  ) AS __pgt_q27
    ON (
      __pgt_q27."customer" = __pgt_q2."id"
    )
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    __pgt_q28."id",
    __pgt_q39."id_2",
    __pgt_q39."customer",
    __pgt_q39."amount",
    __pgt_q39."agg"
  FROM (
    SELECT
      __pgt_q29."id"
    FROM (
      SELECT
        __pgt_q30."id" AS "id"
      FROM "shop"."customers" AS __pgt_q30
    ) AS __pgt_q29
    WHERE
      (
        __pgt_q29."id"
      ) IN (
        SELECT
          __pgt_q31."k1"
        FROM "__pgt_part_3" AS __pgt_q31
      )
  ) AS __pgt_q28
  LEFT JOIN (
    SELECT
      __pgt_q32."id_2",
      __pgt_q32."customer",
      __pgt_q32."amount",
      __pgt_q38."agg"
    FROM (
      SELECT
        __pgt_q36."id" AS "id_2",
        __pgt_q36."customer" AS "customer",
        __pgt_q36."amount" AS "amount"
      FROM (
        SELECT
          "id",
          "customer",
          "amount"
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
              __pgt_q35."k1"
            FROM "__pgt_part_4" AS __pgt_q35
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
                  __pgt_q33."k1"
                FROM "__pgt_part_4" AS __pgt_q33
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
                  __pgt_q34."k1"
                FROM "__pgt_part_4" AS __pgt_q34
              )
          ) AS s
          GROUP BY
            s."id",
            s."customer",
            s."amount"
          HAVING
            SUM(s."__pgt_w") > 0
        ) AS u
      ) AS __pgt_q36
    ) AS __pgt_q32
    CROSS JOIN "__pgt_part_5" AS __pgt_q38
    WHERE
      (
        __pgt_q32."amount" > (
          __pgt_q38."agg"
        )
      )
  ) AS __pgt_q39
    ON (
      __pgt_q39."customer" = __pgt_q28."id"
    )
) AS __pgt_q1
