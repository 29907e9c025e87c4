"""`penstock script`: carry out puppet-master commands on a running topology."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, client, meant_as_name
from penstock.cli.loading import Sets, load, topology_path
from penstock.cli.orders import opened_coordinator
from penstock.cli.screen import fail, show_problems
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies, running_topology
from penstock.topology.loading import addressed_replicas

if TYPE_CHECKING:
    from penstock.console.client import Client
    from penstock.topology.dadstorm.commands import Replicas
    from penstock.topology.model import Command
    from penstock.topology.problems import Problem


def script(
    file: Topologies,
    commands: Annotated[
        Path | None,
        typer.Option("--commands", metavar="FILE", help="A file of commands; without it, those of the topology."),
    ] = None,
    sets: Sets = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Carry out puppet-master commands on a running topology: Start, Interval, Status, Crash, Freeze, Unfreeze, Wait.

    All but `Wait` are given without waiting for what comes of them. What is done is written to standard output in time
    order, as a script: times and answers are comments. A replica's number counts from 0, as in DADSTORM. Nothing is
    done where a command names an operator that is not there.

    In place of a file, the name of a topology of a console, with `--commands`.

    Exit code 0: all were carried out. 1: some could not be, or the topology does not run. 2: a command is wrong.
    """
    if (name := at_console(file)) is not None:
        if commands is None:
            fail(f"give --commands FILE: the commands of the file of '{name}' are carried out as it runs", 2)
        with meant_as_name(name):
            _at_console(name, commands, client(at, token, authority))
        return
    topology = load(file, sets, quiet=True)
    if commands is None:
        wanted: Sequence[Command] = topology.commands
    else:
        wanted = _resolved(_commands_in(commands), addressed_replicas(topology_path(file), topology), commands)
    if not wanted:
        fail(f"there are no commands in {file}", 2)
    from penstock.control.script import ScriptRun
    from penstock.control.script_target import RunningTarget

    running_topology(topology, state, coordinator)
    log = _timed_log()
    with opened_coordinator(topology, state, coordinator) as opened:
        run = ScriptRun(wanted, RunningTarget(topology, opened), log)
        run.run()
    _tell_failed(run.failed, wanted)


def _commands_in(file: Path) -> Sequence[Command]:
    """The commands in a file of their own; ends the command where one is wrong, or none is there."""
    from penstock.topology.dadstorm.reader import parse_commands

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        fail(f"--commands {file} cannot be read: {getattr(error, 'strerror', None) or error}", 2)
    wanted, problems = parse_commands(text, file.name)
    _refuse_wrong(problems, file)
    if not wanted:
        fail(f"there are no commands in {file}", 2)
    return wanted


def _resolved(wanted: Sequence[Command], replicas: Replicas, file: Path) -> Sequence[Command]:
    """The commands with operators as the topology spells them; ends the command where one is not there."""
    from penstock.topology.dadstorm.commands import resolve_all

    resolved, problems = resolve_all(wanted, replicas)
    _refuse_wrong(problems, file)
    return resolved


def _refuse_wrong(problems: Sequence[Problem], file: Path) -> None:
    show_problems(problems)
    if any(problem.severity == "error" for problem in problems):
        fail(f"{file}: nothing was carried out", 2)


def _at_console(name: str, file: Path, console: Client) -> None:
    from penstock.console.script_target import ConsoleTarget
    from penstock.control.script import ScriptRun
    from penstock.topology.dadstorm.commands import Replicas

    wanted = _commands_in(file)
    log = _timed_log()
    with closing(ConsoleTarget(console, name, log)) as target:
        if target.operators is not None:
            wanted = _resolved(wanted, Replicas((), {each: each for each in target.operators}), file)
        run = ScriptRun(wanted, target, log)
        run.run()
    _tell_failed(run.failed + target.failed, wanted)


def _timed_log() -> Callable[[str], None]:
    """Lines of a script, each with the time since now as a comment."""
    began = time.monotonic()

    def log(line: str) -> None:
        typer.echo(line if line.startswith("%") else f"{line:<40} % {time.monotonic() - began:.3f} s")

    return log


def _tell_failed(failed: int, wanted: Sequence[Command]) -> None:
    if failed:
        fail(f"{failed} of {len(wanted)} commands could not be carried out", 1)
