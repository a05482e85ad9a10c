-- The state of stream tables, for whoever has only psql.

CREATE OR REPLACE FUNCTION pgtrickle.version() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT 'catalog ' || max(number) FROM pgtrickle.pgt_migrations $$;

-- What a name means is the caller's to say, by his own path; with what it is compared is not. A body of BEGIN ATOMIC is
-- bound when it is made, so that nothing in it is looked up but the name.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_named(relation oid, parts text[], name text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found bigint[];
BEGIN
    SELECT array_agg(t.pgt_id) INTO found
    FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_relid = relation;
    IF found IS NULL THEN
        SELECT array_agg(t.pgt_id) INTO found
        FROM pgtrickle.pgt_stream_tables t
        WHERE t.pgt_name = parts[cardinality(parts)]
          AND (cardinality(parts) = 1 OR t.pgt_schema = parts[cardinality(parts) - 1]);
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no stream table %', name
            USING ERRCODE = 'undefined_table', HINT = 'SELECT name FROM pgtrickle.stream_tables_info lists them.';
    ELSIF cardinality(found) > 1 THEN
        RAISE EXCEPTION 'there are stream tables % in several schemas', name
            USING ERRCODE = 'ambiguous_alias', HINT = 'Write schema.name.';
    END IF;
    RETURN found[1];
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.pgt_resolve(name text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT pgtrickle.pgt_named(to_regclass(name)::oid, parse_ident(name), name);
END;

COMMENT ON FUNCTION pgtrickle.pgt_resolve(text) IS 'Id of the stream table that a name means.';

CREATE OR REPLACE FUNCTION pgtrickle.visible_columns(name text) RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
    FROM pgtrickle.pgt_stream_tables t
    JOIN pg_catalog.pg_attribute a ON a.attrelid = t.pgt_relid
    WHERE t.pgt_id = pgtrickle.pgt_resolve($1)
      AND a.attnum > 0 AND NOT a.attisdropped AND NOT starts_with(a.attname, '__pgt_');
END;

COMMENT ON FUNCTION pgtrickle.visible_columns(text) IS
    'The columns of a stream table that its query has, as a list for a SELECT or for a view that readers use.';

-- PostgreSQL refuses a partition whose rows are in the DEFAULT one; this takes them out, and in again behind it. Both are
-- done through partitions of the table, so that a publication and triggers see each row leave and come.
CREATE OR REPLACE FUNCTION pgtrickle.add_partition(name text, partition text, bounds text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    root regclass := (SELECT pgt_relid FROM pgtrickle.pgt_stream_tables WHERE pgt_id = pgtrickle.pgt_resolve(name));
    rest regclass := (SELECT i.inhrelid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                      WHERE i.inhparent = root AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT');
    parts text[] := parse_ident(partition);
    target text;
    fits text;
    columns text;
    before text := coalesce(current_setting('pgtrickle.refreshing', true), '');
    moved bigint := 0;
    number bigint := pgtrickle.pgt_resolve(name);
    is_known boolean := false;
BEGIN
    -- A refresh that commits holds this row before the table, so it is taken in that order here, too.
    IF has_column_privilege('pgtrickle.pgt_stream_tables', 'frontier', 'UPDATE') THEN
        PERFORM FROM pgtrickle.pgt_stream_tables WHERE pgt_id = number FOR UPDATE;
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', root);
        SELECT NOT pgtrickle.pgt_was_rewritten(
                   ARRAY(SELECT jsonb_array_elements_text(t.frontier -> 'table')), pgtrickle.pgt_table_digest(number))
               AND t.frontier ? 'table'
        INTO is_known FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = number;
    END IF;
    target := format('%I.%I',
        CASE WHEN cardinality(parts) > 1 THEN parts[1]
             ELSE (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = root) END,
        parts[cardinality(parts)]);
    IF rest IS NULL THEN
        EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES %s', target, root, bounds);
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', target);
        RETURN 0;  -- it is empty, and so nothing that a refresh would doubt
    END IF;
    PERFORM set_config('pgtrickle.refreshing', 'on', true);
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', root);
    -- A table of the same shape says what the bounds mean.
    EXECUTE format('CREATE TEMPORARY TABLE pgt_shape (LIKE %s) PARTITION BY %s', root, pg_get_partkeydef(root));
    EXECUTE format('CREATE TEMPORARY TABLE pgt_moving PARTITION OF pg_temp.pgt_shape FOR VALUES %s', bounds);
    fits := pg_get_partition_constraintdef('pg_temp.pgt_moving'::regclass);
    columns := (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                WHERE a.attrelid = root AND a.attnum > 0 AND NOT a.attisdropped);
    EXECUTE format('INSERT INTO pg_temp.pgt_moving (%1$s) SELECT %1$s FROM %2$s WHERE %3$s', columns, rest, fits);
    GET DIAGNOSTICS moved = ROW_COUNT;
    EXECUTE format('DELETE FROM %s WHERE %s', rest, fits);
    EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES %s', target, root, bounds);
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', target);
    EXECUTE format('INSERT INTO %s (%2$s) SELECT %2$s FROM pg_temp.pgt_moving', root, columns);
    DROP TABLE pg_temp.pgt_shape;
    PERFORM set_config('pgtrickle.refreshing', before, true);
    IF is_known THEN
        -- The next refresh finds the partitions as it knows them.
        UPDATE pgtrickle.pgt_stream_tables
        SET frontier = jsonb_set(frontier, '{table}', to_jsonb(pgtrickle.pgt_table_digest(number)))
        WHERE pgt_id = number;
    END IF;
    RETURN moved;
END
$$;

COMMENT ON FUNCTION pgtrickle.add_partition(text, text, text) IS
    'Add a partition to a stream table, with the rows of the DEFAULT one that belong to it: their number.';

-- NULL for cron expressions and where there is nothing to parse.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_schedule_interval(schedule text) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN trim(schedule) ~* '^(\d+[smhdw]\s*)+$' THEN
        (SELECT sum(part[1]::int * CASE lower(part[2])
            WHEN 's' THEN interval '1 second' WHEN 'm' THEN interval '1 minute' WHEN 'h' THEN interval '1 hour'
            WHEN 'd' THEN interval '24 hours' ELSE interval '168 hours' END)
         FROM regexp_matches(schedule, '(\d+)([smhdw])', 'gi') AS part)
    END
$$;

-- What these stream tables read, or with NULL all of them, their parts looked through; reader_pgt_id is the one, or the
-- part, that reads it. PostgreSQL takes the function into the query that calls it.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_reads_of(ids bigint[])
RETURNS TABLE (
    pgt_id bigint, reader_pgt_id bigint, source_relid oid, source_type text, source_schema text, source_name text,
    source_pgt_id bigint, columns_used text[], cdc_mode text
)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE walk AS (
        SELECT t.pgt_id, d.pgt_id AS reader_pgt_id, d.source_relid, d.source_pgt_id
        FROM pgtrickle.pgt_stream_tables t JOIN pgtrickle.pgt_dependencies d USING (pgt_id)
        WHERE NOT t.is_hidden AND (ids IS NULL OR t.pgt_id = ANY (ids))
        UNION
        SELECT w.pgt_id, d.pgt_id, d.source_relid, d.source_pgt_id
        FROM walk w
        JOIN pgtrickle.pgt_stream_tables h ON h.pgt_id = w.source_pgt_id AND h.is_hidden
        JOIN pgtrickle.pgt_dependencies d ON d.pgt_id = h.pgt_id
    )
    SELECT w.pgt_id, w.reader_pgt_id, d.source_relid, d.source_type, d.source_schema, d.source_name, d.source_pgt_id,
           d.columns_used, d.cdc_mode
    FROM walk w
    JOIN pgtrickle.pgt_dependencies d ON (d.pgt_id, d.source_relid) = (w.reader_pgt_id, w.source_relid)
    LEFT JOIN pgtrickle.pgt_stream_tables s ON s.pgt_id = d.source_pgt_id
    WHERE s.is_hidden IS NOT TRUE;
END;

CREATE OR REPLACE VIEW pgtrickle.pgt_reads AS SELECT * FROM pgtrickle.pgt_reads_of(NULL);

-- Sources first; level 0 reads no stream table, and parts are no level of their own. UNION ends it should there ever be a circle.
CREATE OR REPLACE VIEW pgtrickle.pgt_levels AS
WITH RECURSIVE walk(pgt_id, level) AS (
    SELECT pgt_id, 0 FROM pgtrickle.pgt_stream_tables
    UNION
    SELECT r.pgt_id, w.level + 1
    FROM walk w JOIN pgtrickle.pgt_reads r ON r.source_pgt_id = w.pgt_id
    WHERE w.level < 1000
)
SELECT pgt_id, max(level) AS topo_level FROM walk GROUP BY pgt_id;

-- A table without a schedule has the shortest one of the tables that read it.
CREATE OR REPLACE VIEW pgtrickle.pgt_effective_schedules AS
WITH RECURSIVE walk(pgt_id, every) AS (
    SELECT pgt_id, pgtrickle.pgt_schedule_interval(schedule) FROM pgtrickle.pgt_stream_tables
    WHERE pgtrickle.pgt_schedule_interval(schedule) IS NOT NULL
    UNION
    SELECT t.pgt_id, w.every
    FROM walk w
    JOIN pgtrickle.pgt_dependencies d ON d.pgt_id = w.pgt_id
    JOIN pgtrickle.pgt_stream_tables t ON t.pgt_id = d.source_pgt_id AND t.schedule IS NULL
)
SELECT pgt_id, min(every) AS every FROM walk GROUP BY pgt_id;

-- What writers maintain is as new as they are, but no newer than what refreshes have written and it reads.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_data_timestamp(live_id bigint) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE read(pgt_id, is_live, data_timestamp) AS (
        SELECT t.pgt_id, t.is_live, t.data_timestamp FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = live_id
        UNION
        SELECT u.pgt_id, u.is_live, u.data_timestamp
        FROM read r
        JOIN pgtrickle.pgt_dependencies d USING (pgt_id)
        JOIN pgtrickle.pgt_stream_tables u ON u.pgt_id = d.source_pgt_id
        WHERE r.is_live
    )
    SELECT CASE WHEN count(*) FILTER (WHERE NOT is_live AND data_timestamp IS NULL) = 0
                THEN coalesce(min(data_timestamp) FILTER (WHERE NOT is_live), now()) END
    FROM read
$$;

COMMENT ON FUNCTION pgtrickle.pgt_data_timestamp(bigint) IS
    'Data timestamp of a stream table; of one that writers maintain it is now, or that of what it reads.';

-- A table that refreshes keep has its own in its row, so that nothing is asked for it.
CREATE OR REPLACE VIEW pgtrickle.pgt_data_timestamps AS
SELECT pgt_id, CASE WHEN is_live THEN pgtrickle.pgt_data_timestamp(pgt_id) ELSE data_timestamp END AS data_timestamp
FROM pgtrickle.pgt_stream_tables;

-- PostgreSQL counts the scans of each table, partition and index.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_scans(relation oid) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE member(oid) AS (
        SELECT relation
        UNION
        SELECT i.inhrelid FROM pg_inherits i JOIN member m ON i.inhparent = m.oid
    )
    SELECT coalesce(sum(pg_stat_get_numscans(m.oid)
           + (SELECT coalesce(sum(pg_stat_get_numscans(i.indexrelid)), 0) FROM pg_index i WHERE i.indrelid = m.oid)), 0)::bigint
    FROM member m
$$;

COMMENT ON FUNCTION pgtrickle.pgt_scans(oid) IS 'How often a table was scanned, its partitions and indexes included.';

-- More scans than at the last look are somebody's reads, unless they are a refresh's own.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_note_use(readers bigint[], is_own boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A role that only refreshes may lack this, and need not have it.
    IF NOT (has_table_privilege('pgtrickle.pgt_use', 'SELECT') AND has_table_privilege('pgtrickle.pgt_use', 'INSERT')
            AND has_table_privilege('pgtrickle.pgt_use', 'UPDATE')) THEN
        RETURN;
    END IF;
    INSERT INTO pgtrickle.pgt_use AS u (pgt_id, scans)
    SELECT t.pgt_id, pgtrickle.pgt_scans(t.pgt_relid)
    FROM pgtrickle.pgt_stream_tables t
    WHERE t.tier = 'auto' AND NOT t.is_hidden
      AND (readers IS NULL OR t.pgt_id = ANY(readers)
           OR t.pgt_id IN (SELECT d.source_pgt_id FROM pgtrickle.pgt_dependencies d WHERE d.pgt_id = ANY(readers)))
    ORDER BY t.pgt_id
    ON CONFLICT (pgt_id) DO UPDATE SET
        scans = excluded.scans,
        read_at = CASE WHEN excluded.scans > u.scans AND NOT is_own THEN clock_timestamp() ELSE u.read_at END
    WHERE u.scans <> excluded.scans;
END
$$;

COMMENT ON FUNCTION pgtrickle.pgt_note_use(bigint[], boolean) IS
    'Look at the scans of tables in tier auto: of all, or of these and what they read; whether they are a refresh''s own.';

-- Tier auto: hot, warm or cold by when somebody last read the table, and no colder than what reads it. Of these tables,
-- or of all.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_tiers_of(ids bigint[])
RETURNS TABLE (pgt_id bigint, tier text, read_at timestamptz)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE walk(pgt_id, reader) AS (
        SELECT t.pgt_id, t.pgt_id FROM pgtrickle.pgt_stream_tables t
        WHERE NOT t.is_hidden AND (ids IS NULL OR t.pgt_id = ANY (ids))
        UNION
        SELECT w.pgt_id, coalesce(r.part_of, r.pgt_id)
        FROM walk w
        JOIN pgtrickle.pgt_stream_tables s ON s.pgt_id = w.reader AND s.tier = 'auto'
        JOIN pgtrickle.pgt_dependencies d ON d.source_pgt_id = s.pgt_id
        JOIN pgtrickle.pgt_stream_tables r ON r.pgt_id = d.pgt_id
    )
    SELECT w.pgt_id,
           (ARRAY['hot', 'warm', 'cold', 'frozen'])[1 + min(
               CASE WHEN t.tier = 'hot' THEN 0 WHEN t.tier = 'warm' THEN 1 WHEN t.tier = 'cold' THEN 2
                    WHEN t.tier = 'frozen' THEN 3
                    WHEN u.read_at IS NULL
                         OR now() - u.read_at <= greatest(interval '1 hour', 2 * t.effective_schedule) THEN 0
                    WHEN now() - u.read_at <= greatest(interval '1 day', 8 * t.effective_schedule) THEN 1
                    ELSE 2 END)],
           max(u.read_at) FILTER (WHERE w.reader = w.pgt_id)
    FROM walk w
    JOIN pgtrickle.pgt_stream_tables t ON t.pgt_id = w.reader
    LEFT JOIN pgtrickle.pgt_use u ON u.pgt_id = w.reader
    GROUP BY w.pgt_id;
END;

CREATE OR REPLACE VIEW pgtrickle.pgt_tiers AS SELECT * FROM pgtrickle.pgt_tiers_of(NULL);

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
    coalesce(t.effective_schedule, e.every) AS effective_schedule,
    t.is_populated,
    -- A time to come is of a clock that was ahead: how old the content is isn't known.
    CASE WHEN a.data_timestamp IS NOT NULL THEN greatest(now() - a.data_timestamp, interval '0') END AS staleness,
    NOT t.is_live AND (coalesce(now() - t.data_timestamp > coalesce(t.effective_schedule, e.every), NOT t.is_populated)
        OR coalesce(t.data_timestamp > clock_timestamp(), false)) AS stale,
    a.data_timestamp,
    t.last_refresh_at,
    t.last_refresh_at AS last_refreshed_at,
    t.needs_reinit,
    t.reinit_reason,
    t.consecutive_errors,
    t.last_error,
    t.differentiable,
    t.refusal,
    coalesce(r.names, '{}') AS depends_on,
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
    t.updated_at,
    t.verify_every,
    t.is_live,
    v.status AS verified,
    v.ended_at AS verified_at,
    t.placement,
    t.unit,
    t.append_only_breach,
    t.append_only_ended,
    x.tier AS effective_tier,
    x.read_at,
    t.partition_every,
    t.keep,
    t.timezone,
    t.frozen_before,
    t.float_sums,
    t.frozen_breach
FROM pgtrickle.pgt_stream_tables t
LEFT JOIN pgtrickle.pgt_tiers x USING (pgt_id)
JOIN pgtrickle.pgt_data_timestamps a USING (pgt_id)
LEFT JOIN (
    SELECT pgt_id, array_agg(DISTINCT format('%s.%s', source_schema, source_name)) AS names
    FROM pgtrickle.pgt_reads GROUP BY pgt_id
) AS r USING (pgt_id)
LEFT JOIN pgtrickle.pgt_levels l USING (pgt_id)
LEFT JOIN pgtrickle.pgt_effective_schedules e USING (pgt_id)
LEFT JOIN LATERAL (
    SELECT v.status, v.ended_at FROM pgtrickle.pgt_verifications v
    WHERE v.pgt_id = t.pgt_id ORDER BY v.verification_id DESC LIMIT 1
) AS v ON true
WHERE NOT t.is_hidden;

CREATE OR REPLACE VIEW pgtrickle.pg_stat_stream_tables AS
SELECT
    i.pgt_id,
    i.name,
    i.pgt_schema,
    i.pgt_name,
    i.status,
    i.refresh_mode,
    i.is_populated,
    i.staleness,
    i.stale,
    i.consecutive_errors,
    h.completed + h.failed + coalesce(o.completed + o.failed, 0) AS total_refreshes,
    h.completed + coalesce(o.completed, 0) AS successful_refreshes,
    h.failed + coalesce(o.failed, 0) AS failed_refreshes,
    h.skipped + coalesce(o.skipped, 0) AS skipped_refreshes,
    coalesce(h.rows_inserted, 0) + coalesce(o.rows_inserted, 0) AS total_rows_inserted,
    coalesce(h.rows_updated, 0) + coalesce(o.rows_updated, 0) AS total_rows_updated,
    coalesce(h.rows_deleted, 0) + coalesce(o.rows_deleted, 0) AS total_rows_deleted,
    (coalesce(h.duration_ms, 0) + coalesce(o.duration_ms, 0)) / nullif(h.completed + coalesce(o.completed, 0), 0)
        AS avg_duration_ms,
    greatest(h.max_duration_ms, nullif(o.max_duration_ms, 0)) AS max_duration_ms,
    latest.action AS last_action,
    latest.status AS last_status,
    latest.duration_ms AS last_duration_ms,
    i.last_refresh_at,
    i.data_timestamp,
    i.last_error,
    ARRAY(SELECT DISTINCT d.cdc_mode FROM pgtrickle.pgt_dependencies d WHERE d.pgt_id = i.pgt_id ORDER BY 1) AS cdc_modes
FROM pgtrickle.stream_tables_info i
LEFT JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE h.status = 'COMPLETED') AS completed,
        count(*) FILTER (WHERE h.status = 'FAILED') AS failed,
        count(*) FILTER (WHERE h.status = 'SKIPPED') AS skipped,
        sum(h.rows_inserted)::bigint AS rows_inserted,
        sum(h.rows_updated)::bigint AS rows_updated,
        sum(h.rows_deleted)::bigint AS rows_deleted,
        sum(h.duration_ms) FILTER (WHERE h.status = 'COMPLETED') AS duration_ms,
        max(h.duration_ms) FILTER (WHERE h.status = 'COMPLETED') AS max_duration_ms
    FROM pgtrickle.pgt_refresh_history h WHERE h.pgt_id = i.pgt_id
) AS h ON true
LEFT JOIN pgtrickle.pgt_totals o ON o.pgt_id = i.pgt_id
LEFT JOIN LATERAL (
    SELECT h.action, h.status, h.duration_ms FROM pgtrickle.pgt_refresh_history h
    WHERE h.pgt_id = i.pgt_id ORDER BY h.refresh_id DESC LIMIT 1
) AS latest ON true;

-- How far the slot of this database is behind, and what it keeps. A standby has no position to write at.
CREATE OR REPLACE VIEW pgtrickle.pgt_wal_status AS
SELECT
    w.slot_name,
    w.publication,
    w.position,
    w.pumped_at,
    s.slot_name IS NOT NULL AS is_there,
    s.active,
    s.wal_status,
    s.confirmed_flush_lsn,
    pg_catalog.pg_wal_lsn_diff(here.lsn, w.position)::bigint AS lag_bytes,
    pg_catalog.pg_wal_lsn_diff(here.lsn, s.restart_lsn)::bigint AS retained_wal_bytes,
    s.slot_name IS NULL OR s.wal_status = 'lost' OR s.confirmed_flush_lsn > w.position
        OR NOT EXISTS (SELECT FROM pg_catalog.pg_publication p WHERE p.pubname = w.publication
                       AND p.pubinsert AND p.pubupdate AND p.pubdelete) AS is_lost
FROM pgtrickle.pgt_wal w
LEFT JOIN pg_catalog.pg_replication_slots s
    ON s.slot_name = w.slot_name AND s.slot_type = 'logical' AND s.database = pg_catalog.current_database()
CROSS JOIN LATERAL (
    SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                ELSE pg_catalog.pg_current_wal_insert_lsn() END AS lsn
) AS here;

CREATE OR REPLACE VIEW pgtrickle.pgt_cdc_status AS
SELECT
    t.pgt_schema,
    t.pgt_name,
    d.source_relid,
    d.source_schema,
    d.source_name,
    d.cdc_mode,
    CASE WHEN c.mode = 'WAL' THEN w.slot_name ELSE c.slot_name END AS slot_name,
    c.buffer,
    c.columns AS captured_columns,
    coalesce(o.requested_cdc_mode, t.requested_cdc_mode) AS requested_cdc_mode,
    c.mode_since,
    c.mode_reason,
    CASE WHEN c.mode = 'WAL' THEN w.lag_bytes END AS lag_bytes,
    CASE WHEN c.mode = 'WAL' THEN w.retained_wal_bytes END AS retained_wal_bytes,
    CASE WHEN c.mode = 'WAL' THEN w.wal_status END AS wal_status
FROM pgtrickle.pgt_dependencies d
JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
LEFT JOIN pgtrickle.pgt_stream_tables o ON o.pgt_id = t.part_of
LEFT JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = d.source_relid AND d.source_pgt_id IS NULL
LEFT JOIN pgtrickle.pgt_wal_status w ON true
WHERE d.source_type = 'TABLE';

CREATE OR REPLACE FUNCTION pgtrickle.pgt_status()
RETURNS TABLE (
    name text, status text, refresh_mode text, schedule text, is_populated boolean, staleness interval, stale boolean,
    data_timestamp timestamptz, last_refresh_at timestamptz, consecutive_errors integer, last_error text
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT name, status, refresh_mode, schedule, is_populated, staleness, stale, data_timestamp, last_refresh_at,
           consecutive_errors, last_error
    FROM pgtrickle.stream_tables_info ORDER BY name
$$;

CREATE OR REPLACE FUNCTION pgtrickle.get_staleness(name text) RETURNS double precision
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN at IS NOT NULL THEN greatest(extract(epoch FROM now() - at)::double precision, 0) END
    FROM pgtrickle.pgt_data_timestamp(pgtrickle.pgt_resolve(name)) AS at;
END;

CREATE OR REPLACE FUNCTION pgtrickle.get_refresh_history(name text, n integer DEFAULT 20)
RETURNS TABLE (
    refresh_id bigint, start_time timestamptz, end_time timestamptz, action text, status text, fallback_reason text,
    rows_inserted bigint, rows_updated bigint, rows_deleted bigint, source_changes bigint, rows_read bigint,
    reads integer, spark_jobs integer, duration_ms double precision, data_timestamp timestamptz, initiated_by text,
    run_token text, unit text[], phases jsonb, error_message text
)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT refresh_id, start_time, end_time, action, status, fallback_reason, rows_inserted, rows_updated,
           rows_deleted, source_changes, rows_read, reads, spark_jobs, duration_ms, data_timestamp, initiated_by,
           run_token, unit, phases, error_message
    FROM pgtrickle.pgt_refresh_history
    WHERE pgt_id = pgtrickle.pgt_resolve($1)
    ORDER BY refresh_id DESC LIMIT $2;
END;

CREATE OR REPLACE FUNCTION pgtrickle.st_refresh_stats()
RETURNS TABLE (
    pgt_name text, pgt_schema text, status text, refresh_mode text, is_populated boolean, total_refreshes bigint,
    successful_refreshes bigint, failed_refreshes bigint, total_rows_inserted bigint, total_rows_updated bigint,
    total_rows_deleted bigint, avg_duration_ms double precision, last_refresh_action text, last_refresh_status text,
    last_refresh_at timestamptz, staleness_secs double precision, stale boolean
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT pgt_name, pgt_schema, status, refresh_mode, is_populated, total_refreshes, successful_refreshes,
           failed_refreshes, total_rows_inserted, total_rows_updated, total_rows_deleted, avg_duration_ms,
           last_action, last_status, last_refresh_at, extract(epoch FROM staleness)::double precision, stale
    FROM pgtrickle.pg_stat_stream_tables ORDER BY pgt_schema, pgt_name
$$;
