from __future__ import annotations

from pathlib import Path

from penstock.cli.bench_page import FigureTable, with_section, write_section

PAGE = "# Page\n\n<!-- bench paper -->\nold\n<!-- end -->\n\nrest <!-- bench other -->\n"


def test_a_section_is_replaced_and_all_else_stays() -> None:
    assert with_section(PAGE, "paper", "new\n") == PAGE.replace("old", "new")


def test_a_section_without_an_end_gets_one() -> None:
    assert with_section("a\n<!-- bench x -->\nb\n", "x", "new\n") == "a\n<!-- bench x -->\nnew\n<!-- end -->\nb\n"


def test_a_page_without_the_section_gets_it_at_its_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_section(page, "paper", "old\n")
    assert page.read_text() == "<!-- bench paper -->\nold\n<!-- end -->\n"
    write_section(page, "other", "more\n")
    write_section(page, "paper", "new\n")
    assert page.read_text() == (
        "<!-- bench paper -->\nnew\n<!-- end -->\n<!-- bench other -->\nmore\n<!-- end -->\n")


def test_a_table_says_when_and_how_it_was_measured() -> None:
    table = FigureTable(("what", "n"), [("fast", "1"), ("slow", "2")])
    lines = table.as_markdown("penstock bench", ["so"]).splitlines()
    assert "with `penstock bench` on" in lines[0]
    assert lines[2:] == ["| what | n |", "| --- | ---: |", "| fast | 1 |", "| slow | 2 |", "", "- so"]
