"""`penstock bench paper`: the k-safety paper's measurements, with Penstock."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, Picture, Section, write_section
from penstock.cli.busy import busy
from penstock.cli.earlier import BesideOption, earlier
from penstock.cli.numbers import numbers_in
from penstock.cli.screen import fail, out

if TYPE_CHECKING:
    from penstock.bench.paper import Point, Variant

    Found = Mapping[Variant, Sequence[Point]]

_COLUMNS = ("figure", "topology", "", "tuples/s", "paper's", "p50 at the lowest rate")
SECTION = Section("paper", "The k-safety paper")
_ALL = 0.95
"""Of what was offered: so much delivered is all, by what the last epoch cuts off."""
_PAPERS = "the paper's, on eight machines"


def paper(
    figures: Annotated[str, typer.Option(metavar="N,N…", help="Which figures of the paper.")] = "2,3,4,5",
    rates: Annotated[
        str, typer.Option(metavar="N,N…", help="Tuples a second that are offered.")
    ] = "25000,50000,100000,200000",
    seconds: Annotated[float, typer.Option(min=4, help="How long each rate is offered; the first half is not measured.")
                       ] = 40.0,
    svg: Annotated[
        Path | None, typer.Option(metavar="FOLDER", file_okay=False, help="Draw the figures, as figure-2.svg …")
    ] = None,
    markdown: MarkdownOption = None,
    beside: BesideOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that was measured, as JSON lines.")] = False,
) -> None:
    """Measure the topologies of the k-safety paper, and put our figures beside the paper's.

    Tuples of 256 bytes through two or three operators, and an exactly-once count of 26 words, at rising rates; ×1, ×2
    and ×3 are how many tasks run at once, and with k = 1 and k = 2 there are two and three replicas. `tuples/s` is the
    most that was delivered at any of the rates. The paper had eight machines; all of this runs on one.

    All of it takes more than an hour: `--figures 5 --rates 50000` takes minutes. Where `--seconds` are few, Java is not
    warm yet, and what had to wait while replicas started is still being worked off. Pages, pictures and JSON are
    written after each rate: who stops it keeps what is done, and goes on with `--beside`, which leaves out what is
    measured: `penstock bench paper --beside done.jsonl --json >> done.jsonl`.
    """
    from penstock.bench.paper import FIGURES, Pace, figures_of, left_to_measure, measure, merged, variants
    from penstock.bench.paper import as_json as line_of

    chosen = numbers_in("--figures", figures)
    for number in chosen:
        if number not in FIGURES:
            fail(f"--figures {figures}: there are {', '.join(map(str, FIGURES))}", 2)
    offered = numbers_in("--rates", rates)
    found = _earlier_points(beside)
    now: list[tuple[Variant, float]] = []
    left = left_to_measure(variants(chosen), offered, found)
    try:
        if not left:
            _write(chosen, found, now, svg, markdown)
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, busy("measuring") as at_work:
            pace = Pace(seconds, seconds / 2)
            for variant, point in measure(left, pace, Path(folder), at_work.say):
                found[variant] = merged(found.get(variant, []), [point])
                now.append((variant, point.offered))
                if as_json:
                    sys.stdout.write(line_of(variant, [point]) + "\n")
                    sys.stdout.flush()
                _write(chosen, found, now, svg, markdown)
    finally:
        # Also when it is stopped, or a variant fails.
        if found and not as_json:
            out.print(table_of(figures_of(found, chosen), found).on_screen())


def _earlier_points(beside: Path | None) -> dict[Variant, list[Point]]:
    """Of all lines of the file: a variant may be on several, with some of its rates on each."""
    from penstock.bench.paper import from_json, merged

    found: dict[Variant, list[Point]] = {}
    for variant, points in earlier(beside, from_json):
        found[variant] = merged(found.get(variant, []), points)
    return found


def _write(
    chosen: Sequence[int], found: Found, now: Sequence[tuple[Variant, float]], svg: Path | None, markdown: Path | None
) -> None:
    from penstock.bench.paper import figures_of

    shown = figures_of(found, chosen)
    pictures = [] if svg is None else draw(shown, found, svg)
    if markdown is not None:
        text = table_of(shown, found).as_markdown(_of_earlier_runs(shown, found, now))
        write_section(markdown, SECTION, text, pictures)


def table_of(figures: Sequence[int], found: Found) -> FigureTable:
    from penstock.bench.paper import FIGURES, PAPER_LINES

    rows = []
    for figure in figures:
        rows += [
            [str(figure), variant.workload, str(variant), _most(found[variant]),
             "" if variant.paper is None else f"{variant.paper:,}", f"{found[variant][0].p50_ms:,.0f} ms"]
            for variant in FIGURES[figure] if variant in found
        ]  # fmt: skip
        rows += [[str(figure), line.workload, str(line), "", f"{line.sustained:,}", ""]
                 for line in PAPER_LINES.get(figure, ())]  # fmt: skip
    return FigureTable(_COLUMNS, rows, 3)


def _most(points: Sequence[Point]) -> str:
    """What was delivered at most; where that is all that was offered at most, more may be possible."""
    most, offered = max(point.delivered for point in points), max(point.offered for point in points)
    return f"{'≥ ' if most >= _ALL * offered else ''}{most:,.0f}"


def _of_earlier_runs(figures: Sequence[int], found: Found, now: Sequence[tuple[Variant, float]]) -> list[str]:
    from penstock.bench.paper import variants

    old = []
    for each in variants(figures):
        points = found.get(each, ())
        rates = [f"{point.offered:,.0f}" for point in points if (each, point.offered) not in now]
        if rates:
            old.append(f"{each.workload} {each}" + (f" at {' and '.join(rates)}" if len(rates) < len(points) else ""))
    return [f"of earlier runs: {'; '.join(old)}"] if old else []


def draw(figures: Sequence[int], found: Found, folder: Path) -> list[Picture]:
    """Two pictures of each figure: what was delivered, and after how long."""
    from penstock.bench.chart import line_chart
    from penstock.bench.paper import FIGURES, PAPER_LINES, TITLES

    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for figure in figures:
        lines = [variant for variant in FIGURES[figure] if variant in found]
        ours = {str(variant): found[variant] for variant in lines}
        throughput = {
            name: [(point.offered / 1000, point.delivered / 1000) for point in points] for name, points in ours.items()
        }
        latency = {name: [(point.offered / 1000, point.p50_ms) for point in points] for name, points in ours.items()}
        offered = "thousand tuples a second offered"
        # The paper's text says only what was sustained: up to there, what was offered was delivered; from there on,
        # latency rises steeply.
        sustained = {str(variant): variant.paper / 1000 for variant in lines if variant.paper is not None}
        sustained |= {str(line): line.sustained / 1000 for line in PAPER_LINES.get(figure, ())}
        every = [point for points in ours.values() for point in points]
        theirs = {name: _sustained(limit, ours.get(name, every)) for name, limit in sustained.items()}
        highest = max(point.p50_ms for point in every)
        limits = {name: [(limit, 0.0), (limit, highest)] for name, limit in sustained.items()}
        delivered = Picture(folder / f"figure-{figure}.svg", f"{TITLES[figure]}, delivered")
        waited = Picture(folder / f"figure-{figure}-latency.svg", f"{TITLES[figure]}, latency")
        delivered.file.write_text(line_chart(
            delivered.shows, throughput, offered, "thousand tuples a second", theirs, _PAPERS), "utf-8")
        waited.file.write_text(line_chart(
            waited.shows, latency, offered, "p50, ms", limits, "where the paper's rises steeply"), "utf-8")
        pictures += [delivered, waited]
    return pictures


def _sustained(limit: float, points: Sequence[Point]) -> list[tuple[float, float]]:
    """What the paper's delivered of the same offers, in thousands, with the bend where it is."""
    offers = sorted({point.offered / 1000 for point in points})
    bend = {limit} if offers[0] < limit < offers[-1] else set()
    return [(offer, min(offer, limit)) for offer in sorted({*offers, *bend})]
