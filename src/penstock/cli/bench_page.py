"""How benchmarks show what they found: on the terminal, and in a page of docs."""

from __future__ import annotations

import os
import platform
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
        "--markdown", metavar="FILE", help="Write the table for a page of docs, into its section where there is one."
    ),
]


@dataclass(frozen=True)
class FigureTable:
    """A table of figures: the first columns are names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1

    def on_screen(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
        for number, name in enumerate(self.columns):
            table.add_column(name, justify="left" if number < self.names else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self, command: str, after: Iterable[str] = ()) -> str:
        """With when, how and where it was measured."""
        kinds = ["---"] * self.names + ["---:"] * (len(self.columns) - self.names)
        lines = [measured_with(command), "", *(f"| {' | '.join(row)} |" for row in (self.columns, kinds, *self.rows))]
        return "\n".join([*lines, "", *(f"- {line}" for line in after)]).rstrip("\n") + "\n"


def measured_with(command: str) -> str:
    """When, how and where, in a sentence."""
    return (f"Measured on {datetime.now(UTC):%Y-%m-%d} with `{command}` on {os.cpu_count()} cores, Python "
            f"{platform.python_version()}.")


def write_section(page: Path, name: str, text: str) -> None:
    """Put the text between `<!-- bench NAME -->` and `<!-- end -->` of a page, at its end where it has not these."""
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(with_section(before, name, text), encoding="utf-8")


def with_section(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- bench {name} -->\n", "<!-- end -->"
    head, found, rest = page.partition(begin)
    if not found:
        return f"{head}{begin}{text}{end}\n"
    _, ended, tail = rest.partition(end)
    return f"{head}{begin}{text}{end}{tail}" if ended else f"{head}{begin}{text}{end}\n{rest}"
