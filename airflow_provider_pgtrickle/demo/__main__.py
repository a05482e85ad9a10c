"""`python -m airflow_provider_pgtrickle.demo [up | down]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from airflow_provider_pgtrickle.demo import live, once
from airflow_provider_pgtrickle.engine.errors import PgTrickleError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_pgtrickle.demo", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["once", "up", "down"], default="once")
    parser.add_argument("--folder", type=Path, default=Path(".demo"), help="where logs and state go (default: .demo)")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    try:
        if arguments.what == "up":
            live.up(folder)
        elif arguments.what == "down":
            live.down(folder)
        else:
            return 0 if once.run(folder) else 1
    except PgTrickleError as fault:
        print(f"demo: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
