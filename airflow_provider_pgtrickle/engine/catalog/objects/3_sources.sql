-- What stream tables read, and how the capture of it fares.

CREATE OR REPLACE FUNCTION pgtrickle.list_sources(name text)
RETURNS TABLE (source_table text, source_oid oid, source_type text, cdc_mode text, columns_used text[])
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT format('%s.%s', r.source_schema, r.source_name), r.source_relid, min(r.source_type), min(r.cdc_mode),
           (SELECT array_agg(DISTINCT c ORDER BY c)
            FROM pgtrickle.pgt_reads_of(ARRAY[r.pgt_id]) o, unnest(o.columns_used) AS c
            WHERE o.source_relid = r.source_relid)
    FROM pgtrickle.pgt_reads_of(ARRAY[pgtrickle.pgt_resolve($1)]) r
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

-- Whether a buffer holds all that was written to it. A crash of the server empties those that are UNLOGGED, and with
-- them the mark that they were given, a row of transaction 0. A server in recovery can't read them.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_buffer_survived(buffer text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    survived boolean := true;
BEGIN
    IF NOT pg_is_in_recovery() AND EXISTS (
        SELECT FROM pg_class WHERE oid = to_regclass(format('pgtrickle_changes.%I', buffer)) AND relpersistence = 'u'
    ) THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM pgtrickle_changes.%I WHERE xid = ''0'')', buffer) INTO survived;
    END IF;
    RETURN survived;
END
$$;

-- Rows of a buffer that a frontier doesn't hold yet; all of them where there is none. An UPDATE counts if it changes
-- one of `columns`, where these are given.
DROP FUNCTION IF EXISTS pgtrickle.pgt_pending_rows(text, jsonb, text);
CREATE OR REPLACE FUNCTION pgtrickle.pgt_pending_rows(
    buffer text, frontier jsonb, source_key text, columns text[] DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    seen jsonb := frontier #> ARRAY['sources', source_key];
    snapshot pg_snapshot := (seen ->> 'snapshot')::pg_snapshot;
    own xid8[] := ARRAY(SELECT x::xid8 FROM jsonb_array_elements_text(seen -> 'also') AS x);
    file pg_class;
    concerns text;
    pending bigint;
BEGIN
    SELECT * INTO file FROM pg_class WHERE oid = to_regclass(format('pgtrickle_changes.%I', buffer));
    IF file.oid IS NULL OR file.relpersistence = 'u' AND pg_is_in_recovery() THEN
        RETURN NULL;
    ELSIF snapshot IS NULL THEN
        EXECUTE format('SELECT count(*) FROM pgtrickle_changes.%I WHERE xid > ''0''', buffer) INTO pending;
    ELSE
        -- A long name is shortened in the buffer, so any change counts then.
        IF NOT EXISTS (SELECT FROM unnest(columns) AS c WHERE octet_length(c) > 59) THEN
            SELECT format('(action <> ''U'' OR ROW(%s)::record *<> ROW(%s)::record)',
                          string_agg(format('%I', 'new_' || c), ', '), string_agg(format('%I', 'old_' || c), ', '))
              INTO concerns
              FROM unnest(columns) AS c
             WHERE 2 = (SELECT count(*) FROM pg_attribute a
                        WHERE a.attrelid = file.oid AND NOT a.attisdropped AND a.attname IN ('new_' || c, 'old_' || c));
        END IF;
        EXECUTE format('SELECT count(*) FROM pgtrickle_changes.%I WHERE xid >= $1'
                       ' AND NOT pg_visible_in_snapshot(xid, $2) AND xid <> ALL($3) AND %s',
                       buffer, coalesce(concerns, 'true'))
        INTO pending USING pg_snapshot_xmin(snapshot), snapshot, own;
    END IF;
    RETURN pending;
END
$$;

-- What the log tells of captured tables and no buffer holds yet: rows by source and transaction. Whoever may ask needs
-- no right to replicate. If another session reads the slot just now, the answer is empty, and complete the next time.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_wal_pending()
RETURNS TABLE (source_relid oid, xid xid8, rows bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here pgtrickle.pgt_wal_status;
    near bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN;
    END IF;
    SELECT * INTO here FROM pgtrickle.pgt_wal_status;
    IF here.slot_name IS NULL OR here.is_lost OR here.lag_bytes <= 0 THEN
        RETURN;
    END IF;
    -- A change of a row begins with its kind (I, U, D) and its table; of a transaction's beginning (B) the first number
    -- says where its commit begins.
    RETURN QUERY
        WITH message AS MATERIALIZED (
            SELECT m.xid, m.data, get_byte(m.data, 0) AS kind, row_number() OVER () AS place
            FROM pg_logical_slot_peek_binary_changes(here.slot_name, NULL, NULL, 'proto_version', '1',
                                                     'publication_names', here.publication) AS m
        ), began AS (
            SELECT b.xid, ('x' || encode(substr(b.data, 2, 8), 'hex'))::bit(64)::bigint AS commit_at
            FROM message b WHERE b.kind = 66
        ), changed AS (
            SELECT m.xid, ('x' || encode(substr(m.data, 2, 4), 'hex'))::bit(32)::bigint AS relid, count(*) AS rows
            FROM message m WHERE m.kind IN (68, 73, 85) GROUP BY 1, 2
        ), above AS (
            SELECT DISTINCT h.relid, c.source_relid, c.wal_from, c.wal_until
            FROM changed h
            CROSS JOIN LATERAL (
                WITH RECURSIVE up(oid) AS (
                    SELECT h.relid::oid UNION
                    SELECT i.inhparent FROM pg_inherits i JOIN up ON i.inhrelid = up.oid)
                SELECT u.oid FROM up u) AS u
            JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = u.oid AND c.wal_from IS NOT NULL
        )
        SELECT a.source_relid,
               (near + (((h.xid::text::bigint - near + 2147483648) & 4294967295) - 2147483648))::text::xid8,
               sum(h.rows)::bigint
        FROM changed h JOIN began b USING (xid) JOIN above a USING (relid)
        WHERE b.commit_at >= here.position - '0/0'::pg_lsn AND b.commit_at >= a.wal_from - '0/0'::pg_lsn
          AND (a.wal_until IS NULL OR b.commit_at < a.wal_until - '0/0'::pg_lsn)
        GROUP BY 1, 2;
EXCEPTION WHEN object_in_use THEN
    RETURN;
END
$$;

-- What waits for these stream tables, or with NULL for all. A source that several parts read is pending once: they are
-- refreshed together.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_buffer_sizes(ids bigint[])
RETURNS TABLE (
    pgt_id bigint, stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint,
    buffer_bytes bigint
)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH log AS MATERIALIZED (SELECT * FROM pgtrickle.pgt_wal_pending())
    SELECT t.pgt_id, format('%s.%s', t.pgt_schema, t.pgt_name), format('%s.%s', r.source_schema, r.source_name),
           r.source_relid,
           min(r.cdc_mode), max(CASE WHEN reader.is_live THEN 0
                                 ELSE pgtrickle.pgt_pending_rows(b.buffer, reader.frontier, b.source_key,
                                           CASE WHEN r.source_pgt_id IS NULL THEN r.columns_used END)
                                      + coalesce(b.in_log, 0) END),
           max(pg_total_relation_size(to_regclass(format('pgtrickle_changes.%I', b.buffer))))
    FROM pgtrickle.pgt_reads_of(ids) r
    JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
    JOIN pgtrickle.pgt_stream_tables reader ON reader.pgt_id = r.reader_pgt_id
    LEFT JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = r.source_relid
    CROSS JOIN LATERAL (
        SELECT coalesce('changes_pgt_' || r.source_pgt_id, c.buffer) AS buffer,
               coalesce('pgt_' || r.source_pgt_id, r.source_relid::text) AS source_key,
               (SELECT sum(l.rows) FROM log l
                WHERE l.source_relid = r.source_relid AND r.source_pgt_id IS NULL
                  AND NOT coalesce(pg_visible_in_snapshot(l.xid, (reader.frontier #>>
                      ARRAY['sources', r.source_relid::text, 'snapshot'])::pg_snapshot), false))::bigint AS in_log
    ) AS b
    WHERE b.buffer IS NOT NULL
    GROUP BY t.pgt_id, t.pgt_schema, t.pgt_name, r.source_relid, r.source_schema, r.source_name
    ORDER BY 2, 3;
END;

CREATE OR REPLACE FUNCTION pgtrickle.change_buffer_sizes()
RETURNS TABLE (
    stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint, buffer_bytes bigint
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT stream_table, source_table, source_oid, cdc_mode, pending_rows, buffer_bytes
    FROM pgtrickle.pgt_buffer_sizes(NULL) ORDER BY stream_table, source_table
$$;

-- A glance at each buffer, unless somebody took one lately. Nothing is counted: the statistics have the rows.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_sample_buffers() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pgtrickle.pgt_buffer_samples WHERE at > now() - interval '10 minutes')
       -- A role that only refreshes may lack this, and need not have it.
       OR NOT (has_table_privilege('pgtrickle.pgt_buffer_samples', 'INSERT')
               AND has_table_privilege('pgtrickle.pgt_buffer_samples', 'DELETE')) THEN
        RETURN;
    END IF;
    DELETE FROM pgtrickle.pgt_buffer_samples WHERE at < now() - interval '2 days';
    INSERT INTO pgtrickle.pgt_buffer_samples (buffer, rows, bytes)
    SELECT relname, pg_stat_get_live_tuples(oid), pg_total_relation_size(oid)
    FROM pg_class
    WHERE relnamespace = 'pgtrickle_changes'::regnamespace AND relkind = 'r' AND starts_with(relname, 'changes_')
    ON CONFLICT DO NOTHING;
END
$$;

-- Refreshes empty a buffer again and again, so it rises and falls. One that grows is never as empty as it was: its low
-- in the later half of a day is above that in the earlier half.
CREATE OR REPLACE VIEW pgtrickle.pgt_buffer_growth AS
WITH day AS (
    SELECT * FROM pgtrickle.pgt_buffer_samples WHERE at > now() - interval '1 day'
), half AS (
    SELECT buffer, min(at) AS since, min(at) + (max(at) - min(at)) / 2 AS middle, count(*) AS samples
    FROM day GROUP BY buffer
), low AS (
    SELECT d.buffer, h.since, h.samples,
           min(d.rows) FILTER (WHERE d.at <= h.middle) AS low_before,
           min(d.rows) FILTER (WHERE d.at > h.middle) AS low_since,
           array_agg(d.rows ORDER BY d.at) AS rows,
           (array_agg(d.bytes ORDER BY d.at DESC))[1] AS bytes
    FROM day d JOIN half h USING (buffer)
    GROUP BY d.buffer, h.since, h.samples
)
SELECT r.source, l.since, l.samples, l.low_before, l.low_since, l.rows, l.bytes,
       l.samples >= 6 AND l.low_since > 1.5 * l.low_before + 1000 AS grows
FROM low l
JOIN (
    SELECT DISTINCT coalesce('changes_pgt_' || d.source_pgt_id, c.buffer) AS buffer,
           format('%s.%s', d.source_schema, d.source_name) AS source
    FROM pgtrickle.pgt_reads d LEFT JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = d.source_relid
) r USING (buffer);

-- Stream tables that may have missed changes: the capture of a source was touched, or mended since, or its buffer is
-- not the one that they have read so far. So may those that a crash of the server empties.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_distrusted_of(ids bigint[]) RETURNS TABLE (pgt_id bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH read AS MATERIALIZED (
        SELECT * FROM pgtrickle.pgt_reads_of(ids)
    ), torn AS MATERIALIZED (
        -- As one value: mostly it is empty, and a join of two lists of unknown length would compare all with all.
        SELECT pg_catalog.array_agg(c.source_relid) AS relids
        FROM pgtrickle.pgt_change_tracking c
        WHERE c.source_relid = ANY (ARRAY(SELECT source_relid FROM read WHERE source_pgt_id IS NULL))
          AND (c.digest IS DISTINCT FROM pgtrickle.pgt_capture_digest(c.source_relid)
               OR c.mode = 'WAL' AND coalesce((SELECT w.is_lost FROM pgtrickle.pgt_wal_status w), true))
    )
    SELECT DISTINCT r.pgt_id
    FROM read r
    JOIN pgtrickle.pgt_stream_tables reader ON reader.pgt_id = r.reader_pgt_id
    LEFT JOIN pgtrickle.pgt_change_tracking s ON s.source_relid = r.source_relid AND r.source_pgt_id IS NULL
    CROSS JOIN LATERAL (
        SELECT coalesce('pgt_' || r.source_pgt_id, r.source_relid::text) AS source_key
    ) AS k
    LEFT JOIN pg_catalog.pg_class b
        ON b.relname = 'changes_' || k.source_key AND b.relnamespace = pg_catalog.to_regnamespace('pgtrickle_changes')
    CROSS JOIN LATERAL (SELECT reader.frontier #> ARRAY['sources', k.source_key] AS seen) AS f
    WHERE reader.is_populated AND r.cdc_mode <> 'NONE'
      AND (coalesce(s.source_relid = ANY ((SELECT relids FROM torn)::oid[]), false)
           OR b.relpersistence = 'u' AND NOT pgtrickle.pgt_buffer_survived(b.relname)
           OR b.relfilenode::bigint IS DISTINCT FROM (f.seen ->> 'buffer')::bigint
           OR r.source_pgt_id IS NULL AND s.epoch IS DISTINCT FROM (f.seen ->> 'epoch')::bigint
           OR EXISTS (SELECT FROM pg_catalog.pg_class c
                      WHERE c.oid = reader.pgt_relid AND c.relpersistence = 'u')
           OR pgtrickle.pgt_was_rewritten(
                  ARRAY(SELECT jsonb_array_elements_text(reader.frontier -> 'table')),
                  pgtrickle.pgt_table_digest(reader.pgt_id)));
END;

CREATE OR REPLACE VIEW pgtrickle.pgt_distrusted AS SELECT * FROM pgtrickle.pgt_distrusted_of(NULL);

DROP FUNCTION IF EXISTS pgtrickle.check_cdc_health(bigint);
CREATE OR REPLACE FUNCTION pgtrickle.check_cdc_health(
    warning_rows bigint DEFAULT 1000000, warning_lag_mb bigint DEFAULT 100
)
RETURNS TABLE (
    source_table text, source_oid oid, cdc_mode text, slot_name text, selective_capture boolean,
    captured_columns text[], consumers integer, pending_rows bigint, buffer_bytes bigint, lag_bytes bigint, alert text
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s.%s', c.source_schema, c.source_name), c.source_relid, c.mode,
           CASE WHEN c.mode = 'WAL' THEN w.slot_name ELSE c.slot_name END,
           cardinality(c.columns) < facts.columns, c.columns, cardinality(c.tracked_by_pgt_ids), facts.pending,
           pg_total_relation_size(facts.buffer), CASE WHEN c.mode = 'WAL' THEN w.lag_bytes END,
           CASE
               WHEN facts.columns = 0 AND to_regclass(format('%I.%I', c.source_schema, c.source_name)) IS NOT NULL
                   THEN 'source_made_anew'
               WHEN facts.columns = 0 THEN 'source_dropped'
               WHEN facts.buffer IS NULL THEN 'buffer_missing'
               WHEN NOT pgtrickle.pgt_buffer_survived(c.buffer) THEN 'buffer_emptied'
               WHEN facts.disabled THEN 'trigger_disabled'
               WHEN c.mode = 'WAL' AND (w.slot_name IS NULL OR NOT w.is_there) THEN 'replication_slot_missing'
               WHEN c.mode = 'WAL' AND w.is_lost THEN 'replication_slot_lost'
               WHEN c.mode = 'WAL' AND NOT facts.suffixes @> ARRAY['truncate'] THEN 'trigger_missing'
               WHEN c.mode = 'TRIGGER' AND NOT facts.suffixes @> ARRAY['truncate', 'row']
                    AND NOT facts.suffixes @> ARRAY['truncate', 'replica', 'insert', 'update', 'delete']
                   THEN 'trigger_missing'
               WHEN c.digest IS DISTINCT FROM pgtrickle.pgt_capture_digest(c.source_relid) THEN 'capture_torn'
               WHEN facts.pending > warning_rows THEN 'buffer_growth_warning'
               WHEN c.mode = 'WAL' AND w.lag_bytes > warning_lag_mb * 1048576 THEN 'slot_lag_exceeds_threshold'
           END
    FROM pgtrickle.pgt_change_tracking c
    LEFT JOIN pgtrickle.pgt_wal_status w ON true
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

-- The slots of this database that were made for capture, also those that nothing reads any more: source_relid is NULL.
CREATE OR REPLACE FUNCTION pgtrickle.slot_health()
RETURNS TABLE (slot_name text, source_relid oid, active boolean, retained_wal_bytes bigint, wal_status text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT s.slot_name, c.source_relid, s.active,
           pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                ELSE pg_current_wal_insert_lsn() END, s.restart_lsn)::bigint,
           s.wal_status
    FROM pg_replication_slots s
    LEFT JOIN pgtrickle.pgt_wal w ON w.slot_name = s.slot_name
    LEFT JOIN pgtrickle.pgt_change_tracking c ON c.mode = 'WAL' AND w.slot_name IS NOT NULL
    WHERE s.database = current_database() AND starts_with(s.slot_name, 'pgtrickle_') AND s.plugin = 'pgoutput'
    ORDER BY 1, 2
$$;

-- The rows of a statement. PostgreSQL uses no parallel workers for a statement that writes, and INSERT ... SELECT is
-- one; what a function reads is a statement of its own.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_rows(statement text) RETURNS SETOF record
LANGUAGE plpgsql
AS $$ BEGIN RETURN QUERY EXECUTE statement; END $$;
