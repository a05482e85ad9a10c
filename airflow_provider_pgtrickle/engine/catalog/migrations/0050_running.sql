-- Windows that run are carried forward from the first changed row.
--
-- What the rows before it add up to is looked up, and stored beside what the query shows. Writers maintain a live table
-- by the functions that are there, until it is withdrawn.

UPDATE pgtrickle.pgt_stream_tables SET needs_reinit = true, reinit_reason = 'schema_changed'
 WHERE differentiable AND NOT is_live AND defining_query ~ ' OVER ';
