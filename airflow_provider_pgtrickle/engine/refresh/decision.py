"""What a refresh does is decided here from facts alone, before any rows are read. `decide` is a pure function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_pgtrickle.engine.errors import NotDifferentiable


class Action(StrEnum):
    NO_DATA = "NO_DATA"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    REINITIALIZE = "REINITIALIZE"
    TOPK = "TOPK"
    SKIP = "SKIP"


class Fallback(StrEnum):
    """Why the action is not what was asked for. Some reasons are followed by `: ` and an explanation in words."""

    NEVER_POPULATED = "never_populated"
    CHANGE_RATIO_EXCEEDED = "change_ratio_exceeded"
    TRUNCATE_DETECTED = "truncate_detected"
    NOT_DIFFERENTIABLE = "not_differentiable"
    SCHEMA_CHANGED = "schema_changed"
    BUFFER_LOST = "buffer_lost"
    FORCED = "forced"
    DATA_ERROR = "data_error"
    CHEAPER = "predicted_cheaper"
    MEMORY = "out_of_memory"


class Skip(StrEnum):
    """Why a refresh wrote nothing, not even a later frontier: the reasons of SKIP."""

    LOCKED = "locked"
    GATED = "gated"
    SUSPENDED = "suspended"
    ERROR = "error"
    FRONTIER_MOVED = "frontier_moved"
    LIVE = "maintained_by_writers"
    QUEUED = "queued"


def gated(reason: str | None) -> str:
    """The reason of SKIP for a table that somebody holds back, with what that person said."""
    return f"{Skip.GATED}: {reason}" if reason else str(Skip.GATED)


def held_by(name: str, reason: str) -> str:
    """The reason of SKIP for a table that another one of its unit holds back: the other's reason, with its name.

    >>> held_by("public.big", "gated: loading"), held_by("public.big", "error")
    ('gated: public.big: loading', 'error: public.big')
    """
    kind, colon, said = reason.partition(": ")
    return f"{kind}: {name}{colon}{said}"


@dataclass(frozen=True)
class SourceFacts:
    """The facts about one source of a stream table, at the unit's snapshot."""

    key: str
    name: str
    captured: bool = True
    """Whether changes are recorded at all; materialized views and foreign tables have no triggers."""
    buffer_lost: bool = False
    """The buffer is gone, was made anew, or belongs to another history of the database."""
    pending_rows: int = 0
    """Rows in the source's window, and rows that an earlier member of the unit is about to write to the source."""
    truncated: bool = False
    rows: float = 0.0
    """The source's estimated size, which is never unknown if rows are pending."""
    judged: bool = False
    """The source is a part that has passed the ratio check itself. A part may have few rows, of which most change."""

    changed_rows: int | None = None
    """The number of rows that changed after all, however often; counted only where it decides."""

    @property
    def changes(self) -> int:
        return self.pending_rows if self.changed_rows is None else self.changed_rows

    @property
    def ratio(self) -> float:
        return 0.0 if self.judged else self.changes / max(self.rows, 1.0)


@dataclass(frozen=True)
class MemberFacts:
    """The facts about one stream table, at the unit's snapshot."""

    name: str
    refresh_mode: str
    populated: bool
    max_change_ratio: float
    """0.0 never falls back."""
    sources: tuple[SourceFacts, ...] = ()
    forced: bool = False
    broken: str | None = None
    """PostgreSQL's error when it computed the difference: a row that came and went may have had no value."""
    reinit_reason: str | None = None
    refusal: str | None = None
    """Why the query can't be maintained by differences, in words; None if it can."""
    topk: bool = False
    steady: bool = True
    """Whether the content depends on the sources alone, which it doesn't if the query calls `now()` or `random()`."""

    @property
    def source_changes(self) -> int:
        return sum(source.pending_rows for source in self.sources)

    @property
    def net_changes(self) -> int:
        """The same, with many changes of one row as one where they are read as one."""
        return sum(source.changes for source in self.sources)


@dataclass(frozen=True)
class Decision:
    action: Action
    fallback_reason: str | None = None
    anew: bool = False
    """TOPK recomputes its rows without a check whether a change reaches them, because too much has changed."""
    keeps: bool = False
    """REINITIALIZE computes an altered query's content from the stored rows."""

    @property
    def whole(self) -> bool:
        """Whether the whole content is computed, and the stored rows are subtracted from it."""
        return not self.keeps and (self.anew or self.action in (Action.FULL, Action.REINITIALIZE))


def decide(facts: MemberFacts) -> Decision:
    """The action, and the reason if it is not what the table's mode asks for.

    DIFFERENTIAL mode is strict about what will not change by itself: a query that can't be differentiated is an
    error there, whereas AUTO takes FULL. The first content is computed in full in every mode.
    """
    if facts.reinit_reason:
        return Decision(Action.REINITIALIZE, facts.reinit_reason)
    differentiable = facts.refusal is None or facts.topk
    strict = facts.refresh_mode in ("DIFFERENTIAL", "IMMEDIATE")
    if strict and not differentiable:
        raise NotDifferentiable(
            f"The query can't be refreshed by differences: {facts.refusal}",
            stream_table=facts.name,
            remedy="Set refresh_mode to AUTO or FULL.",
        )
    if not facts.populated:
        return Decision(Action.FULL, _unless_full_mode(facts, Fallback.NEVER_POPULATED))
    if facts.forced:
        return Decision(Action.FULL, _unless_full_mode(facts, Fallback.FORCED))
    if facts.broken:
        words = f"{Fallback.DATA_ERROR}: {facts.broken}"
        return Decision(Action.TOPK, words, anew=True) if facts.topk else Decision(Action.FULL, words)
    if _nothing_happened(facts):
        return Decision(Action.NO_DATA)
    if facts.refresh_mode == "FULL":
        return Decision(Action.FULL)
    if not differentiable:
        return Decision(Action.FULL, f"{Fallback.NOT_DIFFERENTIABLE}: {facts.refusal}")
    if any(source.buffer_lost for source in facts.sources):
        return Decision(Action.FULL, Fallback.BUFFER_LOST)
    if any(source.truncated for source in facts.sources):
        return Decision(Action.FULL, Fallback.TRUNCATE_DETECTED)
    limit = facts.max_change_ratio
    exceeded = limit > 0 and any(source.ratio > limit for source in facts.sources)
    if facts.topk:
        return Decision(Action.TOPK, anew=exceeded)
    if exceeded:
        return Decision(Action.FULL, Fallback.CHANGE_RATIO_EXCEEDED)
    return Decision(Action.DIFFERENTIAL)


def _nothing_happened(facts: MemberFacts) -> bool:
    """Whether the content has provably not changed.

    It hasn't if each source's changes are captured in full, none is pending, and nothing else shapes the content.
    """
    known = all(source.captured and not source.buffer_lost for source in facts.sources)
    return known and facts.steady and facts.net_changes == 0


def _unless_full_mode(facts: MemberFacts, reason: Fallback) -> str | None:
    """The reason, except for a table whose mode asks for FULL anyway."""
    return None if facts.refresh_mode == "FULL" else str(reason)
