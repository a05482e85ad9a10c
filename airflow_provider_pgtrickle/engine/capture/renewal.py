"""Write capturing functions anew whose text is an older version's.

An older one captures the same, so nothing is lost where it stays: a table that is busy, or whose function belongs to a
role that isn't ours, has its turn with the next install or the next declaration that reads it. A torn capture is the
next refresh's to mend.
"""

from __future__ import annotations

import logging

from psycopg import Connection

from airflow_provider_pgtrickle.engine.capture.tracking import track
from airflow_provider_pgtrickle.engine.capture.trigger_function import FORM
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.errors import PgTrickleError

_log = logging.getLogger(__name__)

_OLDER = """
    SELECT c.source_relid::bigint, c.tracked_by_pgt_ids[1]
    FROM pgtrickle.pgt_change_tracking c
    JOIN pg_catalog.pg_proc p
      ON p.oid = pg_catalog.to_regprocedure(pg_catalog.format('pgtrickle_changes.capture_%%s()', c.source_relid))
    WHERE c.form IS DISTINCT FROM %s AND c.tracked_by_pgt_ids <> '{}' AND pg_catalog.pg_has_role(p.proowner, 'USAGE')
      AND c.digest = pgtrickle.pgt_capture_digest(c.source_relid)
    ORDER BY 1
"""


def renew(conn: Connection) -> list[str]:
    """Write the functions anew, each in a transaction of its own; for each what was done, in words."""
    with conn.transaction():
        older = conn.execute(_OLDER, [FORM]).fetchall()
    renewed = []
    for relid, reader in older:
        try:
            with conn.transaction():
                source = read_sources(conn, [relid]).get(relid)
                if source is None or source.kind != "TABLE":
                    continue
                # Who writes the table meanwhile waits, so this doesn't wait long for others.
                conn.execute("SET LOCAL lock_timeout = '1s'")
                track(conn, source, (), reader)
        except PgTrickleError as error:
            _log.info("The function that captures table %s stays as it is for now: %s", relid, error)
        else:
            renewed.append(f"capture of {source.schema}.{source.name}")
    return renewed
