-- Whether capture is whole.

-- What the capture of a table consists of, as one value that never returns to what it was: of each row of the catalog
-- that has a part in it the transaction that wrote it counts. So a trigger that was switched off and on again shows,
-- although all looks as before. PostgreSQL lets no writer be half-way through a statement when it changes one of them.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_capture_digest(source oid) RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE tree(oid) AS (
        SELECT $1
        UNION
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    ), captured(columns, functions) AS (
        SELECT (SELECT c.columns FROM pgtrickle.pgt_change_tracking c WHERE c.source_relid = $1),
               ARRAY[pg_catalog.to_regprocedure(pg_catalog.format('pgtrickle_changes.capture_%s()', $1)),
                     pg_catalog.to_regprocedure(pg_catalog.format('pgtrickle_changes.begin_%s()', $1))]
    ), part(line) AS (
        SELECT pg_catalog.format('relation %s %s', c.oid, c.relpersistence)
        FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid
        UNION ALL
        SELECT pg_catalog.format('parent %s %s %s', i.inhrelid, i.inhparent, i.xmin)
        FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhrelid = t.oid
        UNION ALL
        SELECT pg_catalog.format('trigger %s %s %s', g.tgrelid, g.oid, g.xmin)
        FROM tree t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid JOIN captured k ON g.tgfoid = ANY (k.functions)
        UNION ALL
        SELECT pg_catalog.format('function %s %s', p.oid, p.xmin)
        FROM captured k JOIN pg_catalog.pg_proc p ON p.oid = k.functions[1]
        UNION ALL
        -- A table that became another one's child, was written through it and left it again has nothing else to show.
        SELECT pg_catalog.format('column %s %s %s %s %s', a.attrelid, a.attnum, a.xmin, d.oid, d.xmin)
        FROM tree t
        JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN captured k ON a.attname = ANY(k.columns) OR k.columns = '{}'
            -- What captured virtual columns are computed from: triggers compute them by these columns' names.
            OR a.attnum IN (
                SELECT e.refobjsubid
                FROM pg_catalog.pg_attribute v
                JOIN pg_catalog.pg_attrdef f ON f.adrelid = v.attrelid AND f.adnum = v.attnum
                JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_attrdef'::regclass AND e.objid = f.oid
                    AND e.refclassid = 'pg_catalog.pg_class'::regclass AND e.refobjid = v.attrelid
                WHERE v.attrelid = a.attrelid AND v.attgenerated = 'v' AND v.attname = ANY(k.columns))
        LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
        UNION ALL
        -- Of what is captured from the log: the publication, the table in it, and how much of old rows the log tells.
        SELECT pg_catalog.format('publication %s %s %s %s %s', p.oid, p.xmin, r.prrelid, r.oid, r.xmin)
        FROM pgtrickle.pgt_change_tracking c, pgtrickle.pgt_wal w, tree t,
             pg_catalog.pg_publication p, pg_catalog.pg_publication_rel r
        WHERE c.source_relid = $1 AND c.mode = 'WAL' AND p.pubname = w.publication
          AND r.prpubid = p.oid AND r.prrelid = t.oid
        UNION ALL
        SELECT pg_catalog.format('identity %s %s %s', t.oid, g.relreplident,
                   (SELECT i.indexrelid FROM pg_catalog.pg_index i WHERE i.indrelid = t.oid
                    AND CASE g.relreplident WHEN 'i' THEN i.indisreplident WHEN 'd' THEN i.indisprimary END))
        FROM pgtrickle.pgt_change_tracking c, tree t JOIN pg_catalog.pg_class g ON g.oid = t.oid
        WHERE c.source_relid = $1 AND c.mode = 'WAL'
    )
    SELECT pg_catalog.md5(pg_catalog.string_agg(line, E'\n' ORDER BY line COLLATE "C")) FROM part;
END;

COMMENT ON FUNCTION pgtrickle.pgt_capture_digest(oid) IS
    'What the capture of a table consists of; the value never returns to an earlier one.';

-- How a stream table's own columns stand: their types, the transactions that wrote their rows of the catalog, the files
-- of the table. ALTER TABLE that rewrites the rows changes the last two, GRANT and VACUUM FULL one of them each. At the
-- end its partitions, each with the transaction that attached it.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_table_digest(stream_table bigint) RETURNS text[]
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT ARRAY[
        (SELECT pg_catalog.md5(pg_catalog.string_agg(
                    pg_catalog.format('%s %s %s %s', a.attnum, a.atttypid, a.atttypmod, a.attcollation), ','
                    ORDER BY a.attnum))
         FROM pg_catalog.pg_attribute a, pg_catalog.jsonb_array_elements(t.storage) AS c
         WHERE a.attrelid = t.pgt_relid AND a.attname = c ->> 'name'),
        (SELECT pg_catalog.md5(pg_catalog.string_agg(a.xmin::text, ',' ORDER BY a.attnum))
         FROM pg_catalog.pg_attribute a, pg_catalog.jsonb_array_elements(t.storage) AS c
         WHERE a.attrelid = t.pgt_relid AND a.attname = c ->> 'name'),
        (SELECT pg_catalog.md5(pg_catalog.string_agg(f.relfilenode::text, ',' ORDER BY f.oid))
          -- One lookup for each. With OR, all of pg_class would be read, by each refresh of each table.
          FROM (SELECT t.pgt_relid UNION SELECT p.relid FROM pg_catalog.pg_partition_tree(t.pgt_relid) AS p) AS m (relid)
          CROSS JOIN LATERAL (SELECT c.oid, c.relfilenode FROM pg_catalog.pg_class c WHERE c.oid = m.relid OFFSET 0) AS f),
        coalesce((SELECT pg_catalog.string_agg(pg_catalog.format('%s:%s', i.inhrelid, i.xmin), ' ' ORDER BY i.inhrelid)
                  FROM pg_catalog.pg_partition_tree(t.pgt_relid) AS p
                  JOIN pg_catalog.pg_inherits i ON i.inhrelid = p.relid AND p.level > 0), '')]
    FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = $1;
END;

-- Whether one of these partitions has a row. A role that may read the whole table only looks there, which takes longer;
-- for one that may read neither there is none.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_any_rows(members text[]) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    member oid;
    root oid;
    found boolean;
BEGIN
    FOR member, root IN
        SELECT c.oid, pg_partition_root(c.oid)
        FROM unnest(members) AS m(text) JOIN pg_class c ON c.oid = split_part(m.text, ':', 1)::oid
    LOOP
        IF has_table_privilege(member, 'SELECT') THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s)', member::regclass) INTO found;
        ELSIF has_table_privilege(root, 'SELECT') THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE tableoid = %s)', root::regclass, member) INTO found;
        END IF;
        IF found THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;

-- A partition that went took rows along, and one that came may have brought some.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_was_rewritten(before text[], now text[]) RETURNS boolean
LANGUAGE sql STABLE
RETURN coalesce(
    before[1] <> now[1] OR before[2] <> now[2] AND before[3] <> now[3]
    OR before[4] <> now[4] AND (
        NOT pg_catalog.string_to_array(before[4], ' ') <@ pg_catalog.string_to_array(now[4], ' ')
        OR pgtrickle.pgt_any_rows(ARRAY(
            SELECT unnest(pg_catalog.string_to_array(now[4], ' '))
            EXCEPT SELECT unnest(pg_catalog.string_to_array(before[4], ' '))))),
    false);

CREATE OR REPLACE FUNCTION pgtrickle.pgt_regime(stream_table bigint) RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT pg_catalog.md5(pg_catalog.concat_ws('|', coalesce(t.split_query, t.defining_query), t.fingerprint,
        pg_catalog.current_setting('server_version_num'),
        (SELECT pg_catalog.string_agg(i.indexrelid::text, ',' ORDER BY i.indexrelid)
         FROM pgtrickle.pgt_dependencies d JOIN pg_catalog.pg_index i ON i.indrelid = d.source_relid
         WHERE d.pgt_id = t.pgt_id AND i.indisvalid)))
    FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = stream_table;
END;

COMMENT ON FUNCTION pgtrickle.pgt_regime(bigint) IS
    'Digest of what the cost of a stream table''s refreshes depends on, besides sizes.';

-- What a session was given when it began, because refreshes raise work_mem for a while.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_memory(spark text) RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT pg_catalog.concat_ws(', ', spark, pg_catalog.string_agg(s.name || ' ' || s.reset_val, ', ' ORDER BY s.name))
    FROM pg_catalog.pg_settings s WHERE s.name IN ('hash_mem_multiplier', 'temp_file_limit', 'work_mem');
END;

COMMENT ON FUNCTION pgtrickle.pgt_memory(text) IS
    'The settings on which it depends whether memory suffices for a refresh: Spark''s as given, and this session''s.';
