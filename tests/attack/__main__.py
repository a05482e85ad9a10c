"""Play many histories, and say what came of them: `python -m tests.attack FIRST NUMBER [--server 15] [--shrink]`."""

from __future__ import annotations

import argparse
import time
import warnings

from tests import servers
from tests.attack.attack import Tally, Worlds, attack

_EACH = 50


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("number", type=int)
    parser.add_argument("--server", type=int, choices=(15, 18), default=18)
    parser.add_argument("--shrink", action="store_true")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="tests.attack")
    total, begun = Tally(), time.monotonic()
    with servers.running(given.server) as server:
        worlds = Worlds(server)
        end = given.first + given.number
        for first in range(given.first, end, _EACH):
            seeds = range(first, min(first + _EACH, end))
            total += attack(worlds, seeds, shrink=given.shrink)
            print(f"{total.histories} in {time.monotonic() - begun:.0f} s, {len(total.found)} wrong", flush=True)
    print(total)


if __name__ == "__main__":
    main()
