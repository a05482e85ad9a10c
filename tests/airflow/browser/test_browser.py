"""The page as a person meets it, in a real browser on a real API server: 0, 6 and 500 tables, and no database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from selenium.webdriver.common.keys import Keys

from airflow_provider_pgtrickle.operators.outcome import run_token
from tests.airflow.browser import databases
from tests.airflow.browser.browser import Browser
from tests.airflow.browser.serving import Serving

SHOP = {"conn_id": "shop_pg"}
ORDERS = {**SHOP, "stream_table": "public.order_totals"}


def boxes(browser: Browser) -> dict[str, str]:
    """What a screen reader says of each box of the graph, by its name."""
    found: list[tuple[str, str]] = browser.script(
        "return [...document.querySelectorAll('[data-box]')].map(b => [b.dataset.box, b.getAttribute('aria-label')])"
    )
    return dict(found)


def transform(browser: Browser) -> str:
    return str(browser.script("return document.querySelector('.pgt-canvas > g').getAttribute('transform')"))


def test_it_opens_on_the_connection_with_stream_tables(browser: Browser) -> None:
    browser.open()
    browser.one("[data-box]")
    # Three connections come before it by name; the first one with tables is the large one.
    assert browser.script("return document.querySelector('.pgt-head select').value") == "page_many"
    listed = [option.text for option in browser.all(".pgt-head option")]
    assert listed[0] == "page_many (500 tables)"
    assert "a_page_down (doesn't answer)" in listed
    assert "page_empty (no tables)" in listed


def test_airflows_menu_leads_to_it(browser: Browser, serving: Serving) -> None:
    browser.driver.get(serving.url)
    menu = browser.wait(lambda: next((b for b in browser.all("button") if b.text == "Browse"), None), "the menu Browse")
    menu.click()
    browser.menu_entry("Stream tables").click()
    browser.one("[data-box]")
    assert browser.driver.current_url.endswith("/plugin/stream-tables")


def test_the_graph_shows_sources_tables_units_and_what_waits(browser: Browser) -> None:
    browser.open(**SHOP)
    browser.wait(lambda: browser.all(".pgt-count"), "pending changes on the lines")
    said = boxes(browser)
    assert set(said) == {
        *(f"source public.{name}" for name in ("customers", "orders", "items", "visits")),
        *(f"public.{name}" for name in ("order_totals", "country_orders", "country_revenue", "country_report")),
        *("public.best_customers", "public.page_views"),
    }
    assert said["public.page_views"].startswith("public.page_views: active, live, live")
    assert said["public.country_orders"].startswith("public.country_orders: error, ")
    assert "last FAILED" in said["public.country_orders"]
    assert ": gated" in said["public.best_customers"]
    assert "very late" in said["public.country_report"]
    assert {name for name, label in said.items() if "refreshed with others" in label} == {
        "public.country_orders",
        "public.country_revenue",
        "public.country_report",
    }
    assert len(browser.all(".pgt-together")) == 1
    waiting = [count.get_attribute("textContent") for count in browser.all(".pgt-count title")]
    assert len(waiting) == 3
    assert all(text and text.endswith("pending changes") for text in waiting)
    browser.picture("graph-light")


def test_a_click_opens_the_table(browser: Browser) -> None:
    browser.open(**SHOP)
    browser.one("[data-box='public.order_totals'] .pgt-name").click()
    browser.says("public.order_totals", "What it is", "History")
    assert "stream_table=public.order_totals" in browser.driver.current_url


def test_a_click_on_a_source_shows_what_is_computed_from_it(browser: Browser) -> None:
    browser.open(**SHOP)
    browser.one("[data-box='source public.visits'] .pgt-name").click()
    browser.says("public.visits is read by 1 table")
    lit = browser.script(
        "const lit = document.querySelectorAll('.pgt-box:not(.pgt-dim) [data-box]');"
        "return [...lit].map(b => b.dataset.box)"
    )
    assert sorted(lit) == ["public.page_views", "source public.visits"]


def test_it_follows_without_reloading(browser: Browser, shop_dsn: str) -> None:
    browser.open(**SHOP)
    browser.one("[data-box='public.country_revenue']")
    browser.script("window.sameDocument = true")
    with psycopg.connect(shop_dsn, autocommit=True) as conn:
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = 'country_revenue'")
        browser.wait(lambda: "suspended" in boxes(browser)["public.country_revenue"], "the new status")
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'ACTIVE' WHERE pgt_name = 'country_revenue'")
    assert browser.script("return window.sameDocument") is True


def test_what_is_refreshed_on_demand_is_never_late(browser: Browser, shop_dsn: str) -> None:
    with changed(shop_dsn, "country_report", "tier", "cold"):
        browser.open(**SHOP)
        browser.wait(lambda: ": active, on demand, " in boxes(browser).get("public.country_report", ""), "no lag")
        browser.open(**SHOP, view="fleet")
        browser.says("Every table is within its target")
        browser.open(**SHOP, stream_table="public.country_report")
        browser.says("cold: refreshed on demand")
    browser.open(**SHOP, view="fleet")
    browser.says("very late")


def test_it_says_that_it_loads(browser: Browser) -> None:
    browser.open(conn_id="page_empty")
    browser.says("No stream tables yet")
    # Nothing is answered until the test lets it.
    browser.script(
        "const asked = window.fetch; const may = new Promise((go) => { window.answer = go; });"
        "window.fetch = async (...what) => { await may; return asked(...what); };"
    )
    browser.open(**SHOP)
    browser.says("Loading stream tables …")
    browser.picture("loading-light")
    browser.open(**ORDERS)
    browser.says("Loading public.order_totals …")
    browser.script("window.answer()")
    browser.says("What it is")


def test_a_table_has_its_facts_plots_history_and_explanation(browser: Browser, shop_dsn: str) -> None:
    browser.resize(1400, 3000)
    browser.open(**ORDERS)
    browser.says("What it is", "Sources and readers", "Explain", "Operators")
    text = browser.text
    for words in ("by differences", "rows, estimated", "pending changes", "shop", "Read by", "PostgreSQL's plan"):
        assert words in text
    assert "by Europe/Oslo" in text
    assert "rows before orders.id: 0, whose changes are refused" in text
    assert [figure.text for figure in browser.all(".pgt-plot strong")] == [
        "Duration by phase",
        "Rows changed",
        "Action",
        "Lag over time",
    ]
    # A colour for each phase, and none for those that never took a millisecond: which others did, the machine decides.
    keys = browser.script(
        "return [...document.querySelectorAll('.pgt-plot:first-child .pgt-keys i')]"
        ".map(e => [e.parentElement.innerText.trim(), getComputedStyle(e).backgroundColor])"
    )
    phases = [word for word, _ in keys]
    with psycopg.connect(shop_dsn) as conn:
        took = conn.execute(
            "SELECT DISTINCT p.key FROM pgtrickle.pgt_refresh_history h"
            " JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)"
            " CROSS JOIN LATERAL jsonb_each_text(h.phases) p WHERE t.pgt_name = 'order_totals' AND p.value::float8 >= 1"
        ).fetchall()
    assert set(phases) == {phase for (phase,) in took} | {"other"}
    assert {"compute", "apply"} <= set(phases)
    assert len({colour for _, colour in keys}) == len(keys)
    assert "shop.py of dags-folder" in text
    size = browser.script("return [...document.querySelectorAll('.pgt-figures dd')].map(e => e.innerText)")
    assert "–" not in size
    assert "cost " in browser.one(".pgt-explain").text
    assert [e.text for e in browser.all("#pgt-history .pgt-badge")].count("FULL") == 2
    entry = next(e for e in browser.all("#pgt-history li") if "DIFFERENTIAL" in e.text)
    entry.find_element("css selector", "summary").click()
    browser.says("Plan and delta SQL", "Changes taken")
    browser.picture("table-light")


def test_a_refresh_leads_to_its_run_in_airflow(browser: Browser, serving: Serving, shop_dsn: str) -> None:
    run = serving.call("dags/shop/dagRuns", {"logical_date": None, "dag_run_id": "by_hand"})["dag_run_id"]
    ti = SimpleNamespace(dag_id="shop", run_id=run, task_id="order_totals", map_index=-1)
    with psycopg.connect(shop_dsn, autocommit=True) as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET run_token = %s WHERE refresh_id = (SELECT max(refresh_id)"
            " FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
            " WHERE pgt_name = 'order_totals')",
            [run_token(cast(Any, {"ti": ti}), 0)],
        )
    browser.open(**ORDERS, part="history")
    browser.one("#pgt-history summary").click()
    link = browser.wait(
        lambda: next((a for a in browser.all("#pgt-history a") if a.text == "Airflow run and log"), None), "the link"
    )
    link.click()
    browser.wait(lambda: "/dags/shop/runs/by_hand/tasks/order_totals" in browser.driver.current_url, "the task")


def test_who_declares_a_table_no_more_is_told(browser: Browser) -> None:
    told = "No file declares it any more: shop in shop.py did until"
    gone = "This Airflow has no DAG visits, whose table it is."
    browser.open(**SHOP, view="tables")
    browser.says(told, gone)
    browser.open(**SHOP, view="fleet")
    browser.says("Declared by nobody any more", told, gone, "pgtrickle prune")
    browser.open(**SHOP, stream_table="public.best_customers")
    browser.says(told)
    browser.open(**SHOP, stream_table="public.page_views")
    browser.says(gone, "visits, which this Airflow doesn't have", "visits.py of dags-folder")
    assert "`" not in browser.text


def test_a_source_leads_to_its_asset(browser: Browser, serving: Serving) -> None:
    asset = next(a for a in serving.call("assets")["assets"] if a["name"] == "shop_pg.orders")
    browser.open(**ORDERS)
    browser.one(f"section[aria-label='Sources and readers'] a[href$='/assets/{asset['id']}']").click()
    browser.wait(lambda: browser.driver.current_url.endswith(f"/assets/{asset['id']}"), "the asset")
    browser.wait(lambda: "shop_pg.orders" in browser.text, "its name")


def test_a_delta_is_folded_until_somebody_wants_it(browser: Browser) -> None:
    browser.open(**ORDERS, part="history")
    entry = browser.wait(
        lambda: next((e for e in browser.all("#pgt-history li") if "DIFFERENTIAL" in e.text), None), "a refresh"
    )
    entry.find_element("css selector", "summary").click()
    plan = browser.wait(lambda: next(iter(entry.find_elements("css selector", ".pgt-sql")), None), "the plan")
    assert plan.get_attribute("open") is None
    plan.find_element("css selector", "summary").click()
    assert "pgtrickle_changes" in plan.text


def test_a_missing_index_is_copied(browser: Browser) -> None:
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    browser.open(**ORDERS, part="explain")
    index = browser.one(".pgt-index")
    assert "CREATE INDEX ON public.items (order_id);" in index.text.replace('"', "")
    index.find_element("css selector", "button").click()
    browser.wait(lambda: "Copied" in index.text, "that it was copied")
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == index.find_element("css selector", "code").text


def test_what_stops_a_table_is_told_first(browser: Browser) -> None:
    browser.open(**SHOP, stream_table="public.country_orders")
    browser.says("division by zero", "3 failures in a row", "until somebody resumes it or refreshes it in full")
    assert "Resume" in [button.text for button in browser.all(".pgt-actions button")]
    # It is computed with the others of its unit.
    browser.says("country_report, country_revenue")
    for button, told in (("Refresh", "a refresh like this does nothing"), ("Full refresh", "also resumes it")):
        browser.button(button).click()
        browser.says("It is halted", told, "is triggered for this table, country_report, country_revenue.")
        browser.press(Keys.ESCAPE)
        browser.wait(lambda: not browser.all("dialog"), "no dialog")


def test_a_live_table_is_never_late(browser: Browser) -> None:
    browser.open(**SHOP, stream_table="public.page_views")
    browser.says("What writers pay", "in their own transactions", "by writers")
    assert browser.one(".pgt-figures dd").text == "live"


def test_the_fleet_names_what_needs_somebody_and_what_costs(browser: Browser) -> None:
    browser.resize(1400, 1900)
    browser.open(**SHOP, view="fleet")
    browser.says("Late", "FULL that could have been avoided", "What costs most, last 24 hours", "Buffers that wait")
    browser.says("truncate_detected", "division by zero", "the price list is being mended", "country_report")
    browser.picture("fleet-light")


def test_the_fleet_names_the_buffer_that_grows(browser: Browser) -> None:
    browser.open(**SHOP, view="fleet")
    section = browser.one("section[aria-label='Buffers that grow']")
    (row,) = section.find_elements("css selector", "tbody tr")
    assert row.find_element("css selector", "th").text == "customers"
    assert "It is kept for best_customers" in row.text
    line = row.find_element("css selector", "svg")
    assert "rows 23 h ago" in str(line.get_attribute("aria-label"))


def test_the_history_says_where_a_refresh_was_computed(browser: Browser) -> None:
    browser.open(**ORDERS, part="history")
    entry = browser.wait(
        lambda: next((e for e in browser.all("#pgt-history li") if "DIFFERENTIAL" in e.text), None), "a refresh"
    )
    entry.find_element("css selector", "summary").click()
    browser.wait(lambda: "COMPUTED" in entry.text.upper() and "in PostgreSQL" in entry.text, "where it was computed")


def test_nothing_yet_says_what_to_do(browser: Browser) -> None:
    browser.open(conn_id="page_empty")
    browser.says("No stream tables yet", "pgtrickle create")
    browser.picture("empty-light")


def test_a_database_that_is_down_says_so_and_tells_no_password(browser: Browser) -> None:
    browser.open(conn_id="a_page_down")
    browser.says("127.0.0.1:1", "Try again")
    assert "s3cret" not in browser.driver.page_source
    alert = browser.one("[role=alert]")
    assert "127.0.0.1:1" in alert.text
    browser.picture("down-light")


def test_what_is_shown_stays_where_the_database_goes(browser: Browser) -> None:
    """The last state is better than none, if it says that it is old."""
    browser.open(**SHOP)
    browser.one("[data-box='public.order_totals']")
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    browser.says("Airflow's API server can't be reached", "as it was", "as of")
    assert "public.order_totals" in boxes(browser)
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})
    browser.button("Try again").click()
    browser.says("follows")
    browser.complaints()


def test_five_hundred_tables_move_smoothly(browser: Browser) -> None:
    browser.open(conn_id="page_many")
    browser.wait(lambda: len(boxes(browser)) >= databases.MANY, "all of them")
    browser.picture("many-light")
    before = transform(browser)
    spent = browser.busy()
    frames: int = browser.driver.execute_async_script(
        """
        const done = arguments[0], svg = document.querySelector('.pgt-canvas'), size = svg.getBoundingClientRect();
        const at = { clientX: size.left + 400, clientY: size.top + 200, bubbles: true, cancelable: true, pointerId: 1 };
        let frames = 0;
        svg.setPointerCapture = () => undefined; svg.hasPointerCapture = () => true;
        svg.dispatchEvent(new PointerEvent('pointerdown', at));
        const step = () => {
          frames += 1;
          const moved = { ...at, clientX: at.clientX + 4 * frames, clientY: at.clientY + frames };
          if (frames < 60) svg.dispatchEvent(new PointerEvent('pointermove', moved));
          else svg.dispatchEvent(new WheelEvent('wheel', { ...at, deltaY: -60 }));
          if (frames < 90) requestAnimationFrame(step);
          else { svg.dispatchEvent(new PointerEvent('pointerup', at)); done(frames); }
        };
        requestAnimationFrame(step);
        """
    )
    assert transform(browser) != before
    # Sixty frames a second leave 16 ms for each. This is processor time, whatever else this machine does.
    assert (browser.busy() - spent) / frames < 0.016


def test_a_search_finds_one_of_five_hundred(browser: Browser) -> None:
    browser.open(conn_id="page_many")
    browser.wait(lambda: len(boxes(browser)) >= databases.MANY, "all of them")
    sought = browser.one(".pgt-graph input[type=search]")
    sought.send_keys("_totals_123")
    browser.wait(lambda: "1 match" in browser.text or "0 matches" in browser.text, "the count")
    name = next(name for name in boxes(browser) if name.endswith("_123"))
    sought.clear()
    sought.send_keys(name.removeprefix("public."), Keys.ENTER)
    browser.wait(lambda: browser.focused.startswith(name), "the focus on it")
    browser.press(Keys.ENTER)
    browser.says(name, "What it is")


def test_five_hundred_tables_are_listed(browser: Browser) -> None:
    browser.open(conn_id="page_many", view="tables")
    browser.wait(lambda: len(browser.all(".pgt tbody tr")) == databases.MANY, "all of them")
    browser.picture("many-tables-light")
    spent = browser.busy()
    browser.one(".pgt input[type=search]").send_keys("_totals_12")
    browser.wait(lambda: len(browser.all(".pgt tbody tr")) < databases.MANY, "fewer")
    shown = [row.text for row in browser.all(".pgt tbody th")]
    assert shown
    assert all("_totals_12" in name for name in shown)
    # Ten letters, while a person types.
    assert browser.busy() - spent < 2.0


def test_the_fleet_of_five_hundred_names_the_worst(browser: Browser) -> None:
    browser.open(conn_id="page_many", view="fleet")
    browser.says("What costs most, last 24 hours", "change_ratio_exceeded", "Refresh more often")
    assert "null" not in browser.text
    browser.picture("many-fleet-light")
    for title in ("Late", "What costs most, last 24 hours"):
        rows = browser.one(f"section[aria-label='{title}']").find_elements("css selector", "tbody tr")
        assert 0 < len(rows) <= 15


def test_the_keyboard_reaches_everything(browser: Browser) -> None:
    browser.open(**SHOP)
    browser.one("[data-box]")
    reached = browser.tabbed()
    assert reached[:9] == [
        "Connection",
        "Graph",
        "Tables",
        "Fleet",
        "Search",
        "Colour by",
        "Zoom out",
        "Zoom in",
        "Fit",
    ]
    # The graph is one stop, in which the arrows go on.
    assert reached[9:] == ["Source public.items"]
    browser.one("[data-box='source public.items']").send_keys(Keys.ARROW_RIGHT)
    browser.wait(lambda: browser.focused.startswith("public.order_totals"), "the next box")
    browser.press(Keys.ENTER)
    browser.says("What it is")


@pytest.mark.parametrize(
    ("view", "sign"),
    [({"view": "tables"}, ".pgt table"), ({"view": "fleet"}, ".pgt-spark"), (ORDERS, ".pgt-explain")],
    ids=["tables", "fleet", "table"],
)
def test_the_tab_key_reaches_all_that_can_be_worked(browser: Browser, view: dict[str, str], sign: str) -> None:
    browser.open(**{**SHOP, **view})
    browser.one(sign)
    assert browser.untabbed() == []


def test_the_keyboard_opens_a_refresh_and_closes_a_gate(browser: Browser, shop_dsn: str) -> None:
    browser.open(**SHOP, stream_table="public.country_revenue")
    browser.one("#pgt-history summary")
    browser.focus("#pgt-history summary")
    browser.press(Keys.ENTER)
    browser.says("Changes taken")
    gate = "//button[text()='Gate']"
    browser.script("document.evaluate(arguments[0], document, null, 9).singleNodeValue.focus()", gate)
    browser.press(Keys.ENTER)
    browser.one("dialog[open]")
    assert browser.focused == "Reason, for whoever wonders"
    browser.press("counting", Keys.TAB)
    assert browser.focused == "Cancel"
    browser.press(Keys.TAB)
    assert browser.focused == "Gate"
    browser.press(Keys.ENTER)
    # The button is another one now: the focus is on what was done, and goes on from there.
    browser.wait(lambda: browser.focused.startswith("public.country_revenue is gated"), "the focus on the answer")
    assert column(shop_dsn, "country_revenue", "is_gated") is True
    browser.says("Open the gate")
    assert browser.focused.startswith("public.country_revenue is gated")
    browser.button("Open the gate").click()
    browser.press(Keys.TAB, Keys.ENTER)
    browser.says("is open")
    assert column(shop_dsn, "country_revenue", "is_gated") is False


def test_an_action_asks_first_and_escape_takes_it_back(browser: Browser, shop_dsn: str) -> None:
    browser.open(**SHOP, stream_table="public.country_revenue")
    browser.button("Gate").click()
    dialog = browser.one("dialog[open]")
    assert "held back" in dialog.text
    assert browser.script("return document.activeElement.closest('dialog') !== null")
    browser.picture("dialog-light")
    browser.press(Keys.ESCAPE)
    browser.wait(lambda: not browser.all("dialog"), "no dialog")
    assert column(shop_dsn, "country_revenue", "is_gated") is False


def test_a_gate_is_closed_with_a_reason_and_opened_again(browser: Browser, shop_dsn: str) -> None:
    browser.open(**SHOP, stream_table="public.country_revenue")
    browser.button("Gate").click()
    browser.one("dialog input").send_keys("<b>stock-taking</b>")
    browser.button("Gate", "dialog").click()
    browser.says("public.country_revenue is gated", "Gated: <b>stock-taking</b> (")
    assert str(column(shop_dsn, "country_revenue", "gated_reason")).startswith("<b>stock-taking</b> (")
    # It is text, whatever it looks like.
    assert browser.all(".pgt-gated b") == []
    browser.button("Open the gate").click()
    browser.button("Open the gate", "dialog").click()
    browser.says("is open")
    assert column(shop_dsn, "country_revenue", "is_gated") is False


def test_a_halted_table_is_resumed(browser: Browser, shop_dsn: str) -> None:
    with psycopg.connect(shop_dsn, autocommit=True) as conn:
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = 'page_views'")
    browser.open(**SHOP, stream_table="public.page_views")
    browser.button("Resume").click()
    browser.button("Resume", "dialog").click()
    browser.says("is resumed")
    assert column(shop_dsn, "page_views", "status") == "ACTIVE"


def test_a_refresh_triggers_the_owners_dag_for_this_table(browser: Browser, serving: Serving) -> None:
    browser.open(**ORDERS)
    browser.button("Full refresh").click()
    browser.one("dialog[open]")
    # Airflow pauses a new DAG, and the page says that nothing happens before somebody unpauses it.
    browser.says("The DAG shop is triggered for this table", "It is paused")
    browser.button("Full refresh", "dialog").click()
    browser.says("shop was triggered", "Follow the run")
    (run,) = (run for run in serving.call("dags/shop/dagRuns")["dag_runs"] if run["note"])
    assert run["conf"] == {"full_refresh": True, "tables": "public.order_totals"}
    assert "asked on the page" in run["note"]
    (entry, *_) = serving.call("eventLogs?event=trigger_dag_run")["event_logs"]
    assert (entry["dag_id"], json.loads(entry["extra"])["method"]) == ("shop", "POST")


def test_a_refresh_that_no_dag_carries_out_is_requested(browser: Browser, shop_dsn: str) -> None:
    browser.open(**SHOP, stream_table="public.page_views")
    browser.button("Refresh").click()
    assert "requested of whoever serves requests" in browser.one("dialog").text
    browser.button("Refresh", "dialog").click()
    browser.says("is written down")
    with psycopg.connect(shop_dsn) as conn:
        asked = conn.execute("SELECT kind, pgt_name, force_full FROM pgtrickle.pgt_requests ORDER BY 1").fetchall()
    assert asked == [("REFRESH", "page_views", False)]


def test_a_dag_of_a_users_own_is_told_of_no_table(browser: Browser, serving: Serving, shop_dsn: str) -> None:
    """What it does besides would hear it, too."""
    with psycopg.connect(shop_dsn, autocommit=True) as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history h SET initiated_by = 'airflow nightly.views'"
            " FROM pgtrickle.pgt_stream_tables st WHERE st.pgt_id = h.pgt_id AND pgt_name = 'page_views'"
        )
    browser.open(**SHOP, stream_table="public.page_views")
    browser.button("Full refresh").click()
    browser.says("nightly has no params that would name a table", "requested of whoever serves requests")
    browser.press(Keys.ESCAPE)
    browser.wait(lambda: not browser.all("dialog"), "no dialog")
    browser.button("Refresh").click()
    browser.says("nightly is triggered, with all that it does")
    browser.button("Refresh", "dialog").click()
    browser.says("nightly was triggered")
    (run,) = serving.call("dags/nightly/dagRuns")["dag_runs"]
    assert run["conf"] == {}
    with psycopg.connect(shop_dsn, autocommit=True) as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history h SET initiated_by = 'manual'"
            " FROM pgtrickle.pgt_stream_tables st WHERE st.pgt_id = h.pgt_id AND pgt_name = 'page_views'"
        )


@pytest.mark.parametrize(("view", "name"), [({}, "graph"), ({"stream_table": "public.order_totals"}, "table")])
def test_airflows_switch_makes_it_dark(browser: Browser, view: dict[str, str], name: str) -> None:
    browser.resize(1400, 950 if name == "graph" else 3000)
    browser.theme("dark")
    browser.open(**SHOP, **view)
    browser.one("[data-box]" if name == "graph" else ".pgt-explain")
    ground, words = colours(browser)
    assert ground < 60 < 180 < words
    browser.picture(f"{name}-dark")


def test_the_switch_works_while_it_is_open(browser: Browser) -> None:
    browser.open(**SHOP)
    browser.one("[data-box]")
    assert colours(browser)[0] > 200
    next(b for b in browser.all("button") if b.text == "User").click()
    for words in ("Appearance", "Dark Mode"):
        browser.menu_entry(words).click()
    browser.wait(lambda: colours(browser)[0] < 60, "dark ground")


@pytest.mark.parametrize("view", [{}, {"view": "tables"}, {"view": "fleet"}, {"stream_table": "public.order_totals"}])
def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, view: dict[str, str]) -> None:
    browser.resize(390, 844)
    browser.open(**SHOP, **view)
    waited = {"view": "tables"}, {"view": "fleet"}
    browser.one(".pgt table" if view in waited else ".pgt-explain" if "stream_table" in view else "[data-box]")
    widths = "return [document.documentElement.scrollWidth, document.querySelector('.pgt').scrollWidth, innerWidth]"
    page, ours, screen = browser.script(widths)
    assert page <= screen
    assert ours <= screen
    # Nothing hides at the side, either, but for the plots, which begin at the newest.
    wide = (
        "return [...document.querySelectorAll('.pgt-scroll:not(.pgt-newest)')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert [more for more in browser.script(wide) if more > 0] == []
    if not view:
        # The name of a box is 13 units high: it can be read.
        assert float(transform(browser).partition("scale(")[2].rstrip(")")) >= 0.85
    browser.picture(f"phone-{next(iter(view.values()), 'graph').split('.')[-1]}")


@pytest.mark.parametrize("view", [{}, {"view": "tables"}, {"view": "fleet"}, {"stream_table": "public.order_totals"}])
def test_it_can_be_read_and_named(browser: Browser, view: dict[str, str]) -> None:
    browser.open(**SHOP, **view)
    browser.one(".pgt table" if "view" in view else ".pgt-explain" if "stream_table" in view else "[data-box]")
    assert unnamed(browser) == []
    for theme in ("light", "dark"):
        # All that Airflow's switch does to what is shown already.
        browser.script("document.documentElement.className = arguments[0]", theme)
        assert pale(browser) == []
    levels = [int(h.tag_name[1]) for h in browser.all(".pgt h1, .pgt h2, .pgt h3")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize(
    ("view", "sign"),
    [
        ({**SHOP}, "[data-box]"),
        ({**SHOP, "view": "tables"}, ".pgt table"),
        ({**SHOP, "view": "fleet"}, "section[aria-label='Buffers that grow']"),
        (ORDERS, ".pgt-explain"),
        ({**SHOP, "stream_table": "public.country_orders"}, ".pgt-explain"),
        ({"conn_id": "page_empty"}, ".pgt-empty"),
        ({"conn_id": "a_page_down"}, "[role=alert]"),
    ],
    ids=["graph", "tables", "fleet", "table", "halted", "empty", "down"],
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier(browser: Browser, view: dict[str, str], sign: str, theme: str) -> None:
    browser.open(**view)
    browser.one(sign)
    browser.script("document.documentElement.className = arguments[0]", theme)
    assert browser.barriers() == []


def test_axe_finds_no_barrier_in_a_dialog_and_in_what_is_opened(browser: Browser) -> None:
    browser.open(**ORDERS)
    browser.one("#pgt-history summary").click()
    browser.one("#pgt-history .pgt-facts")
    browser.button("Gate").click()
    browser.one("dialog[open]")
    assert browser.barriers() == []


def unnamed(browser: Browser) -> list[Any]:
    """Controls and pictures that a screen reader could only call by their kind, and ids that stand twice."""
    return list(
        browser.script(
            """
            // What is folded has no innerText, and is named by its text all the same.
            const text = (e) => (e.checkVisibility() ? e.innerText : e.textContent);
            const of = (e) => e.getAttribute('aria-label') || e.labels?.[0]?.innerText || text(e) || e.title;
            const mute = [...document.querySelectorAll('.pgt :is(a, button, input, select, summary, [role])')]
              .filter((e) => !['status', 'alert'].includes(e.getAttribute('role')) && !of(e)?.trim());
            const ids = [...document.querySelectorAll('.pgt [id]')].map((e) => e.id);
            return [...mute.map((e) => e.outerHTML.slice(0, 200)), ...ids.filter((id, at) => ids.indexOf(id) !== at)];
            """
        )
    )


def pale(browser: Browser) -> list[Any]:
    """Texts whose contrast with the ground behind them is less than WCAG's 4.5."""
    return list(
        browser.script(
            """
            const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
            const rgba = (css) => {
              canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
              return [...canvas.getImageData(0, 0, 1, 1).data];
            };
            const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
              .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
              .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
            const ground = (e) => {
              for (let at = e; at; at = at.parentElement) {
                const found = rgba(getComputedStyle(at).backgroundColor);
                if (found[3] === 255) return found;
              }
              return [255, 255, 255, 255];
            };
            const texts = [...document.querySelectorAll('.pgt *')].filter((e) =>
              e.tagName !== 'STYLE' && e.tagName !== 'OPTION' && !e.closest('svg') && e.checkVisibility() &&
              [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
            return texts.map((e) => {
              const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
              return [Math.round((a + 0.05) / (b + 0.05) * 10) / 10, e.className, e.textContent.slice(0, 40)];
            }).filter(([ratio]) => ratio < 4.5);
            """
        )
    )


def colours(browser: Browser) -> tuple[int, int]:
    """How light the ground of the page and its words are, of 255."""
    found = browser.script(
        """
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const of = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data]; };
        const page = document.querySelector('.pgt');
        let at = page;
        while (of(getComputedStyle(at).backgroundColor)[3] < 255) at = at.parentElement;
        return [at, page].map((e, n) => of(getComputedStyle(e)[n ? 'color' : 'backgroundColor']))
          .map(([r, g, b]) => Math.round((r + g + b) / 3));
        """
    )
    return int(found[0]), int(found[1])


@contextmanager
def changed(dsn: str, name: str, column_name: str, value: str) -> Iterator[None]:
    """A row of the catalog is so for as long as the test needs it."""
    statement = psycopg.sql.SQL("UPDATE pgtrickle.pgt_stream_tables SET {} = %s WHERE pgt_name = %s").format(
        psycopg.sql.Identifier(column_name)
    )
    before = column(dsn, name, column_name)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(statement, [value, name])
        try:
            yield
        finally:
            conn.execute(statement, [before, name])


def column(dsn: str, name: str, column: str) -> object:
    with psycopg.connect(dsn) as conn:
        row = conn.execute(
            psycopg.sql.SQL("SELECT {} FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s").format(
                psycopg.sql.Identifier(column)
            ),
            [name],
        ).fetchone()
    assert row is not None
    return row[0]
