-- Stream tables in parts: hidden ones that keep what another one is computed from, and are refreshed with it.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS part_of bigint,
    ADD COLUMN IF NOT EXISTS split_query text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.is_hidden IS 'Whether it keeps a part of another one.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.part_of IS 'pgt_id of the stream table that it is a part of.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.split_query IS
    'What says the same as defining_query over the parts; NULL where there are none.';

-- What stream tables read, their parts looked through; reader_pgt_id is the one, or the part, that reads it.
CREATE OR REPLACE VIEW pgtrickle.pgt_reads AS
WITH RECURSIVE walk AS (
    SELECT t.pgt_id, d.pgt_id AS reader_pgt_id, d.source_relid, d.source_pgt_id
    FROM pgtrickle.pgt_stream_tables t JOIN pgtrickle.pgt_dependencies d USING (pgt_id)
    WHERE NOT t.is_hidden
    UNION
    SELECT w.pgt_id, d.pgt_id, d.source_relid, d.source_pgt_id
    FROM walk w
    JOIN pgtrickle.pgt_stream_tables h ON h.pgt_id = w.source_pgt_id AND h.is_hidden
    JOIN pgtrickle.pgt_dependencies d ON d.pgt_id = h.pgt_id
)
SELECT
    w.pgt_id,
    w.reader_pgt_id,
    d.source_relid,
    d.source_type,
    d.source_schema,
    d.source_name,
    d.source_pgt_id,
    d.columns_used,
    d.cdc_mode
FROM walk w
JOIN pgtrickle.pgt_dependencies d ON (d.pgt_id, d.source_relid) = (w.reader_pgt_id, w.source_relid)
LEFT JOIN pgtrickle.pgt_stream_tables s ON s.pgt_id = d.source_pgt_id
WHERE s.is_hidden IS NOT TRUE;

CREATE OR REPLACE VIEW pgtrickle.stream_tables_info AS
SELECT
    t.pgt_id,
    format('%s.%s', t.pgt_schema, t.pgt_name) AS name,
    t.pgt_schema,
    t.pgt_name,
    t.pgt_relid,
    t.status,
    t.refresh_mode,
    t.schedule,
    e.every AS effective_schedule,
    t.is_populated,
    now() - t.data_timestamp AS staleness,
    coalesce(now() - t.data_timestamp > e.every, NOT t.is_populated) AS stale,
    t.data_timestamp,
    t.last_refresh_at,
    t.last_refresh_at AS last_refreshed_at,
    t.needs_reinit,
    t.reinit_reason,
    t.consecutive_errors,
    t.last_error,
    t.differentiable,
    t.refusal,
    ARRAY(
        SELECT DISTINCT format('%s.%s', r.source_schema, r.source_name) FROM pgtrickle.pgt_reads r
        WHERE r.pgt_id = t.pgt_id ORDER BY 1
    ) AS depends_on,
    l.topo_level,
    t.append_only,
    t.diamond_consistency,
    t.diamond_schedule_policy,
    t.requested_cdc_mode,
    t.partition_by,
    t.tier,
    t.differential_max_change_ratio,
    t.is_gated,
    t.gated_reason,
    t.is_hidden,
    t.topk_limit,
    t.topk_offset,
    t.topk_order_by,
    t.original_query,
    t.defining_query,
    t.frontier,
    t.created_at,
    t.updated_at
FROM pgtrickle.pgt_stream_tables t
LEFT JOIN pgtrickle.pgt_levels l USING (pgt_id)
LEFT JOIN pgtrickle.pgt_effective_schedules e USING (pgt_id)
WHERE NOT t.is_hidden;

-- Sources first, as before: parts are no level of their own.
CREATE OR REPLACE VIEW pgtrickle.pgt_levels AS
WITH RECURSIVE walk(pgt_id, level) AS (
    SELECT pgt_id, 0 FROM pgtrickle.pgt_stream_tables
    UNION
    SELECT r.pgt_id, w.level + 1
    FROM walk w JOIN pgtrickle.pgt_reads r ON r.source_pgt_id = w.pgt_id
    WHERE w.level < 1000
)
SELECT pgt_id, max(level) AS topo_level FROM walk GROUP BY pgt_id;

CREATE OR REPLACE FUNCTION pgtrickle.list_sources(name text)
RETURNS TABLE (source_table text, source_oid oid, source_type text, cdc_mode text, columns_used text[])
LANGUAGE sql STABLE
AS $$
    SELECT format('%s.%s', r.source_schema, r.source_name), r.source_relid, min(r.source_type), min(r.cdc_mode),
           (SELECT array_agg(DISTINCT c ORDER BY c)
            FROM pgtrickle.pgt_reads o, unnest(o.columns_used) AS c
            WHERE o.pgt_id = r.pgt_id AND o.source_relid = r.source_relid)
    FROM pgtrickle.pgt_reads r
    WHERE r.pgt_id = pgtrickle.pgt_resolve($1)
    GROUP BY r.pgt_id, r.source_relid, r.source_schema, r.source_name
    ORDER BY 1
$$;

-- Roots are the tables nobody reads; below each stand its sources.
CREATE OR REPLACE FUNCTION pgtrickle.dependency_tree()
RETURNS TABLE (tree_line text, node text, node_type text, depth integer, status text, refresh_mode text)
LANGUAGE sql STABLE
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

-- A source that several parts read is pending once: they are refreshed together.
CREATE OR REPLACE FUNCTION pgtrickle.change_buffer_sizes()
RETURNS TABLE (
    stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint, buffer_bytes bigint
)
LANGUAGE sql STABLE
AS $$
    SELECT format('%s.%s', t.pgt_schema, t.pgt_name), format('%s.%s', r.source_schema, r.source_name), r.source_relid,
           min(r.cdc_mode), max(pgtrickle.pgt_pending_rows(b.buffer, reader.frontier, b.source_key)),
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
