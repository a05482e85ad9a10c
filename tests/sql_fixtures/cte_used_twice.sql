-- tables
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), placed date);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers VALUES (1, 'Ada', 'AT'), (2, 'Bo', 'DE'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 10.00, '2024-01-01'), (2, 1, 20.00, '2024-01-02'), (3, 2, 5.00, NULL), (4, NULL, 7.50, '2024-02-01');

-- query
WITH t AS (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) SELECT a.customer, a.total FROM t a WHERE a.total = (SELECT max(total) FROM t);

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
    AND xid < PG_SNAPSHOT_XMAX(CAST('102:102:' AS pg_snapshot))
    AND PG_VISIBLE_IN_SNAPSHOT(xid, CAST('102:102:' AS pg_snapshot))
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
    AND xid < PG_SNAPSHOT_XMAX(CAST('102:102:' AS pg_snapshot))
    AND PG_VISIBLE_IN_SNAPSHOT(xid, CAST('102:102:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_keys_1" AS (
  SELECT DISTINCT
    __pgt_q14."customer" AS "customer"
  FROM (
    SELECT
      __pgt_q15."__pgt_w",
      __pgt_q15."id" AS "id",
      __pgt_q15."customer" AS "customer",
      __pgt_q15."amount" AS "amount"
    FROM "__pgt_window_orders" AS __pgt_q15
  ) AS __pgt_q14
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
), "__pgt_keys_2" AS (
  SELECT DISTINCT
    __pgt_q47."customer_4" AS "customer_4"
  FROM (
    SELECT
      __pgt_q48."__pgt_w",
      __pgt_q48."id" AS "id_2",
      __pgt_q48."customer" AS "customer_4",
      __pgt_q48."amount" AS "amount_2"
    FROM "__pgt_window_orders" AS __pgt_q48
  ) AS __pgt_q47
), "__pgt_keys_3" AS (
  SELECT DISTINCT
    TRUE AS "k0"
  FROM (
    SELECT
      __pgt_q39."__pgt_w",
      __pgt_q39."customer_4" AS "customer_5"
    FROM (
      SELECT
        __pgt_q40."__pgt_w",
        __pgt_q40."customer_4",
        __pgt_q40."agg_2"
      FROM (
        SELECT
          1 AS "__pgt_w",
          __pgt_q41."customer_4",
          __pgt_q41."agg_2"
        FROM (
          SELECT
            __pgt_q42."customer_4",
            __pgt_q42."agg_2"
          FROM (
            SELECT
              __pgt_q43."customer_4",
              SUM(__pgt_q43."amount_2") AS "agg_2"
            FROM (
              SELECT
                __pgt_q44."id_2",
                __pgt_q44."customer_4",
                __pgt_q44."amount_2"
              FROM (
                SELECT
                  __pgt_q45."id" AS "id_2",
                  __pgt_q45."customer" AS "customer_4",
                  __pgt_q45."amount" AS "amount_2"
                FROM "shop"."orders" AS __pgt_q45
              ) AS __pgt_q44
              WHERE
                (
                  __pgt_q44."customer_4"
                ) IN (
                  SELECT
                    __pgt_q46."customer_4"
                  FROM "__pgt_keys_2" AS __pgt_q46
                )
              UNION ALL
              SELECT
                __pgt_q44."id_2",
                __pgt_q44."customer_4",
                __pgt_q44."amount_2"
              FROM (
                SELECT
                  __pgt_q45."id" AS "id_2",
                  __pgt_q45."customer" AS "customer_4",
                  __pgt_q45."amount" AS "amount_2"
                FROM "shop"."orders" AS __pgt_q45
              ) AS __pgt_q44
              WHERE
                __pgt_q44."customer_4" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_keys_2" AS __pgt_q49
                  WHERE
                    __pgt_q49."customer_4" IS NULL
                )
            ) AS __pgt_q43
            GROUP BY
              __pgt_q43."customer_4"
          ) AS __pgt_q42
          WHERE
            (
              __pgt_q42."customer_4"
            ) IN (
              SELECT
                __pgt_q50."customer_4"
              FROM "__pgt_keys_2" AS __pgt_q50
            )
            OR (
              __pgt_q42."customer_4" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_keys_2" AS __pgt_q51
                WHERE
                  __pgt_q51."customer_4" IS NULL
              )
            )
        ) AS __pgt_q41
      ) AS __pgt_q40
      UNION ALL
      SELECT
        __pgt_q52."__pgt_w",
        __pgt_q52."customer_4",
        __pgt_q52."agg_2"
      FROM (
        SELECT
          -1 AS "__pgt_w",
          __pgt_q53."customer_4",
          __pgt_q53."agg_2"
        FROM (
          SELECT
            __pgt_q54."customer_4",
            __pgt_q54."agg_2"
          FROM (
            SELECT
              __pgt_q55."customer_4",
              SUM(__pgt_q55."amount_2") AS "agg_2"
            FROM (
              SELECT
                __pgt_q56."id_2",
                __pgt_q56."customer_4",
                __pgt_q56."amount_2"
              FROM (
                SELECT
                  __pgt_q57."id" AS "id_2",
                  __pgt_q57."customer" AS "customer_4",
                  __pgt_q57."amount" AS "amount_2"
                FROM "__pgt_old_orders" AS __pgt_q57
              ) AS __pgt_q56
              WHERE
                (
                  __pgt_q56."customer_4"
                ) IN (
                  SELECT
                    __pgt_q58."customer_4"
                  FROM "__pgt_keys_2" AS __pgt_q58
                )
              UNION ALL
              SELECT
                __pgt_q56."id_2",
                __pgt_q56."customer_4",
                __pgt_q56."amount_2"
              FROM (
                SELECT
                  __pgt_q57."id" AS "id_2",
                  __pgt_q57."customer" AS "customer_4",
                  __pgt_q57."amount" AS "amount_2"
                FROM "__pgt_old_orders" AS __pgt_q57
              ) AS __pgt_q56
              WHERE
                __pgt_q56."customer_4" IS NULL
                AND EXISTS(
                  SELECT
                    1
                  FROM "__pgt_keys_2" AS __pgt_q59
                  WHERE
                    __pgt_q59."customer_4" IS NULL
                )
            ) AS __pgt_q55
            GROUP BY
              __pgt_q55."customer_4"
          ) AS __pgt_q54
          WHERE
            (
              __pgt_q54."customer_4"
            ) IN (
              SELECT
                __pgt_q60."customer_4"
              FROM "__pgt_keys_2" AS __pgt_q60
            )
            OR (
              __pgt_q54."customer_4" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_keys_2" AS __pgt_q61
                WHERE
                  __pgt_q61."customer_4" IS NULL
              )
            )
        ) AS __pgt_q53
      ) AS __pgt_q52
    ) AS __pgt_q39
  ) AS __pgt_q38
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."customer_6" AS "customer",
  __pgt_q1."total_4" AS "total"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."customer_3" AS "customer_6",
    __pgt_q2."total_2" AS "total_4"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."customer_3",
      __pgt_q3."total_2"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."customer_3",
        __pgt_q4."total_2"
      FROM (
        SELECT
          __pgt_q5."__pgt_w",
          __pgt_q5."customer_2" AS "customer_3",
          __pgt_q5."total" AS "total_2"
        FROM (
          SELECT
            __pgt_q6."__pgt_w",
            __pgt_q6."customer" AS "customer_2",
            __pgt_q6."agg" AS "total"
          FROM (
            SELECT
              __pgt_q7."__pgt_w",
              __pgt_q7."customer",
              __pgt_q7."agg"
            FROM (
              SELECT
                1 AS "__pgt_w",
                __pgt_q8."customer",
                __pgt_q8."agg"
              FROM (
                SELECT
                  __pgt_q9."customer",
                  __pgt_q9."agg"
                FROM (
                  SELECT
                    __pgt_q10."customer",
                    SUM(__pgt_q10."amount") AS "agg"
                  FROM (
                    SELECT
                      __pgt_q11."id",
                      __pgt_q11."customer",
                      __pgt_q11."amount"
                    FROM (
                      SELECT
                        __pgt_q12."id" AS "id",
                        __pgt_q12."customer" AS "customer",
                        __pgt_q12."amount" AS "amount"
                      FROM "shop"."orders" AS __pgt_q12
                    ) AS __pgt_q11
                    WHERE
                      (
                        __pgt_q11."customer"
                      ) IN (
                        SELECT
                          __pgt_q13."customer"
                        FROM "__pgt_keys_1" AS __pgt_q13
                      )
                    UNION ALL
                    SELECT
                      __pgt_q11."id",
                      __pgt_q11."customer",
                      __pgt_q11."amount"
                    FROM (
                      SELECT
                        __pgt_q12."id" AS "id",
                        __pgt_q12."customer" AS "customer",
                        __pgt_q12."amount" AS "amount"
                      FROM "shop"."orders" AS __pgt_q12
                    ) AS __pgt_q11
                    WHERE
                      __pgt_q11."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_keys_1" AS __pgt_q16
                        WHERE
                          __pgt_q16."customer" IS NULL
                      )
                  ) AS __pgt_q10
                  GROUP BY
                    __pgt_q10."customer"
                ) AS __pgt_q9
                WHERE
                  (
                    __pgt_q9."customer"
                  ) IN (
                    SELECT
                      __pgt_q17."customer"
                    FROM "__pgt_keys_1" AS __pgt_q17
                  )
                  OR (
                    __pgt_q9."customer" IS NULL
                    AND EXISTS(
                      SELECT
                        1
                      FROM "__pgt_keys_1" AS __pgt_q18
                      WHERE
                        __pgt_q18."customer" IS NULL
                    )
                  )
              ) AS __pgt_q8
            ) AS __pgt_q7
            UNION ALL
            SELECT
              __pgt_q19."__pgt_w",
              __pgt_q19."customer",
              __pgt_q19."agg"
            FROM (
              SELECT
                -1 AS "__pgt_w",
                __pgt_q20."customer",
                __pgt_q20."agg"
              FROM (
                SELECT
                  __pgt_q21."customer",
                  __pgt_q21."agg"
                FROM (
                  SELECT
                    __pgt_q22."customer",
                    SUM(__pgt_q22."amount") AS "agg"
                  FROM (
                    SELECT
                      __pgt_q23."id",
                      __pgt_q23."customer",
                      __pgt_q23."amount"
                    FROM (
                      SELECT
                        __pgt_q24."id" AS "id",
                        __pgt_q24."customer" AS "customer",
                        __pgt_q24."amount" AS "amount"
                      FROM "__pgt_old_orders" AS __pgt_q24
                    ) AS __pgt_q23
                    WHERE
                      (
                        __pgt_q23."customer"
                      ) IN (
                        SELECT
                          __pgt_q25."customer"
                        FROM "__pgt_keys_1" AS __pgt_q25
                      )
                    UNION ALL
                    SELECT
                      __pgt_q23."id",
                      __pgt_q23."customer",
                      __pgt_q23."amount"
                    FROM (
                      SELECT
                        __pgt_q24."id" AS "id",
                        __pgt_q24."customer" AS "customer",
                        __pgt_q24."amount" AS "amount"
                      FROM "__pgt_old_orders" AS __pgt_q24
                    ) AS __pgt_q23
                    WHERE
                      __pgt_q23."customer" IS NULL
                      AND EXISTS(
                        SELECT
                          1
                        FROM "__pgt_keys_1" AS __pgt_q26
                        WHERE
                          __pgt_q26."customer" IS NULL
                      )
                  ) AS __pgt_q22
                  GROUP BY
                    __pgt_q22."customer"
                ) AS __pgt_q21
                WHERE
                  (
                    __pgt_q21."customer"
                  ) IN (
                    SELECT
                      __pgt_q27."customer"
                    FROM "__pgt_keys_1" AS __pgt_q27
                  )
                  OR (
                    __pgt_q21."customer" IS NULL
                    AND EXISTS(
                      SELECT
                        1
                      FROM "__pgt_keys_1" AS __pgt_q28
                      WHERE
                        __pgt_q28."customer" IS NULL
                    )
                  )
              ) AS __pgt_q20
            ) AS __pgt_q19
          ) AS __pgt_q6
        ) AS __pgt_q5
      ) AS __pgt_q4
      WHERE
        __pgt_q4."total_2" = (
          SELECT
            MAX(t.total) AS max
          FROM (
            SELECT
              orders.customer,
              SUM(orders.amount) AS total
            FROM shop.orders
            GROUP BY
              orders.customer
          ) AS "t"
        )
    ) AS __pgt_q3
    UNION ALL
    SELECT
      __pgt_q29."__pgt_w",
      __pgt_q29."customer_3",
      __pgt_q29."total_2"
    FROM (
      SELECT
        1 AS "__pgt_w",
        __pgt_q30."customer_3",
        __pgt_q30."total_2"
      FROM (
        SELECT
          __pgt_q31."customer_3",
          __pgt_q31."total_2"
        FROM (
          SELECT
            __pgt_q32."customer_3",
            __pgt_q32."total_2"
          FROM (
            SELECT
              __pgt_q33."customer_2" AS "customer_3",
              __pgt_q33."total" AS "total_2"
            FROM (
              SELECT
                __pgt_q34."customer" AS "customer_2",
                __pgt_q34."agg" AS "total"
              FROM (
                SELECT
                  __pgt_q35."customer",
                  SUM(__pgt_q35."amount") AS "agg"
                FROM (
                  SELECT
                    __pgt_q36."id" AS "id",
                    __pgt_q36."customer" AS "customer",
                    __pgt_q36."amount" AS "amount"
                  FROM "__pgt_old_orders" AS __pgt_q36
                ) AS __pgt_q35
                GROUP BY
                  __pgt_q35."customer"
              ) AS __pgt_q34
            ) AS __pgt_q33
          ) AS __pgt_q32
          WHERE
            EXISTS(
              SELECT
                1
              FROM "__pgt_keys_3" AS __pgt_q37
            )
        ) AS __pgt_q31
        WHERE
          __pgt_q31."total_2" = (
            SELECT
              MAX(t.total) AS max
            FROM (
              SELECT
                orders.customer,
                SUM(orders.amount) AS total
              FROM shop.orders
              GROUP BY
                orders.customer
            ) AS "t"
          )
      ) AS __pgt_q30
    ) AS __pgt_q29
    UNION ALL
    SELECT
      __pgt_q62."__pgt_w",
      __pgt_q62."customer_3",
      __pgt_q62."total_2"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q63."customer_3",
        __pgt_q63."total_2"
      FROM (
        SELECT
          __pgt_q64."customer_3",
          __pgt_q64."total_2"
        FROM (
          SELECT
            __pgt_q65."customer_3",
            __pgt_q65."total_2"
          FROM (
            SELECT
              __pgt_q66."customer_2" AS "customer_3",
              __pgt_q66."total" AS "total_2"
            FROM (
              SELECT
                __pgt_q67."customer" AS "customer_2",
                __pgt_q67."agg" AS "total"
              FROM (
                SELECT
                  __pgt_q68."customer",
                  SUM(__pgt_q68."amount") AS "agg"
                FROM (
                  SELECT
                    __pgt_q69."id" AS "id",
                    __pgt_q69."customer" AS "customer",
                    __pgt_q69."amount" AS "amount"
                  FROM "__pgt_old_orders" AS __pgt_q69
                ) AS __pgt_q68
                GROUP BY
                  __pgt_q68."customer"
              ) AS __pgt_q67
            ) AS __pgt_q66
          ) AS __pgt_q65
          WHERE
            EXISTS(
              SELECT
                1
              FROM "__pgt_keys_3" AS __pgt_q70
            )
        ) AS __pgt_q64
        WHERE
          __pgt_q64."total_2" = (
            SELECT
              MAX(t.total) AS max
            FROM (
              SELECT
                orders.customer,
                SUM(orders.amount) AS total
              FROM "__pgt_old_orders" AS "orders"
              GROUP BY
                orders.customer
            ) AS "t"
          )
      ) AS __pgt_q63
    ) AS __pgt_q62
  ) AS __pgt_q2
) AS __pgt_q1
