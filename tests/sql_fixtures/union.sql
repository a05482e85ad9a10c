-- tables
CREATE TABLE clicks (page text, visitor int);
CREATE TABLE blocked (page text, visitor int);
INSERT INTO clicks VALUES ('a', 1), ('a', 1), ('b', 2), (NULL, 3);
INSERT INTO blocked VALUES ('a', 1), (NULL, 3);

-- query
SELECT page FROM clicks UNION SELECT page FROM blocked;

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
    "new_page" AS "page"
  FROM "shop"."changes_clicks"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_page" AS "page"
  FROM "shop"."changes_clicks"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_window_blocked" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_page" AS "page"
  FROM "shop"."changes_blocked"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_page" AS "page"
  FROM "shop"."changes_blocked"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_part_1" AS MATERIALIZED (
  SELECT
    __pgt_q2."page_5",
    COALESCE(CAST(SUM(__pgt_q2."__pgt_n") AS BIGINT), 0) AS "__pgt_count"
  FROM (
    SELECT
      CAST((
        __pgt_q3."__pgt_w"
      ) AS BIGINT) AS "__pgt_n",
      __pgt_q3."page_5"
    FROM (
      SELECT
        __pgt_q4."__pgt_w",
        __pgt_q4."page" AS "page_5"
      FROM "__pgt_window_clicks" AS __pgt_q4
      UNION ALL
      SELECT
        __pgt_q5."__pgt_w",
        __pgt_q5."page" AS "page_5"
      FROM "__pgt_window_blocked" AS __pgt_q5
    ) AS __pgt_q3
  ) AS __pgt_q2
  GROUP BY
    __pgt_q2."page_5"
), "__pgt_part_2" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q10."page_5" AS "page_5"
  FROM "__pgt_part_1" AS __pgt_q10
), "__pgt_part_3" AS MATERIALIZED (
  SELECT
    __pgt_q7."page",
    __pgt_q7."__pgt_count"
  FROM (
    SELECT
      __pgt_q8."page",
      __pgt_q8."__pgt_count"
    FROM "shop"."st_0" AS __pgt_q8
  ) AS __pgt_q7
  WHERE
    (
      __pgt_q7."page"
    ) IN (
      SELECT
        __pgt_q9."page_5"
      FROM "__pgt_part_2" AS __pgt_q9
    )
  UNION ALL
  SELECT
    __pgt_q7."page",
    __pgt_q7."__pgt_count"
  FROM (
    SELECT
      __pgt_q8."page",
      __pgt_q8."__pgt_count"
    FROM "shop"."st_0" AS __pgt_q8
  ) AS __pgt_q7
  WHERE
    __pgt_q7."page" IS NOT DISTINCT FROM NULL
    AND EXISTS(
      SELECT
        1
      FROM "__pgt_part_2" AS __pgt_q11
      WHERE
        __pgt_q11."page_5" IS NOT DISTINCT FROM NULL
    )
), "__pgt_part_4" AS MATERIALIZED (
  SELECT
    __pgt_q1."page_5",
    CAST(SUM(__pgt_q1."__pgt_count") AS BIGINT) AS "__pgt_count"
  FROM (
    SELECT
      __pgt_q6."page_5",
      __pgt_q6."__pgt_count"
    FROM "__pgt_part_1" AS __pgt_q6
    UNION ALL
    SELECT
      __pgt_q12."page" AS "page_5",
      __pgt_q12."__pgt_count"
    FROM "__pgt_part_3" AS __pgt_q12
  ) AS __pgt_q1
  GROUP BY
    __pgt_q1."page_5"
)
SELECT
  1 AS "__pgt_w",
  __pgt_q13."page_5" AS "page",
  __pgt_q13."__pgt_count"
FROM "__pgt_part_4" AS __pgt_q13
WHERE
  (
    (
      __pgt_q13."__pgt_count" > 0
    )
  )
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q14."page",
  __pgt_q14."__pgt_count"
FROM "__pgt_part_3" AS __pgt_q14
