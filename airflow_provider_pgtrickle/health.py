"""Checks everything that refreshes need, with one finding for each need."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from psycopg import sql
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine.catalog import alerts, locks, migrate, records
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault, PgTrickleError

# The last finished verification of each table and part. A repaired one counts as right.
_VERIFICATIONS = """
SELECT DISTINCT ON (v.pgt_id) t.pgt_schema || '.' || t.pgt_name, CASE WHEN v.repaired THEN 0 ELSE v.differences END,
       v.ended_at
  FROM pgtrickle.pgt_verifications v JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
 WHERE v.status IN ('EQUAL', 'DIFFERENT')
 ORDER BY v.pgt_id, v.verification_id DESC
"""

# What the alert `stale_data` is for.
_LATE = sql.SQL(
    "SELECT i.name FROM pgtrickle.stream_tables_info i WHERE NOT i.is_hidden AND {stale} ORDER BY i.name"
).format(stale=alerts.STALE)

# Superusers and roles with the owner's rights may do all of this anyway and are left out.
_WHO_WRITES_CODE = """
    WITH grants AS (
        SELECT a.grantee, n.nspowner AS owner, 'create objects in ' || n.nspname AS may
        FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
        WHERE n.nspname IN ('pgtrickle', 'pgtrickle_changes') AND a.privilege_type = 'CREATE'
        UNION
        SELECT a.grantee, c.relowner, 'change the definitions in ' || c.relname
        FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
        WHERE c.oid IN ('pgtrickle.pgt_stream_tables'::regclass, 'pgtrickle.pgt_dependencies'::regclass,
                        'pgtrickle.pgt_change_tracking'::regclass, pg_catalog.to_regclass('pgtrickle.pgt_requests'))
          AND a.privilege_type IN ('INSERT', 'UPDATE', 'TRIGGER')
        UNION
        SELECT a.grantee, c.relowner, 'change ' || c.relname || '.' || t.attname
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid,
             pg_catalog.aclexplode(t.attacl) a
        WHERE c.oid = 'pgtrickle.pgt_stream_tables'::regclass AND a.privilege_type IN ('INSERT', 'UPDATE')
          AND t.attname <> ALL (%(state)s)
    )
    SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(grantee) END,
           pg_catalog.string_agg(may, ', ' ORDER BY may)
    FROM grants
    WHERE grantee <> owner AND (grantee = 0 OR NOT pg_catalog.pg_has_role(grantee, owner, 'MEMBER'))
    GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True)
class Finding:
    """One need and how it is met."""

    check: str
    ok: bool
    detail: str


def examine(database: Database) -> list[Finding]:
    """Run every check; one that fails doesn't stop the others."""
    return [_finding(name, check, database) for name, check in CHECKS]


def _finding(name: str, check: Callable[[Database], tuple[bool, str]], database: Database) -> Finding:
    try:
        ok, detail = check(database)
    except PgTrickleError as error:
        ok, detail = False, str(error)
    return Finding(name, ok, detail)


def _server(database: Database) -> tuple[bool, str]:
    return True, f"PostgreSQL {database.capabilities.server_version} at {database.target}"


def _catalog(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn:
        installed, shipped = migrate.version(conn), migrate.migrations()[-1].number
    if installed == shipped:
        return True, f"version {installed}"
    found = f"version {installed}, this package brings {shipped}" if installed else "not installed"
    return installed > shipped, f"{found}: run `pgtrickle install`"


def _capture(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn, conn.cursor(row_factory=dict_row) as cursor:
        if not migrate.is_installed(conn):
            return False, "the catalog is not installed"
        sources = cursor.execute(
            "SELECT * FROM pgtrickle.check_cdc_health(%s, %s)",
            (database.settings.change_buffer_warning_rows, database.settings.wal_lag_warning_mb),
        ).fetchall()
    alarmed = [f"{source['source_table']}: {source['alert']}" for source in sources if source["alert"]]
    return not alarmed, "; ".join(alarmed) or f"{len(sources)} sources captured"


def _slots(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn:
        if not migrate.is_installed(conn):
            return False, "the catalog is not installed"
        found = conn.execute(
            "SELECT slot_name, bool_or(source_relid IS NOT NULL), max(retained_wal_bytes), max(wal_status)"
            " FROM pgtrickle.slot_health() GROUP BY 1 ORDER BY 1"
        ).fetchall()
    orphans = [name for name, is_read, _, _ in found if not is_read]
    told = [
        f"nothing reads slot {name}, and the server keeps its log for it: run `pgtrickle cleanup`" for name in orphans
    ]
    told += [f"the server has removed log that slot {name} needs" for name, _, _, status in found if status == "lost"]
    kept = ", ".join(f"{name} keeps {(size or 0) >> 20} MB of log" for name, _, size, _ in found)
    return not told, "; ".join(told) or kept or "no replication slot"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _stream_tables(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn:
        if not migrate.is_installed(conn):
            return False, "the catalog is not installed"
        tables = records.get_all(conn)
        found = conn.execute(_LATE).fetchall()
    late = f"; older than twice their schedule: {', '.join(name for (name,) in found)}" if found else ""
    halted = [f"{table.qualified} is {table.status}" for table in tables if table.is_halted]
    parts = sum(table.is_hidden for table in tables)
    count = _plural(len(tables) - parts, "stream table") + (f" and {_plural(parts, 'part')}" if parts else "")
    return not halted, ("; ".join(halted) or f"{count}, none halted") + late


def _verifications(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn:
        if not migrate.is_installed(conn):
            return False, "the catalog is not installed"
        found = conn.execute(_VERIFICATIONS).fetchall()
    wrong = [f"{name} differed from its query in {rows} rows at {at:%F %T}" for name, rows, at in found if rows]
    remedy = ": run `pgtrickle verify NAME --repair`"
    return not wrong, "; ".join(wrong) + remedy if wrong else f"{len(found)} stream tables verified, none differs"


def _locks(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn:
        if not migrate.is_installed(conn):
            return False, "the catalog is not installed"
        names = {table.id: str(table.qualified) for table in records.get_all(conn)}
        strangers = [holder for holder in locks.holders(conn, names) if not holder.rightful]
    told = [f"{holder} holds the lock of {names[holder.pgt_id]} without a right to refresh it" for holder in strangers]
    return not told, "; ".join(told) or "none held by who may not refresh"


def _rights(database: Database) -> tuple[bool, str]:
    with database.transaction() as conn:
        if not migrate.is_installed(conn):
            return False, "the catalog is not installed"
        found = conn.execute(_WHO_WRITES_CODE, {"state": list(records.STATE)}).fetchall()
    told = [f"role {role} may {right} and so run code as who refreshes" for role, right in found]
    return not told, "; ".join(told) or "nobody else may write what becomes SQL"


def _needed(check: Callable[[Database], tuple[bool, str]]) -> Callable[[Database], tuple[bool, str]]:
    """The check of something of Spark's, which counts only where something may be computed there."""

    def checked(database: Database) -> tuple[bool, str]:
        if database.settings.placement == "database":
            with database.transaction() as conn:
                known = migrate.is_installed(conn)
                placements = {table.placement for table in records.get_all(conn)} if known else set()
            if placements <= {None, "database"}:
                return True, "not needed: all is computed in the database"
        return check(database)

    return checked


def _java(database: Database) -> tuple[bool, str]:
    java = shutil.which("java")
    if java is None:
        raise EnvironmentFault("Java is not installed", remedy="Install Java 17 or newer, or use Spark Connect.")
    return True, java


def _jdbc(database: Database) -> tuple[bool, str]:
    from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar

    return True, str(jdbc_jar(database.settings))


def _pyspark(database: Database) -> tuple[bool, str]:
    from airflow_provider_pgtrickle.engine.spark.versions import check_versions

    return True, check_versions()


#: The checks, in the order in which one would repair what they find.
CHECKS: tuple[tuple[str, Callable[[Database], tuple[bool, str]]], ...] = (
    ("database", _server),
    ("catalog", _catalog),
    ("capture", _capture),
    ("slots", _slots),
    ("stream tables", _stream_tables),
    ("verification", _verifications),
    ("locks", _locks),
    ("rights", _rights),
    ("java", _needed(_java)),
    ("jdbc driver", _needed(_jdbc)),
    ("pyspark", _needed(_pyspark)),
)
