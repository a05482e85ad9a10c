"""The function that a source's capturing trigger calls, and that brings everything behind the source up to date.

A statement may fire several triggers: ON CONFLICT, MERGE, WITH, cascades. What stream tables read must then be either
all old or all new, so beginnings and ends are counted in `pgt_immediate_events`, and the outermost end maintains:

    begin   count + 1. The first takes the rows of `pgt_immediate`, so that one transaction after the other maintains
    end     count − 1. Above 0 the changes wait in the change buffer; at 0 those of all sources are maintained
    row     written by replication: nothing has begun, and the row is maintained by itself

The rows of `pgt_immediate` are taken before the statement's work. So each query of the end sees all that another writer
has committed, and nobody else has changed a source since. A writer whose snapshot is older fails there with a
serialization error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.layout import functions_there, keep_to_owner
from airflow_provider_pgtrickle.engine.catalog.database import PINNED
from airflow_provider_pgtrickle.engine.catalog.search_path import PATH
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, buffer_name
from airflow_provider_pgtrickle.engine.immediate.maintain import Maintained, change_type, parameter

# What a writer's own settings are must not matter: the function has those of our sessions. A kept plan is made once.
_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}(made {own}[], is_end boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = {path} SET plan_cache_mode = force_generic_plan {settings}
AS {body}
"""

# What a statement doesn't depend on, and the path, which is a list.
_OF_THE_SESSION = {
    "search_path",
    "client_encoding",
    "quote_all_identifiers",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
}

_BODY = """
#variable_conflict use_column
<<here>>
DECLARE
    own CONSTANT xid8 := pg_current_xact_id();
    depth integer;
    is_deferred boolean;
    before bigint;
    refreshing CONSTANT text := coalesce(current_setting('pgtrickle.refreshing', true), '');
    begun timestamptz := clock_timestamp();
    is_sampled CONSTANT boolean := extract(microseconds FROM here.begun)::int % {sampled} = 0;
    {variables}
BEGIN
    {own_change} := made;
    {end}    PERFORM set_config('pgtrickle.refreshing', 'on', true);
    {maintain}
    PERFORM set_config('pgtrickle.refreshing', here.refreshing, true);
END
"""

# How many statements had begun and not ended before this one, and whether changes of theirs wait.
_COUNT = """SELECT e.depth, e.is_deferred INTO here.depth, here.is_deferred
      FROM pgtrickle.pgt_immediate_events AS e WHERE e.xid = here.own ORDER BY e.event_id DESC LIMIT 1;
    depth := coalesce(here.depth, 0);
    is_deferred := here.depth > 0 AND here.is_deferred;"""

_END = """
    {count}
    IF is_end THEN
        depth := greatest(here.depth - 1, 0);
    END IF;
    IF here.depth > 0 THEN
        INSERT INTO pgtrickle.pgt_immediate_events (xid, depth, is_deferred, source, first_change)
        SELECT here.own, here.depth, here.is_deferred OR made IS NOT NULL, {key}, min(m.change_id)
          FROM unnest(made) AS m;
        RETURN;
    END IF;
    IF here.is_deferred THEN
        SELECT coalesce(max(e.event_id), 0) INTO here.before
          FROM pgtrickle.pgt_immediate_events AS e WHERE e.xid = here.own AND e.depth = 0;
        {load}
    END IF;
    IF is_end THEN
        INSERT INTO pgtrickle.pgt_immediate_events (xid, depth, is_deferred) VALUES (here.own, 0, false);
    END IF;
"""

_TRIGGER_FUNCTION = """
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS {body}
"""

_BEGIN = """
#variable_conflict use_column
<<here>>
DECLARE
    own CONSTANT xid8 := pg_current_xact_id();
    depth integer;
    is_deferred boolean;
BEGIN
    {count}
    IF here.depth = 0 THEN
        {take_turn}
        IF here.own::text::bigint % {seldom} = 0
           AND current_setting('transaction_isolation') = 'read committed' THEN
            DELETE FROM pgtrickle.pgt_immediate_events AS e WHERE ctid = ANY (ARRAY(
                SELECT o.ctid FROM pgtrickle.pgt_immediate_events AS o
                 WHERE o.xid < pg_snapshot_xmin(pg_current_snapshot()) FOR UPDATE SKIP LOCKED));
        END IF;
    END IF;
    INSERT INTO pgtrickle.pgt_immediate_events (xid, depth, is_deferred)
    VALUES (here.own, here.depth + 1, here.is_deferred);
    RETURN NULL;
END
"""

# One transaction in so many deletes the events of those that have ended. At a higher isolation level it could fail.
_SELDOM = 64

_TAKE_TURN = """UPDATE pgtrickle.pgt_immediate AS i SET xid = here.own
             WHERE i.pgt_id = {id} AND i.xid IS DISTINCT FROM here.own;"""

# A change buffer's numbers grow within a transaction.
_LOAD = """SELECT coalesce(array_agg(b ORDER BY b.change_id), {change}) INTO {change}
          FROM {buffer} AS b
         WHERE b.xid = here.own AND b.change_id >= (
             SELECT min(e.first_change) FROM pgtrickle.pgt_immediate_events AS e
              WHERE e.xid = here.own AND e.event_id > here.before AND e.source = {key});"""

# A refresh hands on what it has written, in one statement. Turns that are taken only now suffice: whoever had one
# before has committed, and the statements that follow see what he wrote.
_HAND_ON = """
#variable_conflict use_column
<<here>>
DECLARE
    own CONSTANT xid8 := pg_current_xact_id();
    made {own}[];
BEGIN
    {take_turn}
    SELECT array_agg(ROW(n.*)::{own}) INTO here.made FROM new_rows AS n;
    IF here.made IS NOT NULL THEN
        PERFORM {function}(here.made, false);
    END IF;
    RETURN NULL;
END
"""

_MAINTAIN = """IF {changed} THEN
        begun := clock_timestamp();
        {assign}{function}({arguments});
        IF here.is_sampled THEN
            INSERT INTO pgtrickle.pgt_immediate_stats (pgt_id, source, rows, duration_ms)
            VALUES ({id}, {key}, coalesce(cardinality({own_change}), 0),
                    extract(milliseconds FROM clock_timestamp() - here.begun));
        END IF;
    END IF;"""

# One statement in so many is timed. The clock picks it, because `random` is the writer's own.
_SAMPLED = 50


@dataclass(frozen=True)
class Component:
    """Live stream tables that are bound together by sources, each after those that it reads."""

    tables: tuple[Maintained, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all that they read, and that is written by others than their maintenance."""
        own = {of.st.key for of in self.tables}
        return tuple(sorted({key for of in self.tables for key in of.keys} - own))

    @property
    def is_counted(self) -> bool:
        """Whether changes meet in one of the tables, and must be maintained together and one after the other."""
        return not all(of.is_apart for of in self.tables)

    def behind(self, key: str) -> tuple[Maintained, ...]:
        """The tables that a change of this source reaches."""
        reached, found = {key}, []
        for of in self.tables:
            if reached & set(of.keys):
                reached.add(of.st.key)
                found.append(of)
        return tuple(found)


def components(tables: Sequence[Maintained]) -> list[Component]:
    """The components of live tables, which stand upstream first."""
    root = {of.st.key: of.st.key for of in tables}
    for of in tables:
        for key in of.keys:
            root.setdefault(key, key)

    def find(key: str) -> str:
        while root[key] != key:
            key = root[key]
        return key

    for of in tables:
        for key in of.keys:
            root[find(key)] = find(of.st.key)
    grouped: dict[str, list[Maintained]] = {}
    for of in tables:
        grouped.setdefault(find(of.st.key), []).append(of)
    return [Component(tuple(group)) for group in grouped.values()]


def function(key: str) -> sql.Identifier:
    return sql.Identifier(CHANGES, f"immediate_{key}")


def begin_function(key: str) -> sql.Identifier:
    return sql.Identifier(CHANGES, f"begin_{key}")


def hand_on_function(key: str) -> sql.Identifier:
    return sql.Identifier(CHANGES, f"hand_on_{key}")


def create(conn: Connection, component: Component) -> None:
    """Create or replace the functions of all sources of a component."""
    # What was counted once goes on being counted: a statement may be between its beginning and its end.
    counting = functions_there(conn, [f"begin_{key}" for key in component.keys])
    is_counted = component.is_counted or bool(counting)
    for key in component.keys:
        conn.execute(_propagating(component, key, is_counted=is_counted))
        keep_to_owner(conn, function(key))
        if key.startswith("pgt_"):
            conn.execute(_handing_on(component, key))
            keep_to_owner(conn, hand_on_function(key))
            conn.execute(
                sql.SQL(
                    "CREATE OR REPLACE TRIGGER pgtrickle_hand_on AFTER INSERT ON {} REFERENCING NEW TABLE AS new_rows"
                    " FOR EACH STATEMENT EXECUTE FUNCTION {}()"
                ).format(change_type(key), hand_on_function(key))
            )
        elif is_counted:
            conn.execute(_beginning(component, key))
            keep_to_owner(conn, begin_function(key))


def _propagating(component: Component, key: str, *, is_counted: bool) -> sql.Composed:
    changes = {k: sql.Identifier(parameter(k)) for k in component.keys}
    changes |= {of.st.key: sql.Identifier(parameter(of.st.key)) for of in component.tables}
    end = sql.SQL(_END).format(
        count=sql.SQL(_COUNT),
        key=sql.Literal(key),
        load=sql.SQL("\n        ").join(
            sql.SQL(_LOAD).format(change=changes[k], buffer=sql.Identifier(CHANGES, buffer_name(k)), key=sql.Literal(k))
            for k in component.keys
        ),
    )
    body = sql.SQL(_BODY).format(
        variables=_variables(component, changes),
        own_change=changes[key],
        sampled=_SAMPLED,
        end=end if is_counted else sql.SQL(""),
        maintain=sql.SQL("\n    ").join(_maintaining(of, key, changes) for of in component.tables),
    )
    return sql.SQL(_FUNCTION).format(
        function=function(key),
        own=change_type(key),
        path=sql.SQL(PATH),
        settings=sql.SQL(" ").join(
            sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in PINNED.items()
            if name not in _OF_THE_SESSION
        ),
        body=sql.Literal(body.as_string(None)),
    )


def _beginning(component: Component, key: str) -> sql.Composed:
    body = sql.SQL(_BEGIN).format(count=sql.SQL(_COUNT), take_turn=_taking_turns(component, key), seldom=_SELDOM)
    return sql.SQL(_TRIGGER_FUNCTION).format(function=begin_function(key), body=sql.Literal(body.as_string(None)))


def _handing_on(component: Component, key: str) -> sql.Composed:
    body = sql.SQL(_HAND_ON).format(
        own=change_type(key), take_turn=_taking_turns(component, key), function=function(key)
    )
    return sql.SQL(_TRIGGER_FUNCTION).format(function=hand_on_function(key), body=sql.Literal(body.as_string(None)))


def _taking_turns(component: Component, key: str) -> sql.Composed:
    """The statements that take the turn of each table behind the source; everybody takes them in this order."""
    turns = sorted(of.st.id for of in component.behind(key) if not of.is_apart)
    return sql.SQL("\n        ").join(sql.SQL(_TAKE_TURN).format(id=sql.Literal(pgt_id)) for pgt_id in turns)


def _variables(component: Component, changes: Mapping[str, sql.Identifier]) -> sql.Composed:
    typed = [(key, change_type(key)) for key in component.keys]
    typed += [(of.st.key, of.handed_on) for of in component.tables]
    return sql.SQL("\n    ").join(sql.SQL("{} {}[];").format(changes[key], kind) for key, kind in typed)


def _maintaining(of: Maintained, key: str, changes: Mapping[str, sql.Identifier]) -> sql.Composed:
    return sql.SQL(_MAINTAIN).format(
        id=sql.Literal(of.st.id),
        key=sql.Literal(key),
        own_change=changes[key],
        changed=sql.SQL(" OR ").join(sql.SQL("{} IS NOT NULL").format(changes[key]) for key in of.keys),
        assign=sql.SQL("{} := ").format(changes[of.st.key]),
        function=of.function,
        arguments=sql.SQL(", ").join(changes[key] for key in of.keys),
    )
