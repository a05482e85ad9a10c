-- tables
CREATE TABLE clicks (page text, visitor int);
CREATE TABLE blocked (page text, visitor int);
INSERT INTO clicks VALUES ('a', 1), ('a', 1), ('b', 2), (NULL, 3);
INSERT INTO blocked VALUES ('a', 1), (NULL, 3);

-- query
SELECT page, visitor FROM clicks EXCEPT SELECT page, visitor FROM blocked;

-- cycle
INSERT INTO clicks VALUES ('b', 2), ('c', 1);
DELETE FROM blocked WHERE page = 'a';

-- cycle
DELETE FROM clicks WHERE page = 'a';
INSERT INTO blocked VALUES ('b', 2), (NULL, 3);

-- cycle
INSERT INTO clicks VALUES (NULL, 3), (NULL, 3);

-- delta
WITH "__pgt_window_clicks" AS NOT MATERIALIZED (
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
), "__pgt_window_blocked" AS NOT MATERIALIZED (
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
    __pgt_q8."page_2" AS "page_2",
    __pgt_q8."visitor_2" AS "visitor_2"
  FROM (
    SELECT
      __pgt_q9."__pgt_w",
      __pgt_q9."page" AS "page_2",
      __pgt_q9."visitor" AS "visitor_2"
    FROM "__pgt_window_clicks" AS __pgt_q9
    UNION ALL
    SELECT
      __pgt_q10."__pgt_w",
      __pgt_q10."page" AS "page_2",
      __pgt_q10."visitor" AS "visitor_2"
    FROM "__pgt_window_blocked" AS __pgt_q10
  ) AS __pgt_q8
)
SELECT
  1 AS "__pgt_w",
  __pgt_q1."page",
  __pgt_q1."visitor"
FROM (
  SELECT
    __pgt_q2."page",
    __pgt_q2."visitor"
  FROM (
    SELECT
      __pgt_q3."page_2" AS "page",
      __pgt_q3."visitor_2" AS "visitor"
    FROM (
      SELECT
        __pgt_q4."page" AS "page_2",
        __pgt_q4."visitor" AS "visitor_2"
      FROM (
        SELECT
          __pgt_q5."page",
          __pgt_q5."visitor"
        FROM (
          SELECT
            __pgt_q6."page" AS "page",
            __pgt_q6."visitor" AS "visitor"
          FROM "shop"."clicks" AS __pgt_q6
        ) AS __pgt_q5
        WHERE
          (
            __pgt_q5."page"
          ) IN (
            SELECT
              __pgt_q7."page_2"
            FROM "__pgt_part_1" AS __pgt_q7
          )
        UNION ALL
        SELECT
          __pgt_q5."page",
          __pgt_q5."visitor"
        FROM (
          SELECT
            __pgt_q6."page" AS "page",
            __pgt_q6."visitor" AS "visitor"
          FROM "shop"."clicks" AS __pgt_q6
        ) AS __pgt_q5
        WHERE
          __pgt_q5."page" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_1" AS __pgt_q11
            WHERE
              __pgt_q11."page_2" IS NOT DISTINCT FROM NULL
          )
      ) AS __pgt_q4
      EXCEPT
      SELECT
        __pgt_q12."page_3" AS "page_4",
        __pgt_q12."visitor_3" AS "visitor_4"
      FROM (
        SELECT
          __pgt_q13."page_3",
          __pgt_q13."visitor_3"
        FROM (
          SELECT
            __pgt_q14."page" AS "page_3",
            __pgt_q14."visitor" AS "visitor_3"
          FROM "shop"."blocked" AS __pgt_q14
        ) AS __pgt_q13
        WHERE
          (
            __pgt_q13."page_3"
          ) IN (
            SELECT
              __pgt_q15."page_2"
            FROM "__pgt_part_1" AS __pgt_q15
          )
        UNION ALL
        SELECT
          __pgt_q13."page_3",
          __pgt_q13."visitor_3"
        FROM (
          SELECT
            __pgt_q14."page" AS "page_3",
            __pgt_q14."visitor" AS "visitor_3"
          FROM "shop"."blocked" AS __pgt_q14
        ) AS __pgt_q13
        WHERE
          __pgt_q13."page_3" IS NOT DISTINCT FROM NULL
          AND EXISTS(
            SELECT
              1
            FROM "__pgt_part_1" AS __pgt_q16
            WHERE
              __pgt_q16."page_2" IS NOT DISTINCT FROM NULL
          )
      ) AS __pgt_q12
    ) AS __pgt_q3
  ) AS __pgt_q2
  CROSS JOIN LATERAL (
    SELECT
      ROW(__pgt_q2."page", __pgt_q2."visitor") AS r
  ) AS __pgt_q18
  WHERE
    __pgt_q18.r IN (
      SELECT
        ROW(__pgt_q17."page_2", __pgt_q17."visitor_2")
      FROM "__pgt_part_1" AS __pgt_q17
    )
) AS __pgt_q1
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q19."page",
  __pgt_q19."visitor"
FROM (
  SELECT
    __pgt_q20."page",
    __pgt_q20."visitor"
  FROM (
    SELECT
      __pgt_q21."page",
      __pgt_q21."visitor"
    FROM (
      SELECT
        __pgt_q22."page",
        __pgt_q22."visitor"
      FROM "shop"."st_0" AS __pgt_q22
    ) AS __pgt_q21
    WHERE
      (
        __pgt_q21."page"
      ) IN (
        SELECT
          __pgt_q23."page_2"
        FROM "__pgt_part_1" AS __pgt_q23
      )
    UNION ALL
    SELECT
      __pgt_q21."page",
      __pgt_q21."visitor"
    FROM (
      SELECT
        __pgt_q22."page",
        __pgt_q22."visitor"
      FROM "shop"."st_0" AS __pgt_q22
    ) AS __pgt_q21
    WHERE
      __pgt_q21."page" IS NOT DISTINCT FROM NULL
      AND EXISTS(
        SELECT
          1
        FROM "__pgt_part_1" AS __pgt_q24
        WHERE
          __pgt_q24."page_2" IS NOT DISTINCT FROM NULL
      )
  ) AS __pgt_q20
  CROSS JOIN LATERAL (
    SELECT
      ROW(__pgt_q20."page", __pgt_q20."visitor") AS r
  ) AS __pgt_q26
  WHERE
    __pgt_q26.r IN (
      SELECT
        ROW(__pgt_q25."page_2", __pgt_q25."visitor_2")
      FROM "__pgt_part_1" AS __pgt_q25
    )
) AS __pgt_q19
