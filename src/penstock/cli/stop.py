"""`penstock stop` and `penstock kill`: end a running topology, gently or at once."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.cli.busy import busy
from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.screen import fail
from penstock.cli.state_place import (
    CoordinatorOption,
    OnlyOption,
    StateOption,
    Topologies,
    replicas_meant,
    running_topology,
)

AsJson = Annotated[bool, typer.Option("--json", help="What was done, as a JSON object.")]


def stop(
    file: Topologies,
    sets: Sets = None,
    patience: Annotated[float, typer.Option(metavar="SECONDS", help="How long it may take to end.")] = 60.0,
    as_json: AsJson = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Have a running topology finish its epoch and end, with all its replicas.

    Nothing is lost: `penstock run` goes on where it stopped. Exit code 0: it has ended. 1: it does not run, or has not
    ended in time.
    """
    if (name := at_console(file)) is not None:
        give(name, "stop", at, token, authority, as_json=as_json)
        return
    topology = load(file, sets, quiet=True)
    from penstock.control.running import stop as stop_running

    running = running_topology(topology, state, coordinator)
    with busy("stopping after this epoch"):
        ended = stop_running(running, patience)
    if not ended:
        fail(f"'{topology.name}' has not ended within {patience:g} s; `penstock kill` does not wait", 1)
    typer.echo(json.dumps({"topology": topology.name, "stopped": running.processes()}) if as_json
               else f"{topology.name} has stopped; `penstock run` goes on from there")


def kill(
    file: Topologies,
    sets: Sets = None,
    as_json: AsJson = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
    only: OnlyOption = None,
) -> None:
    """End a running topology at once, with all its replicas: `kill -9`.

    With `exactly-once` nothing is lost or doubled by it: the epoch in flight is done again by the next `penstock run`.
    Exit code 0: it has ended. 1: it does not run.
    """
    if (name := at_console(file)) is not None:
        give(name, "kill", at, token, authority, as_json=as_json)
        return
    topology = load(file, sets, quiet=True)
    from penstock.control.running import kill as kill_running

    running = running_topology(topology, state, coordinator).only(replicas_meant(only))
    kill_running(running)
    typer.echo(json.dumps({"topology": topology.name, "killed": running.processes()}) if as_json
               else f"{topology.name} was killed; `penstock run` goes on after its last epoch")
