-- tables
CREATE TABLE needs (whole text, part text, n numeric);
INSERT INTO needs VALUES (NULL, 'car', 1), ('car', 'wheel', 4), ('car', 'engine', 1), ('wheel', 'nut', 5), ('engine', 'nut', 20);

-- query
WITH RECURSIVE b AS (SELECT part, n FROM needs WHERE whole IS NULL UNION ALL SELECT c.part, b.n * c.n FROM b JOIN needs c ON c.whole = b.part) SELECT part, n FROM b;

-- cycle
UPDATE needs SET n = 4.0 WHERE part = 'wheel';

-- cycle
INSERT INTO needs VALUES ('car', 'wheel', 1), ('nut', 'steel', 0.01);

-- cycle
DELETE FROM needs WHERE part = 'engine';

-- delta
WITH "__pgt_window_needs" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_whole" AS "whole",
    "new_part" AS "part",
    "new_n" AS "n"
  FROM "shop"."changes_needs"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_whole" AS "whole",
    "old_part" AS "part",
    "old_n" AS "n"
  FROM "shop"."changes_needs"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q5.*,
    CAST(ROW(__pgt_q5."part", __pgt_q5."n") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q4."part",
      __pgt_q4."n",
      __pgt_q4.tableoid AS "__pgt_place",
      __pgt_q4.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q4
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q6."__pgt_w",
      __pgt_q6."part",
      __pgt_q6."n",
      __pgt_q6."__pgt_place",
      __pgt_q6."__pgt_spot"
    FROM (
      SELECT
        __pgt_q7."__pgt_w",
        __pgt_q7."part",
        __pgt_q7."n",
        __pgt_q7."__pgt_place",
        __pgt_q7."__pgt_spot"
      FROM (
        SELECT
          __pgt_q8."__pgt_w",
          __pgt_q8."part" AS "part",
          __pgt_q8."n" AS "n",
          CAST(NULL AS OID) AS "__pgt_place",
          CAST(NULL AS tid) AS "__pgt_spot"
        FROM "__pgt_window_needs" AS __pgt_q8
        WHERE
          (
            (
              __pgt_q8."whole" IS NULL
            )
          )
      ) AS __pgt_q7
      UNION ALL
      SELECT
        __pgt_q9."__pgt_w",
        __pgt_q9."part_6" AS "part",
        __pgt_q9."?column?" AS "n",
        __pgt_q9."__pgt_place",
        __pgt_q9."__pgt_spot"
      FROM (
        SELECT
          __pgt_q12."__pgt_w",
          __pgt_q12."part" AS "part_6",
          (
            __pgt_q10."n" * __pgt_q12."n"
          ) AS "?column?",
          __pgt_q10."__pgt_place" AS "__pgt_place",
          __pgt_q10."__pgt_spot" AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q11."part",
            __pgt_q11."n",
            __pgt_q11.tableoid AS "__pgt_place",
            __pgt_q11.ctid AS "__pgt_spot"
          FROM "shop"."st_0" AS __pgt_q11
        ) AS __pgt_q10
        CROSS JOIN "__pgt_window_needs" AS __pgt_q12
        WHERE
          (
            __pgt_q12."whole" = __pgt_q10."part"
          )
      ) AS __pgt_q9
    ) AS __pgt_q6
  ) AS __pgt_q5
), "__pgt_part_2" AS MATERIALIZED (
  WITH RECURSIVE "__pgt_walk"("__pgt_place", "__pgt_spot") AS (
    SELECT
      __pgt_q22.tableoid,
      __pgt_q22.ctid
    FROM "__pgt_delta_1" AS __pgt_q3
    JOIN "shop"."st_0" AS __pgt_q22
      ON (
        __pgt_q22."part" = __pgt_q3."part"
        OR (
          __pgt_q22."part" IS NULL AND __pgt_q3."part" IS NULL
        )
      )
      AND CAST(ROW(__pgt_q22."part", __pgt_q22."n") AS TEXT) COLLATE "C" = __pgt_q3."__pgt_image"
    WHERE
      __pgt_q3."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q23.tableoid,
      __pgt_q23.ctid
    FROM (
      SELECT
        __pgt_q15.*,
        CAST(ROW(__pgt_q15."part", __pgt_q15."n") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q14."part",
          __pgt_q14."n"
        FROM "shop"."st_0" AS __pgt_q14
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q16."part",
          __pgt_q16."n"
        FROM (
          SELECT
            __pgt_q17."part_6" AS "part",
            __pgt_q17."?column?" AS "n"
          FROM (
            SELECT
              __pgt_q21."part" AS "part_6",
              (
                __pgt_q18."n" * __pgt_q21."n"
              ) AS "?column?"
            FROM (
              SELECT
                __pgt_q19."part",
                __pgt_q19."n"
              FROM "__pgt_walk" AS __pgt_q20
              JOIN "shop"."st_0" AS __pgt_q19
                ON __pgt_q19.tableoid = __pgt_q20."__pgt_place"
                AND __pgt_q19.ctid = __pgt_q20."__pgt_spot"
            ) AS __pgt_q18
            CROSS JOIN "shop"."needs" AS __pgt_q21
            WHERE
              (
                __pgt_q21."whole" = __pgt_q18."part"
              )
          ) AS __pgt_q17
        ) AS __pgt_q16
      ) AS __pgt_q15
    ) AS __pgt_q13
    JOIN "shop"."st_0" AS __pgt_q23
      ON (
        __pgt_q23."part" = __pgt_q13."part"
        OR (
          __pgt_q23."part" IS NULL AND __pgt_q13."part" IS NULL
        )
      )
      AND CAST(ROW(__pgt_q23."part", __pgt_q23."n") AS TEXT) COLLATE "C" = __pgt_q13."__pgt_image"
  )
  SELECT
    __pgt_q25."part",
    __pgt_q25."n",
    __pgt_q25.tableoid AS "__pgt_place",
    __pgt_q25.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q25."part", __pgt_q25."n") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q24
  JOIN "shop"."st_0" AS __pgt_q25
    ON __pgt_q25.tableoid = __pgt_q24."__pgt_place"
    AND __pgt_q25.ctid = __pgt_q24."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q35."part" AS "part"
  FROM "__pgt_part_2" AS __pgt_q35
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."part" AS "part",
  __pgt_q1."n" AS "n"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q2."part" AS "part",
    __pgt_q2."n" AS "n"
  FROM "__pgt_part_2" AS __pgt_q2
  UNION ALL
  SELECT
    __pgt_q26."__pgt_w" AS "__pgt_w",
    __pgt_q26."part" AS "part",
    __pgt_q26."n" AS "n"
  FROM (
    WITH RECURSIVE "__pgt_walk"("__pgt_w", "part", "n") AS (
      SELECT
        __pgt_q62."__pgt_w",
        __pgt_q62."part",
        __pgt_q62."n"
      FROM (
        SELECT
          CAST(1 AS BIGINT) AS "__pgt_w",
          __pgt_q27."part",
          __pgt_q27."n"
        FROM (
          SELECT
            __pgt_q29.*,
            CAST(ROW(__pgt_q29."part", __pgt_q29."n") AS TEXT) COLLATE "C" AS "__pgt_image"
          FROM (
            SELECT
              __pgt_q28."part",
              __pgt_q28."n"
            FROM "shop"."st_0" AS __pgt_q28
            WHERE
              FALSE
            UNION ALL
            SELECT
              __pgt_q30."part",
              __pgt_q30."n"
            FROM (
              SELECT
                __pgt_q31."part_2" AS "part",
                __pgt_q31."n_2" AS "n"
              FROM (
                SELECT
                  __pgt_q32."whole",
                  __pgt_q32."part_2",
                  __pgt_q32."n_2"
                FROM (
                  SELECT
                    __pgt_q33."whole" AS "whole",
                    __pgt_q33."part" AS "part_2",
                    __pgt_q33."n" AS "n_2"
                  FROM "shop"."needs" AS __pgt_q33
                ) AS __pgt_q32
                WHERE
                  (
                    __pgt_q32."part_2"
                  ) IN (
                    SELECT
                      __pgt_q34."part"
                    FROM "__pgt_part_3" AS __pgt_q34
                  )
                UNION ALL
                SELECT
                  __pgt_q32."whole",
                  __pgt_q32."part_2",
                  __pgt_q32."n_2"
                FROM (
                  SELECT
                    __pgt_q33."whole" AS "whole",
                    __pgt_q33."part" AS "part_2",
                    __pgt_q33."n" AS "n_2"
                  FROM "shop"."needs" AS __pgt_q33
                ) AS __pgt_q32
                WHERE
                  __pgt_q32."part_2" IS NOT DISTINCT FROM NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_3" AS __pgt_q36
                    WHERE
                      __pgt_q36."part" IS NOT DISTINCT FROM NULL
                  )
              ) AS __pgt_q31
              WHERE
                (
                  (
                    __pgt_q31."whole" IS NULL
                  )
                )
            ) AS __pgt_q30
          ) AS __pgt_q29
        ) AS __pgt_q27
        WHERE
          __pgt_q27."__pgt_image" IN (
            SELECT
              __pgt_q37."__pgt_image"
            FROM "__pgt_part_2" AS __pgt_q37
          )
        UNION ALL
        SELECT
          CAST(1 AS BIGINT) AS "__pgt_w",
          __pgt_q38."part",
          __pgt_q38."n"
        FROM (
          SELECT
            __pgt_q40.*,
            CAST(ROW(__pgt_q40."part", __pgt_q40."n") AS TEXT) COLLATE "C" AS "__pgt_image"
          FROM (
            SELECT
              __pgt_q39."part",
              __pgt_q39."n"
            FROM "shop"."st_0" AS __pgt_q39
            WHERE
              FALSE
            UNION ALL
            SELECT
              __pgt_q41."part",
              __pgt_q41."n"
            FROM (
              SELECT
                __pgt_q42."part_6" AS "part",
                __pgt_q42."?column?" AS "n"
              FROM (
                SELECT
                  __pgt_q47."part_5" AS "part_6",
                  (
                    __pgt_q43."n" * __pgt_q47."n_5"
                  ) AS "?column?"
                FROM (
                  SELECT
                    __pgt_q44."part",
                    __pgt_q44."n",
                    __pgt_q44."__pgt_place",
                    __pgt_q44."__pgt_spot"
                  FROM (
                    SELECT
                      __pgt_q45."part",
                      __pgt_q45."n",
                      __pgt_q45.tableoid AS "__pgt_place",
                      __pgt_q45.ctid AS "__pgt_spot"
                    FROM "shop"."st_0" AS __pgt_q45
                  ) AS __pgt_q44
                  WHERE
                    NOT (__pgt_q44."__pgt_place", __pgt_q44."__pgt_spot") IN (
                      SELECT
                        __pgt_q46."__pgt_place",
                        __pgt_q46."__pgt_spot"
                      FROM "__pgt_part_2" AS __pgt_q46
                    )
                ) AS __pgt_q43
                CROSS JOIN (
                  SELECT
                    __pgt_q48."whole_2",
                    __pgt_q48."part_5",
                    __pgt_q48."n_5"
                  FROM (
                    SELECT
                      __pgt_q49."whole" AS "whole_2",
                      __pgt_q49."part" AS "part_5",
                      __pgt_q49."n" AS "n_5"
                    FROM "shop"."needs" AS __pgt_q49
                  ) AS __pgt_q48
                  WHERE
                    (
                      __pgt_q48."part_5"
                    ) IN (
                      SELECT
                        __pgt_q50."part"
                      FROM "__pgt_part_3" AS __pgt_q50
                    )
                  UNION ALL
                  SELECT
                    __pgt_q48."whole_2",
                    __pgt_q48."part_5",
                    __pgt_q48."n_5"
                  FROM (
                    SELECT
                      __pgt_q49."whole" AS "whole_2",
                      __pgt_q49."part" AS "part_5",
                      __pgt_q49."n" AS "n_5"
                    FROM "shop"."needs" AS __pgt_q49
                  ) AS __pgt_q48
                  WHERE
                    __pgt_q48."part_5" IS NOT DISTINCT FROM NULL
                    AND EXISTS(
                      SELECT
                        1
                      FROM "__pgt_part_3" AS __pgt_q51
                      WHERE
                        __pgt_q51."part" IS NOT DISTINCT FROM NULL
                    )
                ) AS __pgt_q47
                WHERE
                  (
                    __pgt_q47."whole_2" = __pgt_q43."part"
                  )
              ) AS __pgt_q42
            ) AS __pgt_q41
          ) AS __pgt_q40
        ) AS __pgt_q38
        WHERE
          __pgt_q38."__pgt_image" IN (
            SELECT
              __pgt_q52."__pgt_image"
            FROM "__pgt_part_2" AS __pgt_q52
          )
        UNION ALL
        SELECT
          __pgt_q55."__pgt_w",
          __pgt_q55."part",
          __pgt_q55."n"
        FROM (
          SELECT
            CAST((
              SUM(__pgt_q53."__pgt_w") OVER same
            ) AS BIGINT) AS "__pgt_w",
            ROW_NUMBER() OVER same AS __pgt_nth,
            __pgt_q53."part",
            __pgt_q53."n"
          FROM "__pgt_delta_1" AS __pgt_q53
          WHERE
            NOT __pgt_q53."__pgt_image" IN (
              SELECT
                __pgt_q54."__pgt_image"
              FROM "__pgt_part_2" AS __pgt_q54
            )
            AND (
              __pgt_q53."__pgt_spot" IS NULL
              OR NOT (__pgt_q53."__pgt_place", __pgt_q53."__pgt_spot") IN (
                SELECT
                  __pgt_q56."__pgt_place",
                  __pgt_q56."__pgt_spot"
                FROM "__pgt_part_2" AS __pgt_q56
              )
            )
          WINDOW same AS (PARTITION BY __pgt_q53."__pgt_image")
        ) AS __pgt_q55
        WHERE
          __pgt_q55.__pgt_nth = 1 AND __pgt_q55."__pgt_w" > 0
      ) AS __pgt_q62
      UNION ALL
      SELECT
        __pgt_q57."__pgt_w",
        __pgt_q57."part",
        __pgt_q57."n"
      FROM (
        SELECT
          __pgt_q58."__pgt_w",
          __pgt_q58."part_6" AS "part",
          __pgt_q58."?column?" AS "n"
        FROM (
          SELECT
            __pgt_q59."__pgt_w",
            __pgt_q61."part" AS "part_6",
            (
              __pgt_q59."n" * __pgt_q61."n"
            ) AS "?column?"
          FROM (
            SELECT
              __pgt_q60."__pgt_w",
              __pgt_q60."part",
              __pgt_q60."n"
            FROM "__pgt_walk" AS __pgt_q60
          ) AS __pgt_q59
          CROSS JOIN "shop"."needs" AS __pgt_q61
          WHERE
            (
              __pgt_q61."whole" = __pgt_q59."part"
            )
        ) AS __pgt_q58
      ) AS __pgt_q57
    )
    SELECT
      __pgt_q63."__pgt_w",
      __pgt_q63."part",
      __pgt_q63."n"
    FROM "__pgt_walk" AS __pgt_q63
  ) AS __pgt_q26
) AS __pgt_q1
