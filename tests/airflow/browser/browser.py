"""A chromium without a screen, as a person uses it: by what is written there, and by the keyboard."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

_PATIENCE = 20.0
_DOCUMENTED = Path(__file__).parents[3] / "docs" / "pictures"
#: What .ci/setup.sh brings, or finds.
_AXE = Path(__file__).parents[3] / ".tools" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
_NAMES = ("chromium", "chromium-browser", "google-chrome")

_Found = TypeVar("_Found")


class Browser:
    def __init__(self, url: str, pictures: Path) -> None:
        self._url, self._pictures = url, pictures
        self._has_to_load = True
        options = webdriver.ChromeOptions()
        options.binary_location = next(filter(None, map(shutil.which, _NAMES)))
        # Under root chromium runs only without its sandbox; what it opens here is our own.
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.add_argument("--force-prefers-reduced-motion")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))

    def __enter__(self) -> Self:
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.quit()

    def open(self, **query: str) -> None:
        """The page, as it begins: Airflow's UI is loaded anew only where its theme has to be another one."""
        path = "/plugin/stream-tables" + (f"?{urlencode(query)}" if query else "")
        if self._has_to_load or not self.driver.current_url.startswith(self._url):
            self.driver.get(f"{self._url}{path}")
            self._has_to_load = False
            return
        # Elsewhere first, so that nothing of the last test stays.
        self._go("/plugin/none")
        self.wait(lambda: not self.all(".pgt"), "another place of Airflow's")
        self._go(path)

    def _go(self, path: str) -> None:
        """As a link within Airflow's UI does."""
        go = "history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))"
        self.script(go, f"{self._url}{path}")

    def resize(self, width: int, height: int) -> None:
        """The size of what is shown; a window may not be as narrow as a phone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def theme(self, name: str) -> None:
        """As Airflow's switch keeps it."""
        if not self.driver.current_url.startswith(self._url):
            return
        now = "return [localStorage.getItem('theme') ?? 'light', document.documentElement.className]"
        if self.script(now) != [name, name]:
            self.script("localStorage.setItem('theme', arguments[0])", name)
            self._has_to_load = True

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def wait(self, condition: Callable[[], _Found | None], what: str) -> _Found:
        waiting = WebDriverWait(
            self.driver, _PATIENCE, poll_frequency=0.05, ignored_exceptions=(StaleElementReferenceException,)
        )
        found = waiting.until(lambda _: condition(), f"{what}; there was: {self.text[:500]}")
        assert found is not None
        return found

    @property
    def text(self) -> str:
        return str(self.script("return document.querySelector('.pgt')?.innerText ?? document.body.innerText"))

    def says(self, *words: str) -> None:
        """Wait until all of this is to be read."""
        self.wait(lambda: all(word in self.text for word in words), f"{words} to be read")

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.wait(lambda: next(iter(self.all(selector)), None), selector)

    def button(self, words: str, within: str = ".pgt") -> WebElement:
        def found() -> WebElement | None:
            return next((b for b in self.all(f"{within} button") if b.text == words and b.is_enabled()), None)

        return self.wait(found, f"the button {words!r}")

    def menu_entry(self, words: str) -> WebElement:
        """An entry of one of Airflow's menus, which is open."""

        def found() -> WebElement | None:
            entries = self.all("[role=menuitem], [role=menuitemradio]")
            return next((e for e in entries if e.text == words and e.is_displayed()), None)

        return self.wait(found, f"the menu's entry {words!r}")

    def press(self, *keys: str) -> None:
        for key in keys:
            webdriver.ActionChains(self.driver).send_keys(key).perform()

    @property
    def focused(self) -> str:
        """What a screen reader says of the element that has the focus."""
        return str(
            self.script(
                "const e = document.activeElement; const of = e.labels?.[0]?.innerText;"
                "return (e.getAttribute('aria-label') || of || e.innerText || e.tagName).split('\\n')[0]"
            )
        )

    def tabbed(self, most: int = 40) -> list[str]:
        """What the tab key reaches from the page's beginning, in its order."""
        # The focus goes to what stands before the page, in Airflow's own navigation.
        self.script("const p = document.querySelector('.pgt'); p.tabIndex = -1; p.focus({preventScroll: true});")
        reached = []
        for _ in range(most):
            self.press(Keys.TAB)
            if not self.script("return document.activeElement.closest('.pgt') !== null"):
                break
            reached.append(self.focused)
        return reached

    def untabbed(self, most: int = 120) -> list[str]:
        """What can be worked, and the tab key doesn't reach; within the graph the arrows go on.

        What came while it was on its way stands behind it: the way is gone again until nothing comes.
        """
        worked = ":is(a[href], button:enabled, input, select, summary, [tabindex='0'])"
        listed = f'document.querySelectorAll(".pgt {worked}")'
        known = None
        while known != (there := self.script(f"return {listed}.length")):
            known = there
            self.script("const p = document.querySelector('.pgt'); p.tabIndex = -1; p.focus({preventScroll: true});")
            for _ in range(most):
                self.press(Keys.TAB)
                if not self.script(
                    "const e = document.activeElement; e.dataset.reached = 'yes'; return e.closest('.pgt') !== null"
                ):
                    break
        found: list[str] = self.script(
            f"return [...{listed}]"
            ".filter(e => !('reached' in e.dataset) && e.checkVisibility()).map(e => e.outerHTML.slice(0, 120))"
        )
        return found

    def focus(self, selector: str) -> None:
        """As the tab key does, from wherever the focus is."""
        self.script("document.querySelector(arguments[0]).focus()", selector)

    def busy(self) -> float:
        """Seconds of processor time that the page's own thread has taken so far."""
        found = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return float(next(metric["value"] for metric in found if metric["name"] == "TaskDuration"))

    def picture(self, name: str) -> None:
        """What is shown, for people to look at; and for the documentation where it shows it and that is asked for."""
        self.driver.save_screenshot(str(self._pictures / f"{name}.png"))
        if os.environ.get("PGTRICKLE_REGENERATE") and (_DOCUMENTED / f"{name}.webp").exists():
            asked = {"format": "webp", "quality": 60}
            shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
            (_DOCUMENTED / f"{name}.webp").write_bytes(base64.b64decode(shot))

    def barriers(self) -> list[str]:
        """What axe-core finds on the page that keeps somebody out: by rule, what is wrong, and where."""
        self.script(_AXE.read_text(encoding="utf-8"))
        found: dict[str, list[dict[str, Any]]] = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run('.pgt', {resultTypes: ['violations']}).then(done)"
        )
        return [
            f"{rule['id']}: {rule['help']}: {node['html'][:160]} {node['failureSummary']}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def complaints(self) -> list[str]:
        """What the console has of our own script, except answers that tests ask for."""
        told: list[dict[str, str]] = self.driver.get_log("browser")
        return [
            entry["message"]
            for entry in told
            if entry["level"] == "SEVERE" and "pgtrickle" in entry["message"] and "502" not in entry["message"]
        ]
