"""`penstock bench scaling`: whether cost grows with the work, and with nothing else."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, write_section
from penstock.cli.busy import busy
from penstock.cli.numbers import numbers_in
from penstock.cli.screen import out

if TYPE_CHECKING:
    from penstock.bench.scaling import Took

_COLUMNS = ("tuples", "operators", "seconds", "tuples/s")


def scaling(
    tuples: Annotated[
        str, typer.Option(metavar="N,N…", help="Numbers of tuples, through three operators.")
    ] = "100000,1000000,10000000,100000000",
    operators: Annotated[
        str, typer.Option(metavar="N,N…", help="Numbers of operators in a chain, for ten million tuples.")
    ] = "1,2,4,8",
    repetitions: Annotated[int, typer.Option(min=1, help="How often each is run; the median counts.")] = 3,
    markdown: MarkdownOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that was measured, as JSON lines.")] = False,
) -> None:
    """Measure how the time of a run grows with its tuples, and with the operators that they pass.

    Tuples of 256 bytes through native operators to a file, in one session of Spark. Below the table: what a run takes
    before its first tuple, and how much longer each further operator makes it.
    """
    from penstock.bench.scaling import Size, measure_sizes
    from penstock.spark.session import SessionSettings, default_master, prepare_workers, start_session

    sizes = [*(Size(number, 3) for number in numbers_in("--tuples", tuples)),
             *(Size(10_000_000, number) for number in numbers_in("--operators", operators))]
    found: list[Took] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name, busy("measuring") as at_work:
        folder = Path(name)
        prepare_workers(default_master())
        spark = start_session(SessionSettings("scaling", default_master(), folder / "logs", os.cpu_count() or 2))
        try:
            for took in measure_sizes(spark, list(dict.fromkeys(sizes)), repetitions, folder, at_work.say):
                found.append(took)
                if as_json:
                    sys.stdout.write(json.dumps({**asdict(took.size), "seconds": took.seconds}) + "\n")
                    sys.stdout.flush()
        finally:
            spark.stop()
    if markdown is not None:
        write_section(
            markdown, "scaling", _table(found).as_markdown("penstock bench scaling", _conclusions(found)))
    if not as_json:
        out.print(_table(found).on_screen())
        for line in _conclusions(found):
            out.print(line)


def _row(took: Took) -> list[str]:
    return [f"{took.size.tuples:,}", str(took.size.operators), f"{took.seconds:.2f}", f"{took.tuples_per_second:,.0f}"]


def _table(found: Sequence[Took]) -> FigureTable:
    return FigureTable(_COLUMNS, [_row(took) for took in found], 0)


def _conclusions(found: Sequence[Took]) -> list[str]:
    from penstock.bench.scaling import line_through

    said = []
    by_tuples = [(float(took.size.tuples), took.seconds) for took in found if took.size.operators == 3]
    if len(by_tuples) > 1:
        fixed, each = line_through(by_tuples)
        rates = [tuples / (seconds - fixed) for tuples, seconds in by_tuples[1:]]
        said.append(f"a run without tuples: {fixed:.2f} s; each million: {1e6 * each:.2f} s; "
                    f"without the former, {min(rates):,.0f} to {max(rates):,.0f} tuples/s")
    by_operators = [(float(took.size.operators), took.seconds) for took in found if took.size.tuples == 10_000_000]
    if len(by_operators) > 1:
        by_operators.sort()
        _, each = line_through(by_operators)
        fewest, seconds = by_operators[0]
        said.append(f"each further operator: {each / seconds:+.1%} of the time with {fewest:.0f}")
    return said
