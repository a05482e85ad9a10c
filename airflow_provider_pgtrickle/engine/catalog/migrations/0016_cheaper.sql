-- Cheaper capture: changes are counted net, and buffers may be UNLOGGED.

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN IF NOT EXISTS net_changes bigint;

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.net_changes IS
    'Changes that were computed: source_changes, with many changes of one row as one where they were netted.';

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS unlogged_buffers boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.unlogged_buffers IS
    'The change buffers that it reads may be UNLOGGED; each is, if all of its readers allow it.';
