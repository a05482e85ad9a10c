"""A refresh as data: what the walk will do, and what explain and the history print."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.refresh.decision import Decision
from airflow_provider_pgtrickle.engine.refresh.executor import Computation


@dataclass(frozen=True)
class MemberPlan:
    """One stream table's part of a unit."""

    name: str
    decision: Decision
    source_changes: int
    computation: Computation | None = None
    """None where there is nothing to compute."""
    whole: bool = False
    """The computation yields the whole content, from which the stored rows are subtracted."""
    here: bool = False
    """It runs in the coordinator's session, because it reads a pending change too large for SQL text."""

    def __str__(self) -> str:
        reason = f" ({self.decision.fallback_reason})" if self.decision.fallback_reason else ""
        head = f"{self.name}: {self.decision.action}{reason}, {self.source_changes} pending source rows"
        if self.computation is None:
            return head
        yields = "the whole content" if self.whole else "the change"
        where = "in the coordinator's session" if self.here else "by the executor"
        target = "the stage table" if self.computation.large else "the driver"
        expected = f"about {self.computation.expected_rows} rows to {target}"
        how = str(self.computation.spark or self.computation.sql)
        return f"{head}\ncompute {yields} {where}, {expected}:\n{how}"


@dataclass(frozen=True)
class UnitPlan:
    """All members in order, on one snapshot."""

    snapshot: str
    members: tuple[MemberPlan, ...]

    def __str__(self) -> str:
        return "\n\n".join([f"unit of {len(self.members)} on snapshot {self.snapshot}", *map(str, self.members)])
