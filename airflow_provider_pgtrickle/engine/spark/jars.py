"""Finds the PostgreSQL JDBC driver."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from airflow_provider_pgtrickle.engine.settings import Settings

#: The folders of Debian's and Fedora's packages; within one the newest-looking name wins.
_FOLDERS = (Path("/usr/share/java"), Path("/usr/local/share/java"), Path("/usr/share/java/postgresql-jdbc"))
_REMEDY = (
    "Install it (Debian, Ubuntu: apt-get install libpostgresql-jdbc-java) "
    "or name the jar in the setting jdbc_jar (PGTRICKLE_JDBC_JAR)."
)


def jdbc_jar(settings: Settings) -> Path:
    """The driver's jar: the one in the settings, or else the system's."""
    if settings.jdbc_jar:
        named = Path(settings.jdbc_jar).expanduser()
        if not named.is_file():
            raise EnvironmentFault(f"The PostgreSQL JDBC driver {str(named)!r} does not exist", remedy=_REMEDY)
        return named.resolve()
    for folder in _FOLDERS:
        found = [folder / "postgresql.jar", *sorted(folder.glob("postgresql-[0-9]*.jar"), reverse=True)]
        for jar in found:
            if jar.is_file():
                return jar.resolve()
    raise EnvironmentFault("The PostgreSQL JDBC driver is not installed", remedy=_REMEDY)
