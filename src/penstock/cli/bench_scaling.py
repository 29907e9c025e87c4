"""`penstock bench scaling`: whether cost grows with the work, and with nothing else."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, Picture, Section, write_section
from penstock.cli.busy import busy
from penstock.cli.earlier import BesideOption, earlier
from penstock.cli.numbers import numbers_in
from penstock.cli.screen import out

if TYPE_CHECKING:
    from penstock.bench.scaling import Found, Size

_TUPLE_COLUMNS = ("tuples", "seconds", "tuples/s per core", "without the fixed cost")
_OPERATOR_COLUMNS = ("operators", "seconds", "each further")
SECTION = Section("scaling", "How cost grows")


def scaling(
    tuples: Annotated[
        str, typer.Option(metavar="N,N…", help="Numbers of tuples, through three operators.")
    ] = "100000,1000000,10000000,100000000",
    operators: Annotated[
        str, typer.Option(metavar="N,N…", help="Numbers of operators in a chain, for ten million tuples.")
    ] = "1,2,4,8",
    repetitions: Annotated[int, typer.Option(min=1, help="How often each is run; the median counts.")] = 3,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", file_okay=False, help="Draw scaling-tuples.svg and scaling-operators.svg."),
    ] = None,
    markdown: MarkdownOption = None,
    beside: BesideOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every run, as JSON lines.")] = False,
) -> None:
    """Measure how the time of a run grows with its tuples, and with the operators that they pass.

    Tuples of 256 bytes through native operators to a file, in one session of Spark: everything once, then everything
    again. The fixed cost is what a run of a single tuple takes. `each further` is what an operator more than in the
    line above takes, of the whole. Below the tables: whether throughput per core is within 20 %, and a further operator
    below 5 %. Pages, pictures and JSON are written after each run: who stops it keeps what is done, and goes on with
    `--beside`, whose runs count: `penstock bench scaling --beside done.jsonl --json >> done.jsonl`.
    """
    from penstock.bench.scaling import CHAIN_OPERATORS, CHAIN_TUPLES, ONE_TUPLE, Size, left_to_measure, measure_sizes
    from penstock.bench.scaling import as_json as line_of
    from penstock.spark.session import SessionSettings, default_master, prepare_workers, start_session

    by_number = [Size(number, CHAIN_OPERATORS) for number in numbers_in("--tuples", tuples)]
    by_chain = [Size(CHAIN_TUPLES, number) for number in numbers_in("--operators", operators)]
    sizes = list(dict.fromkeys([ONE_TUPLE, *by_number, *by_chain]))
    found = _earlier_runs(beside)
    before = sum(map(len, found.values()))
    left = left_to_measure(sizes, repetitions, found)
    if not left:
        _write(found, sizes, before, svg, markdown)
        if not as_json:
            _show(found, sizes, before)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name, busy("measuring") as at_work:
        folder = Path(name)
        prepare_workers(default_master())
        spark = start_session(SessionSettings("scaling", default_master(), folder / "logs", os.cpu_count() or 2))
        try:
            for size, seconds in measure_sizes(spark, left, folder, at_work.say):
                found.setdefault(size, []).append(seconds)
                if as_json:
                    sys.stdout.write(line_of(size, seconds) + "\n")
                    sys.stdout.flush()
                _write(found, sizes, before, svg, markdown)
        finally:
            spark.stop()
            if ONE_TUPLE in found and not as_json:
                _show(found, sizes, before)


def _earlier_runs(beside: Path | None) -> dict[Size, list[float]]:
    from penstock.bench.scaling import run_in

    found: dict[Size, list[float]] = {}
    for size, seconds in earlier(beside, run_in):
        found.setdefault(size, []).append(seconds)
    return found


def _write(found: Found, sizes: Sequence[Size], before: int, svg: Path | None, markdown: Path | None) -> None:
    pictures = [] if svg is None else draw(found, svg)
    if markdown is not None:
        said = "".join(f"- {line}\n" for line in verdicts(found, sizes, before))
        text = "\n".join([*(table.as_markdown() for table in _tables(found)), said])
        write_section(markdown, SECTION, text, pictures)


def tuples_table(found: Found) -> FigureTable:
    from penstock.bench.scaling import by_tuples, fixed_seconds, per_core

    seconds, cores = by_tuples(found), os.cpu_count() or 1
    plain, without = per_core(seconds, cores), per_core(seconds, cores, fixed_seconds(found))
    rows = [[f"{number:,}", f"{took:.2f}", f"{plain[number]:,.0f}", f"{without[number]:,.0f}"]
            for number, took in seconds.items()]  # fmt: skip
    return FigureTable(_TUPLE_COLUMNS, rows, 0)


def operators_table(found: Found) -> FigureTable:
    from penstock.bench.scaling import by_operators, steps

    seconds = by_operators(found)
    more = steps(seconds)
    rows = [[str(number), f"{took:.2f}", f"{more[number]:+.1%}" if number in more else ""]
            for number, took in seconds.items()]  # fmt: skip
    return FigureTable(_OPERATOR_COLUMNS, rows, 0)


def verdicts(found: Found, sizes: Sequence[Size], before: int = 0) -> list[str]:
    """What the tables come to, once all sizes are measured; so many of the runs were made `before`."""
    from penstock.bench.goals import held
    from penstock.bench.scaling import (
        SHARE_OF_OPERATOR,
        WITHIN,
        by_operators,
        by_tuples,
        fixed_seconds,
        operator_share,
        per_core,
        spread,
    )

    seconds, chains, fixed, cores = by_tuples(found), by_operators(found), fixed_seconds(found), os.cpu_count() or 1
    runs = sorted({len(each) for each in found.values()})
    said = [f"medians of {' or '.join(map(str, runs))}; a run of one tuple: {fixed:.2f} s"]
    if before:
        said.append(f"of earlier runs of the tool: {before} of {sum(map(len, found.values()))} runs")
    missing = [f"{size.tuples:,} tuples through {size.operators}" for size in sizes if size not in found]
    if missing:
        return [*said, f"not measured yet: {', '.join(missing)}"]

    def within(what: str, rates: Mapping[int, float]) -> str:
        return (f"tuples/s per core {what}: within {spread(rates):.0%} (goal: {WITHIN:.0%}): "
                f"{held(spread(rates) <= WITHIN)}")

    if len(seconds) > 1:
        said.append(within("as measured", per_core(seconds, cores)))
        said.append(within("without the fixed cost", per_core(seconds, cores, fixed)))
    if len(chains) > 1:
        share = operator_share(chains)
        said.append(f"each further operator, by a line through all chains: {share:+.1%} of the time with {min(chains)} "
                    f"(goal: under {SHARE_OF_OPERATOR:.0%}): {held(share < SHARE_OF_OPERATOR)}")
    return said


def draw(found: Found, folder: Path) -> list[Picture]:
    from penstock.bench.chart import line_chart
    from penstock.bench.scaling import by_operators, by_tuples, fixed_seconds, per_core

    folder.mkdir(parents=True, exist_ok=True)
    seconds, chains, cores = by_tuples(found), by_operators(found), os.cpu_count() or 1
    rates = {"as measured": per_core(seconds, cores),
             "without the fixed cost": per_core(seconds, cores, fixed_seconds(found))}  # fmt: skip
    powers = {name: [(log10(number), each / 1000) for number, each in by.items()] for name, by in rates.items()}
    tuples = Picture(folder / "scaling-tuples.svg", "Throughput per core, by the number of tuples")
    operators = Picture(folder / "scaling-operators.svg", "The time of a run, by its operators")
    tuples.file.write_text(line_chart(
        tuples.shows, powers, "tuples, as a power of ten", "thousand tuples a second and core"), "utf-8")
    operators.file.write_text(line_chart(
        operators.shows, {"a chain": list(chains.items())}, "native operators in a chain", "seconds"), "utf-8")
    return [tuples, operators]


def _tables(found: Found) -> list[FigureTable]:
    """Those that have lines already."""
    return [table for table in (tuples_table(found), operators_table(found)) if table.rows]


def _show(found: Found, sizes: Sequence[Size], before: int) -> None:
    for table in _tables(found):
        out.print(table.on_screen())
        out.print()
    for line in verdicts(found, sizes, before):
        out.print(line, soft_wrap=True)
