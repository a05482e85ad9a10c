-- Sums of floats that are kept by adding.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS float_sums text NOT NULL DEFAULT 'exact' CHECK (float_sums IN ('exact', 'approximate'));

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.float_sums IS
    'Sums over floats: exact to PostgreSQL''s last digit, or approximate, which are kept by adding and off by rounding.';
