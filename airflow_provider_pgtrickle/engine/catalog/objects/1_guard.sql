-- Stream tables are written by refreshes only.

CREATE OR REPLACE FUNCTION pgtrickle.pgt_guard() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('pgtrickle.refreshing', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'table %.% is a stream table: % on it is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = 'Its rows are kept equal to its defining query by refreshes.',
              HINT = 'Change the tables it reads and refresh it, or alter its query.';
END
$$;

COMMENT ON FUNCTION pgtrickle.pgt_guard() IS 'Trigger that keeps everybody but refreshes from writing a stream table.';
