-- Windows that run are carried forward from the first changed row.
--
-- What the rows before it add up to is looked up, and stored beside what the query shows. A live table is maintained as
-- before, until it is withdrawn.

UPDATE pgtrickle.pgt_stream_tables SET needs_reinit = true, reinit_reason = 'schema_changed'
 WHERE differentiable AND defining_query ~ ' OVER ';
