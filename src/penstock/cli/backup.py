"""`penstock backup`: copy what a topology remembers to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.busy import busy, megabytes
from penstock.cli.checkpoint import summary
from penstock.cli.loading import Sets, load
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies, settled_state


def backup(
    file: Topologies,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder, or one to be made.",
                                           show_default=False)],
    sets: Sets = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which checkpoint. By default the newest epoch, as it is now.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was copied, as a JSON object.")] = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
) -> None:
    """Copy what a topology remembers to a folder, also on another disk; `penstock restore` goes on from it.

    Works on a running topology, which does not notice, and on a stopped one. The copy is complete in itself.
    """
    topology = load(file, sets, quiet=True)
    from penstock.runtime.backup import back_up

    place = settled_state(topology, state)
    with busy("copying") as at_work:
        at_work.say("copying")
        copied = back_up(place, topology.name, place.coordinator_for(topology, coordinator), folder.absolute(),
                         checkpoint, at_work.look)
    if as_json:
        typer.echo(json.dumps(summary(copied)))
    else:
        typer.echo(f"'{topology.name}' after epoch {copied.epoch}, {megabytes(copied.size)}, is in {folder}; "
                   f"`penstock restore {folder}` goes on from it")
