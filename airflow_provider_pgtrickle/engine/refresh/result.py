"""What a refresh did, for whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class RefreshResult:
    """One stream table's part of a refresh; the same figures stand in its history row."""

    name: str
    action: str
    """The effective one: NO_DATA, DIFFERENTIAL, FULL, REINITIALIZE, TOPK or SKIP."""
    fallback_reason: str | None = None
    """Why it is not what was asked for, in words."""
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    source_changes: int = 0
    duration_ms: float = 0.0
    data_timestamp: datetime | None = None
    rows_read: int = 0
    reads: int = 0
    spark_jobs: int = 0
    run_token: str = ""
    status: str = "COMPLETED"

    @property
    def changed(self) -> bool:
        """Whether any row of the stream table is another than before."""
        return bool(self.rows_inserted or self.rows_updated or self.rows_deleted)
