"""`penstock crash`: kill a replica, to see what happens."""

from __future__ import annotations

import typer

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.orders import Replica, named_replicas
from penstock.cli.screen import fail
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies, running_topology


def crash(
    file: Topologies,
    sets: Sets = None,
    replica: Replica = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Kill a replica of a running topology with `kill -9`, or all of them, to see what happens.

    Only where the topology says `chaos: allowed`. A supervisor replaces what was killed.
    """
    if (name := at_console(file)) is not None:
        give(name, "crash", at, token, authority, replica=replica)
        return
    topology = load(file, sets, quiet=True)
    if topology.chaos != "allowed":
        fail(f"topology '{topology.name}' does not allow it: write `chaos: allowed` in its file", 2)
    from penstock.control.killing import kill_process
    from penstock.replication.roster import Member

    running = running_topology(topology, state, coordinator)
    if topology.replicas < 2:
        named_replicas(topology, replica)
        # Where it is watched, not who watches.
        for process in [member.process for member in running.replicas.values()] or running.processes():
            kill_process(process)
        typer.echo(f"{topology.name} was killed")
        return
    found: list[Member] = []
    for name in named_replicas(topology, replica):
        member = running.replicas.get(name)
        if member is None:
            fail(f"replica {name} of '{topology.name}' does not run now", 1)
        if member in running.elsewhere():
            fail(f"replica {name} runs on {member.host}: give the command there", 1)
        found.append(member)
    for member in found:
        kill_process(member.process)
        typer.echo(f"replica {member.name} was killed: process {member.process}")
