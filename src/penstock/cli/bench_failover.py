"""`penstock bench failover`: what a failure does to the output."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.chaos.life import PENSTOCK
from penstock.cli.bench_page import FigureTable, MarkdownOption, Picture, Section, write_section
from penstock.cli.busy import busy
from penstock.cli.earlier import BesideOption, earlier
from penstock.cli.numbers import numbers_in
from penstock.cli.screen import out

if TYPE_CHECKING:
    from penstock.bench.failover import Measured

_COLUMNS = ("replicas", "longest gap", "at a kill", "at a freeze", "noticed", "latency", "cores", "tuples/s")
SECTION = Section("failover", "Failover")
_TITLE = "How old the output is when a replica is killed"


def failover(
    kills: Annotated[int, typer.Option(min=1, help="How many kills, and as many freezes.")] = 20,
    replicas: Annotated[str, typer.Option(metavar="N,N…", help="Which numbers of replicas.")] = "1,2,3",
    steady: Annotated[
        float, typer.Option(metavar="SECONDS", min=5, help="How long costs are measured, after a minute to warm up.")
    ] = 60.0,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.05, help="Between two epochs.")] = 0.5,
    cores: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many cores a replica may use. Default: all.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw how old the output is, over time, across a kill.")
    ] = None,
    markdown: MarkdownOption = None,
    costs: Annotated[bool, typer.Option("--costs", help="Only what replicas cost: no blows.")] = False,
    beside: BesideOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="All that was measured, one JSON object for each number of replicas.")
    ] = False,
) -> None:
    """Kill and freeze replicas in a steady stream, and see whether the output pauses.

    Each replica in turn is killed with `kill -9`, all its processes at once, and each in turn is frozen for five
    seconds; the next blow falls when all are safe again. `longest gap` is the longest time between two delivered
    epochs while nothing was done; a blow is `noticed` when the gap around it is longer than that and one epoch
    interval. `latency` is from the cut of an epoch to its delivery, and `cores` how many were busy, both in a steady
    stream without blows; `tuples/s` is what goes through without a pace; in brackets, how many times that of one
    replica. Replicas work on the same epoch at the same time: what they cost each other where there are cores for all
    of them is seen with `--cores`, each on as many as it has to itself.

    It takes long: a replica that was killed is waited for until it has caught up. On a machine without cores to spare
    that may take minutes; begin with `--kills 1 --replicas 1,2`. Tables and pictures are written after each number of
    replicas: who stops it keeps what is done.
    """
    from penstock.bench.failover import FailoverSettings, Measured, measure_failover

    settings = FailoverSettings(kills, tuple(numbers_in("--replicas", replicas)), steady, interval)

    def command(file: Path) -> list[str]:
        return run_command(file, cores)

    found = earlier(beside, Measured.from_json)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, busy("measuring") as at_work:
        for one in measure_failover(settings, command, Path(folder), at_work.say, costs):
            before = next((each for each in found if each.replicas == one.replicas), None)
            whole = before.with_costs_of(one) if costs and before is not None else one
            found = sorted([*(each for each in found if each is not before), whole], key=lambda each: each.replicas)
            if svg is not None:
                svg.write_text(_chart(found), encoding="utf-8")
            if markdown is not None:
                pictures = [] if svg is None else [Picture(svg, _TITLE)]
                write_section(markdown, SECTION, table_of(found).as_markdown(), pictures)
            if as_json:
                print(json.dumps(asdict(whole)), flush=True)
    if not as_json:
        out.print(table_of(found).on_screen())


def run_command(file: Path, cores: int | None) -> list[str]:
    """What runs the topology in a file, with a supervisor, each replica on so many cores."""
    master = [] if cores is None else ["--master", f"local[{cores}]"]
    return [*PENSTOCK, "run", str(file), "--supervised", "--json", *master]


def _row(one: Measured, alone: Measured | None) -> list[str]:
    """One line of the table; costs also as a ratio to those of one replica."""

    def seconds(gaps: Sequence[float]) -> str:
        if not gaps:
            return "not measured"
        return f"{median(gaps):.2f} s, at most {max(gaps):.2f} s"

    def ratio(measured: float, of_one: float) -> str:
        return "" if alone is None or alone is one or not of_one else f" (×{measured / of_one:.2f})"

    base = alone or one
    if not one.throughput:
        return [str(one.replicas), f"{one.quiet:.2f} s", seconds(one.kill_gaps), seconds(one.freeze_gaps),
                "no" if one.hidden else "yes", *["not measured"] * 3]  # fmt: skip
    noticed = "" if not one.kill_gaps else "no" if one.hidden else "yes"
    return [str(one.replicas), f"{one.quiet:.2f} s", seconds(one.kill_gaps), seconds(one.freeze_gaps),
            noticed, f"{1000 * one.latency:.0f} ms{ratio(one.latency, base.latency)}",
            f"{one.cores:.2f}{ratio(one.cores, base.cores)}",
            f"{one.throughput:,.0f}{ratio(one.throughput, base.throughput)}"]


def _rows(found: Sequence[Measured]) -> list[list[str]]:
    alone = next((one for one in found if one.replicas == 1), None)
    return [_row(one, alone) for one in found]


def table_of(found: Sequence[Measured]) -> FigureTable:
    return FigureTable(_COLUMNS, _rows(found))


def _chart(found: Sequence[Measured]) -> str:
    from penstock.bench.chart import line_chart

    around = {
        f"{one.replicas} replica{'' if one.replicas == 1 else 's'}":
            [(moment, age) for moment, age in one.ages if -5 <= moment <= 20]
        for one in found
    }
    return line_chart(_TITLE, around, "seconds after the kill", "seconds")
