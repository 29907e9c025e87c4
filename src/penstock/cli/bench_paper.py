"""`penstock bench paper`: the k-safety paper's measurements, with Penstock."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, write_section
from penstock.cli.busy import busy
from penstock.cli.numbers import numbers_in
from penstock.cli.screen import fail, out

if TYPE_CHECKING:
    from penstock.bench.paper import Point, Variant

    Found = Mapping[Variant, Sequence[Point]]

_COLUMNS = ("figure", "topology", "", "tuples/s", "paper's", "p50 at the lowest rate")


def paper(
    figures: Annotated[str, typer.Option(metavar="N,N…", help="Which figures of the paper.")] = "2,3,4,5",
    rates: Annotated[
        str, typer.Option(metavar="N,N…", help="Tuples a second that are offered.")
    ] = "25000,50000,100000,200000",
    seconds: Annotated[float, typer.Option(min=4, help="How long each rate is offered; the first half is not measured.")
                       ] = 40.0,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw the figures, as figure-2.svg …")] = None,
    markdown: MarkdownOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that was measured, as JSON lines.")] = False,
) -> None:
    """Measure the topologies of the k-safety paper, and put our figures beside the paper's.

    Tuples of 256 bytes through two or three operators, and an exactly-once count of 26 words, at rising rates; ×1, ×2
    and ×3 are how many tasks run at once, and with k = 1 and k = 2 there are two and three replicas. `tuples/s` is the
    most that was delivered at any of the rates. The paper had eight machines; all of this runs on one.

    All of it takes more than an hour: `--figures 5 --rates 50000` takes minutes. Where `--seconds` are few, Java is not
    warm yet, and what had to wait while replicas started is still being worked off.
    """
    from penstock.bench.paper import FIGURES, Pace, measure, variants

    chosen = numbers_in("--figures", figures)
    for number in chosen:
        if number not in FIGURES:
            fail(f"--figures {figures}: there are {', '.join(map(str, FIGURES))}", 2)
    offered = numbers_in("--rates", rates)
    found: dict[Variant, list[Point]] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, busy("measuring") as at_work:
        pace = Pace(seconds, seconds / 2)
        for variant, points in measure(variants(chosen), offered, pace, Path(folder), at_work.say):
            found[variant] = points
            if as_json:
                sys.stdout.write(json.dumps({**asdict(variant), "points": [asdict(point) for point in points]}) + "\n")
                sys.stdout.flush()
    if svg is not None:
        _draw(chosen, found, svg)
    if markdown is not None:
        write_section(markdown, "paper", _table(chosen, found).as_markdown("penstock bench paper"))
    if not as_json:
        out.print(_table(chosen, found).on_screen())


def _table(figures: Sequence[int], found: Found) -> FigureTable:
    from penstock.bench.paper import FIGURES

    rows = [
        [str(figure), variant.workload, str(variant), f"{max(point.delivered for point in found[variant]):,.0f}",
         "" if variant.paper is None else f"{variant.paper:,}", f"{found[variant][0].p50_ms:,.0f} ms"]
        for figure in figures
        for variant in FIGURES[figure]
    ]  # fmt: skip
    return FigureTable(_COLUMNS, rows, 3)


def _draw(figures: Sequence[int], found: Found, folder: Path) -> None:
    from penstock.bench.chart import line_chart
    from penstock.bench.paper import FIGURES, TITLES

    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        ours = {str(variant): found[variant] for variant in FIGURES[figure]}
        throughput = {
            name: [(point.offered / 1000, point.delivered / 1000) for point in points] for name, points in ours.items()
        }
        latency = {name: [(point.offered / 1000, point.p50_ms) for point in points] for name, points in ours.items()}
        offered = "thousand tuples a second offered"
        # The paper's text says only what was sustained: up to there, what was offered was delivered.
        theirs = {
            str(variant): [(point.offered / 1000, min(point.offered, variant.paper) / 1000) for point in found[variant]]
            for variant in FIGURES[figure] if variant.paper is not None
        }
        up = "thousand tuples a second; dashed: the paper's, on eight machines"
        (folder / f"figure-{figure}.svg").write_text(
            line_chart(f"{TITLES[figure]}, delivered", throughput, offered, up, theirs), "utf-8")
        (folder / f"figure-{figure}-latency.svg").write_text(
            line_chart(f"{TITLES[figure]}, latency", latency, offered, "p50, ms"), "utf-8")
