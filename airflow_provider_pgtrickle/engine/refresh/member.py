"""One stream table on its way through a refresh: what is known of it after each step of the walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.refresh.consolidate import Difference, Sink
from airflow_provider_pgtrickle.engine.refresh.decision import Action
from airflow_provider_pgtrickle.engine.refresh.executor import Staged
from airflow_provider_pgtrickle.engine.refresh.facts import SourceState
from airflow_provider_pgtrickle.engine.refresh.frontier import Frontier
from airflow_provider_pgtrickle.engine.refresh.pending import PendingChange
from airflow_provider_pgtrickle.engine.refresh.plan import MemberPlan
from airflow_provider_pgtrickle.engine.refresh.query import QuerySource
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Snapshot


@dataclass
class Member:
    """Filled from left to right: locked, read, decided, computed, differenced."""

    stored: StreamTable
    """As the catalog had it when the lock was got."""
    st: StreamTable
    """As it will be: another value than `stored` where it is reinitialized."""
    query: QuerySource
    reinit_reason: str | None = None
    states: Mapping[str, SourceState] = field(default_factory=dict)
    plan: MemberPlan | None = None
    staged: Staged | None = None
    difference: Difference | None = None
    pending: PendingChange | None = None

    @property
    def name(self) -> str:
        return str(self.stored.qualified)

    @property
    def frontier(self) -> Frontier:
        return Frontier.from_json(self.stored.frontier)

    @property
    def reshaped(self) -> bool:
        """Whether the table gets other columns than it has."""
        return self.st.storage != self.stored.storage

    @property
    def action(self) -> Action:
        assert self.plan is not None  # asked of decided members only
        return self.plan.decision.action

    @property
    def plan_is_whole(self) -> bool:
        return self.plan is not None and self.plan.whole

    def sink(self, conn: Connection) -> Sink:
        """The table as it stands in `conn`'s transaction."""
        names = tuple(column.name for column in self.st.storage)
        return Sink(
            self.st.qualified, describe(conn, self.st.qualified.sql, names), tuple(self.st.identity), self.st.keyed
        )

    def visible(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.st.visible)

    def data_timestamp(self, at: Snapshot, unit: Mapping[str, Member]) -> datetime:
        """The instant that all of the content reflects: the snapshot's, or what the stalest stream table it reads has.

        Members of the unit are as new as the unit.
        """
        older = [
            state.data_timestamp
            for key, state in self.states.items()
            if state.data_timestamp is not None and key not in unit
        ]
        inside = [unit[key].data_timestamp(at, unit) for key in self.states if key in unit]
        return min([at.taken_at, *older, *inside])


def stage_name(member: Member) -> sql.Identifier | None:
    """The shared stage table of a large result."""
    if member.staged is None or member.staged.stage_table is None:
        return None
    return sql.Identifier(*member.staged.stage_table)
