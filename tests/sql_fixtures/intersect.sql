-- tables
CREATE TABLE clicks (page text, visitor int);
CREATE TABLE blocked (page text, visitor int);
INSERT INTO clicks VALUES ('a', 1), ('a', 1), ('b', 2), (NULL, 3);
INSERT INTO blocked VALUES ('a', 1), (NULL, 3);

-- query
SELECT page, visitor FROM clicks INTERSECT SELECT page, visitor FROM blocked;

-- cycle
INSERT INTO clicks VALUES ('b', 2), ('c', 1);
DELETE FROM blocked WHERE page = 'a';

-- cycle
DELETE FROM clicks WHERE page = 'a';
INSERT INTO blocked VALUES ('b', 2), (NULL, 3);

-- cycle
INSERT INTO clicks VALUES (NULL, 3), (NULL, 3);

-- delta
WITH "__pgt_window_clicks" AS (
  SELECT
    1 AS "__pgt_w",
    "new_page" AS "page",
    "new_visitor" AS "visitor"
  FROM "shop"."changes_clicks"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_page" AS "page",
    "old_visitor" AS "visitor"
  FROM "shop"."changes_clicks"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_window_blocked" AS (
  SELECT
    1 AS "__pgt_w",
    "new_page" AS "page",
    "new_visitor" AS "visitor"
  FROM "shop"."changes_blocked"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_page" AS "page",
    "old_visitor" AS "visitor"
  FROM "shop"."changes_blocked"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q10."page_2" AS "page_2",
    __pgt_q10."visitor_2" AS "visitor_2"
  FROM (
    SELECT
      __pgt_q11."__pgt_w",
      __pgt_q11."page_2",
      __pgt_q11."visitor_2"
    FROM (
      SELECT
        __pgt_q12."__pgt_w",
        __pgt_q12."page" AS "page_2",
        __pgt_q12."visitor" AS "visitor_2"
      FROM (
        SELECT
          __pgt_q13."__pgt_w",
          __pgt_q13."page" AS "page",
          __pgt_q13."visitor" AS "visitor"
        FROM "__pgt_window_clicks" AS __pgt_q13
      ) AS __pgt_q12
    ) AS __pgt_q11
    UNION ALL
    SELECT
      __pgt_q14."__pgt_w",
      __pgt_q14."page_4" AS "page_2",
      __pgt_q14."visitor_4" AS "visitor_2"
    FROM (
      SELECT
        __pgt_q15."__pgt_w",
        __pgt_q15."page_3" AS "page_4",
        __pgt_q15."visitor_3" AS "visitor_4"
      FROM (
        SELECT
          __pgt_q16."__pgt_w",
          __pgt_q16."page" AS "page_3",
          __pgt_q16."visitor" AS "visitor_3"
        FROM "__pgt_window_blocked" AS __pgt_q16
      ) AS __pgt_q15
    ) AS __pgt_q14
  ) AS __pgt_q10
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."page",
  __pgt_q1."visitor"
FROM (
  SELECT
    1 AS "__pgt_w",
    __pgt_q2."page",
    __pgt_q2."visitor"
  FROM (
    SELECT
      __pgt_q24."page",
      __pgt_q24."visitor"
    FROM (
      SELECT
        __pgt_q25."page_2" AS "page",
        __pgt_q25."visitor_2" AS "visitor"
      FROM (
        SELECT
          __pgt_q26."page_2",
          __pgt_q26."visitor_2"
        FROM (
          SELECT
            __pgt_q27."page" AS "page_2",
            __pgt_q27."visitor" AS "visitor_2"
          FROM (
            SELECT
              __pgt_q28."page",
              __pgt_q28."visitor"
            FROM (
              SELECT
                __pgt_q29."page" AS "page",
                __pgt_q29."visitor" AS "visitor"
              FROM "shop"."clicks" AS __pgt_q29
            ) AS __pgt_q28
            WHERE
              (
                __pgt_q28."page"
              ) IN (
                SELECT
                  __pgt_q30."page_2"
                FROM "__pgt_part_1" AS __pgt_q30
              )
            UNION ALL
            SELECT
              __pgt_q28."page",
              __pgt_q28."visitor"
            FROM (
              SELECT
                __pgt_q29."page" AS "page",
                __pgt_q29."visitor" AS "visitor"
              FROM "shop"."clicks" AS __pgt_q29
            ) AS __pgt_q28
            WHERE
              __pgt_q28."page" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_1" AS __pgt_q31
                WHERE
                  __pgt_q31."page_2" IS NULL
              )
          ) AS __pgt_q27
        ) AS __pgt_q26
        INTERSECT
        SELECT
          __pgt_q32."page_4",
          __pgt_q32."visitor_4"
        FROM (
          SELECT
            __pgt_q33."page_3" AS "page_4",
            __pgt_q33."visitor_3" AS "visitor_4"
          FROM (
            SELECT
              __pgt_q34."page_3",
              __pgt_q34."visitor_3"
            FROM (
              SELECT
                __pgt_q35."page" AS "page_3",
                __pgt_q35."visitor" AS "visitor_3"
              FROM "shop"."blocked" AS __pgt_q35
            ) AS __pgt_q34
            WHERE
              (
                __pgt_q34."page_3"
              ) IN (
                SELECT
                  __pgt_q36."page_2"
                FROM "__pgt_part_1" AS __pgt_q36
              )
            UNION ALL
            SELECT
              __pgt_q34."page_3",
              __pgt_q34."visitor_3"
            FROM (
              SELECT
                __pgt_q35."page" AS "page_3",
                __pgt_q35."visitor" AS "visitor_3"
              FROM "shop"."blocked" AS __pgt_q35
            ) AS __pgt_q34
            WHERE
              __pgt_q34."page_3" IS NULL
              AND EXISTS(
                SELECT
                  1
                FROM "__pgt_part_1" AS __pgt_q37
                WHERE
                  __pgt_q37."page_2" IS NULL
              )
          ) AS __pgt_q33
        ) AS __pgt_q32
      ) AS __pgt_q25
    ) AS __pgt_q24
    CROSS JOIN LATERAL (
      SELECT
        ROW(__pgt_q24."page", __pgt_q24."visitor") AS r
    ) AS __pgt_q39
    WHERE
      __pgt_q39.r IN (
        SELECT
          ROW(__pgt_q38."page_2", __pgt_q38."visitor_2")
        FROM "__pgt_part_1" AS __pgt_q38
      )
  ) AS __pgt_q2
) AS __pgt_q1
UNION ALL
SELECT
  __pgt_q40."__pgt_w",
  __pgt_q40."page",
  __pgt_q40."visitor"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q41."page",
    __pgt_q41."visitor"
  FROM (
    SELECT
      __pgt_q47."page",
      __pgt_q47."visitor"
    FROM (
      SELECT
        __pgt_q48."page",
        __pgt_q48."visitor"
      FROM (
        SELECT
          __pgt_q49."page",
          __pgt_q49."visitor"
        FROM "shop"."st_0" AS __pgt_q49
      ) AS __pgt_q48
      WHERE
        (
          __pgt_q48."page"
        ) IN (
          SELECT
            __pgt_q50."page_2"
          FROM "__pgt_part_1" AS __pgt_q50
        )
      UNION ALL
      SELECT
        __pgt_q48."page",
        __pgt_q48."visitor"
      FROM (
        SELECT
          __pgt_q49."page",
          __pgt_q49."visitor"
        FROM "shop"."st_0" AS __pgt_q49
      ) AS __pgt_q48
      WHERE
        __pgt_q48."page" IS NULL
        AND EXISTS(
          SELECT
            1
          FROM "__pgt_part_1" AS __pgt_q51
          WHERE
            __pgt_q51."page_2" IS NULL
        )
    ) AS __pgt_q47
    CROSS JOIN LATERAL (
      SELECT
        ROW(__pgt_q47."page", __pgt_q47."visitor") AS r
    ) AS __pgt_q53
    WHERE
      __pgt_q53.r IN (
        SELECT
          ROW(__pgt_q52."page_2", __pgt_q52."visitor_2")
        FROM "__pgt_part_1" AS __pgt_q52
      )
  ) AS __pgt_q41
) AS __pgt_q40
