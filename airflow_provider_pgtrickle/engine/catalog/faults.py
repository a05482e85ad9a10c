"""psycopg's errors in the words of our own tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    EnvironmentFault,
    PermissionFault,
    PgTrickleError,
    QueryError,
    RefreshError,
    RoomFault,
    TransientFault,
    UsageError,
    spoken,
)
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: What to do where a policy would hide rows from a refresh.
ROW_SECURITY = (
    "A stream table holds what all rows yield: refresh as the table's owner (without FORCE ROW LEVEL SECURITY)"
    " or as a role with BYPASSRLS, and put policies for readers on the stream table."
)

#: Finds our own schema or relation in PostgreSQL's message about one that doesn't exist.
_CATALOG = re.compile(r'"pgtrickle(\.pgt_\w+)?"')

#: SQLSTATEs after which the same thing may succeed; whole classes by their first two characters.
_TRANSIENT = {"40001", "40P01", "55P03", "55006", "57P01", "57P02", "57P03", "57P05", "25P03"}
_TRANSIENT_CLASSES = {"08", "53"}

#: SQLSTATEs of a statement for which memory or room for temporary files was short.
OF_MEMORY = {"53000", "53100", "53200", "53400"}

#: SQLSTATEs of unknown tables, functions, columns, types and schemas. A function whose body relies on a search_path
#: raises them in our sessions.
_UNKNOWN_NAMES = {"42P01", "42883", "42703", "42704", "3F000"}
_FUNCTION = re.compile(r'(?:SQL|PL/\w+) function "?(?!pgtrickle\.)([^"\s(]+)')


def not_installed() -> UsageError:
    """The error for a database without our catalog."""
    return UsageError(
        "The pgtrickle catalog is not installed in this database",
        remedy=spoken(
            cli="Run `pgtrickle install`.",
            python="Run `pgtrickle install`, or call install().",
            dag="Run `pgtrickle install`, or the task `plan` of its DAG.",
        ),
    )


def translated(
    error: psycopg.Error,
    *,
    stream_table: str | None = None,
    otherwise: type[PgTrickleError] = RefreshError,
) -> PgTrickleError:
    """The error of our tree that `error` means; `otherwise` is the class where no rule applies."""
    state = error.sqlstate
    primary = error.diag.message_primary or str(error).strip().partition("\n")[0] or type(error).__name__
    message = _sentence(primary)
    if state == "53100":
        return RoomFault(
            f"The database server's disk is full: {message}",
            remedy="Free or add space, then run it again; nothing of this run was committed.",
            stream_table=stream_table,
        )
    if state in OF_MEMORY:
        return RoomFault(
            message,
            remedy="Raise temp_file_limit for the refreshing role, or give the server more memory; nothing of this run"
            " was committed.",
            stream_table=stream_table,
        )
    if state == "55P03":
        return TransientFault(
            f"Another session holds a lock that is needed here: {message}",
            remedy="Run it again when that session is done, or raise lock_timeout_seconds.",
            stream_table=stream_table,
        )
    if state in ("3F000", "42P01") and _CATALOG.search(primary):
        return not_installed()
    if state == "25006":
        return EnvironmentFault(
            f"This server or session takes no changes: {message}",
            remedy="Connect to the primary, not to a standby, or set default_transaction_read_only off for the role.",
            stream_table=stream_table,
        )
    if state == "25P04" or (state == "57014" and "timeout" in primary):
        setting = "transaction_timeout" if state == "25P04" else "statement_timeout"
        return otherwise(
            message,
            remedy=f"Raise it for this role: ALTER ROLE … SET {setting} = 0, or to what its refreshes take.",
            stream_table=stream_table,
        )
    if state == "57014":
        # PostgreSQL tells a statement_timeout that ends between two statements as a user's request.
        return otherwise(
            message,
            remedy="Run it again. If nobody cancelled it, a timeout did: ALTER ROLE … SET statement_timeout = 0, or to"
            " what its refreshes take.",
            stream_table=stream_table,
        )
    if state in _UNKNOWN_NAMES and (called := _FUNCTION.search(error.diag.context or "")):
        return otherwise(
            f"The function {called[1]} finds no names by itself: {primary}",
            remedy=f"Qualify the names in its body, or ALTER FUNCTION {called[1]} SET search_path = …",
            stream_table=stream_table,
        )
    if state == "42501" and error.diag.source_function == "check_enable_rls":
        return PermissionFault(message, remedy=ROW_SECURITY, stream_table=stream_table)
    if state == "42501":
        return PermissionFault(
            message, remedy=error.diag.message_hint or "Ask the owner to grant it.", stream_table=stream_table
        )
    if state in _TRANSIENT or (state or "")[:2] in _TRANSIENT_CLASSES:
        return TransientFault(message, remedy="Try again.", stream_table=stream_table)
    if state is None and isinstance(error, psycopg.OperationalError):
        return TransientFault(f"The connection to PostgreSQL broke: {message}", stream_table=stream_table)
    return otherwise(message, remedy=error.diag.message_hint, stream_table=stream_table)


@contextmanager
def translating(stream_table: str | None = None, otherwise: type[PgTrickleError] = RefreshError) -> Iterator[None]:
    """Let psycopg's errors leave the block as ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, stream_table=stream_table, otherwise=otherwise) from error
    except UnicodeDecodeError as error:
        raise EnvironmentFault(
            "The database holds text that is not UTF-8, and its encoding (SQL_ASCII) doesn't say what it is",
            remedy="Restore it into a database in UTF8.",
            stream_table=stream_table,
        ) from error
    except UnicodeEncodeError as error:
        raise UsageError(
            f"A text holds U+{ord(error.object[error.start]):04X}, which is no character",
            remedy="Decode it as UTF-8.",
            stream_table=stream_table,
        ) from None


def refused_connection(error: psycopg.Error, target: str) -> ConnectionFault:
    """Why no connection to `target` (host:port/database, no credentials) came about."""
    text = str(error)
    state = error.sqlstate
    if state in ("28P01", "28000") or "authentication failed" in text or "no password supplied" in text:
        return ConnectionFault(
            f"PostgreSQL at {target} refused the user name or password", remedy="Check the connection's credentials."
        )
    if state == "3D000" or ("database" in text and "does not exist" in text):
        return ConnectionFault(
            f"There is no such database: {target}", remedy="Check the database's name in the connection."
        )
    reason = text.strip().splitlines()[-1] if text.strip() else type(error).__name__
    return ConnectionFault(
        f"PostgreSQL can't be reached at {target}: {_sentence(reason)}",
        remedy="Check host and port, and that the server runs.",
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


@contextmanager
def about(name: QualifiedName) -> Iterator[None]:
    """In the block psycopg's errors become ours, and an error that names no stream table names this one."""
    try:
        with translating(str(name), otherwise=QueryError):
            yield
    except PgTrickleError as error:
        if error.stream_table is None:
            error.stream_table = str(name)
        raise
