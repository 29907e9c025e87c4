"""`penstock bench scaling`: whether cost grows with the work, and with nothing else."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, Section, write_section
from penstock.cli.busy import busy
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
    markdown: MarkdownOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every run, as JSON lines.")] = False,
) -> None:
    """Measure how the time of a run grows with its tuples, and with the operators that they pass.

    Tuples of 256 bytes through native operators to a file, in one session of Spark: everything once, then everything
    again. The fixed cost is what a run of a single tuple takes. `each further` is what an operator more than in the
    line above takes, of the whole. Below the tables: whether throughput per core is within 20 %, and a further operator
    below 5 %. Pages are written after each turn.
    """
    from penstock.bench.scaling import CHAIN_OPERATORS, CHAIN_TUPLES, ONE_TUPLE, Size, measure_sizes
    from penstock.spark.session import SessionSettings, default_master, prepare_workers, start_session

    sizes = [ONE_TUPLE, *(Size(number, CHAIN_OPERATORS) for number in numbers_in("--tuples", tuples)),
             *(Size(CHAIN_TUPLES, number) for number in numbers_in("--operators", operators))]
    found: dict[Size, list[float]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name, busy("measuring") as at_work:
        folder = Path(name)
        prepare_workers(default_master())
        spark = start_session(SessionSettings("scaling", default_master(), folder / "logs", os.cpu_count() or 2))
        try:
            for size, seconds in measure_sizes(spark, list(found), repetitions, folder, at_work.say):
                found[size].append(seconds)
                if as_json:
                    sys.stdout.write(json.dumps({**asdict(size), "seconds": seconds}) + "\n")
                    sys.stdout.flush()
                if markdown is not None and size == list(found)[-1]:
                    write_section(markdown, SECTION, _as_markdown(found))
        finally:
            spark.stop()
            if all(found.values()) and not as_json:
                _show(found)


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


def verdicts(found: Found) -> list[str]:
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
    said = [f"medians of {len(next(iter(found.values())))}; a run of one tuple: {fixed:.2f} s"]

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


def _as_markdown(found: Found) -> str:
    return f"{tuples_table(found).as_markdown()}\n{operators_table(found).as_markdown(verdicts(found))}"


def _show(found: Found) -> None:
    for table in (tuples_table(found), operators_table(found)):
        out.print(table.on_screen())
        out.print()
    for line in verdicts(found):
        out.print(line, soft_wrap=True)
