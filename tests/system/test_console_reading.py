"""What the console's page shows of a topology, and that keys alone get everywhere; what a node tells is made up."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.console.bundle import pack

from ..waiting import wait_until
from .browsing import LONG, assert_fits, submit_word_count
from .made_up_node import MadeUpNode, progress, replica
from .running_console import Console

pytestmark = pytest.mark.by_itself

BOTH = [replica("1"), replica("2")]
MORE_THAN_SHOWN = 51


@pytest.fixture
def word_count(alone: Console, node: MadeUpNode, page: Page) -> Page:
    submit_word_count(alone, "replicas=2")
    node.tell("word-count", 9, replicas=BOTH)
    page.goto(f"{alone.url}/#/topology/word-count")
    expect(page.locator("tr[data-replica]")).to_have_count(2)
    return page


def test_figures_over_time_are_drawn(word_count: Page, node: MadeUpNode) -> None:
    epochs = count(10)

    def is_drawn() -> bool:
        epoch = next(epochs)
        figures = progress(epoch, {"sentences": 10 * epoch, "split": 90 * epoch}, {"words": 80 * epoch}, lag=7 * epoch)
        node.tell("word-count", epoch, progress=figures, replicas=BOTH)
        # Read and delivered, how long an epoch takes and how old tuples are, what waits.
        return [chart.locator("path.line").count() for chart in word_count.locator("svg.chart").all()] == [2, 2, 1]

    expect(word_count.locator("svg.chart")).to_have_count(3)
    wait_until(is_drawn)
    for place, unit in enumerate(("", "ms", "")):
        chart = word_count.locator("svg.chart").nth(place)
        path = chart.locator("path.line").last.get_attribute("d") or ""
        assert path.startswith("M") and "L" in path and "NaN" not in path
        expect(chart.locator(".axis").nth(2)).to_contain_text(unit)


def test_only_losses_are_marked_on_the_timeline(word_count: Page, node: MadeUpNode) -> None:
    def told(epoch: int, *replicas: dict[str, object]) -> None:
        node.tell("word-count", epoch, replicas=list(replicas))
        expect(word_count.locator(f'svg.timeline rect[data-epoch="{epoch}"]')).to_be_attached()

    events, marks = word_count.locator(".events"), word_count.locator("svg.timeline path.loss")
    told(10, *BOTH)
    # As in a restart, one after the other.
    told(11, replica("1"), replica("2", process=999))
    expect(events).to_contain_text("replica 2 was replaced: process 999")
    assert marks.count() == 0
    told(12, replica("1", "down", process=None), replica("2", process=999))
    expect(events).to_contain_text("replica 1 on node-b is gone")
    expect(marks).to_have_count(1)


def test_a_topology_that_does_not_stop_can_be_killed(word_count: Page, node: MadeUpNode) -> None:
    node.tell("word-count", 9, how="stopping", replicas=BOTH)
    expect(word_count.locator("#how")).to_have_text("stopping")
    expect(word_count.locator('button[data-verb="stop"]')).to_be_disabled()
    word_count.locator('button[data-verb="kill"]').click()
    word_count.locator("#ask button[value=yes]").click()
    wait_until(lambda: ("kill", []) in node.commands)


def test_what_it_means_to_freeze_an_operator_is_said_and_which_one_is(word_count: Page, node: MadeUpNode) -> None:
    word_count.locator('button[data-verb="freeze-operator"]').click()
    for words in ("the whole replica waits", "begins no further epoch", "epoch log", "works off its backlog"):
        expect(word_count.locator("#ask p")).to_contain_text(words)
    word_count.locator("#ask .cancel").click()
    node.tell("word-count", 9, replicas=[replica("1"), replica("2", "frozen", why="split is frozen")])
    expect(word_count.locator('tr[data-replica="2"]')).to_contain_text("split is frozen")


def test_a_key_of_state_is_found_and_more_than_are_shown_are_told(word_count: Page, node: MadeUpNode) -> None:
    node.answers["state"] = [{"word": f"w{number}", "count": number} for number in range(MORE_THAN_SHOWN)]
    panel = word_count.locator("#state")
    panel.locator("button", has_text="counts").click()
    expect(panel.locator("tbody tr")).to_have_count(MORE_THAN_SHOWN - 1)
    expect(panel.locator("caption")).to_contain_text("Keys and open windows of counts: the first 50; there are more")
    node.answers["state"] = [{"word": "w3", "count": 3}]
    field = panel.locator("input[name=key]")
    field.press_sequentially("word=w")
    # What is typed stays over what the page is told meanwhile.
    node.tell("word-count", 12, replicas=BOTH)
    expect(word_count.locator("main")).to_contain_text("12delivered epochs")
    word_count.keyboard.type("3")
    expect(field).to_have_value("word=w3")
    word_count.keyboard.press("Enter")
    expect(panel.locator("caption")).to_have_text("Keys and open windows of counts with word=w3")
    expect(panel.locator("tbody tr")).to_have_count(1)
    assert node.done[-1].arguments["words"] == ["--json", "counts", "--limit", "51", "--key=word=w3"]
    word_count.set_viewport_size({"width": 390, "height": 844})
    assert_fits(word_count)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.dataset.at || ''"))


def test_the_link_past_the_header_stays_on_the_page(word_count: Page) -> None:
    word_count.keyboard.press("Tab")
    assert word_count.evaluate("document.activeElement.className") == "skip"
    word_count.keyboard.press("Enter")
    assert focused(word_count) == "main"
    assert word_count.url.endswith("#/topology/word-count")
    expect(word_count.locator("h1")).to_have_text("word-count")
    word_count.keyboard.press("Tab")
    assert focused(word_count) == "back"


def test_what_scrolls_is_reached_with_keys_and_stays_where_it_was(word_count: Page, node: MadeUpNode) -> None:
    for place in ("graph-picture", "roster", "events", "log-lines"):
        expect(word_count.locator(f'[data-at="{place}"]')).to_have_attribute("tabindex", "0")
    for number in range(30):
        phase = "frozen" if number % 2 else "safe"
        node.tell("word-count", 10 + number, replicas=[replica("1"), replica("2", phase)])
        expect(word_count.locator('tr[data-replica="2"]')).to_contain_text(phase)
    events = word_count.locator(".events")
    events.focus()
    word_count.keyboard.press("End")

    def scrolled() -> int:
        return int(events.evaluate("list => list.scrollTop"))

    wait_until(lambda: scrolled() > 0 and scrolled() == scrolled())
    # The State panel gets something that scrolls, before the log: nothing is mistaken for something else.
    node.answers["state"] = [{"word": "w3", "count": 3}]
    word_count.evaluate("""document.querySelector('[data-at="state-counts"]').click()""")
    expect(word_count.locator("#state tbody tr")).to_have_count(1)
    assert focused(word_count) == "events"
    assert scrolled() > 0


def test_keys_move_the_focus_and_bring_the_card_into_sight(alone: Console, page: Page, tmp_path: Path) -> None:
    names = [f"t{number:02}" for number in range(6)]
    for name in names:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "topology.yaml").write_text(
            f"topology: {name}\nsources: {{ticks: {{generator: {{id: sequence}}}}}}\n"
            "sinks: {out: {from: ticks, file: out/rows.jsonl}}\n"
        )
        alone.client.submit(pack(folder), "topology.yaml", (), False, False)
    page.set_viewport_size({"width": 390, "height": 400})
    page.goto(alone.url)
    expect(page.locator("a.card")).to_have_count(len(names), timeout=LONG)
    for name in names[1:]:
        page.keyboard.press("j")
        assert focused(page) == name
    expect(page.locator("a.card").last).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(names[-1])
