"""One API server and one browser for all tests of the page, on four databases: empty, the shop, a large one, none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests import servers
from tests.airflow.browser import databases
from tests.airflow.browser.browser import Browser
from tests.airflow.browser.serving import Serving

#: Looked at by people, and shown in the documentation.
PICTURES = Path(__file__).parents[3] / "build" / "page"
#: Nobody listens there. Its password must never reach the browser.
DOWN = "pgtrickle://me:s3cret-of-nobody@127.0.0.1:1/shop"


@pytest.fixture(scope="session")
def shop_dsn(postgres18: PostgresServer) -> Iterator[str]:
    """The shop, which `serving` fills while Airflow starts."""
    with servers.fresh_database(postgres18) as name:
        yield servers.ordinary_dsn(postgres18, name)


@pytest.fixture(scope="session")
def serving(postgres18: PostgresServer, shop_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with ExitStack() as made:

        def filled(fill: Callable[[str], None]) -> str:
            dsn = servers.ordinary_dsn(postgres18, made.enter_context(servers.fresh_database(postgres18)))
            fill(dsn)
            return dsn.replace("postgresql://", "pgtrickle://", 1)

        connections = {
            "shop_pg": shop_dsn.replace("postgresql://", "pgtrickle://", 1),
            "page_empty": filled(databases.empty),
            "page_many": filled(databases.many),
            "a_page_down": DOWN,
        }
        running = Serving(tmp_path_factory.mktemp("serving"), Path(__file__).parent / "dags", connections)
        try:
            with ThreadPoolExecutor() as aside:
                started = aside.submit(running.start)
                databases.six(shop_dsn)
                started.result()
            yield running
        finally:
            running.stop()


@pytest.fixture(scope="session")
def _chromium(serving: Serving) -> Iterator[Browser]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with Browser(serving.url, PICTURES) as browser:
        yield browser


@pytest.fixture
def browser(_chromium: Browser) -> Iterator[Browser]:
    """Of a desktop's width and light; a test fails if the page reported an error in the console."""
    _chromium.resize(1400, 950)
    _chromium.theme("light")
    yield _chromium
    assert _chromium.complaints() == []
