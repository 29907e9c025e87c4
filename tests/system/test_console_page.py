"""The console's page in a real browser, while replicas are frozen and killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from penstock.console.bundle import pack
from penstock.console.home import ConsoleHome
from penstock.replication.replica import opened_roster

from ..waiting import wait_until
from .browsing import LONG, WORD_COUNT, assert_fits, opened, submit_word_count
from .made_up_node import MadeUpNode, progress, replica
from .penstock_command import PATIENCE_SECONDS, run_penstock
from .running_console import Console, console

pytestmark = pytest.mark.by_itself

SCREENSHOTS = os.environ.get("PENSTOCK_SCREENSHOTS")
"""Where to put the pictures of the docs; they are made anew with `make screenshots`."""
SEEN_SECONDS = 2.0
STEADY = ("sources.sentences.with.count=10000000", "epoch.max_tuples=100", "epoch.interval=2s")
"""A stream that lasts as long as somebody looks: the example's thousand sentences are done in a moment."""


@pytest.fixture
def words(tmp_path: Path) -> Iterator[Console]:
    """`penstock up`, then `penstock submit examples/word-count/topology.yaml --set replicas=2`."""
    with console(tmp_path) as running:
        sets = [part for item in STEADY for part in ("--set", item)]
        done = run_penstock("submit", str(WORD_COUNT), "--set", "replicas=2", *sets, "--at", running.url)
        assert done.returncode == 0, done.stderr
        yield running


def shot(page: Page, name: str) -> None:
    if SCREENSHOTS:
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=Path(SCREENSHOTS) / f"console-{name}.png")


def killed(running: Console, replica: str) -> float:
    """Kill a replica with all its processes; returns when."""
    with opened_roster(running.state("word-count").coordinator) as roster:
        victim = roster.members()[replica].process
    os.killpg(victim, signal.SIGKILL)
    return time.monotonic()


def test_a_topology_is_watched_frozen_killed_and_recovers_on_the_page(
    words: Console, browser: Browser, page: Page
) -> None:
    page.goto(words.url)
    page.locator("a.card[data-name=word-count]").click()
    safety = page.locator("#safety")
    expect(safety).to_have_text("2/2 safe", timeout=LONG)
    # The graph is drawn, and something moves on its edges.
    assert page.locator("svg.graph [data-node]").count() == 6
    expect(page.locator('svg.graph path.edge.moving[data-from="sentences"]')).to_have_count(1, timeout=LONG)
    rate = page.locator('svg.graph text.rate[data-from="sentences"]')
    expect(rate).to_have_text(re.compile(r"^[1-9]"), timeout=LONG)
    # Each epoch has the replica that delivered it.
    expect(page.locator("svg.timeline rect[data-replica]").first).to_be_attached(timeout=LONG)
    # Frozen by a button, which asks first, and does nothing when it is cancelled.
    freeze = page.locator('tr[data-replica="1"] button[data-verb="freeze1"]')
    freeze.click()
    expect(page.locator("#ask h2")).to_have_text("Freeze replica 1 of word-count?")
    page.locator("#ask .cancel").click()
    expect(page.locator("#ask")).to_be_hidden()
    freeze.click()
    page.locator("#ask button[value=yes]").click()
    expect(page.locator('tr[data-replica="1"] .pill')).to_have_text("frozen", timeout=LONG)
    given = page.locator(".events li", has_text="freeze replica 1")
    expect(given.filter(has_not_text="unfreeze")).to_have_count(1)
    page.locator('tr[data-replica="1"] button[data-verb="unfreeze1"]').click()
    expect(safety).to_have_text("2/2 safe", timeout=LONG)
    # Killed from outside.
    moment = killed(words, "2")
    expect(page.locator('tr[data-replica="2"] .pill')).not_to_have_text("safe", timeout=LONG)
    assert time.monotonic() - moment <= SEEN_SECONDS
    expect(page.locator(".events")).to_contain_text("replica 2", timeout=LONG)
    expect(page.locator("svg.timeline path.loss").first).to_be_attached(timeout=LONG)
    verdict = re.compile(r"replica 2 on \S+ was gone at")
    expect(page.locator(".events li", has_text=verdict)).to_have_count(1, timeout=LONG)
    expect(safety).to_have_text("2/2 safe", timeout=LONG)
    shot(page, "recovered")
    # What it remembers, what has failed, and what a replica says.
    read_state_of(page, "counts")
    expect(page.locator("#state tbody tr")).to_have_count(16)
    expect(page.locator("#state tbody")).to_contain_text("moon")
    page.locator("#letters button", has_text="read").click()
    expect(page.locator("#letters")).to_contain_text("every tuple was processed", timeout=LONG)
    page.locator("#log button", has_text="replica 1").click()
    expect(page.locator("#log pre")).to_contain_text('"replica": "1"', timeout=LONG)
    page.keyboard.press("t")
    shot(page, "dark")
    standby = Console(words.home, command="master").start()
    try:
        with opened(browser) as other:
            goes_away_and_comes_back(words, page, standby, other)
    finally:
        standby.stop()
    page.set_viewport_size({"width": 390, "height": 844})
    shot(page, "phone")
    assert_fits(page)
    page.keyboard.press("Escape")
    expect(page.locator("a.card")).to_have_count(1)


def read_state_of(page: Page, operator: str) -> None:
    """Reading starts a Spark, for which a busy machine may take longer than a page waits: it says so, to try again."""

    def is_read() -> bool:
        page.locator("#state button", has_text=operator).click()
        expect(page.locator("#state")).not_to_contain_text("Reading …", timeout=LONG)
        return page.locator("#state tbody tr").count() > 0 or "try again" not in page.locator("#state").inner_text()

    wait_until(is_read, PATIENCE_SECONDS)


def goes_away_and_comes_back(words: Console, page: Page, standby: Console, other: Page) -> None:
    """The console is killed: its page says so, and goes on by itself; the standby's has shown the same all along."""
    other.goto(f"{standby.url}/#/topology/word-count")
    expect(other.locator("#master")).to_have_text(f"standby of {words.url}")
    expect(other.locator("#safety")).to_have_text("2/2 safe")
    assert other.locator("svg.graph [data-node]").count() == 6
    words.kill()
    expect(page.locator("#banner")).to_contain_text("has not answered", timeout=LONG)
    expect(other.locator("#master")).not_to_contain_text("standby", timeout=LONG)
    words.start()
    expect(page.locator("#banner")).to_be_hidden(timeout=LONG)
    expect(page.locator("#safety")).to_have_text("2/2 safe", timeout=LONG)


# -- without Spark: what a node tells is made up ------------------------------------------------------


def test_an_empty_console_says_what_to_do(alone: Console, page: Page) -> None:
    page.goto(alone.url)
    expect(page.locator("main")).to_contain_text("penstock submit topology.yaml")
    page.goto(f"{alone.url}/#/topology/nothing")
    expect(page.locator("main")).to_contain_text("there is no topology 'nothing'")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_keys_choose_and_open_a_topology(alone: Console, page: Page, tmp_path: Path) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "topology.yaml").write_text(
            f"topology: {name}\nsources: {{ticks: {{generator: {{id: sequence}}}}}}\n"
            "sinks: {out: {from: ticks, file: out/rows.jsonl}}\n"
        )
        alone.client.submit(pack(folder), "topology.yaml", (), False, False)
    page.goto(alone.url)
    chosen = page.locator("a.card.on")
    expect(chosen).to_have_attribute("data-name", "first")
    for key, name in (("k", "first"), ("j", "second"), ("j", "second"), ("k", "first"), ("j", "second")):
        page.keyboard.press(key)
        expect(chosen).to_have_attribute("data-name", name)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("second")
    # Whoever cancels has done nothing; whoever does not, has.
    for answer, left in ((".cancel", 2), ("button[value=yes]", 1)):
        page.goto(f"{alone.url}/#/topology/second")
        page.locator('button[data-verb="remove"]').click()
        expect(page.locator("#ask h2")).to_have_text("Remove second?")
        page.locator(f"#ask {answer}").click()
        page.goto(f"{alone.url}/#/")
        expect(page.locator("a.card")).to_have_count(left)


def test_rates_are_those_of_the_ports_and_epochs_those_of_their_replicas(
    alone: Console, node: MadeUpNode, page: Page
) -> None:
    submit_word_count(alone, "replicas=2")
    page.goto(f"{alone.url}/#/topology/word-count")
    page.set_viewport_size({"width": 390, "height": 844})
    for epoch in (1, 2, 3):
        views = [replica("1"), replica("2", "down" if epoch == 3 else "safe")]
        figures = progress(epoch, {"sentences": 10 * epoch, "split": 90 * epoch, "counts": None, "skipped": epoch},
                           {"words": 16 * epoch, "ignored": epoch},
                           ports={"split.words": 80 * epoch, "split.short": 10 * epoch})  # fmt: skip
        node.tell("word-count", epoch, progress=figures, replicas=views,
                  delivered_by=(1, "212"[:epoch]))  # fmt: skip
        expect(page.locator(".facts").first).to_contain_text(f"{epoch}delivered epochs")
    # An operator that nobody counts gives its only sink what that takes.
    expect(page.locator("svg.graph text.rate[data-from=counts]")).to_have_text(re.compile("[1-9]"))
    # Every edge has its own, and none from a port is what the operator gives in all.
    shown = "texts => texts.map(text => [`${text.dataset.from} ${text.dataset.to}`, parseFloat(text.textContent)])"
    rates = dict(page.locator("svg.graph text.rate").evaluate_all(shown))
    assert set(rates) == {"sentences split", "split counts", "split skipped",
                          "counts sink:words", "skipped sink:ignored"}  # fmt: skip
    assert rates["split counts"] == pytest.approx(8 * rates["split skipped"], rel=0.15)
    assert rates["sentences split"] == rates["split skipped"] > 0
    assert [page.locator(f"svg.timeline rect[data-epoch='{number}']").get_attribute("data-replica")
            for number in (2, 3)] == ["1", "2"]  # fmt: skip
    expect(page.locator("svg.timeline path.loss")).to_have_count(1)
    assert_fits(page)


def test_one_operator_of_one_replica_is_frozen(alone: Console, node: MadeUpNode, page: Page) -> None:
    submit_word_count(alone, "replicas=2")
    node.tell("word-count", 9, replicas=[replica("1"), replica("2")])
    page.goto(f"{alone.url}/#/topology/word-count")
    # What can be chosen is what is known when the button is pressed.
    expect(page.locator("tr[data-replica]")).to_have_count(2)
    page.locator('button[data-verb="freeze-operator"]').click()
    expect(page.locator("#ask h2")).to_have_text("Freeze an operator of word-count?")
    page.locator("#ask select[name=operator]").select_option("counts")
    page.locator("#ask select[name=replica]").select_option("2")
    page.locator("#ask button[value=yes]").click()
    wait_until(lambda: node.done)
    assert [(task.verb, task.arguments["words"]) for task in node.done] == [
        ("freeze", ["--replica", "2", "--operator", "counts"])
    ]


def test_a_checkpoint_is_chosen_among_those_there_are(alone: Console, node: MadeUpNode, page: Page) -> None:
    submit_word_count(alone)
    node.tell("word-count", 9, how="stopped")
    page.goto(f"{alone.url}/#/topology/word-count")
    restore = page.locator('button[data-verb="restore"]')
    restore.click()
    expect(page.locator("#refused")).to_contain_text("has no checkpoints yet")
    page.locator("#refused .act").click()
    node.answers["checkpoint"] = [{"name": name, "epoch": 5, "taken": "12:00"} for name in ("old", "new")]
    restore.click()
    page.locator("#ask select[name=name]").select_option("old")
    page.locator("#ask button[value=yes]").click()
    expect(page.locator(".events")).to_contain_text("restore old")

    def restored() -> list[list[str]]:
        return [task.arguments["words"] for task in node.done if task.verb == "restore"]

    wait_until(restored)
    assert restored() == [["old", "--replace"]]


def test_the_page_of_a_standby_that_takes_over_shows_the_same_topology(
    alone: Console, node: MadeUpNode, page: Page
) -> None:
    submit_word_count(alone, "replicas=2")
    node.tell("word-count", 9, replicas=[replica("1"), replica("2")], safety="2/2 safe")
    standby = Console(alone.home, command="master").start()
    try:
        page.goto(f"{standby.url}/#/topology/word-count")
        expect(page.locator("#master")).to_have_text(f"standby of {alone.url}")
        alone.kill()
        expect(page.locator("#master")).to_have_text("1 node", timeout=LONG)
        node.tell("word-count", 10, replicas=[replica("1"), replica("2", "frozen")], safety="1/2 safe")
        expect(page.locator("#safety")).to_have_text("1/2 safe", timeout=LONG)
        expect(page.locator("h1")).to_have_text("word-count")
        expect(page.locator("svg.graph [data-node]")).to_have_count(6)
        expect(page.locator("#banner")).to_be_hidden()
    finally:
        standby.stop()


def test_what_can_be_no_name_is_said_not_to_be_there(alone: Console, page: Page) -> None:
    for name in ("%E0", "a%20b"):
        page.goto(f"{alone.url}/#/topology/{name}")
        expect(page.locator("main")).to_contain_text(f"there is no topology '{name}'")
    page.locator("main a").click()
    expect(page.locator("main")).to_contain_text("penstock submit topology.yaml")


def test_selected_text_stays_until_it_is_copied_and_the_way_back_keeps_the_focus(
    alone: Console, node: MadeUpNode, page: Page
) -> None:
    submit_word_count(alone)
    node.tell("word-count", 9)
    page.goto(f"{alone.url}/#/topology/word-count")
    epochs = page.locator(".facts").first
    back = page.locator('a[aria-label="All topologies"]')
    expect(epochs).to_contain_text("9delivered epochs")
    back.focus()
    node.tell("word-count", 10)
    expect(epochs).to_contain_text("10delivered epochs")
    expect(back).to_be_focused()
    page.locator("h1").dblclick()
    assert (chosen := page.evaluate("String(getSelection())").strip())
    node.tell("word-count", 11)
    expect(page.locator("#link")).to_have_text("held while text is selected")
    expect(epochs).to_contain_text("10delivered epochs")
    assert page.evaluate("String(getSelection())").strip() == chosen
    page.evaluate("getSelection().removeAllRanges()")
    expect(epochs).to_contain_text("11delivered epochs")
    expect(page.locator("#link")).to_have_text("live")
    # Who presses a button sees what comes of it.
    page.locator("h1").dblclick()
    node.tell("word-count", 12)
    expect(page.locator("#link")).to_have_text("held while text is selected")
    page.locator("#log button", has_text="follow").focus()
    page.keyboard.press("Enter")
    expect(epochs).to_contain_text("12delivered epochs")


def test_a_command_whose_answer_was_lost_is_given_again_and_done_once(
    alone: Console, node: MadeUpNode, page: Page
) -> None:
    submit_word_count(alone)
    node.tell("word-count", 9)
    node.says["checkpoint"] = "taken"
    keys: list[str] = []

    def lose_first(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) > 1:
            route.continue_()
        else:
            # The console has done it; its answer does not come.
            route.fetch()
            route.abort()

    page.route("**/commands", lose_first)
    page.goto(f"{alone.url}/#/topology/word-count")
    for name in ("one", "two"):
        page.locator('button[data-verb="checkpoint"]').click()
        page.locator("#ask input[name=name]").fill(name)
        page.locator("#ask button[value=yes]").click()
        expect(page.locator("#answers .answer.good").first).to_contain_text("Checkpoint word-count: taken")
        page.locator("#answers .answer button").click()
    assert [words for _, words in node.commands] == [["--name", "one"], ["--name", "two"]]
    assert len(keys) == 3 and keys[0] == keys[1] != keys[2]
    # Nobody answers any more.
    page.unroute("**/commands")
    page.route("**/commands", lambda route: route.abort())
    page.locator('button[data-verb="kill"]').click()
    page.locator("#ask button[value=yes]").click()
    expect(page.locator("#answers .answer.bad")).to_contain_text("it may have been done; look at the events")
    expect(page.locator("#refused")).to_contain_text("Kill word-count: its answer was lost")
    expect(page.locator("#refused h2")).to_have_text("It may have been done")


def test_a_command_that_could_not_be_written_down_is_told(alone: Console, node: MadeUpNode, page: Page) -> None:
    submit_word_count(alone)
    node.tell("word-count", 9)
    audit = ConsoleHome(alone.home).audit
    audit.unlink()
    audit.mkdir()
    page.goto(f"{alone.url}/#/topology/word-count")
    page.locator('button[data-verb="stop"]').click()
    page.locator("#ask button[value=yes]").click()
    expect(page.locator("#answers .answer.warn")).to_contain_text(f"it could not be written to {audit}")
