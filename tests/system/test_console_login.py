"""The console's page where tokens are required, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.console.bundle import pack
from penstock.console.client import Client
from penstock.console.tokens import Role

from ..unit.console.running_console import RunningConsole, running_console, view
from ..waiting import wait_until

pytestmark = pytest.mark.by_itself


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RunningConsole]:
    """A console with a topology, for those who have a token."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "topology.yaml").write_text(
        "topology: ticking\nsources: {ticks: {generator: {id: sequence}}}\n"
        "sinks: {out: {from: ticks, file: out/rows.jsonl}}\n"
    )
    with running_console(tmp_path / "home", open_to_all=False) as console:
        wait_until(lambda: console.master.leading)
        console.node()
        operator = console.tokens.create("ann", Role.OPERATOR)
        Client(console.url, operator).submit(pack(folder), "topology.yaml", (), False, False)
        console.see("ticking", replicas=[view("1")])
        yield console


def log_in(page: Page, token: str) -> None:
    page.locator("#login input[name=token]").fill(token)
    page.locator("#login .act").click()


def test_nobody_without_a_token_sees_anything_but_the_login(guarded: RunningConsole, page: Page) -> None:
    for place in ("", "#/topology/ticking"):
        page.goto("about:blank")
        page.goto(f"{guarded.url}/{place}")
        expect(page.locator("#login")).to_be_visible()
        # Also Escape leads to nothing.
        page.keyboard.press("Escape")
        assert (page.locator("main").inner_text(), page.locator("#master").inner_text()) == ("", "")
        assert "ticking" not in page.locator("body").inner_text()


def test_a_wrong_token_is_told_and_an_operators_lets_command(guarded: RunningConsole, page: Page) -> None:
    page.goto(f"{guarded.url}/#/topology/ticking")
    log_in(page, "penstock_not_a_token")
    expect(page.locator("#login .bad")).to_have_text("the token is wrong")
    expect(page.locator("#login")).to_be_visible()
    assert page.locator("main").inner_text() == ""
    log_in(page, guarded.tokens.create("ben", Role.OPERATOR))
    expect(page.locator("h1")).to_have_text("ticking")
    expect(page.locator("#login")).to_be_hidden()
    expect(page.locator('button[data-verb="kill"]')).to_be_enabled()


def test_who_may_only_look_has_no_button_for_a_command(guarded: RunningConsole, page: Page) -> None:
    page.goto(f"{guarded.url}/#/topology/ticking")
    log_in(page, guarded.tokens.create("eve", Role.VIEWER))
    expect(page.locator("tr[data-replica]")).to_have_count(1)
    expect(page.locator("main")).to_contain_text("You may look; commands take a token for operators.")
    expect(page.locator("button[data-verb]")).to_have_count(0)
    # The browser keeps the token.
    page.reload()
    expect(page.locator("h1")).to_have_text("ticking")
