-- What a psql user can ask for. None of these functions has rights of its own: they write the catalog as their caller.

CREATE OR REPLACE FUNCTION pgtrickle.pgt_requested() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_notify('pg_trickle_alert', json_build_object(
        'event', 'requested', 'stream_table', NEW.pgt_schema || '.' || NEW.pgt_name,
        'request_id', NEW.request_id, 'kind', NEW.kind)::text);
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER pgt_requested AFTER INSERT ON pgtrickle.pgt_requests
    FOR EACH ROW EXECUTE FUNCTION pgtrickle.pgt_requested();

-- Who may alter a stream table: members of the role that owns the catalog, which is who refreshes.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_require_owner(what text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    owner regrole := (SELECT relowner FROM pg_class WHERE oid = 'pgtrickle.pgt_stream_tables'::regclass);
BEGIN
    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
        RAISE EXCEPTION 'role % may not %', quote_ident(current_user), what
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('Its owner may, and members of it: GRANT %s TO %I.', owner, current_user);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.pgt_gate(id bigint, gated boolean, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pgtrickle.pgt_require_owner('gate or ungate stream tables');
    UPDATE pgtrickle.pgt_stream_tables
    SET is_gated = gated, gated_reason = CASE WHEN gated THEN reason END, updated_at = now()
    WHERE pgt_id = id;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.gate(name text, reason text DEFAULT NULL) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_gate(pgtrickle.pgt_resolve($1), true, $2);
END;

COMMENT ON FUNCTION pgtrickle.gate(text, text) IS 'Hold a stream table''s refreshes back until ungate, at once.';

CREATE OR REPLACE FUNCTION pgtrickle.ungate(name text) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_gate(pgtrickle.pgt_resolve($1), false, NULL);
END;

COMMENT ON FUNCTION pgtrickle.ungate(text) IS 'Let a stream table be refreshed again.';

-- As `alter` sets the status ACTIVE.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_resume(id bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before pgtrickle.pgt_stream_tables;
BEGIN
    PERFORM pgtrickle.pgt_require_owner('resume stream tables');
    SELECT t.* INTO before FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = id FOR UPDATE;
    UPDATE pgtrickle.pgt_stream_tables
    SET status = CASE WHEN is_populated THEN 'ACTIVE' ELSE 'INITIALIZING' END, consecutive_errors = 0,
        last_error = NULL, updated_at = now()
    WHERE pgt_id = id;
    IF before.status IN ('SUSPENDED', 'ERROR') THEN
        PERFORM pg_notify('pg_trickle_alert', json_build_object(
            'event', 'resumed', 'stream_table', before.pgt_schema || '.' || before.pgt_name,
            'was', before.status)::text);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.resume(name text) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_resume(pgtrickle.pgt_resolve($1));
END;

COMMENT ON FUNCTION pgtrickle.resume(text) IS
    'Let a stream table that is SUSPENDED or in ERROR be refreshed again, at once.';

CREATE OR REPLACE FUNCTION pgtrickle.explain_st(name text, whole boolean DEFAULT false) RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN NOT $2 AND t.summary IS NOT NULL THEN t.summary ELSE coalesce(t.explanation,
        'It was declared by an older version, which wrote no explanation: pgtrickle explain '
        || quote_ident(t.pgt_schema) || '.' || quote_ident(t.pgt_name) || ' shows it.')
        || coalesce((
            SELECT string_agg(format(E'\n\nkept by itself as %s.%s:\n%s\n\n%s', p.pgt_schema, p.pgt_name,
                p.defining_query, regexp_replace(p.explanation, '^(?=.)', '  ', 'gn')), '' ORDER BY p.pgt_id)
            FROM pgtrickle.pgt_stream_tables p WHERE p.part_of = t.pgt_id), '') END
    FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = pgtrickle.pgt_resolve($1);
END;

COMMENT ON FUNCTION pgtrickle.explain_st(text, boolean) IS
    'How a stream table is maintained, as it was explained when its query was declared; whole: with all SQL.';

CREATE OR REPLACE FUNCTION pgtrickle.pgt_request_refresh(id bigint, is_full boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM pgtrickle.pgt_require_owner('ask for refreshes');
    INSERT INTO pgtrickle.pgt_requests (kind, pgt_schema, pgt_name, force_full)
    SELECT 'REFRESH', t.pgt_schema, t.pgt_name, is_full FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = id
    RETURNING request_id INTO made;
    RETURN made;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.request_refresh(name text, full_refresh boolean DEFAULT false) RETURNS bigint
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_request_refresh(pgtrickle.pgt_resolve($1), coalesce($2, false));
END;

COMMENT ON FUNCTION pgtrickle.request_refresh(text, boolean) IS
    'Ask for a refresh: the request''s number. A DAG or `pgtrickle serve-requests` carries it out.';

CREATE OR REPLACE FUNCTION pgtrickle.pgt_request_drop(id bigint, readers boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM pgtrickle.pgt_require_owner('ask for drops');
    -- Another table may have this name when the request is carried out.
    INSERT INTO pgtrickle.pgt_requests (kind, pgt_schema, pgt_name, options)
    SELECT 'DROP', t.pgt_schema, t.pgt_name, jsonb_build_object('pgt_id', t.pgt_id, 'and_readers', readers)
    FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = id
    RETURNING request_id INTO made;
    RETURN made;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.request_drop(name text, and_readers boolean DEFAULT false) RETURNS bigint
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_request_drop(pgtrickle.pgt_resolve($1), coalesce($2, false));
END;

COMMENT ON FUNCTION pgtrickle.request_drop(text, boolean) IS
    'Ask for a stream table to be dropped, with all that reads it where that is said: the request''s number.';

-- Each name in quotes, needed or not: who serves compares the text with its own.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_quoted_path(path name[]) RETURNS text
LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    SELECT string_agg(format('"%s"', replace(s.name, '"', '""')), ', ' ORDER BY s.position)
    FROM unnest(path) WITH ORDINALITY AS s(name, position);
END;

CREATE OR REPLACE FUNCTION pgtrickle.pgt_request_alter(id bigint, path name[], changes jsonb) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM pgtrickle.pgt_require_owner('ask for alterations');
    IF changes IS NULL OR jsonb_typeof(changes) <> 'object' OR changes = '{}' THEN
        RAISE EXCEPTION 'the changes are no JSON object that names something'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write them as {"schedule": "10m"}.';
    ELSIF changes ? 'query' AND jsonb_typeof(changes -> 'query') <> 'string' THEN
        RAISE EXCEPTION 'the query is no text'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write it as {"query": "SELECT …"}.';
    END IF;
    -- Another table may have this name when the request is carried out.
    INSERT INTO pgtrickle.pgt_requests (kind, pgt_schema, pgt_name, options, search_path)
    SELECT 'ALTER', t.pgt_schema, t.pgt_name, jsonb_build_object('pgt_id', t.pgt_id, 'changes', changes),
           pgtrickle.pgt_quoted_path(path)
    FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = id
    RETURNING request_id INTO made;
    RETURN made;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.request_alter(name text, changes jsonb) RETURNS bigint
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_request_alter(pgtrickle.pgt_resolve($1), current_schemas(false), $2);
END;

COMMENT ON FUNCTION pgtrickle.request_alter(text, jsonb) IS
    'Ask for options, the status or the query of a stream table to be changed: the request''s number.';

CREATE OR REPLACE FUNCTION pgtrickle.pgt_request_declare(
    parts text[], path name[], query text, given jsonb, fill boolean
) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM pgtrickle.pgt_require_owner('declare stream tables');
    IF query IS NULL THEN
        RAISE EXCEPTION 'a stream table needs a query'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Give one SELECT statement as text.';
    ELSIF jsonb_typeof(given) <> 'object' THEN
        RAISE EXCEPTION 'options are no JSON object'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write them as {"schedule": "5m"}.';
    ELSIF cardinality(parts) > 2 THEN
        RAISE EXCEPTION 'a stream table''s name has two parts at most'
            USING ERRCODE = 'invalid_name', HINT = 'Write schema.name.';
    ELSIF cardinality(parts) = 1 AND cardinality(path) = 0 THEN
        RAISE EXCEPTION 'the search_path names no schema that exists'
            USING ERRCODE = 'invalid_schema_name', HINT = 'Write schema.name.';
    END IF;
    INSERT INTO pgtrickle.pgt_requests (kind, pgt_schema, pgt_name, query, options, initialize, search_path)
    VALUES ('DECLARE', CASE WHEN cardinality(parts) = 1 THEN path[1] ELSE parts[1] END, parts[cardinality(parts)],
            query, given, fill, pgtrickle.pgt_quoted_path(path))
    RETURNING request_id INTO made;
    RETURN made;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.request_declare(
    name text, query text, options jsonb DEFAULT '{}', initialize boolean DEFAULT true
) RETURNS bigint
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_request_declare(
        parse_ident($1), current_schemas(false), $2, coalesce($3, '{}'), coalesce($4, true));
END;

COMMENT ON FUNCTION pgtrickle.request_declare(text, text, jsonb, boolean) IS
    'Ask for a stream table to be created, or replaced where it differs: the request''s number.';

CREATE OR REPLACE FUNCTION pgtrickle.wait_for_request(
    request_id bigint, seconds double precision DEFAULT 5, OUT status text, OUT answer jsonb, OUT error text
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
BEGIN
    LOOP
        -- Each statement of a volatile function sees what was committed before it.
        SELECT r.status, r.answer, r.error INTO status, answer, error
        FROM pgtrickle.pgt_requests r WHERE r.request_id = wait_for_request.request_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no request %', wait_for_request.request_id
                USING ERRCODE = 'no_data_found', HINT = 'SELECT * FROM pgtrickle.pgt_requests lists them.';
        END IF;
        EXIT WHEN status IN ('DONE', 'FAILED') OR clock_timestamp() >= until;
        PERFORM pg_sleep(0.05);
    END LOOP;
END
$$;

COMMENT ON FUNCTION pgtrickle.wait_for_request(bigint, double precision) IS
    'How a request stands, after its answer or after so many seconds. Commit the request before you wait for it.';

-- pg_trickle's own verbs. There is no worker in the database that could do it before they return, so each says how the
-- same is asked for.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_ask_instead(verb text, call text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the database by itself % no stream table', verb
        USING ERRCODE = 'feature_not_supported',
              HINT = format('Ask for it: SELECT pgtrickle.%s; a DAG or `pgtrickle serve-requests` carries it out.', call);
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table(
    name text, query text, schedule text DEFAULT NULL, refresh_mode text DEFAULT NULL, initialize boolean DEFAULT true,
    diamond_consistency text DEFAULT NULL, diamond_schedule_policy text DEFAULT NULL, cdc_mode text DEFAULT NULL,
    append_only boolean DEFAULT NULL
) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_ask_instead('creates', format('request_declare(%L, %L, %L%s)', $1, $2,
        jsonb_strip_nulls(jsonb_build_object('schedule', $3, 'refresh_mode', $4, 'diamond_consistency', $6,
            'diamond_schedule_policy', $7, 'cdc_mode', $8, 'append_only', $9)),
        CASE WHEN NOT $5 THEN ', initialize => false' END));
END;

COMMENT ON FUNCTION pgtrickle.create_stream_table(text, text, text, text, boolean, text, text, text, boolean) IS
    'Says how the same is asked for: `request_declare`.';

CREATE OR REPLACE FUNCTION pgtrickle.alter_stream_table(
    name text, query text DEFAULT NULL, schedule text DEFAULT NULL, refresh_mode text DEFAULT NULL,
    status text DEFAULT NULL, diamond_consistency text DEFAULT NULL, diamond_schedule_policy text DEFAULT NULL,
    cdc_mode text DEFAULT NULL, append_only boolean DEFAULT NULL
) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_ask_instead('alters', format('request_alter(%L, %L)', $1,
        jsonb_strip_nulls(jsonb_build_object('query', $2, 'schedule', $3, 'refresh_mode', $4, 'status', $5,
            'diamond_consistency', $6, 'diamond_schedule_policy', $7, 'cdc_mode', $8, 'append_only', $9))));
END;

COMMENT ON FUNCTION pgtrickle.alter_stream_table(text, text, text, text, text, text, text, text, boolean) IS
    'Says how the same is asked for: `request_alter`.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_stream_table(name text, cascade boolean DEFAULT false) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_ask_instead('drops',
        format('request_drop(%L%s)', $1, CASE WHEN $2 THEN ', and_readers => true' END));
END;

COMMENT ON FUNCTION pgtrickle.drop_stream_table(text, boolean) IS 'Says how the same is asked for: `request_drop`.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_stream_table(name text) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT pgtrickle.pgt_ask_instead('refreshes', format('request_refresh(%L)', $1));
END;

COMMENT ON FUNCTION pgtrickle.refresh_stream_table(text) IS 'Says how the same is asked for: `request_refresh`.';
