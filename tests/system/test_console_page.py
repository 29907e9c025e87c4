"""The console's page in a real browser, while replicas are frozen and killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.console.bundle import pack
from penstock.replication.replica import opened_roster

from ..servers.chromium import chromium
from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS
from .running_console import Console, console

SCREENSHOTS = os.environ.get("PENSTOCK_SCREENSHOTS")
"""Where to put the pictures of the docs; they are made anew with `make screenshots`."""
SEEN_SECONDS = 2.0

TOPOLOGY = """\
topology: shop
replicas: 2
cells: any
epoch: {interval: 1s}
sources:
  orders: {generator: {id: sequence, item: "choice(tea, coffee, milk, sugar)", price: "float(1, 20)"}, rate: 400}
operators:
  dear:   {from: orders, filter: "price > 5"}
  counts: {from: dear, count: item}
sinks:
  counts: {from: counts, file: out/counts.jsonl}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Console]:
    with console(tmp_path) as running:
        folder = tmp_path / "shop"
        folder.mkdir()
        (folder / "topology.yaml").write_text(TOPOLOGY)
        running.client.submit(pack(folder), "topology.yaml", (), False, False)
        yield running


@pytest.fixture
def page() -> Iterator[Page]:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        yield page


def shot(page: Page, name: str) -> None:
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / f"console-{name}.png")


def test_a_topology_is_watched_frozen_killed_and_recovers_on_the_page(shop: Console, page: Page) -> None:
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(shop.url)
    page.locator("a.card[data-name=shop]").click()
    long = PATIENCE_SECONDS * 1000
    expect(page.locator("#safety")).to_have_text("2/2 safe", timeout=long)
    # The graph is drawn, and something moves on its edges.
    assert page.locator("svg.graph [data-node]").count() == 4
    expect(page.locator('svg.graph path.edge.moving[data-from="orders"]')).to_have_count(1, timeout=long)
    # Frozen by a button, which asks first.
    page.locator('tr[data-replica="1"] button[data-verb="freeze1"]').click()
    expect(page.locator("#ask h2")).to_have_text("Freeze replica 1 of shop?")
    page.locator("#ask button[value=yes]").click()
    expect(page.locator('tr[data-replica="1"] .pill')).to_have_text("frozen", timeout=long)
    page.locator('tr[data-replica="1"] button[data-verb="unfreeze1"]').click()
    expect(page.locator("#safety")).to_have_text("2/2 safe", timeout=long)
    # Killed from outside.
    with opened_roster(shop.state("shop").coordinator) as roster:
        victim = roster.members()["2"].process
    os.killpg(victim, signal.SIGKILL)
    killed = time.monotonic()
    expect(page.locator('tr[data-replica="2"] .pill')).not_to_have_text("safe", timeout=long)
    assert time.monotonic() - killed <= SEEN_SECONDS
    expect(page.locator(".events")).to_contain_text("replica 2", timeout=long)
    expect(page.locator("#safety")).to_have_text("2/2 safe", timeout=long)
    shot(page, "recovered")
    # What it remembers, and what has failed.
    page.locator("#state button", has_text="counts").click()
    expect(page.locator("#state tbody tr")).to_have_count(4, timeout=long)
    expect(page.locator("#state tbody")).to_contain_text("coffee")
    page.locator("#letters button", has_text="read").click()
    expect(page.locator("#letters")).to_contain_text("every tuple was processed", timeout=long)
    page.keyboard.press("t")
    shot(page, "dark")
    # The console goes away and comes back; the page says so, and goes on by itself.
    shop.kill()
    expect(page.locator("#banner")).to_contain_text("has not answered", timeout=long)
    shop.start()
    expect(page.locator("#banner")).to_be_hidden(timeout=long)
    expect(page.locator("#safety")).to_have_text("2/2 safe", timeout=long)
    page.set_viewport_size({"width": 390, "height": 844})
    shot(page, "phone")
    page.keyboard.press("Escape")
    expect(page.locator("a.card")).to_have_count(1)
    wait_until(lambda: not troubles, 1)


def test_an_empty_console_says_what_to_do(tmp_path: Path, page: Page) -> None:
    alone = Console(tmp_path / "home", command="master").start()
    try:
        page.goto(alone.url)
        expect(page.locator("main")).to_contain_text("penstock submit topology.yaml")
        page.goto(f"{alone.url}/#/topology/nothing")
        expect(page.locator("main")).to_contain_text("there is no topology 'nothing'")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
    finally:
        alone.stop()
