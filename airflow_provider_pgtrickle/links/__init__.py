"""Buttons on a refresh task: its history, its explanation, its asset."""

from airflow_provider_pgtrickle.links.asset import AssetLink
from airflow_provider_pgtrickle.links.page import ExplainLink, RefreshHistoryLink

__all__ = ["AssetLink", "ExplainLink", "RefreshHistoryLink"]
