"""A reason names why a query is refused, or can't be maintained by differences; the set of names is closed.

`never` means that no difference can exist; `not yet` invites an issue.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """The names of the reasons; each value is (when, what it says to the user)."""

    ROUND_TRIP = ("not yet", "the query's text does not survive parsing unchanged")
    UNPLANNABLE = ("not yet", "PostgreSQL refuses the statement that computes the change")
    UNSUPPORTED_SYNTAX = ("not yet", "the query holds a construct the engine does not know")
    WHOLE_ROW = ("not yet", "the query refers to a whole row")
    VOLATILE_FUNCTION = ("never", "the query calls a volatile function, so no two runs agree")
    TIME_DEPENDENT = ("never", "the query's answer may change with the clock or the session, not only with its sources")
    COMPUTES_WITH_CLOCK = (
        "not yet",
        "the query computes with the clock, and only comparisons of a value with it are kept by differences",
    )
    READS_TABLES = ("never", "a function that the query calls may read tables, and their changes are not seen")
    NOT_CAPTURED = ("never", "a source can't have triggers, so its changes are not seen")
    AMBIGUOUS_ORDER = ("never", "the answer depends on the order of rows that the query leaves open")
    TOO_MANY_GROUPINGS = ("never", "more than 64 grouping sets")
    TOO_LARGE = ("not yet", "the query is more, or unfolds to more, than the engine takes")
    TABLESAMPLE = ("never", "TABLESAMPLE picks other rows each time")
    LIMIT_WITHOUT_ORDER = ("never", "LIMIT without ORDER BY picks arbitrary rows")
    ENDLESS = ("never", "nothing in a recursion's step ends it, so its rows are there only as far as somebody asks")
    ROW_LOCKING = ("never", "FOR UPDATE and FOR SHARE lock rows, which a stream table has no use for")

    @property
    def is_permanent(self) -> bool:
        permanence: str = self.value[0]
        return permanence == "never"

    @property
    def sentence(self) -> str:
        return self.value[1]


@dataclass(frozen=True)
class Refusal:
    """One reason with its place and its remedy."""

    reason: Reason
    detail: str
    remedy: str
    place: str | None = None

    @property
    def message(self) -> str:
        return f"{self.reason.sentence} ({self.detail})"

    def __str__(self) -> str:
        kind = "never differentiable" if self.reason.is_permanent else "not differentiable yet"
        return f"{kind}: {self.reason.sentence} ({self.detail}). {self.remedy}"


class Refused(Exception):
    """The front end raises this; `analyze` turns it into `View.refusal` or into a `QueryError`."""

    def __init__(self, reason: Reason, detail: str, remedy: str = "It runs FULL; or rewrite the query.") -> None:
        self.refusal = Refusal(reason, detail, remedy)
        super().__init__(str(self.refusal))
