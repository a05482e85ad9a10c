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
WITH "__pgt_window_orders" AS (
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
    __pgt_q13."__pgt_w",
    __pgt_q13."id" AS "id_2",
    __pgt_q13."customer" AS "customer",
    __pgt_q13."amount" AS "amount"
  FROM "__pgt_window_orders" AS __pgt_q13
), "__pgt_part_2" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q15."amount_2") AS "agg"
  FROM (
    SELECT
      __pgt_q16."id" AS "id_3",
      __pgt_q16."amount" AS "amount_2"
    FROM "shop"."orders" AS __pgt_q16
  ) AS __pgt_q15
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
    __pgt_q21."__pgt_w",
    __pgt_q21."agg"
  FROM (
    SELECT
      1 AS "__pgt_w",
      __pgt_q22."agg"
    FROM (
      SELECT
        AVG(__pgt_q23."amount_2") AS "agg"
      FROM (
        SELECT
          __pgt_q24."id" AS "id_3",
          __pgt_q24."amount" AS "amount_2"
        FROM "shop"."orders" AS __pgt_q24
      ) AS __pgt_q23
    ) AS __pgt_q22
  ) AS __pgt_q21
  UNION ALL
  SELECT
    __pgt_q25."__pgt_w",
    __pgt_q25."agg"
  FROM (
    SELECT
      -1 AS "__pgt_w",
      __pgt_q26."agg"
    FROM (
      SELECT
        AVG(__pgt_q27."amount_2") AS "agg"
      FROM (
        SELECT
          __pgt_q28."id" AS "id_3",
          __pgt_q28."amount" AS "amount_2"
        FROM "__pgt_old_orders" AS __pgt_q28
      ) AS __pgt_q27
    ) AS __pgt_q26
  ) AS __pgt_q25
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q9."customer" AS "k1"
  FROM (
    SELECT
      __pgt_q10."__pgt_w",
      __pgt_q10."id_2",
      __pgt_q10."customer",
      __pgt_q10."amount",
      __pgt_q10."agg"
    FROM (
      SELECT
        __pgt_q11."__pgt_w",
        __pgt_q11."id_2",
        __pgt_q11."customer",
        __pgt_q11."amount",
        __pgt_q11."agg"
      FROM (
        SELECT
          __pgt_q12."__pgt_w" AS "__pgt_w",
          __pgt_q12."id_2",
          __pgt_q12."customer",
          __pgt_q12."amount",
          __pgt_q14."agg"
        FROM "__pgt_delta_1" AS __pgt_q12
        CROSS JOIN "__pgt_part_2" AS __pgt_q14
      ) AS __pgt_q11
      UNION ALL
      SELECT
        __pgt_q17."__pgt_w",
        __pgt_q17."id_2",
        __pgt_q17."customer",
        __pgt_q17."amount",
        __pgt_q17."agg"
      FROM (
        SELECT
          __pgt_q20."__pgt_w" AS "__pgt_w",
          __pgt_q18."id_2",
          __pgt_q18."customer",
          __pgt_q18."amount",
          __pgt_q20."agg"
        FROM (
          SELECT
            __pgt_q19."id" AS "id_2",
            __pgt_q19."customer" AS "customer",
            __pgt_q19."amount" AS "amount"
          FROM "shop"."orders" AS __pgt_q19
        ) AS __pgt_q18
        CROSS JOIN "__pgt_delta_3" AS __pgt_q20
      ) AS __pgt_q17
      UNION ALL
      SELECT
        __pgt_q29."__pgt_w",
        __pgt_q29."id_2",
        __pgt_q29."customer",
        __pgt_q29."amount",
        __pgt_q29."agg"
      FROM (
        SELECT
          -__pgt_q30."__pgt_w" AS "__pgt_w",
          __pgt_q30."id_2",
          __pgt_q30."customer",
          __pgt_q30."amount",
          __pgt_q30."agg"
        FROM (
          SELECT
            __pgt_q31."__pgt_w" * __pgt_q32."__pgt_w" AS "__pgt_w",
            __pgt_q31."id_2",
            __pgt_q31."customer",
            __pgt_q31."amount",
            __pgt_q32."agg"
          FROM "__pgt_delta_1" AS __pgt_q31
          CROSS JOIN "__pgt_delta_3" AS __pgt_q32
        ) AS __pgt_q30
      ) AS __pgt_q29
    ) AS __pgt_q10
    WHERE
      __pgt_q10."amount" > (
        __pgt_q10."agg"
      )
  ) AS __pgt_q9
  WHERE
    (
      __pgt_q9."customer"
    ) IS NOT NULL
), "__pgt_part_5" AS MATERIALIZED (
  SELECT
    AVG(__pgt_q54."amount_2") AS "agg"
  FROM (
    SELECT
      __pgt_q55."id" AS "id_3",
      __pgt_q55."amount" AS "amount_2"
    FROM "__pgt_old_orders" AS __pgt_q55
  ) AS __pgt_q54
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_4" AS "id",
  __pgt_q1."big" AS "big"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id" AS "id_4",
    __pgt_q2."id_2" AS "big"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id",
      __pgt_q3."id_2",
      __pgt_q3."customer",
      __pgt_q3."amount",
      __pgt_q3."agg"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q4."id",
        __pgt_q4."id_2",
        __pgt_q4."customer",
        __pgt_q4."amount",
        __pgt_q4."agg"
      FROM (
        SELECT
          __pgt_q5."id",
          __pgt_q33."id_2",
          __pgt_q33."customer",
          __pgt_q33."amount",
          __pgt_q33."agg"
        FROM (
          SELECT
            __pgt_q6."id"
          FROM (
            SELECT
              __pgt_q7."id" AS "id"
            FROM "shop"."customers" AS __pgt_q7
          ) AS __pgt_q6
          WHERE
            (
              __pgt_q6."id"
            ) IN (
              SELECT
                __pgt_q8."k1"
              FROM "__pgt_part_4" AS __pgt_q8
            )
        ) AS __pgt_q5
        LEFT JOIN (
          SELECT
            __pgt_q34."id_2",
            __pgt_q34."customer",
            __pgt_q34."amount",
            __pgt_q34."agg"
          FROM (
            SELECT
              __pgt_q35."id_2",
              __pgt_q35."customer",
              __pgt_q35."amount",
              __pgt_q39."agg"
            FROM (
              SELECT
                __pgt_q36."id_2",
                __pgt_q36."customer",
                __pgt_q36."amount"
              FROM (
                SELECT
                  __pgt_q37."id" AS "id_2",
                  __pgt_q37."customer" AS "customer",
                  __pgt_q37."amount" AS "amount"
                FROM "shop"."orders" AS __pgt_q37
              ) AS __pgt_q36
              WHERE
                (
                  __pgt_q36."customer"
                ) IN (
                  SELECT
                    __pgt_q38."k1"
                  FROM "__pgt_part_4" AS __pgt_q38
                )
            ) AS __pgt_q35
            CROSS JOIN "__pgt_part_2" AS __pgt_q39
          ) AS __pgt_q34
          WHERE
            __pgt_q34."amount" > (
              __pgt_q34."agg"
            )
        ) AS __pgt_q33
          ON (
            __pgt_q33."customer" = __pgt_q5."id"
          )
      ) AS __pgt_q4
    ) AS __pgt_q3
    UNION ALL
    SELECT
      __pgt_q40."__pgt_w",
      __pgt_q40."id",
      __pgt_q40."id_2",
      __pgt_q40."customer",
      __pgt_q40."amount",
      __pgt_q40."agg"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q41."id",
        __pgt_q41."id_2",
        __pgt_q41."customer",
        __pgt_q41."amount",
        __pgt_q41."agg"
      FROM (
        SELECT
          __pgt_q42."id",
          __pgt_q46."id_2",
          __pgt_q46."customer",
          __pgt_q46."amount",
          __pgt_q46."agg"
        FROM (
          SELECT
            __pgt_q43."id"
          FROM (
            SELECT
              __pgt_q44."id" AS "id"
            FROM "shop"."customers" AS __pgt_q44
          ) AS __pgt_q43
          WHERE
            (
              __pgt_q43."id"
            ) IN (
              SELECT
                __pgt_q45."k1"
              FROM "__pgt_part_4" AS __pgt_q45
            )
        ) AS __pgt_q42
        LEFT JOIN (
          SELECT
            __pgt_q47."id_2",
            __pgt_q47."customer",
            __pgt_q47."amount",
            __pgt_q47."agg"
          FROM (
            SELECT
              __pgt_q48."id_2",
              __pgt_q48."customer",
              __pgt_q48."amount",
              __pgt_q53."agg"
            FROM (
              SELECT
                __pgt_q52."id" AS "id_2",
                __pgt_q52."customer" AS "customer",
                __pgt_q52."amount" AS "amount"
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
                      __pgt_q51."k1"
                    FROM "__pgt_part_4" AS __pgt_q51
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
                          __pgt_q49."k1"
                        FROM "__pgt_part_4" AS __pgt_q49
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
                          __pgt_q50."k1"
                        FROM "__pgt_part_4" AS __pgt_q50
                      )
                  ) AS s
                  GROUP BY
                    s."id",
                    s."customer",
                    s."amount"
                  HAVING
                    SUM(s."__pgt_w") > 0
                ) AS u
              ) AS __pgt_q52
            ) AS __pgt_q48
            CROSS JOIN "__pgt_part_5" AS __pgt_q53
          ) AS __pgt_q47
          WHERE
            __pgt_q47."amount" > (
              __pgt_q47."agg"
            )
        ) AS __pgt_q46
          ON (
            __pgt_q46."customer" = __pgt_q42."id"
          )
      ) AS __pgt_q41
    ) AS __pgt_q40
  ) AS __pgt_q2
) AS __pgt_q1
