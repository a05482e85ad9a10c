-- The catalog: what is declared, what it reads, what was done, what is captured.

CREATE SCHEMA IF NOT EXISTS pgtrickle_changes;

COMMENT ON SCHEMA pgtrickle_changes IS 'Change buffers of stream tables: written by triggers, read by refreshes.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_stream_tables (
    pgt_id bigserial PRIMARY KEY,
    pgt_relid oid UNIQUE,
    pgt_schema text NOT NULL,
    pgt_name text NOT NULL,
    original_query text NOT NULL,
    defining_query text NOT NULL,
    schedule text,
    refresh_mode text NOT NULL DEFAULT 'AUTO'
        CHECK (refresh_mode IN ('AUTO', 'DIFFERENTIAL', 'FULL', 'IMMEDIATE')),
    status text NOT NULL DEFAULT 'INITIALIZING'
        CHECK (status IN ('INITIALIZING', 'ACTIVE', 'SUSPENDED', 'ERROR')),
    is_populated boolean NOT NULL DEFAULT false,
    needs_reinit boolean NOT NULL DEFAULT false,
    reinit_reason text,
    data_timestamp timestamptz,
    last_refresh_at timestamptz,
    frontier jsonb,
    consecutive_errors integer NOT NULL DEFAULT 0,
    last_error text,
    requested_cdc_mode text,
    append_only boolean NOT NULL DEFAULT false,
    diamond_consistency text NOT NULL DEFAULT 'atomic' CHECK (diamond_consistency IN ('none', 'atomic')),
    diamond_schedule_policy text NOT NULL DEFAULT 'fastest' CHECK (diamond_schedule_policy IN ('fastest', 'slowest')),
    partition_by text,
    tier text NOT NULL DEFAULT 'hot' CHECK (tier IN ('hot', 'warm', 'cold', 'frozen')),
    differential_max_change_ratio double precision,
    is_gated boolean NOT NULL DEFAULT false,
    gated_reason text,
    is_hidden boolean NOT NULL DEFAULT false,
    topk_limit bigint,
    topk_offset bigint,
    topk_order_by text,
    storage jsonb NOT NULL DEFAULT '[]',
    identity text[] NOT NULL DEFAULT '{}',
    keyed boolean NOT NULL DEFAULT false,
    fingerprint text,
    differentiable boolean NOT NULL DEFAULT false,
    refusal text,
    lease_token text,
    lease_expires timestamptz,
    lease_pid integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (pgt_schema, pgt_name)
);

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.schedule IS 'NULL: calculated from the tables that read it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.storage IS 'Columns as [{"name", "type", "role": "visible" | "hidden"}].';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.keyed IS 'Whether identity is a key; else it is the whole row, as a bag.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_dependencies (
    pgt_id bigint NOT NULL REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    source_relid oid NOT NULL,
    source_type text NOT NULL
        CHECK (source_type IN ('TABLE', 'STREAM_TABLE', 'VIEW', 'MATVIEW', 'FOREIGN_TABLE', 'UNLOGGED_TABLE')),
    source_schema text NOT NULL,
    source_name text NOT NULL,
    source_pgt_id bigint,
    columns_used text[],
    cdc_mode text NOT NULL DEFAULT 'NONE' CHECK (cdc_mode IN ('TRIGGER', 'NONE')),
    fingerprint text,
    PRIMARY KEY (pgt_id, source_relid)
);

CREATE INDEX IF NOT EXISTS pgt_dependencies_source ON pgtrickle.pgt_dependencies (source_relid);
CREATE INDEX IF NOT EXISTS pgt_dependencies_source_pgt ON pgtrickle.pgt_dependencies (source_pgt_id);

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_refresh_history (
    refresh_id bigserial PRIMARY KEY,
    pgt_id bigint NOT NULL,
    run_token text,
    unit text[] NOT NULL DEFAULT '{}',
    initiated_by text,
    data_timestamp timestamptz,
    start_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    end_time timestamptz,
    action text CHECK (action IN ('NO_DATA', 'DIFFERENTIAL', 'FULL', 'REINITIALIZE', 'TOPK', 'SKIP', 'IMMEDIATE')),
    status text NOT NULL DEFAULT 'RUNNING' CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'SKIPPED')),
    fallback_reason text,
    rows_inserted bigint NOT NULL DEFAULT 0,
    rows_updated bigint NOT NULL DEFAULT 0,
    rows_deleted bigint NOT NULL DEFAULT 0,
    source_changes bigint NOT NULL DEFAULT 0,
    rows_read bigint NOT NULL DEFAULT 0,
    reads integer NOT NULL DEFAULT 0,
    spark_jobs integer NOT NULL DEFAULT 0,
    duration_ms double precision,
    phases jsonb,
    plan text,
    error_message text
);

CREATE INDEX IF NOT EXISTS pgt_refresh_history_table ON pgtrickle.pgt_refresh_history (pgt_id, refresh_id DESC);
CREATE INDEX IF NOT EXISTS pgt_refresh_history_run ON pgtrickle.pgt_refresh_history (run_token);
CREATE INDEX IF NOT EXISTS pgt_refresh_history_running
    ON pgtrickle.pgt_refresh_history (pgt_id) WHERE status = 'RUNNING';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_change_tracking (
    source_relid oid PRIMARY KEY,
    source_schema text NOT NULL,
    source_name text NOT NULL,
    buffer text NOT NULL,
    columns text[] NOT NULL,
    key_columns text[] NOT NULL DEFAULT '{}',
    tracked_by_pgt_ids bigint[] NOT NULL DEFAULT '{}',
    slot_name text,
    fingerprint text,
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON COLUMN pgtrickle.pgt_change_tracking.slot_name IS 'Name of the capturing trigger.';
