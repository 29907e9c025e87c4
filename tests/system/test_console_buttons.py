"""Every command as a button of the console's page, pressed in a real browser; what a node tells is made up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from penstock.console.bundle import pack
from penstock.console.commands import Verb
from penstock.coordination.memory import MemoryCoordinator

from ..unit.console.running_console import running_console
from ..waiting import wait_until
from .browsing import assert_fits, opened, submit_word_count
from .made_up_node import MadeUpNode, made_up_node, progress, replica
from .running_console import Console, master_alone

pytestmark = pytest.mark.by_itself

TUPLES = {"sentences": 10, "split": 90, "counts": 80, "skipped": 1}
LETTERS = [
    {"id": "0123456789", "epoch": 3, "where": "split", "what": '{"sentence": "moo"}', "error": "ValueError: no cow"},
    {"id": "abcdefabcd", "epoch": 4, "where": "counts", "what": '{"word": null}', "error": "KeyError: 'word'"},
]
ASKS, AT_ONCE = True, False


@pytest.fixture
def word_count(alone: Console, node: MadeUpNode, page: Page) -> Page:
    show_word_count(alone, node, page)
    return page


@pytest.fixture(scope="module")
def pressed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, MadeUpNode]]:
    """The same for all buttons that change nothing but what the node is told to do."""
    with (
        master_alone(tmp_path_factory.mktemp("pressed")) as alone,
        made_up_node(alone.home) as node,
        opened(browser) as page,
    ):
        show_word_count(alone, node, page)
        yield page, node


def show_word_count(alone: Console, node: MadeUpNode, page: Page) -> None:
    """The page of a topology with two replicas, of which one is frozen."""
    submit_word_count(alone, "replicas=2", "chaos=allowed")
    node.tell("word-count", 9, replicas=[replica("1"), replica("2", "frozen")])
    page.goto(f"{alone.url}/#/topology/word-count")
    expect(page.locator("tr[data-replica]")).to_have_count(2)


def press(page: Page, mark: str, fields: Mapping[str, str | bool] | None = None, asks: bool = ASKS) -> None:
    page.locator(f'button[data-verb="{mark}"]').click()
    if not asks:
        expect(page.locator("#ask")).to_be_hidden()
        return
    expect(page.locator("#ask")).to_be_visible()
    for name, value in (fields or {}).items():
        field = page.locator(f"#ask [name={name}]")
        if isinstance(value, bool):
            field.set_checked(value)
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    page.locator("#ask button[value=yes]").click()


@pytest.mark.parametrize(
    ("mark", "asks", "fields", "done"),
    [
        ("restart", ASKS, {}, ("restart", [])),
        ("freeze", ASKS, {}, ("freeze", [])),
        ("unfreeze", AT_ONCE, {}, ("unfreeze", [])),
        ("freeze1", ASKS, {}, ("freeze", ["--replica", "1"])),
        ("unfreeze2", AT_ONCE, {}, ("unfreeze", ["--replica", "2"])),
        ("freeze-operator", ASKS, {"operator": "split"}, ("freeze", ["--operator", "split"])),
        ("unfreeze-operator", ASKS, {"operator": "counts", "replica": "2"},
         ("unfreeze", ["--replica", "2", "--operator", "counts"])),
        ("crash", ASKS, {}, ("crash", [])),
        ("crash2", ASKS, {}, ("crash", ["--replica", "2"])),
        ("interval", ASKS, {"interval": "2s"}, ("interval", ["2s"])),
        ("rescale", ASKS, {"operator": "counts", "instances": "4"}, ("rescale", ["counts=4"])),
        ("checkpoint", ASKS, {"name": "before"}, ("checkpoint", ["--name", "before"])),
        ("checkpoint", ASKS, {}, ("checkpoint", [])),
        # The last, for it is not wanted to run from then on.
        ("kill", ASKS, {}, ("kill", [])),
    ],
)  # fmt: skip
def test_what_a_button_says_is_done_by_the_node(
    pressed: tuple[Page, MadeUpNode], mark: str, asks: bool, fields: Mapping[str, str],
    done: tuple[str, Sequence[str]],
) -> None:  # fmt: skip
    page, node = pressed
    before = node.commands
    node.says = {done[0]: f"{mark}: the node has done it"}
    press(page, mark, fields, asks)
    answer = page.locator(".answer.good")
    expect(answer).to_contain_text(f"{mark}: the node has done it")
    assert node.commands == [*before, done]
    expect(page.locator(".events")).to_contain_text(f"somebody on this machine: {done[0]}")
    answer.locator("button").click()
    expect(page.locator(".answer")).to_have_count(0)


def test_stop_and_start_change_what_is_wanted_and_no_command_is_without_a_button(
    word_count: Page, alone: Console, node: MadeUpNode
) -> None:
    def goal() -> str:
        return str(alone.client.get("/api/topologies/word-count")["goal"])

    expect(word_count.locator('button[data-verb="start"]')).to_be_disabled()
    press(word_count, "stop")
    expect(word_count.locator(".answer")).to_have_text(re.compile("Stop word-count: it stops after its epoch"))
    wait_until(lambda: goal() == "stop")
    node.tell("word-count", 9, how="stopped")
    expect(word_count.locator('button[data-verb="stop"]')).to_be_disabled()
    press(word_count, "start", asks=AT_ONCE)
    expect(word_count.locator(".answer").first).to_have_text(re.compile("Start word-count: it starts"))
    wait_until(lambda: goal() == "run")
    node.answers["dead-letters"] = LETTERS
    word_count.locator("#letters button", has_text="read all").click()
    expect(word_count.locator("#letters tbody tr")).to_have_count(2)
    node.tell("word-count", 9, replicas=[replica("1")])
    expect(word_count.locator("tr[data-replica]")).to_have_count(1)
    marks = word_count.locator("button[data-verb]").evaluate_all("all => all.map(one => one.dataset.verb)")
    assert [verb for verb in Verb if not any(mark.startswith(verb) for mark in marks)] == []


def test_a_command_that_is_not_answered_yet_says_so_and_then_what_was_said(word_count: Page, node: MadeUpNode) -> None:
    node.slow, node.says = {"checkpoint"}, {"checkpoint": "checkpoint 'a' after epoch 9"}
    press(word_count, "checkpoint", {"name": "a"})
    answer = word_count.locator(".answer")
    expect(answer).to_contain_text("Checkpoint word-count: given, and not answered yet")
    node.slow = set()
    expect(answer).to_contain_text("Checkpoint word-count: checkpoint 'a' after epoch 9")

    # The console waits for half a minute, and then says that it is still being done.
    def later(route: Route) -> None:
        route.fulfill(json={"done": False, "said": "it is being done; look at its events", "warning": "no audit: full"})

    word_count.route("**/commands", later)
    press(word_count, "unfreeze", asks=AT_ONCE)
    pending = word_count.locator(".answer.warn")
    expect(pending).to_contain_text("Unfreeze all of word-count: it is being done; look at its events\nno audit: full")
    word_count.unroute("**/commands")
    # What is refused says why.
    press(word_count, "interval", {"interval": "soon"})
    expect(word_count.locator("#refused")).to_contain_text("interval")
    word_count.locator("#refused .act").click()
    expect(word_count.locator(".answer.bad")).to_contain_text("it was not done")
    word_count.set_viewport_size({"width": 390, "height": 844})
    assert_fits(word_count)


def test_dead_letters_are_shown_with_their_errors_replayed_and_discarded(word_count: Page, node: MadeUpNode) -> None:
    # So that nobody has to wait until it has stopped for a replay.
    node.tell("word-count", 9, how="stopped")
    node.answers["dead-letters"] = LETTERS
    panel = word_count.locator("#letters")
    panel.locator("button", has_text="read all").click()
    for letter in LETTERS:
        row = panel.locator("tbody tr", has_text=str(letter["id"]))
        for shown in ("where", "what", "error"):
            expect(row).to_contain_text(str(letter[shown]))

    def pressed(mark: str, title: str) -> list[str]:
        """What the node is told when the button is pressed, which asks first."""
        before = len(node.commands)
        word_count.locator(f'button[data-verb="dead-letters-{mark}"]').click()
        expect(word_count.locator("#ask h2")).to_have_text(title)
        word_count.locator("#ask button[value=yes]").click()
        wait_until(lambda: len(node.commands) > before)
        # Then they are read again, by one at a time.
        wait_until(lambda: "--json" in node.done[-1].arguments["words"])
        expect(panel.locator("tbody tr")).to_have_count(len(LETTERS))
        verb, words = node.commands[-1]
        assert verb == "dead-letters"
        return words

    first = str(LETTERS[0]["id"])
    assert pressed(f"replay-{first}", f"Replay dead letter {first} of word-count?") == ["--replay", first]
    assert pressed(f"discard-{first}", f"Discard dead letter {first} of word-count?") == ["--discard", first]
    assert pressed("replay", "Replay all dead letters of word-count?") == ["--replay"]
    assert pressed("discard", "Discard all dead letters of word-count?") == ["--discard"]
    # Of one operator only.
    panel.locator("button", has_text="counts").click()
    wait_until(lambda: node.done[-1].arguments["words"][-2:] == ["--operator", "counts"])
    expect(panel.locator("caption")).to_have_text("Failed for good at counts")
    title = "Discard all dead letters at counts of word-count?"
    assert pressed("discard", title) == ["--discard", "--operator", "counts"]
    node.answers["dead-letters"] = []
    panel.locator("button", has_text="read all").click()
    expect(panel).to_contain_text("every tuple was processed")


def test_it_goes_back_to_a_checkpoint_with_sinks_that_begin_anew(word_count: Page, node: MadeUpNode) -> None:
    node.tell("word-count", 9, how="stopped")
    node.answers["checkpoint"] = [{"name": "old", "epoch": 5, "taken": "12:00"}]
    press(word_count, "restore", {"name": "old", "fresh_sinks": True})
    wait_until(lambda: ("restore", ["old", "--replace", "--fresh-sinks"]) in node.commands)


def test_sizes_of_state_are_shown(word_count: Page, node: MadeUpNode) -> None:
    node.answers["state"] = [{"operator": "counts", "kind": "count", "instances": 2, "bytes": 2_500_000, "copies": 2,
                              "version": 9, "epoch": 9}]  # fmt: skip
    word_count.locator("#state button", has_text="sizes").click()
    cells = word_count.locator("#state tbody td")
    expect(cells).to_have_text(["counts", "count", "2", "2.5 MB in 2 copies", "9", "9"])


def colour(page: Page, selector: str, what: str) -> str:
    return str(page.locator(selector).first.evaluate(f"element => getComputedStyle(element).{what}"))


def test_operators_are_coloured_by_how_much_more_they_could_do(word_count: Page, node: MadeUpNode) -> None:
    def heats(at_work: float, epoch: int) -> dict[str, str]:
        figures = progress(epoch, {name: count * epoch for name, count in TUPLES.items()},
                           {"words": 80 * epoch, "ignored": epoch}, at_work=at_work)  # fmt: skip
        node.tell("word-count", epoch, progress=figures, replicas=[replica("1")])
        expect(word_count.locator("#load b")).to_have_text(f"At work {at_work:.0%} of the last 10 s.")
        nodes = "all => all.map(one => [one.dataset.node, one.dataset.heat])"
        return dict(word_count.locator("svg.graph [data-node]").evaluate_all(nodes))

    # Many tuples a second, and time left: nothing is red, however fast it is beside the others.
    assert set(heats(0.05, 10).values()) == set(heats(0.5, 11).values()) == {"cool"}
    cool = colour(word_count, '[data-node="split"] .card-face', "fill")
    assert heats(0.7, 12)["split"] == "warm"
    warm = colour(word_count, '[data-node="split"] .card-face', "fill")
    full = heats(1.0, 13)
    hot = colour(word_count, '[data-node="split"] .card-face', "fill")
    assert (full["split"], full["sentences"], full["sink:ignored"]) == ("hot", "cool", "cool")
    assert len({cool, warm, hot}) == 3
    for words in ("cool: below 60%", "warm: 60 to 85%", "hot: above 85%", "estimate"):
        expect(word_count.locator("#load")).to_contain_text(words)
    expect(word_count.locator('[data-node="split"]')).to_have_attribute("aria-label", re.compile("load about 100%"))
    # What does not run has no load.
    node.tell("word-count", 13, how="stopped")
    expect(word_count.locator("#load b")).to_have_text("Nothing is measured while it does not run.")
    expect(word_count.locator("svg.graph [data-heat]")).to_have_count(0)
    word_count.set_viewport_size({"width": 390, "height": 844})
    assert_fits(word_count)


def brightness(page: Page, selector: str, what: str) -> float:
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour(page, selector, what))[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_it_is_light_or_dark_as_the_machine_is_or_as_somebody_wants_it(alone: Console, browser: Browser) -> None:
    def is_dark() -> bool:
        ground, ink = brightness(page, "body", "backgroundColor"), brightness(page, "body", "color")
        # Readable either way.
        assert abs(ground - ink) > 150
        return ground < ink

    for scheme, dark in (("light", False), ("dark", True)):
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(alone.url)
        expect(page.locator("main")).to_contain_text("penstock submit")
        assert is_dark() is dark
        page.keyboard.press("t")
        assert is_dark() is not dark
        # It stays as it was wanted, also when the page is opened again.
        page.reload()
        expect(page.locator("main")).to_contain_text("penstock submit")
        assert is_dark() is not dark
        page.locator("#theme").click()
        assert is_dark() is dark
        page.close()


def test_the_page_says_that_the_coordinator_is_away_and_shows_what_was_known(tmp_path: Path, page: Page) -> None:
    coordinator = MemoryCoordinator()
    with running_console(tmp_path, coordinator) as console:
        wait_until(lambda: console.master.leading)
        folder = tmp_path / "own"
        folder.mkdir()
        (folder / "topology.yaml").write_text(
            "topology: ticking\nsources: {ticks: {generator: {id: sequence}}}\n"
            "sinks: {out: {from: ticks, file: out/rows.jsonl}}\n"
        )
        console.client.submit(pack(folder), "topology.yaml", (), False, False)
        for place in ("", "#/topology/ticking"):
            page.goto("about:blank")
            page.goto(f"{console.url}/{place}")
            expect(page.locator("main")).to_contain_text("ticking")
            expect(page.locator("#link")).to_have_text("live")
            coordinator.store.go_away()
            expect(page.locator("#banner")).to_contain_text("The coordinator does not answer: what is shown is old")
            expect(page.locator("#link")).to_have_text("old")
            expect(page.locator("main")).to_contain_text("ticking")
            page.reload()
            expect(page.locator("main")).to_contain_text("ticking")
            coordinator.store.come_back()
            expect(page.locator("#banner")).to_be_hidden()
            expect(page.locator("main h1" if place else "a.card strong")).to_have_text("ticking")
