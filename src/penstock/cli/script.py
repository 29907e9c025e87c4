"""`penstock script`: carry out puppet-master commands on a running topology."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.loading import Sets, load
from penstock.cli.orders import opened_coordinator
from penstock.cli.screen import fail, show_problems
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies, running_topology


def script(
    file: Topologies,
    commands: Annotated[
        Path | None,
        typer.Option("--commands", metavar="FILE", help="A file of commands; without it, those of the topology."),
    ] = None,
    sets: Sets = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
) -> None:
    """Carry out puppet-master commands on a running topology: Start, Interval, Status, Crash, Freeze, Unfreeze, Wait.

    All but `Wait` are given without waiting for what comes of them. What is done is written to standard output in time
    order, as a script: times and answers are comments. A replica's number counts from 0, as in DADSTORM.

    Exit code 0: all were carried out. 1: some could not be, or the topology does not run. 2: a command is wrong.
    """
    topology = load(file, sets, quiet=True)
    wanted = topology.commands
    if commands is not None:
        from penstock.topology.dadstorm.reader import parse_commands

        wanted, problems = parse_commands(commands.read_text(encoding="utf-8"), commands.name)
        show_problems(problems)
        if any(problem.severity == "error" for problem in problems):
            fail(f"{commands}: nothing was carried out", 2)
    if not wanted:
        fail(f"there are no commands in {commands or file}", 2)
    from penstock.control.script import ScriptRun
    from penstock.control.script_target import RunningTarget

    running_topology(topology, state, coordinator)
    began = time.monotonic()

    def log(line: str) -> None:
        typer.echo(line if line.startswith("%") else f"{line:<40} % {time.monotonic() - began:.3f} s")

    with opened_coordinator(topology, state, coordinator) as opened:
        run = ScriptRun(wanted, RunningTarget(topology, opened), log)
        run.run()
    if run.failed:
        fail(f"{run.failed} of {len(wanted)} commands could not be carried out", 1)
