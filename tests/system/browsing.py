"""The console's page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect

from penstock.console.bundle import pack

from ..examples import EXAMPLES
from ..waiting import wait_until
from .penstock_command import PATIENCE_SECONDS
from .running_console import Console

LONG = PATIENCE_SECONDS * 1000.0
expect.set_options(timeout=LONG)
WORD_COUNT = EXAMPLES / "word-count" / "topology.yaml"


@contextmanager
def opened(browser: Browser) -> Iterator[Page]:
    """A page in which nothing goes wrong."""
    troubles: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(LONG)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    yield page
    page.close()
    assert troubles == []


def assert_fits(page: Page) -> None:
    """Nobody has to scroll sideways."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")


def submit_word_count(alone: Console, *sets: str) -> None:
    """Until it has a node, nobody can do what a button says."""
    alone.client.submit(pack(WORD_COUNT.parent), "topology.yaml", sets, False, False)
    wait_until(lambda: any(each["nodes"] for each in alone.client.get("/api/topologies")))
