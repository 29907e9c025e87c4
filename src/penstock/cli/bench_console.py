"""`penstock bench console`: what the console costs, and how soon another master takes over."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.bench_page import FigureTable, MarkdownOption, Section, write_section
from penstock.cli.busy import busy
from penstock.cli.screen import out

if TYPE_CHECKING:
    from penstock.bench.console_age import Effect

_COLUMNS = ("topologies", "operators each", "of a core", "memory", "page is behind", "a command", "takeover")
_BY_COMMAND = ("command", "has its effect within", "epochs as before")
SECTION = Section("console", "The console")


def console(
    topologies: Annotated[int, typer.Option(min=1, help="How many topologies are watched.")] = 200,
    operators: Annotated[int, typer.Option(min=1, help="How many operators each has.")] = 10,
    seconds: Annotated[float, typer.Option(min=5, metavar="SECONDS", help="How long is measured.")] = 30.0,
    markdown: MarkdownOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was measured, as a JSON object.")] = False,
) -> None:
    """Measure a master that watches many topologies, and kill it while another waits.

    The topologies are made up: one process tells of all of them twice a second, as their supervisors would. One more
    really runs, with an epoch every half second. `page is behind` is how long at worst its page still showed an epoch
    when the next was done already; `a command` is from a `freeze`, `stop` or longer `interval` until the last epoch
    that was as before, or from an `unfreeze` until the next one, at worst, and how many epochs were as before: the one
    in flight is. A second table has it by command.
    It begins when one of the masters leads, and gives up on a command that has no effect within a minute.
    `takeover` is from the `kill -9` of the leading master until the other leads.
    """
    from penstock.bench.console import measure_console

    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, busy("measuring") as at_work:
        found = measure_console(topologies, operators, seconds, Path(folder), at_work.say)
    table = FigureTable(_COLUMNS, [[f"{found.topologies:,}", str(found.operators), f"{100 * found.core_share:.1f} %",
                                    f"{found.megabytes:.0f} MB", f"{found.behind:.2f} s",
                                    f"{found.effect:.2f} s, {found.epochs} epochs",
                                    f"{found.takeover:.2f} s"]])  # fmt: skip
    by_command = commands_table(found.commands)
    if markdown is not None:
        write_section(markdown, SECTION, f"{table.as_markdown()}\n{by_command.as_markdown()}")
    if as_json:
        sys.stdout.write(json.dumps(asdict(found)) + "\n")
    else:
        out.print(table.on_screen())
        out.print()
        out.print(by_command.on_screen())


def commands_table(commands: Mapping[str, Effect]) -> FigureTable:
    """How soon each command takes effect."""
    return FigureTable(_BY_COMMAND, [[verb, f"{effect.seconds:.2f} s", str(effect.epochs)]
                                     for verb, effect in commands.items()])  # fmt: skip
