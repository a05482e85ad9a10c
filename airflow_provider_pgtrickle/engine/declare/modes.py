"""Whether a refresh mode suits a query: what DIFFERENTIAL refuses, and what AUTO does instead."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm import View
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable


def judge(refresh_mode: str, view: View) -> tuple[str | None, tuple[str, ...]]:
    """Why the query can't be kept by differences (None where it can), and what its author should know."""
    refusal = view.refusal
    if refusal is None:
        return None, ()
    if refresh_mode == "DIFFERENTIAL":
        raise NotDifferentiable(
            refusal.message,
            reason=refusal.reason,
            place=refusal.place,
            remedy=f"Use refresh_mode AUTO or FULL. {refusal.remedy}",
        )
    notices = (f"Every refresh will run FULL: {refusal.message}",) if refresh_mode == "AUTO" else ()
    return refusal.message, notices
