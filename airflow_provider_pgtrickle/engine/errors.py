"""Every error the product raises, in one small tree.

    PgTrickleError
    ├── UsageError                 the caller gave a wrong name, schedule or option
    │   ├── UnknownStreamTable
    │   └── StreamTableExists
    ├── QueryError                 the defining query is refused, with its place and the remedy
    │   ├── SyntaxFault            PostgreSQL can't parse it, or a name in it is unknown
    │   ├── NotDifferentiable      it can't run DIFFERENTIAL; carries a `Reason`
    │   └── CycleDetected          stream tables would depend on each other in a circle
    ├── ConnectionFault            PostgreSQL or Spark can't be reached, or refuses the credentials
    │   └── NoWorkers              Spark has nobody who takes a task; this refresh has waited for them already
    ├── PermissionFault            the role lacks a right
    ├── RefreshError               a refresh failed; nothing of it was committed
    │   ├── TransientFault         trying again may help: locks, serialization, lost executors
    │   ├── MemoryFault            memory or room for temporary files was short; another way to compute may do
    │   │   └── RoomFault          and trying again may help: a full disk, a driver that has to start anew
    │   ├── OutOfTime              a difference takes longer than it may; FULL follows
    │   ├── ValueFault             PostgreSQL or Spark can't compute a value: 7 / 0, a cast that fails
    │   ├── TableAltered           its table was dropped by hand, or got something that refuses or changes its rows
    │   ├── LeaseLost              another run took this run's lease; this one must not commit
    │   └── InvariantViolated      the delta contradicts the stored rows; nothing was written
    └── EnvironmentFault           this machine lacks something (Java, the JDBC driver, equal PySpark versions)

A message is one clear sentence; the remedy follows as a second. Neither ever holds a credential.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

#: Who called: `python`, `cli` or `dag`. Remedies are told in words that can be typed there.
caller: ContextVar[str] = ContextVar("pgtrickle_caller", default="python")


def spoken(*, python: str, cli: str, dag: str | None = None) -> str:
    """The text for whoever called; in a DAG that of the command line, unless there is another way."""
    words = {"python": python, "cli": cli, "dag": dag or cli}
    return words[caller.get()]


_PASSWORD = re.compile(r"(?i)(password\s*=\s*)('[^']*'|\S+)|(://[^:/@\s]*:)[^@\s]*(?=@)")


def redact(text: str) -> str:
    """Blank out every credential that a connection string in `text` carries.

    >>> redact("cannot reach postgresql://bob:s3cret@db:5432/shop")
    'cannot reach postgresql://bob:***@db:5432/shop'
    """
    return _PASSWORD.sub(lambda m: f"{m.group(1) or m.group(3)}***", text)


def unencodable(text: str) -> str | None:
    """A lone surrogate in `text`, which a str may hold, but neither UTF-8 nor a database can.

    >>> unencodable("totals"), unencodable("total\\ud800")
    (None, 'U+D800')
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"U+{ord(text[error.start]):04X}"
    return None


class PgTrickleWarning(UserWarning):
    """What a declaration does besides what it was asked for, and its author should know."""


class PgTrickleError(Exception):
    """The root. `place` is line and column in the query. `stream_table`, `place` and `remedy` may be None."""

    #: True where trying the same thing again can't help.
    permanent = True

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        stream_table: str | None = None,
        place: str | None = None,
    ) -> None:
        self.message = redact(message).rstrip()
        self.remedy = redact(remedy) if remedy else None
        self.stream_table = stream_table
        self.place = place
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.stream_table}: " if self.stream_table else ""
        where = f" ({self.place})" if self.place else ""
        tail = f" {self.remedy}" if self.remedy else ""
        end = "" if self.message.endswith((".", "!", "?")) or where else "."
        stop = "." if where else ""
        return f"{head}{self.message}{end}{where}{stop}{tail}"


class UsageError(PgTrickleError):
    """The caller gave a wrong name, schedule or option."""


class UnknownStreamTable(UsageError):
    """No stream table of that name."""


class StreamTableExists(UsageError):
    """There is one of that name already."""


class QueryError(PgTrickleError):
    """The defining query is refused."""


class SyntaxFault(QueryError):
    """PostgreSQL can't parse the query, or a name in it is unknown."""


class NotDifferentiable(QueryError):
    """The query can't be maintained by differences. `reason` is a member of `dvm.reasons.Reason`."""

    def __init__(self, message: str, *, reason: object = None, **context: str | None) -> None:
        self.reason = reason
        super().__init__(message, **context)


class CycleDetected(QueryError):
    """Stream tables would depend on each other in a circle."""


class ConnectionFault(PgTrickleError):
    """PostgreSQL or Spark can't be reached, or refuses the credentials."""

    permanent = False


class NoWorkers(ConnectionFault):
    """Spark has nobody who takes a task."""


class PermissionFault(PgTrickleError):
    """The role lacks a right."""


class RefreshError(PgTrickleError):
    """A refresh failed; nothing of it was committed."""


class TransientFault(RefreshError):
    """Trying again may help."""

    permanent = False


class MemoryFault(RefreshError):
    """Memory, or room for temporary files, was short."""


class RoomFault(MemoryFault, TransientFault):
    """Memory or room was short, and may not be so in a moment."""


class OutOfTime(RefreshError):
    """A difference takes longer than it may."""


class ValueFault(RefreshError):
    """A value can't be computed."""


class LeaseLost(RefreshError):
    """Another run took this run's lease."""


class TableAltered(RefreshError):
    """The stream table's own table was dropped by hand, or got something that refuses or changes its rows."""


class InvariantViolated(RefreshError):
    """The delta contradicts the stored rows."""


class EnvironmentFault(PgTrickleError):
    """This machine lacks something."""


#: Errors of the run and not of one stream table, after which the next table would fail as well.
SURROUNDINGS = (ConnectionFault, EnvironmentFault, LeaseLost, UsageError)
