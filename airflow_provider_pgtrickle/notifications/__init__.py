"""Notifiers that send alerts from Airflow into PostgreSQL and on to other notifiers."""

from airflow_provider_pgtrickle.notifications.alert import AlertNotifier

__all__ = ["AlertNotifier"]
