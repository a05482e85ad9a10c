"""The live shop's customers: a process that changes rows until SIGTERM stops it."""

from __future__ import annotations

import os
import signal
import threading

import psycopg

from airflow_provider_pgtrickle.demo import shop

SECONDS_BETWEEN_EVENTS = 0.5


def main() -> None:
    """Change rows of the database in PGTRICKLE_DSN. SIGTERM ends this after the current change."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with psycopg.connect(os.environ["PGTRICKLE_DSN"], autocommit=True, application_name="demo writer") as conn:
        while not stopped.wait(SECONDS_BETWEEN_EVENTS):
            shop.one_event(conn)


if __name__ == "__main__":
    main()
