"""Whether a refresh mode suits a query: what DIFFERENTIAL refuses, and what AUTO does instead."""

from __future__ import annotations

from airflow_provider_pgtrickle.catalog.probe import Probe
from airflow_provider_pgtrickle.dvm import View
from airflow_provider_pgtrickle.errors import NotDifferentiable

_INSTEAD = "Use refresh_mode AUTO or FULL."


def judge(refresh_mode: str, probed: Probe, view: View) -> tuple[str | None, tuple[str, ...]]:
    """Why the query can't be kept by differences (None where it can), and what its author should know."""
    found = _refusal(probed, view)
    if refresh_mode == "DIFFERENTIAL" and found:
        raise found
    notices = []
    if refresh_mode == "AUTO" and found:
        notices.append(f"Every refresh will run FULL: {found.message}")
    stable = _functions(probed, "s")
    if stable and refresh_mode != "FULL":
        notices.append(
            f"{', '.join(stable)} may answer differently at each refresh; rows that don't change keep the value "
            "they were computed with"
        )
    return (found.message if found else None), tuple(notices)


def _refusal(probed: Probe, view: View) -> NotDifferentiable | None:
    uncaptured = [source for source in view.sources.values() if not source.captured]
    if uncaptured:
        kinds = {
            "MATVIEW": "a materialized view",
            "FOREIGN_TABLE": "a foreign table",
            "UNLOGGED_TABLE": "an unlogged table, which a crash of the server empties",
        }
        source = uncaptured[0]
        return NotDifferentiable(
            f"{source.schema}.{source.name} is {kinds.get(source.kind, source.kind)}: "
            "its changes can't all be captured by triggers",
            remedy=f"{_INSTEAD} Or read the tables behind it.",
        )
    volatile = _functions(probed, "v")
    if volatile:
        return NotDifferentiable(
            f"{', '.join(volatile)} is volatile: the same row would be computed differently each time",
            remedy=f"{_INSTEAD} Or take the call out of the query.",
        )
    if view.refusal:
        refusal = view.refusal
        return NotDifferentiable(
            refusal.message,
            reason=refusal.reason,
            place=refusal.place,
            remedy=f"{_INSTEAD} {refusal.remedy}",
        )
    return None


def _functions(probed: Probe, volatility: str) -> list[str]:
    return sorted(f"{name}()" for name, worst in probed.schema.functions.items() if worst == volatility)
