"""`penstock bench startup`: how soon the first epoch is committed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, Picture, Section, write_section
from penstock.cli.busy import busy
from penstock.cli.earlier import BesideOption, earlier
from penstock.cli.screen import out

_COLUMNS = ("from the start of the process", "seconds", "fastest", "slowest", "Penstock takes")
SECTION = Section("startup", "Start-up")


def startup(
    repetitions: Annotated[int, typer.Option(min=1, help="How often everybody is started; the median counts.")] = 5,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", file_okay=False, help="Draw startup.svg.")] = None,
    markdown: MarkdownOption = None,
    beside: BesideOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The seconds of each turn, as JSON lines.")] = False,
) -> None:
    """Measure the time from the start of a process to its first committed epoch, beside a bare Spark session.

    A file of 1,000 JSON lines is filtered and written: by `penstock run`, and by one query in a bare session, once with
    Spark's own settings and once with those that Penstock gives Spark. They are started in turn, after a turn to their
    end that is not measured. Penstock is to take at most 1.3 times as long. Pages, pictures and JSON are written after
    each turn: who stops it goes on with `--beside`, whose turns count.
    """
    from penstock.bench.startup import CONTESTANTS, measure_startup, turn_in

    before = earlier(beside, turn_in)
    seconds = {name: [turn[name] for turn in before] for name in CONTESTANTS}
    left = repetitions - len(before)
    try:
        if left <= 0:
            _write(seconds, len(before), svg, markdown)
            return
        with busy("measuring") as at_work:
            for took in measure_startup(left, at_work.say):
                for name, one in took.items():
                    seconds[name].append(one)
                if as_json:
                    sys.stdout.write(json.dumps(took) + "\n")
                    sys.stdout.flush()
                _write(seconds, len(before), svg, markdown)
    finally:
        if all(seconds.values()) and not as_json:
            out.print(table_of(seconds).on_screen())
            for line in verdicts(seconds, len(before)):
                out.print(line, soft_wrap=True)


def _write(seconds: Mapping[str, Sequence[float]], before: int, svg: Path | None, markdown: Path | None) -> None:
    pictures = [] if svg is None else [draw(seconds, svg)]
    if markdown is not None:
        write_section(markdown, SECTION, table_of(seconds).as_markdown(verdicts(seconds, before)), pictures)


def draw(seconds: Mapping[str, Sequence[float]], folder: Path) -> Picture:
    from penstock.bench.chart import bar_chart

    folder.mkdir(parents=True, exist_ok=True)
    picture = Picture(folder / "startup.svg", "From the start of the process to the first committed epoch")
    medians = {name: median(each) for name, each in seconds.items()}
    picture.file.write_text(bar_chart(picture.shows, medians, "seconds, the median of all turns", digits=2), "utf-8")
    return picture


def table_of(seconds: Mapping[str, Sequence[float]]) -> FigureTable:
    from penstock.bench.startup import ratios

    times = ratios(seconds)
    return FigureTable(_COLUMNS, [
        [name, f"{median(each):.2f}", f"{min(each):.2f}", f"{max(each):.2f}",
         f"×{times[name]:.2f}" if name in times else ""]
        for name, each in seconds.items()
    ])  # fmt: skip


def verdicts(seconds: Mapping[str, Sequence[float]], before: int = 0) -> list[str]:
    """What the table comes to; so many of the turns were taken `before`."""
    from penstock.bench.goals import held
    from penstock.bench.startup import GOAL, OURS, ratios

    turns = len(seconds[OURS])
    old = f", {before} of them of earlier runs" if before else ""
    return [f"medians of {turns} turn{'' if turns == 1 else 's'}{old}",
            *(f"{name}: {times:.2f} times as long (goal: at most {GOAL:g}): {held(times <= GOAL)}"
              for name, times in ratios(seconds).items())]  # fmt: skip
