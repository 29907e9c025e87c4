"""`penstock bench`: measurements that anybody can repeat."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_console import console
from penstock.cli.bench_failover import failover
from penstock.cli.bench_page import FigureTable, MarkdownOption, write_section
from penstock.cli.bench_paper import paper
from penstock.cli.bench_scaling import scaling
from penstock.cli.busy import busy
from penstock.cli.screen import fail, out
from penstock.topology.problems import suggest

if TYPE_CHECKING:
    from penstock.bench.worker import Figures

app = typer.Typer()
app.command()(failover)
app.command()(paper)
app.command()(scaling)
app.command()(console)

_COLUMNS = ("workload", "tuples/s", "p50", "p95", "p99", "CPU s/M", "peak MB")


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="A few workloads, each short: under three minutes.")] = False,
    only: Annotated[str | None, typer.Option(metavar="NAME,NAME…", help="Only these workloads.")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="How often each is run; the median counts.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw throughput.svg and latency.svg.")] = None,
    markdown: MarkdownOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that was measured, as JSON lines.")] = False,
) -> None:
    """Measure how fast topologies run here, on this machine and with its noise.

    Each workload runs in processes of its own: once to warm up, then some times as fast as it goes, then at 10,000
    tuples a second for its latency. `tuples/s` is the median, from the start of a query to its last commit. `p50`,
    `p95` and `p99` say how long tuples took from when they were due to the commit of their epoch at the sink. `CPU
    s/M` is processor time for a million tuples, of all processes together; `peak MB` their memory.
    """
    if context.invoked_subcommand is not None:
        return
    from dataclasses import replace

    from penstock.bench.measuring import Thoroughness, measure_workloads
    from penstock.bench.workloads import WORKLOADS

    known = {each.name: each for each in WORKLOADS}
    names = [name.strip() for name in only.split(",")] if only else []
    for name in names:
        if name not in known:
            fail(f"no workload '{name}': {suggest(name, known) or 'there are ' + ', '.join(known)}", 2)
    chosen = [known[name] for name in names] or [each for each in WORKLOADS if each.quick or not quick]
    how = Thoroughness.quick() if quick else Thoroughness()
    if repetitions is not None:
        how = replace(how, repetitions=repetitions)
    found: list[Figures] = []
    with busy("measuring") as at_work:
        for figures in measure_workloads(chosen, how, at_work.say):
            found.append(figures)
            if as_json:
                sys.stdout.write(json.dumps(asdict(figures)) + "\n")
                sys.stdout.flush()
    if svg is not None:
        _draw(found, svg)
    if markdown is not None:
        write_section(markdown, "workloads", _table(found).as_markdown("penstock bench"))
    if not as_json:
        out.print(_table(found).on_screen())


def _row(one: Figures) -> list[str]:
    waited = [f"{value:,.0f} ms" for value in one.latency_ms] or [""] * 3
    return [one.workload, f"{one.tuples / median(one.seconds):,.0f}", *waited,
            f"{median(one.cpu_seconds) / one.tuples * 1e6:.2f}", f"{one.peak_mb:,.0f}"]


def _table(found: Sequence[Figures]) -> FigureTable:
    return FigureTable(_COLUMNS, [_row(one) for one in found])


def _draw(found: Sequence[Figures], folder: Path) -> None:
    from penstock.bench.chart import bar_chart
    from penstock.bench.workloads import PACE

    folder.mkdir(parents=True, exist_ok=True)
    throughput = {one.workload: one.tuples / median(one.seconds) / 1000 for one in found}
    latency = {one.workload: one.latency_ms[0] for one in found if one.latency_ms}
    (folder / "throughput.svg").write_text(
        bar_chart("Throughput", throughput, "thousand tuples a second, as fast as it goes"), "utf-8")
    (folder / "latency.svg").write_text(
        bar_chart("Latency", latency, f"p50 in milliseconds, at {PACE:,} tuples a second"), "utf-8")
