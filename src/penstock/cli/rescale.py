"""`penstock rescale`: divide what stateful operators remember over another number of instances."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.busy import busy
from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.screen import fail
from penstock.cli.state_place import CoordinatorOption, OnlyOption, StateOption, Topologies, replicas_meant


def rescale(
    file: Topologies,
    wanted: Annotated[str, typer.Argument(metavar="OPERATOR=N", help="A stateful operator, and how many instances.",
                                          show_default=False)],
    sets: Sets = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was done, as a JSON object.")] = False,
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver.")] = "1g",
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
    only: OnlyOption = None,
) -> None:
    """Divide what a stateful operator remembers over more or fewer instances, by its keys.

    A running topology does it between two epochs, and runs on; replicas do it one after the other, and output does not
    pause. Spark divides the state of a whole topology in the same
    way, so the number holds for all of its stateful operators, until the next rescale. Killed at any moment, this
    command and the run leave the old division or the new one.

    Exit code 0: done. 1: there is no state to divide, or it could not be done. 2: no such operator, or number.
    """
    operator, equals, number = wanted.partition("=")
    if not equals or not number.lstrip("-").isdigit():
        fail(f"'{wanted}': write OPERATOR=N, for example counts=4", 2)
    if (name := at_console(file)) is not None:
        give(name, "rescale", at, token, authority, as_json=as_json, operator=operator, instances=int(number))
        return
    topology = load(file, sets, quiet=True)
    from penstock.control.rolling import Rolling
    from penstock.replication.replica import ReplicaPlace, opened_roster
    from penstock.runtime.division import check_rescale
    from penstock.runtime.rescale import rescale as divide
    from penstock.runtime.run import RunSettings
    from penstock.runtime.state_folder import StateFolder

    check_rescale(topology, operator, int(number))
    settings = RunSettings(state=state, memory=memory)
    place = ReplicaPlace(StateFolder.of(topology, state))
    with busy("rescaling") as at_work:
        if place.states():
            with opened_roster(place.coordinator(topology, coordinator)) as roster:
                rolling = Rolling(topology, place, roster, at_work.say, only=replicas_meant(only))
                done = rolling.rescale(operator, int(number), settings)
        else:
            done = divide(topology, operator, int(number), settings, at_work.say)
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    others = [name for name in done.operators if name != operator]
    too = f", and so are {', '.join(others)}: one number holds for all stateful operators" if others else ""
    if done.before == done.after:
        typer.echo(f"'{operator}' is divided over {done.after} instances already{too}")
    else:
        typer.echo(f"'{operator}' is divided over {done.after} instances instead of {done.before}, as of epoch "
                   f"{done.epoch}{too}")
    if done.went_on:
        typer.echo("it is running, and goes on", err=True)
    if done.stopped:
        typer.echo("it was running and has been stopped; `penstock run` goes on from here", err=True)
