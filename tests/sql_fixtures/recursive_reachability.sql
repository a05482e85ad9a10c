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
N − D
where
  N = least set root ⋉ D + ((stored ▷ D) ⋈ edge) ⋉ D + net⁺(stored ⋈ Δedge) ▷ D + (N ⋈ edge)
  D = least (neg (stored ⋈ Δedge) ∪ (D ⋈ edge)) ∩ stored

-- sql
WITH "__pgt_window_edge" AS NOT MATERIALIZED (
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
    __pgt_q5.*,
    CAST(ROW(__pgt_q5."id") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q4."id",
      __pgt_q4.tableoid AS "__pgt_place",
      __pgt_q4.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q4
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q6."__pgt_w",
      __pgt_q6."id",
      __pgt_q6."__pgt_place",
      __pgt_q6."__pgt_spot"
    FROM (
      SELECT
        __pgt_q9."__pgt_w",
        __pgt_q9."dst" AS "id",
        __pgt_q7."__pgt_place" AS "__pgt_place",
        __pgt_q7."__pgt_spot" AS "__pgt_spot"
      FROM (
        SELECT
          __pgt_q8."id",
          __pgt_q8.tableoid AS "__pgt_place",
          __pgt_q8.ctid AS "__pgt_spot"
        FROM "shop"."st_0" AS __pgt_q8
      ) AS __pgt_q7
      CROSS JOIN "__pgt_window_edge" AS __pgt_q9
      WHERE
        (
          __pgt_q9."src" = __pgt_q7."id"
        )
    ) AS __pgt_q6
  ) AS __pgt_q5
), "__pgt_part_2" AS MATERIALIZED (
  WITH RECURSIVE "__pgt_walk"("__pgt_place", "__pgt_spot") AS (
    SELECT
      __pgt_q18.tableoid,
      __pgt_q18.ctid
    FROM "__pgt_delta_1" AS __pgt_q3
    JOIN "shop"."st_0" AS __pgt_q18
      ON (
        __pgt_q18."id" = __pgt_q3."id"
        OR (
          __pgt_q18."id" IS NOT DISTINCT FROM NULL
          AND __pgt_q3."id" IS NOT DISTINCT FROM NULL
        )
      )
      AND CAST(ROW(__pgt_q18."id") AS TEXT) COLLATE "C" = __pgt_q3."__pgt_image"
    WHERE
      __pgt_q3."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q19.tableoid,
      __pgt_q19.ctid
    FROM (
      SELECT
        __pgt_q12.*,
        CAST(ROW(__pgt_q12."id") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q11."id"
        FROM "shop"."st_0" AS __pgt_q11
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q13."id"
        FROM (
          SELECT
            __pgt_q17."dst" AS "id"
          FROM (
            SELECT
              __pgt_q15."id"
            FROM "__pgt_walk" AS __pgt_q16
            JOIN "shop"."st_0" AS __pgt_q15
              ON __pgt_q15.tableoid = __pgt_q16."__pgt_place"
              AND __pgt_q15.ctid = __pgt_q16."__pgt_spot"
          ) AS __pgt_q14
          CROSS JOIN "shop"."edge" AS __pgt_q17
          WHERE
            (
              __pgt_q17."src" = __pgt_q14."id"
            )
        ) AS __pgt_q13
      ) AS __pgt_q12
    ) AS __pgt_q10
    JOIN "shop"."st_0" AS __pgt_q19
      ON (
        __pgt_q19."id" = __pgt_q10."id"
        OR (
          __pgt_q19."id" IS NOT DISTINCT FROM NULL
          AND __pgt_q10."id" IS NOT DISTINCT FROM NULL
        )
      )
      AND CAST(ROW(__pgt_q19."id") AS TEXT) COLLATE "C" = __pgt_q10."__pgt_image"
  )
  SELECT
    __pgt_q21."id",
    __pgt_q21.tableoid AS "__pgt_place",
    __pgt_q21.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q21."id") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q20
  JOIN "shop"."st_0" AS __pgt_q21
    ON __pgt_q21.tableoid = __pgt_q20."__pgt_place"
    AND __pgt_q21.ctid = __pgt_q20."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q31."id" AS "id"
  FROM "__pgt_part_2" AS __pgt_q31
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q2."id" AS "id"
  FROM "__pgt_part_2" AS __pgt_q2
  UNION ALL
  SELECT
    1 AS "__pgt_w",
    __pgt_q22."id" AS "id"
  FROM (
    WITH RECURSIVE "__pgt_walk"("id") AS (
      SELECT
        __pgt_q62."id"
      FROM (
        SELECT
          __pgt_q23."id"
        FROM (
          SELECT
            __pgt_q25.*,
            CAST(ROW(__pgt_q25."id") AS TEXT) COLLATE "C" AS "__pgt_image"
          FROM (
            SELECT
              __pgt_q24."id"
            FROM "shop"."st_0" AS __pgt_q24
            WHERE
              FALSE
            UNION ALL
            SELECT
              __pgt_q26."id"
            FROM (
              SELECT
                __pgt_q27."id_2" AS "id"
              FROM (
                SELECT
                  __pgt_q28."id_2"
                FROM (
                  SELECT
                    __pgt_q29."id" AS "id_2"
                  FROM "shop"."root" AS __pgt_q29
                ) AS __pgt_q28
                WHERE
                  (
                    __pgt_q28."id_2"
                  ) IN (
                    SELECT
                      __pgt_q30."id"
                    FROM "__pgt_part_3" AS __pgt_q30
                  )
              ) AS __pgt_q27
            ) AS __pgt_q26
          ) AS __pgt_q25
        ) AS __pgt_q23
        WHERE
          __pgt_q23."__pgt_image" IN (
            SELECT
              __pgt_q32."__pgt_image"
            FROM "__pgt_part_2" AS __pgt_q32
          )
        UNION ALL
        SELECT
          __pgt_q33."id"
        FROM (
          SELECT
            __pgt_q35.*,
            CAST(ROW(__pgt_q35."id") AS TEXT) COLLATE "C" AS "__pgt_image"
          FROM (
            SELECT
              __pgt_q34."id"
            FROM "shop"."st_0" AS __pgt_q34
            WHERE
              FALSE
            UNION ALL
            SELECT
              __pgt_q36."id"
            FROM (
              SELECT
                __pgt_q41."dst" AS "id"
              FROM (
                SELECT
                  __pgt_q38."id",
                  __pgt_q38."__pgt_place",
                  __pgt_q38."__pgt_spot"
                FROM (
                  SELECT
                    __pgt_q39."id",
                    __pgt_q39.tableoid AS "__pgt_place",
                    __pgt_q39.ctid AS "__pgt_spot"
                  FROM "shop"."st_0" AS __pgt_q39
                ) AS __pgt_q38
                WHERE
                  NOT (__pgt_q38."__pgt_place", __pgt_q38."__pgt_spot") IN (
                    SELECT
                      __pgt_q40."__pgt_place",
                      __pgt_q40."__pgt_spot"
                    FROM "__pgt_part_2" AS __pgt_q40
                  )
              ) AS __pgt_q37
              CROSS JOIN (
                SELECT
                  __pgt_q42."src",
                  __pgt_q42."dst"
                FROM (
                  SELECT
                    __pgt_q43."src" AS "src",
                    __pgt_q43."dst" AS "dst"
                  FROM "shop"."edge" AS __pgt_q43
                ) AS __pgt_q42
                WHERE
                  (
                    __pgt_q42."dst"
                  ) IN (
                    SELECT
                      __pgt_q44."id"
                    FROM "__pgt_part_3" AS __pgt_q44
                  )
                UNION ALL
                SELECT
                  __pgt_q42."src",
                  __pgt_q42."dst"
                FROM (
                  SELECT
                    __pgt_q43."src" AS "src",
                    __pgt_q43."dst" AS "dst"
                  FROM "shop"."edge" AS __pgt_q43
                ) AS __pgt_q42
                WHERE
                  __pgt_q42."dst" IS NOT DISTINCT FROM NULL
                  AND EXISTS(
                    SELECT
                      1
                    FROM "__pgt_part_3" AS __pgt_q45
                    WHERE
                      __pgt_q45."id" IS NOT DISTINCT FROM NULL
                  )
              ) AS __pgt_q41
              WHERE
                (
                  __pgt_q41."src" = __pgt_q37."id"
                )
            ) AS __pgt_q36
          ) AS __pgt_q35
        ) AS __pgt_q33
        WHERE
          __pgt_q33."__pgt_image" IN (
            SELECT
              __pgt_q46."__pgt_image"
            FROM "__pgt_part_2" AS __pgt_q46
          )
        UNION ALL
        SELECT
          __pgt_q49."id"
        FROM (
          SELECT
            CAST((
              SUM(__pgt_q47."__pgt_w") OVER same
            ) AS BIGINT) AS "__pgt_w",
            ROW_NUMBER() OVER same AS __pgt_nth,
            __pgt_q47."id"
          FROM "__pgt_delta_1" AS __pgt_q47
          WHERE
            NOT __pgt_q47."__pgt_image" IN (
              SELECT
                __pgt_q48."__pgt_image"
              FROM "__pgt_part_2" AS __pgt_q48
            )
            AND (
              __pgt_q47."__pgt_spot" IS NULL
              OR NOT (__pgt_q47."__pgt_place", __pgt_q47."__pgt_spot") IN (
                SELECT
                  __pgt_q50."__pgt_place",
                  __pgt_q50."__pgt_spot"
                FROM "__pgt_part_2" AS __pgt_q50
              )
            )
            AND NOT EXISTS(
              SELECT
                1
              FROM "shop"."st_0" AS __pgt_q51
              WHERE
                (
                  __pgt_q51."id" = __pgt_q47."id"
                  OR (
                    __pgt_q51."id" IS NOT DISTINCT FROM NULL
                    AND __pgt_q47."id" IS NOT DISTINCT FROM NULL
                  )
                )
                AND CAST(ROW(__pgt_q51."id") AS TEXT) COLLATE "C" = __pgt_q47."__pgt_image"
                AND NOT (__pgt_q51.tableoid, __pgt_q51.ctid) IN (
                  SELECT
                    __pgt_q52."__pgt_place",
                    __pgt_q52."__pgt_spot"
                  FROM "__pgt_part_2" AS __pgt_q52
                )
              OFFSET 0
            )
          WINDOW same AS (PARTITION BY __pgt_q47."__pgt_image")
        ) AS __pgt_q49
        WHERE
          __pgt_q49.__pgt_nth = 1 AND __pgt_q49."__pgt_w" > 0
      ) AS __pgt_q62
      UNION
      SELECT
        __pgt_q53."id"
      FROM (
        SELECT
          __pgt_q55.*,
          CAST(ROW(__pgt_q55."id") AS TEXT) COLLATE "C" AS "__pgt_image"
        FROM (
          SELECT
            __pgt_q54."id"
          FROM "shop"."st_0" AS __pgt_q54
          WHERE
            FALSE
          UNION ALL
          SELECT
            __pgt_q56."id"
          FROM (
            SELECT
              __pgt_q59."dst" AS "id"
            FROM (
              SELECT
                __pgt_q58."id"
              FROM "__pgt_walk" AS __pgt_q58
            ) AS __pgt_q57
            CROSS JOIN "shop"."edge" AS __pgt_q59
            WHERE
              (
                __pgt_q59."src" = __pgt_q57."id"
              )
          ) AS __pgt_q56
        ) AS __pgt_q55
      ) AS __pgt_q53
      WHERE
        NOT EXISTS(
          SELECT
            1
          FROM "shop"."st_0" AS __pgt_q60
          WHERE
            (
              __pgt_q60."id" = __pgt_q53."id"
              OR (
                __pgt_q60."id" IS NOT DISTINCT FROM NULL
                AND __pgt_q53."id" IS NOT DISTINCT FROM NULL
              )
            )
            AND CAST(ROW(__pgt_q60."id") AS TEXT) COLLATE "C" = __pgt_q53."__pgt_image"
            AND NOT (__pgt_q60.tableoid, __pgt_q60.ctid) IN (
              SELECT
                __pgt_q61."__pgt_place",
                __pgt_q61."__pgt_spot"
              FROM "__pgt_part_2" AS __pgt_q61
            )
          OFFSET 0
        )
    )
    SELECT
      __pgt_q63."id"
    FROM "__pgt_walk" AS __pgt_q63
  ) AS __pgt_q22
) AS __pgt_q1
