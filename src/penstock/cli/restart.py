"""`penstock restart`: start the replicas of a running topology anew, one at a time."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.cli.busy import busy
from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.screen import fail
from penstock.cli.state_place import CoordinatorOption, OnlyOption, StateOption, Topologies, replicas_meant


def restart(
    file: Topologies,
    sets: Sets = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was done, as a JSON object.")] = False,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
    only: OnlyOption = None,
) -> None:
    """Restart the replicas of a running topology one at a time, with the file and the code as they are now.

    Each ends after its epoch, is started anew, and catches up, before the next one follows; the others deliver
    meanwhile, and output never pauses. So a new version of the code is put in place. A version that cannot go on from
    what the replicas remember is refused before anything is touched.

    Exit code 0: all replicas are safe again. 1: one did not come up, and the others go on as they were. 2: the
    topology is wrong, or has no replicas.
    """
    if (name := at_console(file)) is not None:
        give(name, "restart", at, token, authority, as_json=as_json)
        return
    topology = load(file, sets, quiet=True)
    if topology.replicas < 2:
        fail(f"topology '{topology.name}' has no replicas: stop `penstock run` with Ctrl-C, and give it again", 2)
    from penstock.control.rolling import Rolling
    from penstock.replication.replica import ReplicaPlace, opened_roster
    from penstock.runtime.state_folder import StateFolder
    from penstock.spark.session import default_master

    place = ReplicaPlace(StateFolder.of(topology, state))
    with opened_roster(place.coordinator(topology, coordinator)) as roster, busy("restarting") as at_work:
        rolling = Rolling(topology, place, roster, at_work.say, only=replicas_meant(only))
        done = rolling.restart(default_master())
    if as_json:
        typer.echo(json.dumps({"topology": topology.name, "restarted": done}))
    else:
        typer.echo(f"restarted one after the other: {', '.join(f'replica {name}' for name in done)}; all are safe")
