"""A client with its database, and writers of their own sessions."""

from __future__ import annotations

from tests.database.reported.conftest import admin, site

__all__ = ["admin", "site"]
