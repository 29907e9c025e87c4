from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.cli.bench_page import (
    FigureTable,
    Picture,
    Section,
    command_line,
    measured_with,
    with_section,
    write_section,
)

PAGE = "# Page\n\n<!-- bench paper -->\nold\n<!-- end -->\n\nrest <!-- bench other -->\n"
PAPER = Section("paper", "The paper")


def test_a_section_is_replaced_and_all_else_stays() -> None:
    assert with_section(PAGE, PAPER, "new\n") == PAGE.replace("old", "new")


def test_a_section_without_an_end_gets_one() -> None:
    page = "a\n<!-- bench paper -->\nb\n"
    assert with_section(page, PAPER, "new\n") == "a\n<!-- bench paper -->\nnew\n<!-- end -->\nb\n"


def test_the_end_of_another_section_is_not_taken_for_its_own() -> None:
    other = "<!-- bench other -->\nkept\n<!-- end -->\n"
    changed = with_section(f"<!-- bench paper -->\n{other}", PAPER, "new\n")
    assert changed == f"<!-- bench paper -->\nnew\n<!-- end -->\n{other}"


def test_a_new_section_is_put_below_the_text_under_its_heading() -> None:
    page = "# Page\n\n## The paper\n\nWhat it is.\n\n## Other\n\nrest\n"
    assert with_section(page, PAPER, "new\n") == (
        "# Page\n\n## The paper\n\nWhat it is.\n\n<!-- bench paper -->\nnew\n<!-- end -->\n\n## Other\n\nrest\n")


def test_the_last_heading_has_its_section_at_the_end_of_the_page() -> None:
    assert with_section("### The paper\n", PAPER, "new\n") == (
        "### The paper\n\n<!-- bench paper -->\nnew\n<!-- end -->\n")


def test_what_looks_like_a_heading_in_a_block_of_code_is_none() -> None:
    page = "```\n## The paper\n```\n"
    assert with_section(page, PAPER, "new\n") == f"{page}\n## The paper\n\n<!-- bench paper -->\nnew\n<!-- end -->\n"


def test_a_page_without_the_heading_gets_it_at_its_end() -> None:
    page = with_section("", PAPER, "old\n")
    assert page == "## The paper\n\n<!-- bench paper -->\nold\n<!-- end -->\n"
    page = with_section(page, Section("other", "More"), "more\n")
    assert with_section(page, PAPER, "new\n") == (
        "## The paper\n\n<!-- bench paper -->\nnew\n<!-- end -->\n\n"
        "## More\n\n<!-- bench other -->\nmore\n<!-- end -->\n")


def test_a_section_says_when_and_how_and_on_what_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    monkeypatch.setattr("sys.argv", [str(tmp_path / "bin" / "penstock"), "bench", "--markdown", str(page)])
    table = FigureTable(("what", "n"), [("fast", "1")])
    picture = Picture(tmp_path / "docs" / "images" / "fast.svg", "How fast")
    write_section(page, PAPER, table.as_markdown(["so"]), [picture])
    lines = page.read_text().splitlines()
    assert lines[:3] == ["## The paper", "", "<!-- bench paper -->"]
    assert "with `penstock bench --markdown page.md` on" in lines[3]
    assert lines[4:] == ["", "| what | n |", "| --- | ---: |", "| fast | 1 |", "", "- so", "",
                         "![How fast](images/fast.svg)", "<!-- end -->"]  # fmt: skip
    for what in ("core", "GB of memory", "Python 3.", "Java", "Spark", "Penstock 0."):
        assert what in lines[3]
    assert str(tmp_path) not in page.read_text()
    assert socket.gethostname() not in lines[3]
    assert [each.name for each in page.parent.iterdir()] == ["page.md"]


def test_a_machine_with_other_work_is_told_with_its_load() -> None:
    assert measured_with("penstock bench", 3.14).endswith(", with other work: load 3.1.")
    for load in (None, 0.2, 1.0):
        assert "other work" not in measured_with("penstock bench", load)


@pytest.mark.parametrize(("arguments", "said"), [
    (["/venv/bin/penstock", "bench", "--only", "a b", "--json"], "penstock bench --only 'a b' --json"),
    (["-c", "bench", "--svg=/home/me/pictures"], "penstock bench --svg=pictures"),
    (["/src/penstock/__main__.py", "bench"], "penstock bench"),
    (["benchmarks/peers.py", "--json", "out/p.json"], "python benchmarks/peers.py --json out/p.json"),
    (["/home/me/benchmarks/peers.py", "--json", "/tmp/p.json"], "python peers.py --json p.json"),
])
def test_the_command_is_told_as_it_was_given_without_places_on_this_machine(arguments: list[str], said: str) -> None:
    assert command_line(arguments) == said
