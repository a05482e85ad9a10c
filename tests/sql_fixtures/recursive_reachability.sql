-- tables
CREATE TABLE edge (src int, dst int);
CREATE TABLE root (id int PRIMARY KEY);
INSERT INTO root VALUES (1);
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 2), (3, 4), (7, 8);

-- query
WITH RECURSIVE r(id) AS (SELECT id FROM root UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r;

-- cycle
DELETE FROM edge WHERE src = 1;

-- cycle
INSERT INTO edge VALUES (1, 3), (4, 7);

-- cycle
INSERT INTO root VALUES (2);
UPDATE edge SET src = 8 WHERE src = 1;

-- cycle
DELETE FROM root WHERE id = 2;

-- delta
WITH "__pgt_window_edge" AS (
  SELECT
    1 AS "__pgt_w",
    "new_src" AS "src",
    "new_dst" AS "dst"
  FROM "shop"."changes_edge"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_src" AS "src",
    "old_dst" AS "dst"
  FROM "shop"."changes_edge"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q7.*,
    CAST(ROW(__pgt_q7."id") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q6."id",
      __pgt_q6.tableoid AS "__pgt_place",
      __pgt_q6.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q6
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q8."__pgt_w",
      __pgt_q8."id",
      __pgt_q8."__pgt_place",
      __pgt_q8."__pgt_spot"
    FROM (
      SELECT
        __pgt_q9."__pgt_w",
        __pgt_q9."dst_2" AS "id",
        __pgt_q9."__pgt_place" AS "__pgt_place",
        __pgt_q9."__pgt_spot" AS "__pgt_spot"
      FROM (
        SELECT
          __pgt_q10."__pgt_w",
          __pgt_q10."dst" AS "dst_2",
          __pgt_q10."__pgt_place" AS "__pgt_place",
          __pgt_q10."__pgt_spot" AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q15."__pgt_w" AS "__pgt_w",
            __pgt_q11."id_4",
            __pgt_q11."__pgt_place",
            __pgt_q11."__pgt_spot",
            __pgt_q15."src",
            __pgt_q15."dst"
          FROM (
            SELECT
              __pgt_q12."id_3_2" AS "id_4",
              __pgt_q12."__pgt_place" AS "__pgt_place",
              __pgt_q12."__pgt_spot" AS "__pgt_spot"
            FROM (
              SELECT
                __pgt_q13."id" AS "id_3_2",
                __pgt_q13."__pgt_place" AS "__pgt_place",
                __pgt_q13."__pgt_spot" AS "__pgt_spot"
              FROM (
                SELECT
                  __pgt_q14."id",
                  __pgt_q14.tableoid AS "__pgt_place",
                  __pgt_q14.ctid AS "__pgt_spot"
                FROM "shop"."st_0" AS __pgt_q14
              ) AS __pgt_q13
            ) AS __pgt_q12
          ) AS __pgt_q11
          CROSS JOIN (
            SELECT
              __pgt_q16."__pgt_w",
              __pgt_q16."src" AS "src",
              __pgt_q16."dst" AS "dst"
            FROM "__pgt_window_edge" AS __pgt_q16
          ) AS __pgt_q15
          WHERE
            (
              __pgt_q15."src" = __pgt_q11."id_4"
            )
        ) AS __pgt_q10
      ) AS __pgt_q9
    ) AS __pgt_q8
  ) AS __pgt_q7
), "__pgt_part_2" AS MATERIALIZED (
  WITH RECURSIVE "__pgt_walk"("__pgt_place", "__pgt_spot") AS (
    SELECT
      __pgt_q30.tableoid,
      __pgt_q30.ctid
    FROM "__pgt_delta_1" AS __pgt_q5
    JOIN "shop"."st_0" AS __pgt_q30
      ON (
        __pgt_q30."id" = __pgt_q5."id"
        OR (
          __pgt_q30."id" IS NULL AND __pgt_q5."id" IS NULL
        )
      )
      AND CAST(ROW(__pgt_q30."id") AS TEXT) COLLATE "C" = __pgt_q5."__pgt_image"
    WHERE
      __pgt_q5."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q31.tableoid,
      __pgt_q31.ctid
    FROM (
      SELECT
        __pgt_q19.*,
        CAST(ROW(__pgt_q19."id") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q18."id"
        FROM "shop"."st_0" AS __pgt_q18
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q20."id"
        FROM (
          SELECT
            __pgt_q21."dst_2" AS "id"
          FROM (
            SELECT
              __pgt_q22."dst" AS "dst_2"
            FROM (
              SELECT
                __pgt_q23."id_4",
                __pgt_q28."src",
                __pgt_q28."dst"
              FROM (
                SELECT
                  __pgt_q24."id_3_2" AS "id_4"
                FROM (
                  SELECT
                    __pgt_q25."id" AS "id_3_2"
                  FROM (
                    SELECT
                      __pgt_q26."id"
                    FROM "__pgt_walk" AS __pgt_q27
                    JOIN "shop"."st_0" AS __pgt_q26
                      ON __pgt_q26.tableoid = __pgt_q27."__pgt_place"
                      AND __pgt_q26.ctid = __pgt_q27."__pgt_spot"
                  ) AS __pgt_q25
                ) AS __pgt_q24
              ) AS __pgt_q23
              CROSS JOIN (
                SELECT
                  __pgt_q29."src" AS "src",
                  __pgt_q29."dst" AS "dst"
                FROM "shop"."edge" AS __pgt_q29
              ) AS __pgt_q28
              WHERE
                (
                  __pgt_q28."src" = __pgt_q23."id_4"
                )
            ) AS __pgt_q22
          ) AS __pgt_q21
        ) AS __pgt_q20
      ) AS __pgt_q19
    ) AS __pgt_q17
    JOIN "shop"."st_0" AS __pgt_q31
      ON (
        __pgt_q31."id" = __pgt_q17."id"
        OR (
          __pgt_q31."id" IS NULL AND __pgt_q17."id" IS NULL
        )
      )
      AND CAST(ROW(__pgt_q31."id") AS TEXT) COLLATE "C" = __pgt_q17."__pgt_image"
  )
  SELECT
    __pgt_q33."id",
    __pgt_q33.tableoid AS "__pgt_place",
    __pgt_q33.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q33."id") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q32
  JOIN "shop"."st_0" AS __pgt_q33
    ON __pgt_q33.tableoid = __pgt_q32."__pgt_place"
    AND __pgt_q33.ctid = __pgt_q32."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q44."id" AS "id"
  FROM "__pgt_part_2" AS __pgt_q44
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_6" AS "id"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id_5" AS "id_6"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id" AS "id_5"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q4."id" AS "id"
      FROM "__pgt_part_2" AS __pgt_q4
      UNION ALL
      SELECT
        1 AS "__pgt_w",
        __pgt_q34."id" AS "id"
      FROM (
        WITH RECURSIVE "__pgt_walk"("id") AS (
          SELECT
            __pgt_q84."id"
          FROM (
            SELECT
              __pgt_q35."id"
            FROM (
              SELECT
                __pgt_q37.*,
                CAST(ROW(__pgt_q37."id") AS TEXT) COLLATE "C" AS "__pgt_image"
              FROM (
                SELECT
                  __pgt_q36."id"
                FROM "shop"."st_0" AS __pgt_q36
                WHERE
                  FALSE
                UNION ALL
                SELECT
                  __pgt_q38."id"
                FROM (
                  SELECT
                    __pgt_q39."id_3" AS "id"
                  FROM (
                    SELECT
                      __pgt_q40."id_2" AS "id_3"
                    FROM (
                      SELECT
                        __pgt_q41."id_2"
                      FROM (
                        SELECT
                          __pgt_q42."id" AS "id_2"
                        FROM "shop"."root" AS __pgt_q42
                      ) AS __pgt_q41
                      WHERE
                        (
                          __pgt_q41."id_2"
                        ) IN (
                          SELECT
                            __pgt_q43."id"
                          FROM "__pgt_part_3" AS __pgt_q43
                        )
                    ) AS __pgt_q40
                  ) AS __pgt_q39
                ) AS __pgt_q38
              ) AS __pgt_q37
            ) AS __pgt_q35
            WHERE
              __pgt_q35."__pgt_image" IN (
                SELECT
                  __pgt_q45."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q45
              )
            UNION ALL
            SELECT
              __pgt_q46."id"
            FROM (
              SELECT
                __pgt_q48.*,
                CAST(ROW(__pgt_q48."id") AS TEXT) COLLATE "C" AS "__pgt_image"
              FROM (
                SELECT
                  __pgt_q47."id"
                FROM "shop"."st_0" AS __pgt_q47
                WHERE
                  FALSE
                UNION ALL
                SELECT
                  __pgt_q49."id"
                FROM (
                  SELECT
                    __pgt_q50."dst_2" AS "id"
                  FROM (
                    SELECT
                      __pgt_q51."dst" AS "dst_2"
                    FROM (
                      SELECT
                        __pgt_q52."id_4",
                        __pgt_q58."src",
                        __pgt_q58."dst"
                      FROM (
                        SELECT
                          __pgt_q53."id_3_2" AS "id_4"
                        FROM (
                          SELECT
                            __pgt_q54."id" AS "id_3_2"
                          FROM (
                            SELECT
                              __pgt_q55."id",
                              __pgt_q55."__pgt_place",
                              __pgt_q55."__pgt_spot"
                            FROM (
                              SELECT
                                __pgt_q56."id",
                                __pgt_q56.tableoid AS "__pgt_place",
                                __pgt_q56.ctid AS "__pgt_spot"
                              FROM "shop"."st_0" AS __pgt_q56
                            ) AS __pgt_q55
                            WHERE
                              NOT (__pgt_q55."__pgt_place", __pgt_q55."__pgt_spot") IN (
                                SELECT
                                  __pgt_q57."__pgt_place",
                                  __pgt_q57."__pgt_spot"
                                FROM "__pgt_part_2" AS __pgt_q57
                              )
                          ) AS __pgt_q54
                        ) AS __pgt_q53
                      ) AS __pgt_q52
                      CROSS JOIN (
                        SELECT
                          __pgt_q59."src",
                          __pgt_q59."dst"
                        FROM (
                          SELECT
                            __pgt_q60."src" AS "src",
                            __pgt_q60."dst" AS "dst"
                          FROM "shop"."edge" AS __pgt_q60
                        ) AS __pgt_q59
                        WHERE
                          (
                            __pgt_q59."dst"
                          ) IN (
                            SELECT
                              __pgt_q61."id"
                            FROM "__pgt_part_3" AS __pgt_q61
                          )
                        UNION ALL
                        SELECT
                          __pgt_q59."src",
                          __pgt_q59."dst"
                        FROM (
                          SELECT
                            __pgt_q60."src" AS "src",
                            __pgt_q60."dst" AS "dst"
                          FROM "shop"."edge" AS __pgt_q60
                        ) AS __pgt_q59
                        WHERE
                          __pgt_q59."dst" IS NULL
                          AND EXISTS(
                            SELECT
                              1
                            FROM "__pgt_part_3" AS __pgt_q62
                            WHERE
                              __pgt_q62."id" IS NULL
                          )
                      ) AS __pgt_q58
                      WHERE
                        (
                          __pgt_q58."src" = __pgt_q52."id_4"
                        )
                    ) AS __pgt_q51
                  ) AS __pgt_q50
                ) AS __pgt_q49
              ) AS __pgt_q48
            ) AS __pgt_q46
            WHERE
              __pgt_q46."__pgt_image" IN (
                SELECT
                  __pgt_q63."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q63
              )
            UNION ALL
            SELECT
              __pgt_q66."id"
            FROM (
              SELECT
                CAST((
                  SUM(__pgt_q64."__pgt_w") OVER same
                ) AS BIGINT) AS "__pgt_w",
                ROW_NUMBER() OVER same AS __pgt_nth,
                __pgt_q64."id"
              FROM "__pgt_delta_1" AS __pgt_q64
              WHERE
                NOT __pgt_q64."__pgt_image" IN (
                  SELECT
                    __pgt_q65."__pgt_image"
                  FROM "__pgt_part_2" AS __pgt_q65
                )
                AND (
                  __pgt_q64."__pgt_spot" IS NULL
                  OR NOT (__pgt_q64."__pgt_place", __pgt_q64."__pgt_spot") IN (
                    SELECT
                      __pgt_q67."__pgt_place",
                      __pgt_q67."__pgt_spot"
                    FROM "__pgt_part_2" AS __pgt_q67
                  )
                )
                AND NOT EXISTS(
                  SELECT
                    1
                  FROM "shop"."st_0" AS __pgt_q68
                  WHERE
                    (
                      __pgt_q68."id" = __pgt_q64."id"
                      OR (
                        __pgt_q68."id" IS NULL AND __pgt_q64."id" IS NULL
                      )
                    )
                    AND CAST(ROW(__pgt_q68."id") AS TEXT) COLLATE "C" = __pgt_q64."__pgt_image"
                    AND NOT (__pgt_q68.tableoid, __pgt_q68.ctid) IN (
                      SELECT
                        __pgt_q69."__pgt_place",
                        __pgt_q69."__pgt_spot"
                      FROM "__pgt_part_2" AS __pgt_q69
                    )
                )
              WINDOW same AS (PARTITION BY __pgt_q64."__pgt_image")
            ) AS __pgt_q66
            WHERE
              __pgt_q66.__pgt_nth = 1 AND __pgt_q66."__pgt_w" > 0
          ) AS __pgt_q84
          UNION
          SELECT
            __pgt_q70."id"
          FROM (
            SELECT
              __pgt_q72.*,
              CAST(ROW(__pgt_q72."id") AS TEXT) COLLATE "C" AS "__pgt_image"
            FROM (
              SELECT
                __pgt_q71."id"
              FROM "shop"."st_0" AS __pgt_q71
              WHERE
                FALSE
              UNION ALL
              SELECT
                __pgt_q73."id"
              FROM (
                SELECT
                  __pgt_q74."dst_2" AS "id"
                FROM (
                  SELECT
                    __pgt_q75."dst" AS "dst_2"
                  FROM (
                    SELECT
                      __pgt_q76."id_4",
                      __pgt_q80."src",
                      __pgt_q80."dst"
                    FROM (
                      SELECT
                        __pgt_q77."id_3_2" AS "id_4"
                      FROM (
                        SELECT
                          __pgt_q78."id" AS "id_3_2"
                        FROM (
                          SELECT
                            __pgt_q79."id"
                          FROM "__pgt_walk" AS __pgt_q79
                        ) AS __pgt_q78
                      ) AS __pgt_q77
                    ) AS __pgt_q76
                    CROSS JOIN (
                      SELECT
                        __pgt_q81."src" AS "src",
                        __pgt_q81."dst" AS "dst"
                      FROM "shop"."edge" AS __pgt_q81
                    ) AS __pgt_q80
                    WHERE
                      (
                        __pgt_q80."src" = __pgt_q76."id_4"
                      )
                  ) AS __pgt_q75
                ) AS __pgt_q74
              ) AS __pgt_q73
            ) AS __pgt_q72
          ) AS __pgt_q70
          WHERE
            NOT EXISTS(
              SELECT
                1
              FROM "shop"."st_0" AS __pgt_q82
              WHERE
                (
                  __pgt_q82."id" = __pgt_q70."id"
                  OR (
                    __pgt_q82."id" IS NULL AND __pgt_q70."id" IS NULL
                  )
                )
                AND CAST(ROW(__pgt_q82."id") AS TEXT) COLLATE "C" = __pgt_q70."__pgt_image"
                AND NOT (__pgt_q82.tableoid, __pgt_q82.ctid) IN (
                  SELECT
                    __pgt_q83."__pgt_place",
                    __pgt_q83."__pgt_spot"
                  FROM "__pgt_part_2" AS __pgt_q83
                )
            )
        )
        SELECT
          __pgt_q85."id"
        FROM "__pgt_walk" AS __pgt_q85
      ) AS __pgt_q34
    ) AS __pgt_q3
  ) AS __pgt_q2
) AS __pgt_q1
