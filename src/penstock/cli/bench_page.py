"""How benchmarks show what they found: on the terminal, and in a page of docs."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

MarkdownOption = Annotated[
    Path | None,
    typer.Option(
        "--markdown", metavar="FILE", dir_okay=False,
        help="Write the table for a page of docs, into its section where there is one.",
    ),
]

_BUSY_LOAD = 1.0
"""Above it, a machine has other work."""
_HEADING = re.compile(r"#{1,6} (.*)")
_END = "<!-- end -->"


def _load() -> float | None:
    """How many processes wanted a processor in the last minute, on average; None where the system does not say."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


_LOAD_AT_START = _load()
"""Later on, most of it is the benchmark's own."""


@dataclass(frozen=True)
class FigureTable:
    """A table of figures: the first columns are names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1

    def on_screen(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for number, name in enumerate(self.columns):
            table.add_column(name, justify="left" if number < self.names else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self, after: Iterable[str] = ()) -> str:
        """With what there is to say of it, below."""
        kinds = ["---"] * self.names + ["---:"] * (len(self.columns) - self.names)
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, kinds, *self.rows)]
        return "\n".join([*lines, "", *(f"- {line}" for line in after)]).rstrip("\n") + "\n"


@dataclass(frozen=True)
class Section:
    """The part of a page that one benchmark writes, and the heading that it stands under."""

    name: str
    heading: str


@dataclass(frozen=True)
class Picture:
    """A drawing that the same run has made."""

    file: Path
    shows: str

    def seen_from(self, page: Path) -> str:
        """The link to it."""
        return f"![{self.shows}]({Path(os.path.relpath(self.file, page.parent)).as_posix()})"


def write_section(page: Path, section: Section, text: str, pictures: Iterable[Picture] = ()) -> None:
    """Put what was found into a section of a page, with when, how and on what it was measured; all else stays.

    The section is between `<!-- bench NAME -->` and `<!-- end -->`. Where the page has it not, it is put below the
    text under its heading, and where there is no such heading either, at the end with one.
    """
    links = "".join(f"\n{picture.seen_from(page)}\n" for picture in pictures)
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    after = with_section(before, section, f"{measured_with(command_line(sys.argv), _LOAD_AT_START)}\n\n{text}{links}")
    # A page that is half written when somebody presses Ctrl-C would have lost its other half.
    draft = page.with_name(f".{page.name}.draft")
    draft.write_text(after, encoding="utf-8")
    draft.replace(page)


def measured_with(command: str, load: float | None = None) -> str:
    """When, how and where, in a sentence; and that there was other work, where `load` at the beginning says so."""
    from penstock.bench.machine import this_machine

    beside = f", with other work: load {load:.1f}" if load is not None and load > _BUSY_LOAD else ""
    return f"Measured on {datetime.now(UTC):%Y-%m-%d} with `{command}` on {this_machine()}{beside}."


def command_line(arguments: Sequence[str]) -> str:
    """How somebody else repeats it: of files elsewhere on this machine only their names are told."""
    program, *rest = arguments
    if program.endswith(".py") and Path(program).name != "__main__.py":
        words = ["python", _without_place(program)]
    else:
        words = ["penstock"]
    return shlex.join([*words, *map(_without_place, rest)])


def _without_place(word: str) -> str:
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    return f"{option}{equals}{Path(value).name if Path(value).is_absolute() else value}"


def with_section(page: str, section: Section, text: str) -> str:
    begin = f"<!-- bench {section.name} -->\n"
    head, found, rest = page.partition(begin)
    if not found:
        return _with_new_section(page, section, f"{begin}{text}{_END}\n")
    old, ended, tail = rest.partition(_END)
    # The end of another section is none of this one.
    whole = ended and "<!-- bench " not in old
    return f"{head}{begin}{text}{_END}{tail}" if whole else f"{head}{begin}{text}{_END}\n{rest}"


def _with_new_section(page: str, section: Section, block: str) -> str:
    lines = page.splitlines(keepends=True)
    headings = dict(_headings(lines))
    own = next((number for number, said in headings.items() if said == section.heading), None)
    if own is None:
        return "\n".join(part for part in (page.rstrip("\n") + "\n" if page.strip() else "",
                                           f"## {section.heading}\n", block) if part)  # fmt: skip
    following = min((number for number in headings if number > own), default=len(lines))
    above, below = "".join(lines[:following]).rstrip("\n"), "".join(lines[following:])
    return f"{above}\n\n{block}" + (f"\n{below}" if below else "")


def _headings(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    """The line of each heading, and what it says; what is in a fenced block is none."""
    fenced = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            fenced = not fenced
        match = _HEADING.match(line)
        if match is not None and not fenced:
            yield number, match[1].strip()
