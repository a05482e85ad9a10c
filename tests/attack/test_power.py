"""The power goes while writers write and refreshes run: what was promised is there, and every content is true."""

from __future__ import annotations

import os
import threading
from collections import Counter
from random import Random

import psycopg
import pytest

from tests import servers
from tests.attack.power import lose_power, powered
from tests.attack.siege import checked, contents, declared, drivers
from tests.attack.writers import Crowd

ROUNDS = int(os.environ.get("PGTRICKLE_POWER_ROUNDS", "5"))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_contents_are_true_after_the_power_was_lost() -> None:
    kills, lost = Counter[str](), 0
    with powered() as server, servers.fresh_database(server) as name:
        dsn = servers.ordinary_dsn(server, name)
        declared(dsn)
        crowd = Crowd(lambda: dsn, 8, seed=4)
        crowd.start()
        driver = threading.Thread(target=drivers, args=(dsn, crowd, Random(4), kills), daemon=True)
        driver.start()
        for _ in range(ROUNDS):
            before = contents(dsn)
            crowd.allow(200)
            while contents(dsn) in (before, None):
                crowd.wait_for(crowd.ended + 1, 0.2)
            crowd.allow(200)
            crowd.wait_for(crowd.ended + 60)
            lost += lose_power(server)
        crowd.stop()
        crowd.join()
        driver.join()
        found = checked(dsn, crowd)
        with psycopg.connect(dsn) as conn:
            kept = {n for (n,) in conn.execute("SELECT n FROM markers")}
    promised = {t.marker for t in crowd.transactions if t.promised}
    print(found, f"{lost} writes lost,", f"{len(promised)} commits promised,", kills, crowd.counts)
    assert found.wrong == ()
    assert crowd.raised == []
    assert promised - kept == set()
    assert (lost > 0, len(promised) > 100) == (True, True)
