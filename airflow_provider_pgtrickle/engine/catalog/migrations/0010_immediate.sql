-- Stream tables that their sources' writers maintain.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS is_live boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS server_row_ids boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.is_live IS
    'Its sources'' writers maintain it in their transactions: the triggers of an IMMEDIATE table are in place.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.server_row_ids IS
    'Its row ids are computed by the server, because its sources'' writers compute them; else they are XXH64.';

-- A table of its own, so that writers block no declaration and no lease.
CREATE TABLE IF NOT EXISTS pgtrickle.pgt_immediate (
    pgt_id bigint PRIMARY KEY,
    xid xid8
);

COMMENT ON TABLE pgtrickle.pgt_immediate IS
    'One row for each stream table that is maintained by writers one after the other.';
COMMENT ON COLUMN pgtrickle.pgt_immediate.xid IS
    'The last transaction that maintained it. A writer waits here for another one, or fails if its snapshot is older.';

-- Rows are only added while a transaction runs: looking up the newest one takes the same time after any number of
-- statements, and a rollback to a savepoint takes rows back. After a crash no transaction is left to which they belong.
CREATE UNLOGGED TABLE IF NOT EXISTS pgtrickle.pgt_immediate_events (
    xid xid8 NOT NULL,
    event_id bigint GENERATED ALWAYS AS IDENTITY (CACHE 100),
    depth integer NOT NULL,
    is_deferred boolean NOT NULL,
    source text,
    first_change bigint,
    PRIMARY KEY (xid, event_id)
);

COMMENT ON TABLE pgtrickle.pgt_immediate_events IS
    'Beginnings and ends of the statements that write sources of IMMEDIATE stream tables, by transaction.';
COMMENT ON COLUMN pgtrickle.pgt_immediate_events.depth IS 'How many have begun and not ended, after this one.';
COMMENT ON COLUMN pgtrickle.pgt_immediate_events.is_deferred IS
    'Changes of statements that ended within another one wait for the outermost one''s end.';
COMMENT ON COLUMN pgtrickle.pgt_immediate_events.source IS 'The source whose changes begin to wait with this event.';
COMMENT ON COLUMN pgtrickle.pgt_immediate_events.first_change IS 'The first of them in its change buffer.';

-- Who may call a capturing function could attach it to a table of his own, and write what never was into the buffer.
DO $$
DECLARE
    source oid;
    was_whole boolean;
BEGIN
    IF to_regprocedure('pgtrickle.pgt_capture_digest(oid)') IS NULL THEN
        RETURN;
    END IF;
    FOR source, was_whole IN
        SELECT c.source_relid, c.digest = pgtrickle.pgt_capture_digest(c.source_relid)
        FROM pgtrickle.pgt_change_tracking c
        WHERE to_regprocedure(format('pgtrickle_changes.capture_%s()', c.source_relid)) IS NOT NULL
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION pgtrickle_changes.capture_%s() FROM PUBLIC', source);
        UPDATE pgtrickle.pgt_change_tracking SET digest = pgtrickle.pgt_capture_digest(source_relid)
        WHERE source_relid = source AND was_whole;
    END LOOP;
END
$$;
