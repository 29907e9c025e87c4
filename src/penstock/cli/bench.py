"""`penstock bench`: measurements that anybody can repeat."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_console import console
from penstock.cli.bench_failover import failover
from penstock.cli.bench_page import FigureTable, MarkdownOption, Picture, Section, write_section
from penstock.cli.bench_paper import paper
from penstock.cli.bench_scaling import scaling
from penstock.cli.bench_startup import startup
from penstock.cli.busy import busy
from penstock.cli.earlier import BesideOption, earlier
from penstock.cli.screen import fail, out
from penstock.topology.problems import suggest

if TYPE_CHECKING:
    from penstock.bench.figures import Figures
    from penstock.bench.workloads import Workload

app = typer.Typer()
app.command()(failover)
app.command()(paper)
app.command()(scaling)
app.command()(startup)
app.command()(console)

_COLUMNS = ("workload", "tuples/s", "p50 ms", "p95 ms", "p99 ms", "goal", "held", "CPU s/M", "peak MB")
SECTION = Section("workloads", "Throughput and latency")


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="A few workloads, each short: under three minutes.")] = False,
    only: Annotated[str | None, typer.Option(metavar="NAME,NAME…", help="Only these workloads.")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="How often each is run; the median counts.")] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FOLDER", file_okay=False, help="Draw throughput.svg and latency.svg.")
    ] = None,
    markdown: MarkdownOption = None,
    beside: BesideOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that was measured, as JSON lines.")] = False,
) -> None:
    """Measure how fast topologies run here, on this machine and with its noise.

    Each workload runs in processes of its own: once to warm up, then some times as fast as it goes, then at 10,000
    tuples a second for its latency: a minute to warm up, and three times 20 seconds. `tuples/s` is the median, from the
    start of a query to its last commit. `p50`, `p95` and `p99` say how long tuples took from when they were due to the
    commit of their epoch at the sink, each the median of the paced runs; `goal` is what p50, or p50 and p99, may be;
    whether it is `held` is not judged with `--quick`, whose warm-up is too short for Java to have compiled everything.
    `CPU s/M` is processor time for a million tuples, of all processes together; `peak MB` their memory.

    All of it takes hours. Pages, pictures and JSON are written after each workload: who stops it keeps what is done,
    and goes on with `--only` and `--beside`: `penstock bench --only yahoo --beside done.jsonl --json >> done.jsonl`.
    """
    if context.invoked_subcommand is not None:
        return
    from penstock.bench.figures import Figures, put_in
    from penstock.bench.measuring import Thoroughness, measure_workloads
    from penstock.bench.workloads import WORKLOADS

    order = [each.name for each in WORKLOADS]
    chosen = _chosen(WORKLOADS, only, quick)
    how = Thoroughness.quick() if quick else Thoroughness()
    if repetitions is not None:
        how = replace(how, repetitions=repetitions)
    found: list[Figures] = []
    for before in earlier(beside, Figures.from_json):
        if before.workload in order:
            found = put_in(found, before, order)
    now: list[str] = []
    try:
        with busy("measuring") as at_work:
            for figures in measure_workloads(chosen, how, at_work.say):
                now.append(figures.workload)
                found = put_in(found, figures, order)
                if as_json:
                    sys.stdout.write(figures.as_json() + "\n")
                    sys.stdout.flush()
                pictures = [] if svg is None else draw(found, svg)
                if markdown is not None:
                    write_section(markdown, SECTION, table_of(found).as_markdown(conclusions(found, now)), pictures)
    finally:
        # Also when it is stopped, or a workload fails: what was measured was measured.
        if found and not as_json:
            out.print(table_of(found).on_screen())
            for line in conclusions(found, now):
                out.print(line, soft_wrap=True)


def _chosen(workloads: Sequence[Workload], only: str | None, quick: bool) -> list[Workload]:
    known = {each.name: each for each in workloads}
    names = [name.strip() for name in only.split(",")] if only else []
    for name in names:
        if name not in known:
            fail(f"no workload '{name}': {suggest(name, known) or 'there are ' + ', '.join(known)}", 2)
    return [known[name] for name in names] or [each for each in workloads if each.quick or not quick]


def _row(one: Figures) -> list[str]:
    from penstock.bench.workloads import workload

    goal, judged = workload(one.workload).goal, [""] * 5
    if one.latency:
        verdict = "yes" if goal.is_held(one.latency) else "no"
        judged = [*(f"{value:,.0f}" for value in one.latency), str(goal), verdict if one.warm else ""]
    return [one.workload, f"{one.tuples_per_second:,.0f}", *judged, f"{one.cpu_per_million:.2f}", f"{one.peak_mb:,.0f}"]


def table_of(found: Sequence[Figures]) -> FigureTable:
    return FigureTable(_COLUMNS, [_row(one) for one in found])


def conclusions(found: Sequence[Figures], now: Sequence[str]) -> list[str]:
    """How often everything was measured, which goals are held, and what is of an earlier run."""
    from penstock.bench.goals import BATCHES_OVER_TUPLES, held

    said = [f"tuples/s: the median of {_numbers(len(one.seconds) for one in found)} runs"]
    paced = [one for one in found if one.latency]
    if paced:
        said[0] += f"; each percentile: the median of {_numbers(len(one.latency_ms) for one in paced)}"
        said += _of_latency_goals(paced)
    by_name = {one.workload: one for one in found}
    if {"custom-tuple", "custom-batch"} <= by_name.keys():
        batches, tuples = by_name["custom-batch"], by_name["custom-tuple"]
        times = batches.tuples_per_second / tuples.tuples_per_second
        verdict = f": {held(times >= BATCHES_OVER_TUPLES)}" if batches.warm and tuples.warm else ""
        said.append(f"a function for each Arrow batch is {times:.2f} times as fast as one for each tuple "
                    f"(goal: {BATCHES_OVER_TUPLES:g}){verdict}")
    old = [f"{one.workload} ({one.date})" for one in found if one.workload not in now]
    if old:
        said.append(f"of earlier runs: {', '.join(old)}")
    return said


def _of_latency_goals(paced: Sequence[Figures]) -> list[str]:
    from penstock.bench.workloads import workload

    warm = [one for one in paced if one.warm]
    kept = [one for one in warm if workload(one.workload).goal.is_held(one.latency)]
    said = [f"latency goals: held by {len(kept)} of {len(warm)}"] if warm else []
    if len(warm) < len(paced):
        cold = ", ".join(one.workload for one in paced if not one.warm)
        said.append(f"goals are not judged with --quick, as Java is still compiling after so short a warm-up: {cold}")
    return said


def _numbers(counts: Iterable[int]) -> str:
    ordered = sorted(counts)
    return str(ordered[0]) if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def draw(found: Sequence[Figures], folder: Path) -> list[Picture]:
    from penstock.bench.chart import bar_chart
    from penstock.bench.workloads import PACE

    folder.mkdir(parents=True, exist_ok=True)
    throughput = {one.workload: one.tuples_per_second / 1000 for one in found}
    latency = {one.workload: one.latency[0] for one in found if one.latency}
    pictures = [Picture(folder / "throughput.svg", "Throughput"), Picture(folder / "latency.svg", "Latency")]
    pictures[0].file.write_text(
        bar_chart("Throughput", throughput, "thousand tuples a second, as fast as it goes"), "utf-8")
    pictures[1].file.write_text(
        bar_chart("Latency", latency, f"p50 in milliseconds, at {PACE:,} tuples a second"), "utf-8")
    return pictures
