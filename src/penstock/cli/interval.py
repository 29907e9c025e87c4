"""`penstock interval`: another pause between epochs, while it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.console_options import AtOption, AuthorityOption, TokenOption, at_console, give
from penstock.cli.loading import Sets, load
from penstock.cli.orders import opened_orders
from penstock.cli.screen import fail
from penstock.cli.state_place import CoordinatorOption, StateOption, Topologies
from penstock.errors import TopologyError
from penstock.topology.values import to_seconds

DEFAULT = "default"


def interval(
    file: Topologies,
    wanted: Annotated[str, typer.Argument(metavar="DURATION", show_default=False,
                                          help="Between the starts of two epochs: 500ms, 2s; or `default`.")],
    sets: Sets = None,
    state: StateOption = None,
    coordinator: CoordinatorOption = None,
    at: AtOption = None,
    token: TokenOption = None,
    authority: AuthorityOption = None,
) -> None:
    """Have another pause between epochs, from the next epoch on; `default` is what the topology says.

    It holds for all replicas, and until another one is given, or the topology starts anew.
    """
    if (name := at_console(file)) is not None:
        give(name, "interval", at, token, authority, interval=wanted)
        return
    topology = load(file, sets, quiet=True)
    try:
        seconds = None if wanted == DEFAULT else to_seconds(wanted)
    except TopologyError as error:
        fail(f"{error}; or `default`", 2)
    with opened_orders(topology, state, coordinator) as orders:
        orders.set_interval(seconds)
    shown = topology.epoch.interval if seconds is None else seconds
    typer.echo(f"{topology.name}: an epoch every {shown:g} s" if shown else f"{topology.name}: no pause between epochs")
