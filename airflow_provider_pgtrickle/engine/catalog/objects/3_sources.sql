-- What stream tables read, and how the capture of it fares.

CREATE OR REPLACE FUNCTION pgtrickle.list_sources(name text)
RETURNS TABLE (source_table text, source_oid oid, source_type text, cdc_mode text, columns_used text[])
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT format('%s.%s', r.source_schema, r.source_name), r.source_relid, min(r.source_type), min(r.cdc_mode),
           (SELECT array_agg(DISTINCT c ORDER BY c)
            FROM pgtrickle.pgt_reads o, unnest(o.columns_used) AS c
            WHERE o.pgt_id = r.pgt_id AND o.source_relid = r.source_relid)
    FROM pgtrickle.pgt_reads r
    WHERE r.pgt_id = pgtrickle.pgt_resolve($1)
    GROUP BY r.pgt_id, r.source_relid, r.source_schema, r.source_name
    ORDER BY 1;
END;

-- Roots are the tables nobody reads; below each stand its sources.
CREATE OR REPLACE FUNCTION pgtrickle.dependency_tree()
RETURNS TABLE (tree_line text, node text, node_type text, depth integer, status text, refresh_mode text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE reads AS (
        SELECT DISTINCT pgt_id, source_pgt_id, source_schema, source_name FROM pgtrickle.pgt_reads
    ), tree AS (
        SELECT t.pgt_id, format('%s.%s', t.pgt_schema, t.pgt_name) AS node, 0 AS depth,
               ''::text AS indent, ''::text AS branch, ARRAY[format('%s.%s', t.pgt_schema, t.pgt_name)] AS path
        FROM pgtrickle.pgt_stream_tables t
        WHERE NOT t.is_hidden AND NOT EXISTS (SELECT FROM reads r WHERE r.source_pgt_id = t.pgt_id)
        UNION ALL
        SELECT below.pgt_id, below.node, above.depth + 1,
               above.indent || CASE WHEN above.depth = 0 THEN '' WHEN above.branch LIKE '└%' THEN '    ' ELSE '│   ' END,
               CASE WHEN below.is_last THEN '└── ' ELSE '├── ' END,
               above.path || below.node
        FROM tree above
        CROSS JOIN LATERAL (
            SELECT r.source_pgt_id AS pgt_id, format('%s.%s', r.source_schema, r.source_name) AS node,
                   row_number() OVER (ORDER BY r.source_schema, r.source_name) = count(*) OVER () AS is_last
            FROM reads r WHERE r.pgt_id = above.pgt_id
        ) AS below
        WHERE above.depth < 100
    )
    SELECT tree.indent || tree.branch || tree.node || CASE WHEN tree.pgt_id IS NULL THEN ' [src]' ELSE '' END,
           tree.node, CASE WHEN tree.pgt_id IS NULL THEN 'source_table' ELSE 'stream_table' END,
           tree.depth, t.status, t.refresh_mode
    FROM tree LEFT JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
    ORDER BY tree.path
$$;

-- Rows of a buffer that a frontier doesn't hold yet; all of them where there is none.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_pending_rows(buffer text, frontier jsonb, source_key text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    seen jsonb := frontier #> ARRAY['sources', source_key];
    snapshot pg_snapshot := (seen ->> 'snapshot')::pg_snapshot;
    own xid8[] := ARRAY(SELECT x::xid8 FROM jsonb_array_elements_text(seen -> 'also') AS x);
    pending bigint;
BEGIN
    IF to_regclass(format('pgtrickle_changes.%I', buffer)) IS NULL THEN
        RETURN NULL;
    ELSIF snapshot IS NULL THEN
        EXECUTE format('SELECT count(*) FROM pgtrickle_changes.%I', buffer) INTO pending;
    ELSE
        EXECUTE format('SELECT count(*) FROM pgtrickle_changes.%I WHERE xid >= $1'
                       ' AND NOT pg_visible_in_snapshot(xid, $2) AND xid <> ALL($3)', buffer)
        INTO pending USING pg_snapshot_xmin(snapshot), snapshot, own;
    END IF;
    RETURN pending;
END
$$;

-- A source that several parts read is pending once: they are refreshed together.
CREATE OR REPLACE FUNCTION pgtrickle.change_buffer_sizes()
RETURNS TABLE (
    stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint, buffer_bytes bigint
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s.%s', t.pgt_schema, t.pgt_name), format('%s.%s', r.source_schema, r.source_name), r.source_relid,
           min(r.cdc_mode), max(CASE WHEN reader.is_live THEN 0
                                 ELSE pgtrickle.pgt_pending_rows(b.buffer, reader.frontier, b.source_key) END),
           max(pg_total_relation_size(to_regclass(format('pgtrickle_changes.%I', b.buffer))))
    FROM pgtrickle.pgt_reads r
    JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
    JOIN pgtrickle.pgt_stream_tables reader ON reader.pgt_id = r.reader_pgt_id
    LEFT JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = r.source_relid
    CROSS JOIN LATERAL (
        SELECT coalesce('changes_pgt_' || r.source_pgt_id, c.buffer) AS buffer,
               coalesce('pgt_' || r.source_pgt_id, r.source_relid::text) AS source_key
    ) AS b
    WHERE b.buffer IS NOT NULL
    GROUP BY t.pgt_id, t.pgt_schema, t.pgt_name, r.source_relid, r.source_schema, r.source_name
    ORDER BY 1, 2
$$;

-- Stream tables that may have missed changes: the capture of a source was touched, or mended since, or its buffer is
-- not the one that they have read so far. So may those that a crash of the server empties.
CREATE OR REPLACE VIEW pgtrickle.pgt_distrusted AS
WITH source AS MATERIALIZED (
    SELECT c.source_relid, c.epoch, c.digest IS DISTINCT FROM pgtrickle.pgt_capture_digest(c.source_relid) AS is_torn
    FROM pgtrickle.pgt_change_tracking c
)
SELECT DISTINCT r.pgt_id
FROM pgtrickle.pgt_reads r
JOIN pgtrickle.pgt_stream_tables reader ON reader.pgt_id = r.reader_pgt_id
LEFT JOIN source s ON s.source_relid = r.source_relid AND r.source_pgt_id IS NULL
CROSS JOIN LATERAL (
    SELECT coalesce('pgt_' || r.source_pgt_id, r.source_relid::text) AS source_key
) AS k
LEFT JOIN pg_catalog.pg_class b
    ON b.relname = 'changes_' || k.source_key AND b.relnamespace = pg_catalog.to_regnamespace('pgtrickle_changes')
CROSS JOIN LATERAL (SELECT reader.frontier #> ARRAY['sources', k.source_key] AS seen) AS f
WHERE reader.is_populated AND r.cdc_mode <> 'NONE'
  AND (coalesce(s.is_torn, false)
       OR b.relfilenode::bigint IS DISTINCT FROM (f.seen ->> 'buffer')::bigint
       OR r.source_pgt_id IS NULL AND s.epoch IS DISTINCT FROM (f.seen ->> 'epoch')::bigint
       OR EXISTS (SELECT FROM pg_catalog.pg_class c
                  WHERE c.oid = reader.pgt_relid AND c.relpersistence = 'u')
       OR pgtrickle.pgt_was_rewritten(
              ARRAY(SELECT jsonb_array_elements_text(reader.frontier -> 'table')),
              pgtrickle.pgt_table_digest(reader.pgt_id)));

CREATE OR REPLACE FUNCTION pgtrickle.check_cdc_health(warning_rows bigint DEFAULT 1000000)
RETURNS TABLE (
    source_table text, source_oid oid, cdc_mode text, slot_name text, selective_capture boolean,
    captured_columns text[], consumers integer, pending_rows bigint, buffer_bytes bigint, lag_bytes bigint, alert text
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s.%s', c.source_schema, c.source_name), c.source_relid, 'TRIGGER', c.slot_name,
           cardinality(c.columns) < facts.columns, c.columns, cardinality(c.tracked_by_pgt_ids), facts.pending,
           pg_total_relation_size(facts.buffer), NULL::bigint,
           CASE
               WHEN facts.columns = 0 AND to_regclass(format('%I.%I', c.source_schema, c.source_name)) IS NOT NULL
                   THEN 'source_made_anew'
               WHEN facts.columns = 0 THEN 'source_dropped'
               WHEN facts.buffer IS NULL THEN 'buffer_missing'
               WHEN facts.disabled THEN 'trigger_disabled'
               WHEN NOT facts.suffixes @> ARRAY['truncate', 'row']
                    AND NOT facts.suffixes @> ARRAY['truncate', 'replica', 'insert', 'update', 'delete']
                   THEN 'trigger_missing'
               WHEN c.digest IS DISTINCT FROM pgtrickle.pgt_capture_digest(c.source_relid) THEN 'capture_torn'
               WHEN facts.pending > warning_rows THEN 'buffer_growth_warning'
           END
    FROM pgtrickle.pgt_change_tracking c
    CROSS JOIN LATERAL (
        SELECT
            (SELECT count(*) FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.source_relid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
            to_regclass(format('pgtrickle_changes.%I', c.buffer)) AS buffer,
            pgtrickle.pgt_pending_rows(c.buffer, NULL, NULL) AS pending,
            EXISTS (SELECT FROM pg_catalog.pg_trigger t
                    WHERE t.tgrelid = c.source_relid AND starts_with(t.tgname, c.slot_name || '_')
                      AND t.tgenabled = 'D')
                AS disabled,
            ARRAY(SELECT substr(t.tgname, length(c.slot_name) + 2) FROM pg_catalog.pg_trigger t
                  WHERE t.tgrelid = c.source_relid AND starts_with(t.tgname, c.slot_name || '_')) AS suffixes
    ) AS facts
    ORDER BY 1
$$;

-- Capture is by triggers alone; the function stands for monitoring that asks for it.
CREATE OR REPLACE FUNCTION pgtrickle.slot_health()
RETURNS TABLE (slot_name text, source_relid oid, active boolean, retained_wal_bytes bigint, wal_status text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT NULL::text, NULL::oid, NULL::boolean, NULL::bigint, NULL::text WHERE false $$;
